"""Settings of the brokers' addresses and of how a client logs in: password, certificates, TLS."""

import ssl
from pathlib import Path
from typing import Literal, Self, TypedDict

from pydantic import AliasChoices, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from streams.settings_problems import PREFIX, BadSettings


class KafkaAuth(TypedDict, total=False):
    """The arguments that all aiokafka clients of this service share: addresses and login."""

    bootstrap_servers: str
    security_protocol: str
    ssl_context: ssl.SSLContext
    sasl_mechanism: str
    sasl_plain_username: str | None
    sasl_plain_password: str


class KafkaLogin(BaseSettings):
    """The settings that every client of Kafka needs, frozen."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="forbid", populate_by_name=True
    )

    bootstrap: str = Field(
        "127.0.0.1:9092",
        validation_alias=AliasChoices("PB_BOOTSTRAP", "KAFKA_BOOTSTRAP", "bootstrap"),
        examples=["kafka-1:9092,kafka-2:9092"],
    )
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", examples=["SASL_SSL"]
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        "SCRAM-SHA-512", examples=["SCRAM-SHA-512"]
    )
    sasl_username: str | None = Field(None, examples=["paretobandit"])
    sasl_password: SecretStr | None = Field(
        None, examples=["(or its file in PB_SASL_PASSWORD_FILE)"]
    )
    ssl_cafile: Path | None = Field(None, examples=["/etc/kafka/ca.pem"])
    ssl_certfile: Path | None = Field(None, examples=["/etc/kafka/client.pem"])
    ssl_keyfile: Path | None = Field(None, examples=["/etc/kafka/client.key"])

    @field_validator("bootstrap")
    @classmethod
    def _addresses(cls, value: str) -> str:
        for address in value.split(","):
            host, _, port = address.strip().rpartition(":")
            if not host or not port.isdigit() or "/" in host or ";" in address:
                raise ValueError(
                    f"{address.strip()!r} is not host:port; separate brokers by commas"
                )
        return ",".join(address.strip() for address in value.split(","))

    @model_validator(mode="after")
    def _login_fits_together(self) -> Self:
        if self.security_protocol.startswith("SASL") and not (
            self.sasl_username and self.sasl_password
        ):
            raise ValueError(
                f"PB_SECURITY_PROTOCOL={self.security_protocol} needs PB_SASL_USERNAME and "
                "PB_SASL_PASSWORD"
            )
        if self.sasl_username is not None and not self.security_protocol.startswith("SASL"):
            raise ValueError(
                "PB_SASL_USERNAME needs PB_SECURITY_PROTOCOL=SASL_SSL or SASL_PLAINTEXT"
            )
        if (self.ssl_certfile is None) != (self.ssl_keyfile is None):
            raise ValueError("PB_SSL_CERTFILE and PB_SSL_KEYFILE must be given together")
        return self

    @property
    def logs_in(self) -> bool:
        """Tell whether clients log in to Kafka, by a password or by a certificate."""
        return self.security_protocol.startswith("SASL") or (
            self.security_protocol == "SSL" and self.ssl_certfile is not None
        )

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return the TLS context for Kafka, or None without TLS. Raises BadSettings for files that
        hold no certificates.
        """
        if not self.security_protocol.endswith("SSL"):
            return None
        try:
            context = ssl.create_default_context(cafile=self.ssl_cafile)
        except OSError as error:
            raise BadSettings(
                f"PB_SSL_CAFILE: cannot read certificates from {self.ssl_cafile}: {error.strerror}"
            ) from error
        if self.ssl_certfile is not None:
            try:
                context.load_cert_chain(self.ssl_certfile, self.ssl_keyfile)
            except OSError as error:
                raise BadSettings(
                    f"PB_SSL_CERTFILE, PB_SSL_KEYFILE: cannot use {self.ssl_certfile}: "
                    f"{error.strerror}"
                ) from error
        return context

    def kafka_auth(self) -> KafkaAuth:
        """Return the arguments that every aiokafka client of this service needs beside its own."""
        auth: KafkaAuth = {
            "bootstrap_servers": self.bootstrap,
            "security_protocol": self.security_protocol,
        }
        if (context := self.ssl_context()) is not None:
            auth["ssl_context"] = context
        if self.security_protocol.startswith("SASL") and self.sasl_password is not None:
            auth["sasl_mechanism"] = self.sasl_mechanism
            auth["sasl_plain_username"] = self.sasl_username
            auth["sasl_plain_password"] = self.sasl_password.get_secret_value()
        return auth
