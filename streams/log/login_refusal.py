"""Find out whether Kafka refuses this user, its password or its certificates."""

from __future__ import annotations

import ssl

from aiokafka.errors import (
    IllegalSaslStateError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

from streams.faust.one_connection import connection_error
from streams.settings import Settings


async def refusal(settings: Settings) -> str | None:
    """Try the first address once more; return what is wrong with user, password or certificates,
    None if the fault is another one.
    """
    address, error = await connection_error(settings.kafka_auth())
    why = None if error is None else _reason(error, settings)
    return f"Kafka at {address} {why}" if why else None


def _reason(error: Exception, settings: Settings) -> str | None:
    """Return what Kafka refuses and what to check; None if the error has nothing to do with the
    login.
    """
    match error:
        case SaslAuthenticationFailed():
            return (
                f"refuses user {settings.sasl_username}: look at PB_SASL_USERNAME and "
                "PB_SASL_PASSWORD"
            )
        case UnsupportedSaslMechanismError():
            return f"does not take {settings.sasl_mechanism}: look at PB_SASL_MECHANISM"
        case IllegalSaslStateError():
            return "takes no password there: look at PB_SECURITY_PROTOCOL"
        case ssl.SSLCertVerificationError():
            why = error.verify_message
            return f"has a certificate that is not trusted ({why}): look at PB_SSL_CAFILE"
        case ssl.SSLError() | ConnectionResetError() if settings.security_protocol.endswith("SSL"):
            why = getattr(error, "reason", None) or "it ends the connection"
            look = "look at PB_SECURITY_PROTOCOL and PB_SSL_CERTFILE"
            return f"makes no TLS connection ({why}): {look}"
        case _:
            return None
