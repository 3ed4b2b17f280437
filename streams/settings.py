"""Read every setting of the service from the environment (prefix `PB_`), once."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource

from streams.kafka_login import KafkaLogin
from streams.secret_files import FromFiles
from streams.settings_problems import BadSettings, misspelt, sentence

DAY = 86_400.0
"""Seconds of a day."""
USUAL_PREFIX = "pb."
"""Prefix of topics where none is set."""


class Settings(KafkaLogin):
    """All settings of a worker, frozen: environment variables `PB_<NAME>`, or `PB_<NAME>_FILE` with
    a file's path.
    """

    # Topics, the group, and how a worker reads and writes; `KafkaLogin` has the brokers.
    prefix: str = Field(USUAL_PREFIX, pattern=r"^[A-Za-z0-9._-]{0,64}$", examples=["pb."])
    app_id: str = Field(
        "paretobandit", pattern=r"^[A-Za-z0-9._-]{1,128}$", examples=["paretobandit"]
    )
    instance_id: str | None = Field(None, pattern=r"^[A-Za-z0-9._-]{1,249}$", examples=["worker-0"])
    partitions: int = Field(8, ge=1, le=1024, examples=["8"])
    replication: int | None = Field(None, ge=1, le=32767, examples=["3"])
    session_timeout: float = Field(4.0, ge=1.0, le=30.0, examples=["4"])
    heartbeat: float = Field(0.3, gt=0.0, examples=["0.3"])
    commit_interval: float = Field(0.5, gt=0.0, le=60.0, examples=["0.5"])
    batch_size: int = Field(512, ge=1, le=10_000, examples=["512"])
    source_buffer_bytes: int = Field(2 * 2**20, ge=2**16, examples=["2097152"])
    output_compression: Literal["none", "gzip", "lz4", "zstd"] = Field("none", examples=["lz4"])
    changelog_batch_bytes: int = Field(16 * 2**20, ge=2**20, le=90 * 2**20, examples=["16777216"])

    # Contexts: how long a request can still be paid and rewarded, and where its context waits for
    # that.
    context_ttl: float = Field(7 * DAY, gt=0.0, le=3650 * DAY, examples=["604800"])
    redis_url: SecretStr | None = Field(None, examples=["redis://127.0.0.1:6379/0"])

    # Encoder
    encoder_backend: Literal["static", "onnx", "sentence-transformers", "none"] | None = Field(
        None, examples=["static"]
    )
    encoder_path: Path | None = Field(None, examples=["/var/lib/paretobandit/encoder"])
    encoder_weights: str | None = Field(None, examples=["sentence-transformers/all-MiniLM-L6-v2"])
    encoder_threads: int = Field(1, ge=1, le=64, examples=["2"])
    priors_path: Path | None = Field(None, examples=["/var/lib/paretobandit/priors"])
    projection_path: Path | None = Field(None, examples=["/var/lib/paretobandit/projection"])

    # What others see: logs, traces, events, web
    log_format: Literal["text", "json"] = Field("text", examples=["json"])
    web_bind: str = Field("127.0.0.1", pattern=r"^\S+$", examples=["127.0.0.1"])
    traces: Literal["off", "otlp"] = Field("off", examples=["otlp"])
    cloud_events_source: str | None = Field(
        None, pattern=r"^[!-~]{1,200}$", examples=["urn:acme:router"]
    )
    metrics_routers: int = Field(0, ge=0, le=10_000, examples=["50"])
    web_port: int = Field(8080, ge=0, le=65_535, examples=["8080"])

    # Gateway
    gateway_bind: str = Field("127.0.0.1", pattern=r"^\S+$", examples=["0.0.0.0"])
    gateway_port: int = Field(8090, ge=0, le=65_535, examples=["8090"])
    gateway_keys: SecretStr | None = Field(
        None, examples=["(or the file of the list in PB_GATEWAY_KEYS_FILE)"]
    )
    gateway_rate: float = Field(1000.0, gt=0.0, le=1e9, examples=["1000"])
    gateway_body_bytes: int = Field(4 * 2**20, ge=1024, le=256 * 2**20, examples=["4194304"])
    gateway_batch: int = Field(1000, ge=1, le=100_000, examples=["1000"])
    gateway_timeout: float = Field(10.0, gt=0.0, le=600.0, examples=["10"])
    gateway_search: int = Field(20_000, ge=0, examples=["20000"])

    # Dashboard
    dashboard_bind: str = Field("127.0.0.1", pattern=r"^\S+$", examples=["0.0.0.0"])
    dashboard_port: int = Field(8070, ge=0, le=65_535, examples=["8070"])
    dashboard_keys: SecretStr | None = Field(
        None, examples=["(or the file of the list in PB_DASHBOARD_KEYS_FILE)"]
    )
    dashboard_admin_keys: SecretStr | None = Field(
        None, examples=["(or the file of the list in PB_DASHBOARD_ADMIN_KEYS_FILE)"]
    )
    dashboard_trace_url: str | None = Field(
        None,
        pattern=r"^https?://\S*\{trace\}\S*$",
        examples=["https://jaeger.example/trace/{trace}"],
    )

    # Limits
    prompt_bytes: int = Field(2**20, ge=1, le=2**20, examples=["1048576"])
    models_per_router: int = Field(64, ge=1, examples=["64"])
    routers_per_worker: int = Field(10_000, ge=1, examples=["10000"])
    in_flight_per_router: int = Field(100_000, ge=1, examples=["100000"])
    requests_per_router: int | None = Field(None, ge=1, examples=["100000"])
    memory_bytes: int | None = Field(None, ge=2**20, examples=["4294967296"])
    parked_events: int = Field(10_000, ge=0, examples=["10000"])

    # Check what a group has changed before it becomes durable.
    validate_state: bool = Field(False, examples=["true"])

    # Waits, seconds
    orphan_wait: float = Field(60.0, ge=0.0, le=30 * DAY, examples=["60"])
    unknown_router_wait: float = Field(2.0, ge=0.0, le=DAY, examples=["2"])
    retry_for: float = Field(60.0, ge=0.0, le=DAY, examples=["60"])
    stall_after: float = Field(30.0, gt=0.0, le=DAY, examples=["30"])

    # Ranks of sources of rewards: the first named source outranks those after it; sources not
    # named share the lowest rank.
    source_ranks: Annotated[tuple[str, ...], NoDecode] = Field(
        ("human", "judge", "user", "metric"), min_length=1, examples=["human,judge,user,metric"]
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, FromFiles(settings_cls)

    @model_validator(mode="before")
    @classmethod
    def _group_of_its_own(cls, values: dict[str, object]) -> dict[str, object]:
        return (
            values
            if "app_id" in values
            else values | {"app_id": group_of(str(values.get("prefix", USUAL_PREFIX)))}
        )

    @field_validator("source_ranks", mode="before")
    @classmethod
    def _comma_separated(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value

    @field_validator("source_ranks")
    @classmethod
    def _names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len({*value}) < len(value) or any(not name or ";" in name for name in value):
            raise ValueError("must be different names, separated by commas")
        return value

    @field_validator("redis_url")
    @classmethod
    def _redis_scheme(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not value.get_secret_value().startswith(
            ("redis://", "rediss://", "unix://")
        ):
            raise ValueError("must start with redis://, rediss:// or unix://")
        return value

    @model_validator(mode="after")
    def _heartbeat_fits(self) -> Self:
        if self.heartbeat * 2 >= self.session_timeout:
            raise ValueError("PB_HEARTBEAT must be less than half of PB_SESSION_TIMEOUT")
        return self

    @property
    def changelog(self) -> str:
        """Return the topic that holds everything durable."""
        return f"{self.app_id}-router_states-changelog"

    def topic(self, name: str) -> str:
        """Return a topic's full name: `requests` becomes `pb.requests`."""
        return f"{self.prefix}{name}"

    def source_rank(self, source: str) -> int:
        """Return a reward source's rank; a source of higher rank revises one of lower rank. Sources
        without a declared rank have 0. A person's source, such as human:anna, has the rank of the
        source that it begins with.
        """
        ranks = self.source_ranks
        name = source if source in ranks else source.partition(":")[0]
        return len(ranks) - ranks.index(name) if name in ranks else 0


def load_settings(**overrides: Any) -> Settings:
    """Read the settings; keyword arguments win over the environment.

    Raises:
        BadSettings: one line for each wrong variable, with an example of a right one.
    """
    lines = misspelt(Settings.model_fields)
    try:
        settings = Settings(
            **{name: value for name, value in overrides.items() if value is not None}
        )
    except ValidationError as error:
        lines += [
            sentence(problem, Settings.model_fields)
            for problem in error.errors(include_url=False, include_input=False)
        ]
    if lines:
        raise BadSettings("\n".join(lines))
    return settings


def group_of(prefix: str) -> str:
    """Return the consumer group of a prefix, so that two services never share one by accident."""
    return "paretobandit" if prefix == USUAL_PREFIX else f"{prefix or '-'}paretobandit"
