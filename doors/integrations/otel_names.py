"""The attributes of GenAI spans that are read, by the present names of OpenTelemetry's semantic
conventions and by older ones, which exporters go on writing.
"""

from __future__ import annotations

from collections.abc import Sequence

from doors.integrations.payload_items import Unconvertible, either
from ground.json_values import Document, Json
from schemas import Reason

INPUT = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.usage.prompt_tokens",
    "llm.token_count.prompt",
)
"""Input tokens: the conventions, their versions before 1.27, OpenLLMetry's older ones,
OpenInference's."""
OUTPUT = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.usage.completion_tokens",
    "llm.token_count.completion",
)
"""Output tokens, by the same."""
CACHED = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_tokens",
    "gen_ai.usage.cached_input_tokens",
    "gen_ai.usage.cached_tokens",
    "llm.usage.cache_read_input_tokens",
    "llm.token_count.prompt_details.cache_read",
)
"""Input tokens from a provider's cache, by the same, by Pydantic AI's and by older drafts."""
AMOUNT, CURRENCY = "gen_ai.usage.cost.amount", "gen_ai.usage.cost.currency"
"""The price of a call, and its currency (ISO 4217)."""
PROVIDER = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system")
"""The provider that was called: the conventions, their versions before 1.37, OpenInference's."""
CALLED = ("gen_ai.request.model",)
ANSWERED = ("gen_ai.response.model",)
"""The model that was called, and the one that answered. OpenInference has one name for both."""
FIRST_TOKEN = ("gen_ai.response.time_to_first_chunk",)
"""Seconds to the first chunk."""
REQUEST = ("pb.request_id", "gen_ai.response.id")
"""The id of a request: the application's, else the response's."""
EVALUATED = "gen_ai.evaluation.result"
"""The event of an evaluation."""
SCORE = "gen_ai.evaluation.score.value"
"""The value of an evaluation."""
OPERATION = ("gen_ai.operation.name", "llm.request.type", "openinference.span.kind")
"""The operation of a span: the conventions, OpenLLMetry's older name, OpenInference's."""
NO_CALLS = frozenset(
    {
        "create_agent",
        "create_memory",
        "create_memory_store",
        "delete_memory",
        "delete_memory_store",
        "embedding",
        "embeddings",
        "execute_tool",
        "invoke_agent",
        "invoke_workflow",
        "plan",
        "rerank",
        "retrieval",
        "search_memory",
        "update_memory",
        "upsert_memory",
        # Of OpenInference, where a call is an LLM.
        "agent",
        "chain",
        "evaluator",
        "guardrail",
        "reranker",
        "retriever",
        "tool",
    }
)
"""Well-known operations that are not inference, in lower case."""
SIGNS = ("gen_ai.", "llm.", "openinference.")
"""Beginnings of the attributes that only spans of language models have."""
KINDS = {"stringValue": str, "intValue": int, "doubleValue": float, "boolValue": bool}
"""Fields of OTLP's `AnyValue` in JSON, and what they hold; 64-bit integers stand as text there."""


def is_call(attributes: Document) -> bool:
    """Tell whether a span is of a call of a language model. An operation of unknown name counts as
    a call, so that a future kind of call is billed.
    """
    if not any(name.startswith(SIGNS) for name in attributes):
        return False
    return str(first_of(attributes, OPERATION)).lower() not in NO_CALLS


def first_of(attributes: Document, names: Sequence[str]) -> Json:
    """Return the first attribute of these that is there, or None."""
    return next((attributes[name] for name in names if attributes.get(name) is not None), None)


def attributes_of(record: Json) -> Document:
    """Return the attributes of a span, an event or a log record without those that have no value.
    Raises Unconvertible: the object has another form.
    """
    if not isinstance(record, dict):
        raise Unconvertible("is not an object", Reason.MALFORMED_EVENT)
    if "tags" in record and "attributes" not in record:
        raise Unconvertible("tags: this is a span of another form than OTLP, such as Jaeger's")
    attributes = record.get("attributes") or []
    if not isinstance(attributes, list):
        raise Unconvertible("attributes: is not a list of objects with key and value")
    found = {}
    for attribute in attributes:
        value = _value(attribute.get("value")) if isinstance(attribute, dict) else None
        if value is not None and isinstance(key := attribute.get("key"), str):
            found[key] = value
    return found


def _value(value: Json) -> Json:
    if not isinstance(value, dict):
        return None
    for name, kind in KINDS.items():
        held = either(value, name)
        if held is not None:
            try:
                return kind(held)
            except (TypeError, ValueError):
                return held  # whoever needs the attribute says what is wrong with it
    listed = either(value, "arrayValue")
    return None if listed is None else [_value(one) for one in listed.get("values") or ()]
