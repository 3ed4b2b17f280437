"""Read CloudEvents 1.0 whose data are bills or rewards of this service, in structured or binary
mode.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping

from doors.integrations.payload_items import Defaults, Found, Item, Topic, Unconvertible, rfc3339
from ground.json_text import loads_leniently
from ground.json_values import Document, Json
from schemas import Reason


def items_in(document: Document, defaults: Defaults, headers: Mapping[str, str]) -> Iterator[Item]:
    """Yield an event. Its type (`….costs.v1`) names its topic; without one, the fields of the data
    do.
    """
    yield Item(lambda: document, (lambda: _event(document, defaults, headers),))


def _event(document: Document, defaults: Defaults, headers: Mapping[str, str]) -> Found:
    attributes = {name[3:]: value for name, value in headers.items() if name[:3] in ("ce_", "ce-")}
    data: Json = document
    # In structured mode a Kafka record may carry the same headers (Kafka binding 3.3.3).
    kind = headers.get("content-type", "").lower()
    if not attributes or kind.startswith("application/cloudevents"):
        attributes, data = document, _data(document)
    if attributes.get("specversion") != "1.0":
        raise Unconvertible(
            "this is not a CloudEvent of version 1.0, the only one that can be read: specversion"
        )
    if not isinstance(data, dict):
        raise Unconvertible("data: is not a JSON object")
    topic = _topic(str(attributes.get("type", "")), data)
    # A field of the data wins over the envelope, whose `subject` is only a convention.
    fields = {"router_id": defaults.router_id, "request_id": attributes.get("subject"), **data}
    if topic == "rewards":
        fields = {"source": defaults.source, **fields}
        if fields.get("observed_at") is None and attributes.get("time"):
            fields["observed_at"] = rfc3339(attributes["time"], "time")
    return Found(topic, fields)


def _data(document: Document) -> Json:
    if "data_base64" not in document:
        data = document.get("data")
        # Some libraries put JSON into the envelope as the text that they had it as.
        return _loaded(data, "data") if isinstance(data, str) else data
    try:
        decoded = base64.b64decode(document["data_base64"], validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise Unconvertible("data_base64: is not base64") from None
    return _loaded(decoded, "data_base64")


def _loaded(text: str | bytes, name: str) -> Json:
    try:
        return loads_leniently(text)
    except ValueError:
        raise Unconvertible(f"{name}: is not JSON") from None


def _topic(kind: str, data: Mapping[str, Json]) -> Topic:
    parts = kind.split(".")
    if "rewards" in parts or "reward" in data:
        return "rewards"
    if "costs" in parts or "cost_usd" in data or "input_tokens" in data:
        return "costs"
    raise Unconvertible(
        "type: names neither costs nor rewards, and the data hold neither", Reason.MISSING_FIELD
    )
