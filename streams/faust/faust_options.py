"""The settings of Faust for a worker, with the reason for each departure from its defaults."""

from __future__ import annotations

import faust
import mode
from faust.types.auth import CredentialsT

from streams.faust.recovery import TableManager
from streams.settings import Settings


def faust_options(settings: Settings) -> dict[str, object]:
    """Return Faust's settings; each changed default would lose, delay or expose something."""
    brokers = [f"kafka://{address}" for address in settings.bootstrap.split(",")]
    return {
        "broker": ";".join(brokers),
        "broker_credentials": _credentials(settings),
        # Static membership (KIP-345): a worker that returns within its session causes no
        # rebalance.
        "consumer_group_instance_id": settings.instance_id,
        # A member that comes back under its instance id must not be known to the group by another
        # host's name.
        **({"canonical_url": f"http://{settings.instance_id}"} if settings.instance_id else {}),
        "agent_supervisor": mode.CrashingSupervisor,
        "broker_commit_interval": settings.commit_interval,
        "broker_session_timeout": settings.session_timeout,
        "broker_heartbeat_interval": settings.heartbeat,
        # A topic that was deleted and made again belongs to nobody until its members look: a group
        # that has assigned its partitions without it has no other reason to.
        "consumer_metadata_max_age_ms": 5_000,
        # Time of a rebalance in which every member must finish its batch and join again.
        "broker_rebalance_timeout": 60.0,
        "broker_request_timeout": 30.0,
        # Partitions are given up when what has begun is finished: `Consumer.wait_empty`.
        "stream_wait_empty": True,
        "producer_linger": 0.001,
        # All replicas in sync: a decision that was published is not lost with a broker.
        "producer_acks": -1,
        "producer_request_timeout": 60.0,
        # Larger records go through `RecordBatches`.
        "producer_max_request_size": 1_000_000,
        "producer_max_batch_size": 65_536,
        "store": "memory://",
        # A promoted standby of a memory store reads its changelog again: it would shorten nothing.
        "table_standby_replicas": 0,
        "topic_partitions": settings.partitions,
        # `pbstream topics create` makes topics, with what Faust knows nothing of.
        "topic_allow_declare": False,
        # No worker leads, so no topic is needed to find out who.
        "topic_disable_leader": True,
        # By default Faust's server shows the tables' contents on every address; `Web` serves a
        # worker's pages.
        "web_enabled": False,
        "autodiscover": False,
        "TableManager": TableManager,
    }


def _credentials(settings: Settings) -> CredentialsT | None:
    """Return how to log in, or None on a plain connection."""
    context = settings.ssl_context()
    if settings.security_protocol.startswith("SASL") and settings.sasl_password is not None:
        return faust.SASLCredentials(
            username=settings.sasl_username,
            password=settings.sasl_password.get_secret_value(),
            mechanism=settings.sasl_mechanism,
            ssl_context=context,
        )
    return faust.SSLCredentials(context) if context is not None else None
