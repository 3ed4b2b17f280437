"""Describe bodies and responses for OpenAPI: the schemas of the wire contract, without the router's
id.
"""

from __future__ import annotations

from doors.gateway.problems import MEDIA_TYPE
from ground.json_values import Document
from schemas import CostReported, LambdaUpdated, RequestSubmitted, RewardObserved, RouteDecided
from schemas.event import Event

SECURITY: Document = {"HTTPBearer": {"type": "http", "scheme": "bearer"}}
"""Way to present a key, in OpenAPI's terms."""
PROBLEM: Document = {
    "type": "object",
    "description": (
        "RFC 9457; `reason` is a code of docs/reference/wire.md or of this gateway. A batch of "
        "decisions may hold some."
    ),
    "required": ["type", "title", "status", "reason"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "reason": {"type": "string"},
        "detail": {"type": "string"},
        "request_id": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {"type": "object"},
            "description": "For a refused batch: which of it were wrong, and why",
        },
    },
}
"""Schema of every error response."""
FALLBACK: Document = {
    "type": "object",
    "description": (
        "No decision came in time: the fallback that the caller named. Bill and rewards name it "
        "as `model`; this gateway does it for a while where they name none."
    ),
    "required": ["router_id", "request_id", "model", "fallback"],
    "properties": {
        "router_id": {"type": "string"},
        "request_id": {"type": "string"},
        "model": {"type": "string"},
        "fallback": {"const": True},
    },
}
"""Schema of a response with the caller's fallback."""
ACCEPTED: Document = {
    "type": "object",
    "required": ["accepted"],
    "properties": {
        "accepted": {"type": "integer", "description": "Number of events that Kafka has stored"}
    },
}
"""Schema of the response to bills and rewards."""
OF_FOREIGN: Document = {
    "type": "object",
    "required": ["accepted"],
    "properties": {
        **ACCEPTED["properties"],
        "booked": {
            "type": "array",
            "items": {"type": "object"},
            "description": "Where some items were refused: index, topic and request_id of the "
            "others",
        },
        "refused": {
            "type": "array",
            "items": {"type": "object"},
            "description": "Index, reason and detail of each item that was refused; `pb.dlq` has "
            "them alone",
        },
        "passed_over": {
            "type": "integer",
            "description": "Number of items without a bill or a wanted label",
        },
        "warnings": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Numbers beside the money that were left out or cut",
        },
    },
}
"""Schema of the response to a payload of another system."""


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _of(
    event: type[Event], *, without: tuple[str, ...] = (), optional: tuple[str, ...] = ()
) -> Document:
    schema = event.model_json_schema(ref_template="#/components/schemas/{model}")
    # The path names the router, whatever a body says.
    kept = {name: field for name, field in schema["properties"].items() if name not in without}
    required = [name for name in schema["required"] if name not in (*without, *optional)]
    return {
        "type": "object",
        "description": schema["description"],
        "properties": kept,
        "required": required,
    }


def _content(schema: Document) -> Document:
    return {"content": {"application/json": {"schema": schema}}}


def _one_or_many(name: str) -> Document:
    return {"oneOf": [_ref(name), {"type": "array", "minItems": 1, "items": _ref(name)}]}


def components() -> Document:
    """Return every schema that the description refers to."""
    parts: Document = {}
    for event in (RequestSubmitted, CostReported, RewardObserved, RouteDecided, LambdaUpdated):
        parts |= event.model_json_schema(ref_template="#/components/schemas/{model}").get(
            "$defs", {}
        )
    return {
        **parts,
        "Request": _of(RequestSubmitted, without=("router_id",), optional=("request_id",)),
        "Cost": _of(CostReported, without=("router_id",)),
        "Reward": _of(RewardObserved, without=("router_id",)),
        "Decision": _of(RouteDecided),
        "Router": _of(LambdaUpdated),
        "Fallback": FALLBACK,
        "Foreign": {
            "type": "object",
            "description": "A payload of the form that the path names; "
            "an array or a line each as well",
        },
        "Accepted": ACCEPTED,
        "AcceptedForeign": OF_FOREIGN,
        "Problem": PROBLEM,
    }


PROBLEMS: dict[int | str, Document] = {
    "default": {"description": "A problem", "content": {MEDIA_TYPE: {"schema": _ref("Problem")}}}
}
"""Responses that every path shares."""


def decisions() -> Document:
    """Describe the request for decisions."""
    answer = {"anyOf": [_ref("Decision"), _ref("Fallback")]}
    many = {"type": "array", "items": {"anyOf": [*answer["anyOf"], _ref("Problem")]}}
    return {
        "openapi_extra": {"requestBody": {"required": True, **_content(_one_or_many("Request"))}},
        "responses": {
            200: {
                "description": "The decision, or those of a batch in its order",
                **_content({"oneOf": [answer, many]}),
            }
        }
        | PROBLEMS,
    }


def reports(name: str) -> Document:
    """Describe the report of bills or rewards."""
    return {
        "status_code": 202,
        "openapi_extra": {"requestBody": {"required": True, **_content(_one_or_many(name))}},
        "responses": {202: {"description": "Kafka has them", **_content(_ref("Accepted"))}}
        | PROBLEMS,
    }


def foreign() -> Document:
    """Describe the report of payloads of other systems."""
    answer = _content(_ref("AcceptedForeign"))
    told = {
        202: {"description": "Kafka has them", **answer},
        207: {"description": "Kafka has the others, and the refused ones on `pb.dlq`", **answer},
    }
    return {**reports("Foreign"), "responses": told | PROBLEMS}


def answers(name: str, description: str) -> Document:
    """Describe a request that only reads."""
    return {"responses": {200: {"description": description, **_content(_ref(name))}} | PROBLEMS}
