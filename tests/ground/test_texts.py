"""Text that is not valid Unicode is mended where people wrote it, and refused where it names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from commands.cli import main
from doors.console.failures import Failure
from doors.console.router_file import read_file
from doors.console.session import PROMPT
from doors.gateway.called import of_call
from doors.integrations.convert import convert, finder_of
from doors.integrations.payload_items import Defaults
from ground.json_text import dumps, loads
from ground.texts import NOT_UNICODE, is_valid, mended
from schemas import CostReported, MalformedEvent, Reason, RequestSubmitted, decode
from schemas.quick import Bill, Request, read
from studies.history.records import JsonlHistory, Record
from studies.history.skipped import Skipped
from studies.history.source_events import Decoder
from studies.warm_start.judgements import UnusableJudgements, read_judgements

HALF = "\ud83d"
ANY = st.text(st.characters(codec=None, exclude_categories=()))
"""Texts as Python holds them, halves of characters included."""
JSON = st.recursive(ANY, lambda inner: st.lists(inner) | st.dictionaries(ANY, inner))


def escaped(value: object) -> bytes:
    """Return JSON as JavaScript and Python write it: halves as their escapes."""
    return json.dumps(value).encode()


@given(ANY)
def test_a_mended_text_is_valid_and_a_valid_one_is_unchanged(text: str) -> None:
    assert is_valid(mended(text))
    assert mended(mended(text)) == mended(text)
    if is_valid(text):
        assert mended(text) == text


@given(JSON)
def test_any_json_text_is_read_and_written_again(value: object) -> None:
    # Halves that stand side by side are one character in JSON.
    whole = json.loads(json.dumps(value))
    assert loads(escaped(value)) == whole
    assert loads(dumps(whole)) == whole


@given(prompt=ANY.filter(lambda text: bool(text.strip())), note=ANY)
def test_a_prompt_is_mended_and_its_request_routed(prompt: str, note: str) -> None:
    raw = escaped({"router_id": "r", "request_id": "1", "prompt": prompt, "metadata": {note: note}})
    event = decode(RequestSubmitted, raw)
    assert event.prompt == mended(prompt)
    assert event.metadata == {mended(note): mended(note)}
    assert read(Request, key=b"r", value=raw).prompt == mended(prompt)


@pytest.mark.parametrize("field", ["request_id", "session_id", "allowed_models", "needs"])
def test_a_request_with_half_a_character_in_a_name_is_refused_by_its_field(field: str) -> None:
    values = {"allowed_models": [HALF], "needs": {"region": HALF}}
    event = {"router_id": "r", "request_id": "1", "prompt": HALF, field: values.get(field, HALF)}
    with pytest.raises(MalformedEvent, match=f"{field} is not valid Unicode") as refused:
        decode(RequestSubmitted, escaped(event))
    assert refused.value.reason is Reason.INVALID_FIELD


@pytest.mark.parametrize("field", ["request_id", "model", "status"])
def test_a_bill_with_half_a_character_in_a_name_is_refused_by_its_field(field: str) -> None:
    raw = escaped({"router_id": "r", "request_id": "1", "cost_usd": 0.1, field: HALF})
    for door in (lambda: decode(CostReported, raw), lambda: read(Bill, key=b"r", value=raw)):
        with pytest.raises(MalformedEvent, match=f"{field} is not valid Unicode"):
            door()


def test_half_a_character_in_an_unknown_field_changes_nothing() -> None:
    bill = {"router_id": "r", "request_id": "1", "cost_usd": 0.1}
    assert decode(CostReported, escaped({**bill, "note": [HALF], HALF: 1})) == decode(
        CostReported, escaped(bill)
    )


def test_half_a_character_hides_no_other_fault() -> None:
    raw = escaped({"router_id": "r", "request_id": "1", "prompt": HALF, "input_tokens": -1})
    with pytest.raises(MalformedEvent, match="input_tokens"):
        decode(RequestSubmitted, raw)
    with pytest.raises(MalformedEvent, match="not JSON"):
        decode(RequestSubmitted, raw[:-1])


def test_a_call_is_read_in_spite_of_half_a_character() -> None:
    call = {"messages": [{"role": "user", "content": f"cut {HALF}"}], "request_id": "1"}
    event = decode(RequestSubmitted, b'{"router_id":"r",' + of_call(escaped(call))[1:])
    assert event.prompt == "cut \ufffd"


def test_a_history_gives_the_prompt_that_the_worker_read() -> None:
    raw = escaped({"router_id": "r", "request_id": "1", "prompt": f"cut {HALF}"})
    read = Decoder(0, None, Skipped()).event("requests", Record(0, 0.0, b"r", raw, {}))
    assert read.prompt == "cut \ufffd"


def test_an_exported_history_is_read_in_spite_of_half_a_character(tmp_path: Path) -> None:
    value = {"router_id": "r", "request_id": "1", "prompt": f"cut {HALF}"}
    line = {"offset": 0, "timestamp": 1.0, "key": "r", "value": value}
    (tmp_path / "requests-0.jsonl").write_bytes(escaped(line) + b"\n")
    (record,) = JsonlHistory(tmp_path).read("requests", 0)
    assert decode(RequestSubmitted, record.value).prompt == "cut \ufffd"


def test_rows_are_read_in_spite_of_half_a_character(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [
        {"prompt": f"cut {HALF}", "model": "small", "score": 0.5},
        {"prompt": f"cut {HALF}", "rewards": {"small": 0.7}},
    ]
    path.write_bytes(b"\n".join(map(escaped, rows)))
    assert [judged.prompt for judged in read_judgements(path)] == ["cut \ufffd"] * 2
    for row in ({"prompt": "x", "model": HALF, "score": 1}, {"prompt": "x", "costs": {HALF: 1}}):
        path.write_bytes(escaped(row))
        with pytest.raises(UnusableJudgements, match=r"line 1: the model .* is not valid Unicode"):
            read_judgements(path)


def test_a_prompt_on_the_command_line_that_is_not_utf_8_is_mended() -> None:
    assert PROMPT.convert("caf\udce9", None, None) == "caf\ufffd"


def test_a_payload_is_converted_in_spite_of_half_a_character() -> None:
    finder = finder_of("cloudevents", Defaults("r"))
    event = {"specversion": "1.0", "type": "costs", "subject": "1", "note": HALF}
    good = convert(escaped({**event, "data": {"cost_usd": 0.1, "note": HALF}}), finder)
    assert [one.event for one in good.taken] == [
        CostReported(router_id="r", request_id="1", cost_usd=0.1)
    ]
    bad = convert(escaped({**event, "data": {"cost_usd": 0.1, "model": HALF}}), finder)
    assert [str(one.error) for one in bad.refused] == [f"model: {NOT_UNICODE}"]


def test_metadata_that_is_sent_as_its_text_is_read_in_spite_of_half_a_character() -> None:
    metadata = {"pb_request_id": "mine", "note": f"cut {HALF}"}
    score = {"traceId": "trace", "name": "n", "value": 1, "dataType": "NUMERIC"}
    score["metadata"] = escaped(metadata).decode()
    (label,) = convert(escaped(score), finder_of("langfuse", Defaults("r"))).taken
    assert label.event.request_id == "mine"
    event = {"specversion": "1.0", "type": "costs", "subject": "1"}
    data = escaped({"cost_usd": 0.1, "note": HALF}).decode()
    (bill,) = convert(
        escaped({**event, "data": data}), finder_of("cloudevents", Defaults("r"))
    ).taken
    assert bill.topic == "costs"


def test_a_file_of_a_router_with_half_a_character_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text('router_id: r\nmodels: {"\\ud83d": {}}\n', encoding="utf-8")
    with pytest.raises(Failure, match="invalid Unicode"):
        read_file(path)


@pytest.mark.parametrize(
    "words",
    [
        ["explain", "{}"],
        ["cost", "{}", "0.1"],
        ["reward", "1", "0.5", "--source", "{}"],
        ["request", "Hi", "--id", "{}"],
        ["request", "Hi", "--allowed", "{}"],
        ["request", "Hi", "--router", "{}"],
        ["routers", "set", "r", "models.{}.prior="],
        ["models", "add", "{}", "--input-price", "1", "--output-price", "1"],
    ],
)
def test_a_name_on_the_command_line_that_is_not_utf_8_is_refused_in_a_sentence(
    words: list[str],
) -> None:
    # As Python hands over the bytes b"caf\xe9" of an argument.
    done = CliRunner().invoke(main, [word.replace("{}", "caf\udce9") for word in words])
    assert done.exit_code == 2
    assert r"'caf\udce9'" in done.output or r"models.caf\udce9" in done.output
    assert "is not valid Unicode" in done.output
