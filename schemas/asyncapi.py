"""The service's interface as one AsyncAPI 3 document, made of the schemas; and the same as a page
to read.
"""

from typing import Final

from pydantic.json_schema import models_json_schema

from ground.json_values import Document, Json
from ground.traces import TRACEPARENT, TRACESTATE
from schemas import EVENTS
from schemas.dlq import HEADERS as DEAD_LETTER_HEADERS
from schemas.headers import BASED_ON, FORWARDED
from schemas.topic_roles import TOPICS

VERSION: Final = "1.0.0"
"""Version of the contract; it changes with every change that is not compatible."""
PREFIX: Final = "pb."
"""Prefix of topics where none is set."""
_TEXT: Final = {"type": "string"}
"""Schema of a header's value."""
_ROUTER: Final = {
    "type": "string",
    "description": "router_id, raw UTF-8; partitioned by murmur2 as Java clients do",
}
"""Schema of a record's key."""

KEYS: Final = {"pools": "pool_id", "families": "family"}
"""Fields that records are keyed by, by topic; router_id elsewhere."""
UNTRACED: Final = frozenset({"lambda", "alerts", "pools", "leases", "kin", "families"})
"""Topics whose records carry no trace."""


def document() -> Document:
    """Return the AsyncAPI document as plain values."""
    payloads, definitions = _payloads()
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "paretobandit-streams",
            "version": VERSION,
            "description": "Routes every prompt of an LLM application to the model with the most "
            "quality "
            "for the money. "
            "JSON, strict UTF-8; unknown fields are ignored. `pb.` is a setting.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {name: _channel(name) for name in TOPICS},
        "operations": {_operation_id(name): _operation(name) for name in TOPICS},
        "components": {
            "messages": {name: _message(name, payloads) for name in TOPICS},
            "schemas": definitions,
        },
    }


def _payloads() -> tuple[Document, Document]:
    wanted = [(event, "validation") for event in EVENTS.values()]
    references, made = models_json_schema(wanted, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
    by_topic = {topic: references[event, "validation"] for topic, event in EVENTS.items()}
    return by_topic, {name: _plain(schema) for name, schema in made["$defs"].items()}


def _plain(schema: Json) -> Json:
    """Leave out what OpenAPI's schemas have and AsyncAPI's do not: a discriminator with a
    mapping.
    """
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if isinstance(schema, dict):
        return {
            name: _plain(part)
            for name, part in schema.items()
            if not (name == "discriminator" and isinstance(part, dict))
        }
    return schema


def _channel(name: str) -> dict[str, object]:
    topic = TOPICS[name]
    return {
        "address": PREFIX + name,
        "description": topic.description,
        "messages": {name: {"$ref": f"#/components/messages/{name}"}},
        "bindings": {
            "kafka": {
                "topic": PREFIX + name,
                "topicConfiguration": {"cleanup.policy": [topic.cleanup]},
                "bindingVersion": "0.5.0",
            }
        },
    }


def _operation_id(name: str) -> str:
    return f"{'receive' if TOPICS[name].to_service else 'send'}_{name}"


def _operation(name: str) -> dict[str, object]:
    return {
        "action": "receive" if TOPICS[name].to_service else "send",
        "channel": {"$ref": f"#/channels/{name}"},
        "summary": TOPICS[name].description,
        "messages": [{"$ref": f"#/channels/{name}/messages/{name}"}],
    }


def _message(name: str, payloads: dict[str, object]) -> dict[str, object]:
    event = EVENTS.get(name)
    return {
        "name": name,
        "title": event.__name__ if event is not None else "DeadLetter",
        "contentType": "application/json" if event is not None else "application/octet-stream",
        "headers": {"type": "object", "properties": dict.fromkeys(_headers(name), _TEXT)},
        "payload": payloads.get(name, {"description": "The source's bytes, whatever they are"}),
        "bindings": {
            "kafka": {
                "key": _key(name) if event is not None else {"description": "The source's"},
                "bindingVersion": "0.5.0",
            }
        },
    }


def _key(name: str) -> Document:
    key = KEYS.get(name, "router_id")
    return {**_ROUTER, "description": _ROUTER["description"].replace("router_id", key)}


def _headers(name: str) -> tuple[str, ...]:
    own = {"dlq": DEAD_LETTER_HEADERS, "routers": (BASED_ON,)}.get(name, ())
    traced = () if name in UNTRACED else (TRACEPARENT, TRACESTATE)
    return (*own, *traced, *((FORWARDED,) if TOPICS[name].to_service else ()))


def page() -> str:
    """Return the document as Markdown: who says what on which topic, with each field."""
    made = document()
    lines = [
        "# Topics and events",
        "",
        "Made of the schemas by `python -m schemas.export`, like [asyncapi.json](asyncapi.json) "
        f"(AsyncAPI {made['asyncapi']}) and the JSON Schemas beside it. What they mean together: "
        "[the wire contract](../reference/wire.md).",
    ]
    for name, topic in TOPICS.items():
        lines += ["", f"## `{PREFIX}{name}`", "", topic.description]
        lines += [
            "",
            (
                f"{'To' if topic.to_service else 'From'} the service; cleanup `{topic.cleanup}`; "
                f"key: `{KEYS.get(name, 'router_id')}`."
            ),
        ]
        if name == "dlq":
            lines[-1] = f"From the service; cleanup `{topic.cleanup}`; key: the source's."
        lines += [
            "",
            "Headers: " + (", ".join(f"`{header}`" for header in _headers(name)) or "none") + ".",
        ]
        if name in EVENTS:
            lines += [
                "",
                f"[{name}.json]({name}.json)",
                "",
                *_fields(EVENTS[name].model_json_schema()),
            ]
    return "\n".join(lines) + "\n"


def _fields(schema: Document) -> list[str]:
    required = set(schema.get("required", ()))
    rows = ["| field | type | |", "| --- | --- | --- |"]
    for name, field in schema["properties"].items():
        text = str(field.get("description", "")).replace("|", "\\|")
        rows.append(
            f"| `{name}`{'' if name in required else ' (optional)'} | {_kind(field)} | {text} |"
        )
    return rows


def _kind(field: Document) -> str:
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_kind(part) for part in field["anyOf"]))
    if "$ref" in field:
        return f"`{field['$ref'].rpartition('/')[2]}`"
    if field.get("type") == "array":
        return f"list of {_kind(field.get('items', {}))}"
    return str(field.get("type", "any"))
