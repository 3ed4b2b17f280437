"""Add the headers of CloudEvents 1.0 (Kafka's binary mode) to published records; values do not
change.

Events that are read need no conversion: in binary mode the value is the event, and its `ce_`
headers are ignored.
"""

import hashlib
from typing import Final

SPEC_VERSION: Final = "1.0"
"""Version of CloudEvents (cloudevents.io)."""
TYPE_PREFIX: Final = "paretobandit."
"""Prefix of an event's type; its topic follows."""


def schema_id(topic: str) -> str:
    """Return the stable id of the JSON Schema of a topic's value; another version has another
    id.
    """
    return f"urn:paretobandit:schemas:v1:{topic}"


def cloud_event(
    topic: str, *, key: bytes | None, value: bytes, source: str
) -> list[tuple[str, bytes]]:
    """Return the headers that make a record a CloudEvent.

    The event's id is a hash of the record: a record that is published again after a crash, byte for
    byte, has the same id.

    Args:
        topic: the topic's name without prefix.
        source: URI reference of the service that publishes the record.
    """
    digest = hashlib.sha256(b"\x00".join((topic.encode(), key or b"", value))).hexdigest()
    attributes = {
        "ce_specversion": SPEC_VERSION,
        "ce_id": digest[:32],
        "ce_source": source,
        "ce_type": f"{TYPE_PREFIX}{topic}.v1",
        "ce_subject": (key or b"").decode(errors="replace"),
        "ce_dataschema": schema_id(topic),
        "content-type": "application/json",
    }
    return [(name, text.encode()) for name, text in attributes.items() if text]
