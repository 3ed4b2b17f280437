"""A struct reads what its schema reads, and is refused as by its schema."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import Field

from schemas.deriving import twin_of
from schemas.event import Content, Event, MalformedEvent, decode_keyed
from schemas.fields import LARGEST_INT, MAX_METADATA_BYTES
from schemas.quick import SCHEMA_OF, Bill, Request, Reward, quickly, read
from schemas.reasons import Reason

KINDS = (Request, Bill, Reward)
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
DEEP = b"[" * 300 + b"]" * 300
fuzz = settings(deadline=None)

TEXTS = st.one_of(
    st.sampled_from(
        """||a|r-1|acme.chat|NaN|2026-11-21T09:30:05.250Z|2026-11-21 09:30:05z|2026-11-21
        |2026-11-21T09:30:05+00:00|2026-11-21T09:30:05+01:00|2026-02-30T09:30:05Z|1700000000
        |2026-11-21T09:30:05.1234567Z""".replace("\n        ", "").split("|")
    ),
    st.sampled_from([" ", "r\n", "\u200b", "\x7f", "\x00", "\ufffe", "𝔸"]),
    st.sampled_from(["é" * 64, "a" * 128, "a" * 129, "a" * 201]),
    st.text(max_size=20),
)
NUMBERS = st.one_of(
    st.sampled_from([0, 1, -1, -0.0, 0.5, 1.0, 1e6, 1e6 + 1, 1000, 1000.1, 1e-320, 5e-324, 1e308])
    | st.sampled_from([10**9, 10**9 + 1, LARGEST_INT, LARGEST_INT + 1, 2**63, 2**64, 10**30]),
    st.floats(),
    st.integers(),
)
SCALARS = st.one_of(st.none(), st.booleans(), TEXTS, NUMBERS)
CONTEXTS = st.lists(NUMBERS, max_size=6).map(lambda numbers: [*numbers, 1.0]) | st.integers(
    1022, 1026
).map(lambda d: [0.5] * (d - 1) + [1])
ANY = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)
USUAL: dict[str, st.SearchStrategy[Any]] = {
    "router_id": st.sampled_from(["acme.chat", "a", "a" * 128]),
    "request_id": TEXTS,
    "prompt": TEXTS,
    "context": CONTEXTS,
    "allowed_models": st.lists(TEXTS, max_size=3),
    "metadata": st.dictionaries(TEXTS, ANY, max_size=4),
    "reward": st.floats(0, 1) | NUMBERS,
    "source": TEXTS,
    "observed_at": TEXTS,
    "revision": NUMBERS,
    "session_id": TEXTS,
    "session_budget_usd": NUMBERS,
    "model": TEXTS,
    "answered_by": TEXTS,
    "cost_usd": NUMBERS,
    "input_tokens": NUMBERS,
    "output_tokens": NUMBERS,
    "max_price_per_1k": NUMBERS,
    "status": TEXTS | st.sampled_from(["ok", "error", "timeout", "rate_limited", "cancelled"]),
    "retry_after_seconds": NUMBERS,
    "latency_ms": NUMBERS,
    "cached_input_tokens": NUMBERS,
    "first_token_ms": NUMBERS,
    "attempt": st.integers(0, 3) | NUMBERS,
    "verifier": TEXTS,
    "cant_tell": st.booleans(),
    "verdict": st.floats(0, 1) | NUMBERS,
    "verifiers": st.lists(TEXTS, max_size=3),
    "follows": TEXTS,
    "verdicts": st.dictionaries(TEXTS, st.floats(0, 1) | NUMBERS, max_size=9),
    "signals": st.fixed_dictionaries(
        {},
        optional={
            "tests_passed": st.floats(0, 1),
            "repeats": NUMBERS,
            "severity": NUMBERS,
        },
    ),
    "needs": st.fixed_dictionaries(
        {},
        optional={
            "vision": st.booleans(),
            "tools": st.booleans(),
            "output_tokens": NUMBERS,
            "region": TEXTS,
            "max_retention_days": NUMBERS,
        },
    ),
}
"""Values of fields as they should be; those of any other field are scalars."""


@st.composite
def events(draw: st.DrawFn) -> bytes:
    """Return an event of some kind, most of it as it should be, in some way of writing JSON."""
    kind = draw(st.sampled_from(KINDS))
    needed = ["router_id", "request_id", "context", "reward", "source", "cost_usd"]
    names = draw(st.sets(st.sampled_from(sorted(SCHEMA_OF[kind].model_fields))))
    names |= {
        name for name in needed if name in SCHEMA_OF[kind].model_fields and draw(st.integers(0, 9))
    }
    body = {
        name: draw(USUAL.get(name, SCALARS) if draw(st.integers(0, 9)) else ANY)
        for name in sorted(names)
    }
    if not draw(st.integers(0, 9)):
        body |= draw(st.dictionaries(TEXTS, ANY, max_size=2))
    styles: list[dict[str, Any]] = [{}, {"ensure_ascii": False}, {"indent": 1}]
    style = draw(st.sampled_from(styles))
    return json.dumps(body, **style).encode("utf-8", "surrogatepass")


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Return an event of which a few bytes are others."""
    raw = bytearray(draw(events()))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(raw) - 1))
        raw[at : at + draw(st.integers(0, 2))] = draw(
            st.sampled_from(
                [b"\xff", b'"', b"\\", b"1", b"e9", b"0", b",", b"[", b"\xc3\xa9", b" "]
            )
        )
    return bytes(raw)


def held(value: object) -> object:
    """Return what a field holds, a part of an event as its fields, so that two can be compared."""
    names = getattr(value, "__struct_fields__", None) or getattr(type(value), "model_fields", None)
    if names is not None:
        return {name: held(getattr(value, name)) for name in names}
    return type(value), repr(value)


def assert_as_its_schema(kind: type[Event], raw: bytes | None, key: bytes | None = None) -> None:
    """Assert that an event is read as by its schema, or refused as by its schema."""
    try:
        wanted = decode_keyed(SCHEMA_OF[kind], key=key, value=raw)
    except MalformedEvent as wrong:
        with pytest.raises(MalformedEvent) as refused:
            read(kind, key=key, value=raw)
        assert (refused.value.reason, str(refused.value)) == (wrong.reason, str(wrong))
        return
    found = read(kind, key=key, value=raw)
    assert type(found) is kind
    assert held(found) == held(wanted)
    for name in ("subject", "tokens", "tokens_before", "is_wordless"):
        assert getattr(found, name, None) == getattr(wanted, name, None), name


@kinds
@given(raw=st.one_of(events(), damaged(), st.just(b"{}"), st.none()))
@example(raw=b'{"router_id":"a\\n","request_id":"r","cost_usd":1,"reward":1,"source":"x"}')
@example(raw=b'{"router_id":"a","request_id":"\\ud800","cost_usd":1}')
@example(raw=b'{"router_id":"a","request_id":"r","cost_usd":1,"revision":1.0}')
@example(raw=b'{"router_id":"a","request_id":"r","cost_usd":-0}')
@example(
    raw=b'{"router_id":"a","request_id":"r","prompt":"p","metadata":{"a":'
    + b"[" * 300
    + b"]" * 300
    + b"}}"
)
# Short as it came, and over 64 KiB as it is measured.
@example(
    raw=b'{"router_id":"a","request_id":"r","prompt":"p","metadata":{"a":['
    + b"1e15," * (MAX_METADATA_BYTES // 6)
    + b"1]}}"
)
@fuzz
def test_an_event_is_read_as_by_its_schema_or_refused_as_by_it(
    kind: type[Event], raw: bytes | None
) -> None:
    for key in (None, b"acme.chat"):
        assert_as_its_schema(kind, raw, key)


@kinds
def test_what_the_schemas_show_is_read_quickly(kind: type[Event]) -> None:
    for value in SCHEMA_OF[kind].model_json_schema()["examples"]:
        assert quickly(kind, json.dumps(value).encode()) is not None


@pytest.mark.parametrize(
    "extra", [{"new_field": 1}, {"metadata": {"a": {"b": {"c": {"d": 1}}}}}, {"prompt": "x\ud800"}]
)
def test_what_only_the_schema_understands_is_read_by_it(extra: dict[str, Any]) -> None:
    raw = json.dumps({"router_id": "a", "request_id": "r", "prompt": "p", **extra}).encode()
    assert quickly(Request, raw) is None
    assert read(Request, key=b"a", value=raw).request_id == "r"
    with pytest.raises(MalformedEvent) as refused:
        read(Request, key=b"b", value=raw)
    assert refused.value.reason is Reason.WRONG_KEY


class Odd(Content):
    """A schema with a bound that no struct knows."""

    even: Annotated[int, Field(multiple_of=2)]


class Either(Content):
    """A schema with a type that no struct has."""

    one: int | str


@pytest.mark.parametrize("model", [Odd, Either])
def test_a_schema_without_a_counterpart_is_refused_at_import(model: type[Content]) -> None:
    with pytest.raises(TypeError, match="no struct can hold"):
        twin_of(model)
