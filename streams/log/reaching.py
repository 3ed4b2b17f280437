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
    except SaslAuthenticationFailed:
        return (
            f"Kafka at {address} refuses user {settings.sasl_username}: look at PB_SASL_USERNAME "
            "and PB_SASL_PASSWORD"
        )
    except UnsupportedSaslMechanismError:
        return (
            f"Kafka at {address} does not take {settings.sasl_mechanism}: look at PB_SASL_MECHANISM"
        )
    except IllegalSaslStateError:
        return f"Kafka at {address} takes no password there: look at PB_SECURITY_PROTOCOL"
    except ssl.SSLCertVerificationError as error:
        return (
            f"the certificate of Kafka at {address} is not trusted ({error.verify_message}): "
            "look at PB_SSL_CAFILE"
        )
    except ssl.SSLError as error:
        return (
            f"no TLS with Kafka at {address} ({error.reason}): look at PB_SECURITY_PROTOCOL and "
            "PB_SSL_CERTFILE"
        )
    except ConnectionResetError:
        if auth.get("ssl_context") is None:
            return None
        return f"Kafka at {address} ends the TLS connection: look at PB_SECURITY_PROTOCOL"
    # Nothing answers, or it is no question of who asks: the caller has a sentence for that.
    except (KafkaError, OSError, TimeoutError):
        return None
    finally:
        await _closed(connection)
    return None


async def _closed(connection: AIOKafkaConnection) -> None:
    """Close a connection and wait for its end: with TLS both sides say farewell, and a loop that
    ends before leaves the socket open.
    """
    closed = connection.close()
    if connection._protocol is not None:  # there is none where nothing answered
        await asyncio.wait([closed], timeout=WITHIN_MS / 1000)
