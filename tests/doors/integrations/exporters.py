"""Write payloads as exporters of other systems write them, for the tests of the doors."""

from __future__ import annotations

from typing import Any

CALL: dict[str, Any] = {
    "gen_ai.operation.name": "chat",
    "pb.request_id": "r",
    "gen_ai.usage.input_tokens": 10,
    "gen_ai.usage.output_tokens": 5,
}
"""Attributes of a span of one call."""
LOGGED: dict[str, Any] = {
    "id": "chatcmpl-1",
    "call_type": "acompletion",
    "status": "success",
    "startTime": 1795253400.1,
    "endTime": 1795253400.9,
    "response_cost": 0.01,
    "prompt_tokens": 10,
    "completion_tokens": 5,
    "metadata": {"requester_metadata": {"pb_request_id": "r"}},
}
"""LiteLLM's log of a call that was answered."""
FAILED: dict[str, Any] = {
    **LOGGED,
    "id": "call-1",
    "status": "failure",
    "startTime": 1795253390.1,
    "response_cost": 0.004,
    "error_information": {"error_class": "InternalServerError", "error_code": "500"},
}
"""LiteLLM's log of the attempt before it, which failed and cost something."""
SCORE: dict[str, Any] = {
    "id": "s-1",
    "traceId": "r",
    "name": "correctness",
    "value": 0.75,
    "dataType": "NUMERIC",
    "source": "EVAL",
}
"""Langfuse's score of an answer."""


def span(attributes: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a span; a value that is a dict stands for itself."""
    kinds = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}
    listed = []
    for key, value in attributes.items():
        # 64-bit integers stand as text in protobuf's JSON.
        plain = str(value) if type(value) is int else value
        held = value if isinstance(value, dict) else {kinds[type(value)]: plain}
        listed.append({"key": key, "value": held})
    times = {"startTimeUnixNano": "1795253400000000000", "endTimeUnixNano": "1795253401500000000"}
    return {
        "traceId": "5b8e",
        "spanId": "eee1",
        "name": "chat",
        **times,
        "attributes": listed,
    } | more


def exported(*spans: Any) -> dict[str, Any]:
    """Return an export request of spans."""
    scope = {"scope": {"name": "i"}, "spans": list(spans)}
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [scope]}]}


def evaluated(**attributes: Any) -> dict[str, Any]:
    """Return the record of an evaluation."""
    named = {f"gen_ai.evaluation.{name}": value for name, value in attributes.items()}
    found = span({"pb.request_id": "r", **named})["attributes"]
    return {
        "timeUnixNano": "1795253402000000000",
        "eventName": "gen_ai.evaluation.result",
        "attributes": found,
    }


def logged(*records: Any) -> dict[str, Any]:
    """Return an export request of log records."""
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": list(records)}]}]}
