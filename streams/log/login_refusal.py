"""Find out why Kafka can't be reached, as aiokafka tells only its log."""

from __future__ import annotations

import asyncio
import ssl

from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import (
    IllegalSaslStateError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

from streams.settings import Settings

WITHIN_MS = 5000
"""Milliseconds that the first address has to answer once more."""


async def refusal(settings: Settings) -> str | None:
    """Try the first address once more; return what is wrong with user, password or certificates,
    None if it is something else.
    """
    auth = settings.kafka_auth()
    address = auth.pop("bootstrap_servers").split(",")[0]
    host, _, port = address.rpartition(":")
    connection = AIOKafkaConnection(
        host.strip("[]"), int(port), request_timeout_ms=WITHIN_MS, **auth
    )
    try:
        await connection.connect()
    # An OSError where nothing answers, or TLS fails.
    except (KafkaError, OSError, TimeoutError) as error:
        said = _said(error, settings)
        return f"Kafka at {address} {said}" if said else None
    finally:
        await _closed(connection)
    return None


def _said(error: Exception, settings: Settings) -> str | None:
    """Return what Kafka does and what to look at; None if it is no question of who asks."""
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


async def _closed(connection: AIOKafkaConnection) -> None:
    """Close a connection and wait for its end: with TLS both sides say farewell, and a loop that
    ends before leaves the socket open.
    """
    closed = connection.close()
    if connection._protocol is not None:  # there is none where nothing answered
        await asyncio.wait([closed], timeout=WITHIN_MS / 1000)
