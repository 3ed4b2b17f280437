"""Any bytes decode or are refused; whatever decodes is written so that it decodes again to the
same.
"""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import (
    EVENTS,
    DeadLetter,
    Event,
    MalformedEvent,
    Reason,
    decode,
    decode_keyed,
    decode_router,
    encode,
)

FIELDS = sorted({name for event in EVENTS.values() for name in event.model_fields})
NUMBERS = st.one_of(
    st.integers(), st.floats(), st.sampled_from([0, 1, -1, 0.5, 1.0, 1e308, 2**63, 2**70])
)
SCALARS = st.one_of(
    st.none(), st.booleans(), NUMBERS, st.text(max_size=20), st.sampled_from(["a", "live", "ucb"])
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(
    st.one_of(st.sampled_from(FIELDS), st.text(max_size=8)), JSON, max_size=12
)

EXAMPLES = [
    (event, example)
    for event in EVENTS.values()
    for example in event.model_json_schema()["examples"]
]
fuzz = settings(deadline=None)


def decode_or_refuse(event: type[Event], raw: bytes) -> None:
    try:
        decoded = decode(event, raw)
    except MalformedEvent as refused:
        assert refused.reason in Reason
        assert str(refused).isprintable()
    else:
        assert decode(event, encode(decoded)) == decoded


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
@fuzz
@given(raw=st.binary(max_size=200))
def test_any_bytes_decode_or_are_refused(event: type[Event], raw: bytes) -> None:
    decode_or_refuse(event, raw)


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
@fuzz
@given(value=st.one_of(JSON, OBJECTS))
def test_any_json_decodes_or_is_refused(event: type[Event], value: Any) -> None:
    decode_or_refuse(event, json.dumps(value).encode())


@fuzz
@given(
    start=st.sampled_from(EXAMPLES),
    changes=st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=3),
)
def test_examples_with_any_changes_decode_or_are_refused(
    start: Any, changes: dict[str, Any]
) -> None:
    event, example = start
    decode_or_refuse(event, json.dumps({**example, **changes}).encode())


@fuzz
@given(
    start=st.sampled_from(EXAMPLES),
    at=st.integers(0, 400),
    length=st.integers(0, 8),
    patch=st.binary(max_size=8),
)
def test_examples_with_any_bytes_damaged_decode_or_are_refused(
    start: Any, at: int, length: int, patch: bytes
) -> None:
    event, example = start
    raw = json.dumps(example).encode()
    decode_or_refuse(event, raw[:at] + patch + raw[at + length :])


@fuzz
@given(
    key=st.one_of(st.none(), st.binary(max_size=20)),
    value=st.one_of(st.none(), st.binary(max_size=50)),
)
def test_any_record_is_read_or_refused(key: bytes | None, value: bytes | None) -> None:
    for read in (decode_router, lambda **record: decode_keyed(EVENTS["costs"], **record)):
        try:
            read(key=key, value=value)
        except MalformedEvent as refused:
            assert refused.reason in Reason


@fuzz
@given(
    topic=st.text(st.characters(exclude_categories=["Cs"])),
    partition=st.integers(),
    offset=st.integers(),
    text=st.text(st.characters(exclude_categories=["Cs"])),
)
def test_any_dead_letter_survives_its_headers(
    topic: str, partition: int, offset: int, text: str
) -> None:
    letter = DeadLetter(
        topic=topic,
        partition=partition,
        offset=offset,
        stage=text,
        exception_class=text,
        message=text,
        reason=text,
    )
    assert DeadLetter.from_headers(letter.headers()) == letter
