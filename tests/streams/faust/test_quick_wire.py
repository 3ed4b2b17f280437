"""Fetches and produce requests on the wire: the bytes are aiokafka's, and so is what is read."""

from __future__ import annotations

import struct
from io import BytesIO
from typing import Any

import pytest
from aiokafka.consumer import fetcher
from aiokafka.producer import sender
from aiokafka.protocol import fetch, produce
from hypothesis import given
from hypothesis import strategies as st

from streams.faust import fetch_wire, produce_wire

NAMES = st.text(st.characters(codec="utf-8"), max_size=40)
INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
BYTES = st.binary(max_size=60)


def topics(partition: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(st.tuples(NAMES, st.lists(partition, max_size=5)), max_size=4)


ABORTED = st.none() | st.lists(st.tuples(INT64, INT64), max_size=3)
FETCHED = topics(st.tuples(INT32, INT16, INT64, INT64, INT64, ABORTED, INT32, st.none() | BYTES))
PLACED = topics(st.tuples(INT32, INT16, INT64, INT64, INT64))


@given(
    numbers=st.tuples(INT32, INT32, INT32, st.integers(0, 1)),
    asked=topics(st.tuples(INT32, INT64, INT32)),
    rack=NAMES,
)
def test_a_fetch_is_written_as_aiokafka_writes_it(
    numbers: tuple[int, ...], asked: Any, rack: str
) -> None:
    kind = fetch.FetchRequest_v11
    own = fetch_wire.FetchRequest(*numbers, asked, rack_id=rack).build(kind)
    theirs = fetch.FetchRequest(*numbers, asked, rack_id=rack).build(kind)
    assert type(own) is not type(theirs)
    assert own.encode() == theirs.encode()


@given(throttled=INT32, error=INT16, session=INT32, found=FETCHED, before=BYTES)
def test_a_fetch_is_read_as_aiokafka_reads_it(
    throttled: int, error: int, session: int, found: Any, before: bytes
) -> None:
    said = fetch.FetchResponse_v11(throttled, error, session, found).encode()
    stream = BytesIO(before + said)  # behind the header of the answer
    stream.seek(len(before))
    own, theirs = fetch_wire.QuickResponse.decode(stream), fetch.FetchResponse_v11.decode(said)
    assert own.__dict__ == theirs.__dict__
    assert own == fetch_wire.QuickResponse.decode(said)


@given(
    transactional=st.none() | NAMES,
    acks=INT16,
    timeout=INT32,
    sent=topics(st.tuples(INT32, BYTES)),
)
def test_a_produce_request_is_written_as_aiokafka_writes_it(
    transactional: str | None, acks: int, timeout: int, sent: Any
) -> None:
    kind = produce.ProduceRequest_v7
    own = produce_wire.ProduceRequest(transactional, acks, timeout, sent).build(kind)
    theirs = produce.ProduceRequest(transactional, acks, timeout, sent).build(kind)
    assert type(own) is not type(theirs)
    assert own.encode() == theirs.encode()


@given(placed=PLACED, throttled=INT32)
def test_a_produce_answer_is_read_as_aiokafka_reads_it(placed: Any, throttled: int) -> None:
    said = produce.ProduceResponse_v7(placed, throttled).encode()
    own, theirs = produce_wire.QuickResponse.decode(said), produce.ProduceResponse_v7.decode(said)
    assert own.__dict__ == theirs.__dict__


@given(st.data())
def test_an_answer_that_is_cut_off_is_refused(data: st.DataObject) -> None:
    fetched, placed = data.draw(FETCHED), data.draw(PLACED)
    for kind, own, said in (
        ("fetch", fetch_wire.QuickResponse, fetch.FetchResponse_v11(0, 0, 0, fetched)),
        ("produce", produce_wire.QuickResponse, produce.ProduceResponse_v7(placed, 0)),
    ):
        whole = said.encode()
        missing = data.draw(st.integers(1, len(whole)), label=kind)
        with pytest.raises((struct.error, ValueError)):
            own.decode(whole[:-missing])


@pytest.mark.parametrize("version", [4, 10])
def test_a_broker_of_another_version_gets_aiokafkas_own_fetch(version: int) -> None:
    kind = getattr(fetch, f"FetchRequest_v{version}")
    assert type(fetch_wire.FetchRequest(1, 1, 1, 1, []).build(kind)) is kind


def test_a_broker_of_another_version_gets_aiokafkas_own_produce_request() -> None:
    kind = produce.ProduceRequest_v3
    assert type(produce_wire.ProduceRequest(None, -1, 1, []).build(kind)) is kind


def test_all_clients_of_the_process_take_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher, "FetchRequest", None)
    monkeypatch.setattr(sender, "ProduceRequest", None)
    fetch_wire.fetch_quickly()
    produce_wire.produce_quickly()
    assert fetcher.FetchRequest is fetch_wire.FetchRequest
    assert sender.ProduceRequest is produce_wire.ProduceRequest
