"""What a list of prices says and a declaration can't is said, and why a model is left out."""

from __future__ import annotations

import json
import re
import tempfile
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from commands.cli import main
from commands.cli.models_import import show
from commands.cli.router_change import LEAST, per_million
from doors.console.document import faults
from doors.console.failures import Failure
from doors.integrations.litellm_prices import (
    CHEAP,
    DEAR,
    IMPORTED,
    IMPORTED_OTHERS,
    Change,
    plan,
)
from doors.integrations.price_list import FILE, TALKING, NoPriceList, PriceList, read_list

TODAY = date(2026, 11, 22)
FINE = {
    "mode": "chat",
    "input_cost_per_token": 1e-6,
    "output_cost_per_token": 2e-6,
    "max_input_tokens": 8192,
}


def listed(tmp_path: Path, text: str) -> PriceList:
    """Return a list of this JSON."""
    path = tmp_path / "list.json"
    path.write_text(text, encoding="utf-8")
    return read_list(path)


def change(tmp_path: Path, **entry: Any) -> Change:
    """Return the change that a model of this entry makes."""
    (found,) = plan(
        listed(tmp_path, json.dumps({"m": {**FINE, **entry}})), {}, only="*", today=TODAY
    )
    return found


def test_a_sound_entry_needs_no_word(tmp_path: Path) -> None:
    found = change(tmp_path)
    assert (found.doubt, found.note, found.changes) == (None, None, True)


@pytest.mark.parametrize("size", [128, 200, 256, 272, 512])
def test_prices_of_long_inputs_are_taken(tmp_path: Path, size: int) -> None:
    tiers = {
        f"input_cost_per_token_above_{size}k_tokens": 2.5e-6,
        f"output_cost_per_token_above_{size}k_tokens": 1.5e-5,
        f"input_cost_per_token_above_{size}k_tokens_priority": 9e-6,
    }
    found = change(tmp_path, **tiers)
    tier = {"input_tokens": 1000 * size, "input_price_per_m": 2.5, "output_price_per_m": 15.0}
    assert (found.note, found.others) == (None, {"price_above": [tier]})


def test_of_several_long_inputs_the_shortest_comes_first_and_keeps_what_is_not_said(
    tmp_path: Path,
) -> None:
    tiers = {
        "output_cost_per_token_above_256k_tokens": 8e-6,
        "input_cost_per_token_above_128k_tokens": 2e-6,
        "input_cost_per_token_above_256k_tokens": None,
    }
    found = change(tmp_path, **tiers).others
    assert found is not None
    assert [tuple(tier.values()) for tier in found["price_above"]] == [
        (128_000, 2.0, 2.0),
        (256_000, 2.0, 8.0),
    ]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"input_cost_per_token_above_200k_tokens": "2e-6"}, "is not a price"),
        ({"input_cost_per_token_above_200k_tokens": -1.0}, "is not a price"),
        ({"output_cost_per_token_above_200k_tokens": 2.0}, "is not a price"),
        (
            {
                "input_cost_per_token": 0,
                "output_cost_per_token": 0,
                "input_cost_per_token_above_200k_tokens": 1e-6,
            },
            "prices of 0",
        ),
    ],
)
def test_prices_of_long_inputs_that_are_none_are_said(
    tmp_path: Path, entry: dict[str, Any], why: str
) -> None:
    found = change(tmp_path, **entry)
    assert why in str(found.note) and found.others is None


def test_what_the_list_says_of_long_inputs_and_ends_follows_it_unless_set_by_hand(
    tmp_path: Path,
) -> None:
    text = json.dumps(
        {
            "m": {
                **FINE,
                "input_cost_per_token_above_200k_tokens": 2e-6,
                "deprecation_date": "03/31/2027",
            }
        }
    )
    prices = {"input_price_per_m": 1.0, "output_price_per_m": 2.0}
    tier = {"input_tokens": 200_000, "input_price_per_m": 2.0, "output_price_per_m": 2.0}
    said = {"price_above": [tier], "retires_at": "2027-03-31"}
    window = {"context_window": 8192}

    def others(text: str, **declared: Any) -> Any:
        model = {**prices, IMPORTED: prices, "offers": window, **declared}
        (found,) = plan(listed(tmp_path, text), {"m": model}, only=None, today=TODAY)
        assert found.changes == (found.others is not None)
        return found.others

    assert others(text) == said
    assert others(text, **said, **{IMPORTED_OTHERS: said}) is None
    assert others(text, retires_at="2026-12-24") == {"price_above": [tier]}
    # What the list has no more is no longer declared, unless it was set by hand.
    plain = json.dumps({"m": FINE})
    gone = {"price_above": None, "retires_at": None}
    assert others(plain, **said, **{IMPORTED_OTHERS: said}) == gone
    assert others(plain, **said) is None


def test_a_model_that_is_deprecated_and_taken_all_the_same_has_no_end(tmp_path: Path) -> None:
    found = change(tmp_path, deprecation_date="2025-01")
    assert found.doubt == "is deprecated since 2025-01-01" and found.others is None
    assert change(tmp_path, deprecation_date="2027-03").others == {"retires_at": "2027-03-01"}
    later = change(tmp_path, deprecation_date="2027-03-31T12:00:00Z")
    assert later.others == {"retires_at": "2027-03-31"}


def test_every_model_of_the_wheel_with_tiers_has_them_and_none_is_lost() -> None:
    found = read_list()
    known = plan(found, {}, only="*", today=TODAY)
    notes = {one.name: str(one.note) for one in known}
    others = {one.name: one.others or {} for one in known}
    spec = find_spec("litellm")
    assert spec is not None and spec.origin is not None
    raw = json.loads((Path(spec.origin).parent / FILE).read_text(encoding="utf-8"))
    tiered = {
        name
        for name, entry in raw.items()
        if name in found
        and any(found[name].prices.values())
        and any(re.fullmatch(r"(in|out)put_cost_per_token_above_\d+k_tokens", one) for one in entry)
    }
    assert len(tiered) > 100
    assert all(others[name]["price_above"] for name in tiered)
    talking = {name for name, entry in raw.items() if entry.get("mode") in TALKING}
    assert talking == {name for name in notes if raw[name].get("mode") in TALKING}
    # What is taken unasked can be declared.
    taken = {one.name: one.listed for one in known if one.doubt is None}
    models = {
        name: {**one.prices, "offers": one.offers, **one.others(TODAY)}
        for name, one in taken.items()
        if one
    }
    assert all(price <= DEAR for one in taken.values() if one for price in one.prices.values())
    assert not faults({"router_id": "r", "models": dict(list(models.items())[:60])})


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"tiered_pricing": [{"input_cost_per_token": 5e-8}]}, "tiers of input"),
        ({"input_cost_per_second": 0.0004}, "per second"),
        ({"input_cost_per_request": 0.005}, "per request"),
        ({"input_cost_per_character": 1e-7}, "per character"),
        ({"input_cost_per_token": "1e-06"}, 'input_cost_per_token is a text in the list: "1e-06"'),
        ({"input_cost_per_token": True}, "input_cost_per_token is no number in the list: true"),
        ({"output_cost_per_token": None}, "no output_cost_per_token"),
        ({"output_cost_per_token": -1e-6}, "output_cost_per_token is -1e-06"),
        ({"output_cost_per_token": float("inf")}, "output_cost_per_token is inf"),
        ({"output_cost_per_token": 15.0}, r"\$15,000,000 per million"),
        ({"mode": None}, "no mode"),
    ],
)
def test_what_is_left_out_is_said_to_be_there_and_why(
    tmp_path: Path, entry: dict[str, Any], why: str
) -> None:
    found = change(tmp_path, **entry)
    assert (found.listed, found.changes) == (None, False)
    with pytest.raises(ValueError, match="is in LiteLLM's list and left out: .*" + why):
        raise ValueError(found.doubt)


@pytest.mark.parametrize("before", [None, 540_000.0, 500_000.0, 0.54])
def test_a_price_of_another_unit_is_doubted_whatever_stood_before(
    tmp_path: Path, before: float | None
) -> None:
    text = json.dumps({"m": {**FINE, "input_cost_per_token": 0.135, "output_cost_per_token": 0.54}})
    models = (
        {} if before is None else {"m": {"input_price_per_m": 1.0, "output_price_per_m": before}}
    )
    (found,) = plan(listed(tmp_path, text), models, only="*", today=TODAY)
    assert found.doubt == "is listed at $135,000 per million, more than any model costs"


def test_a_price_that_was_divided_once_too_often_is_doubted(tmp_path: Path) -> None:
    assert "less than any model costs" in str(change(tmp_path, input_cost_per_token=1e-12).doubt)
    assert CHEAP == LEAST


@pytest.mark.parametrize(
    "text",
    [
        "2025-01-31",
        "2025-01-31T00:00:00Z",
        "2025-01-31 12:30:00+02:00",
        "20250131",
        "01/31/2025",
        "31/01/2025",
        "31.01.2025",
        "2025/01/31",
        "January 31, 2025",
        "Jan 31, 2025",
        "31 January 2025",
        "31 Jan 2025",
    ],
)
def test_a_date_is_read_in_any_form(tmp_path: Path, text: str) -> None:
    assert change(tmp_path, deprecation_date=text).doubt == "is deprecated since 2025-01-31"


def test_a_date_that_can_t_be_read_is_said_and_of_two_readings_the_earlier_counts(
    tmp_path: Path,
) -> None:
    assert "can't be read: 'next year'" in str(change(tmp_path, deprecation_date="next year").note)
    assert change(tmp_path, deprecation_date="02/01/2025").doubt == "is deprecated since 2025-01-02"
    assert change(tmp_path, deprecation_date="").note is None


def test_what_stands_twice_is_doubted(tmp_path: Path) -> None:
    fine, other = json.dumps(FINE), json.dumps({**FINE, "input_cost_per_token": 9e-6})
    twice = fine[:-1] + ', "input_cost_per_token": 3e-6}'
    prices = listed(
        tmp_path, f'{{"m": {fine}, "m": {other}, "n": {fine}, "n": {fine}, "o": {twice}}}'
    )
    doubts = {one.name: one.doubt for one in plan(prices, {}, only="*", today=TODAY)}
    assert doubts == {
        "m": "is twice in the list, with other values",
        "n": None,
        "o": "has input_cost_per_token twice in the list, with other values",
    }


def test_texts_for_counts_and_other_prices_are_said(tmp_path: Path) -> None:
    found = change(
        tmp_path,
        max_input_tokens="131072",
        max_output_tokens=1e6,
        output_cost_per_reasoning_token=3e-6,
        search_context_cost_per_query={"search_context_size_low": 0.005},
        cache_read_input_token_cost="1e-7",
        supported_regions=["us-west2", None, 5, "global"],
    )
    assert found.listed is not None
    assert dict(found.listed.offers) == {"max_output_tokens": 1_000_000, "regions": ["us-west2"]}
    for said in (
        "max_input_tokens is a text",
        "cache_read_input_token_cost is a text",
        "output_cost_per_reasoning_token, search_context_cost_per_query in the list: not priced",
    ):
        assert said in str(found.note)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=3))
def test_whatever_a_field_holds_the_list_is_read(value: object) -> None:
    fields = (*FINE, "deprecation_date", "supported_regions", "tiered_pricing")
    fields += (
        "input_cost_per_token_above_200k_tokens",
        "output_cost_per_token_above_9k_tokens",
        "cache_read_input_token_cost",
    )
    with tempfile.TemporaryDirectory() as folder:
        models = {field: {**FINE, field: value} for field in fields}
        found = plan(listed(Path(folder), json.dumps(models)), {}, only="*", today=TODAY)
    known = {one.name: one.listed for one in found if one.listed is not None}
    declared = {
        name: {**one.prices, "offers": one.offers, **one.cache, **one.others(TODAY)}
        for name, one in known.items()
    }
    assert not faults({"router_id": "r", "models": declared})


def test_an_import_shows_what_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = json.dumps({"new": {**FINE, "mode": None}, "fine": FINE, "old": {"mode": "chat"}})
    models = {"old": {"input_price_per_m": 1.0, "output_price_per_m": 2.0}}
    show(plan(listed(tmp_path, text), models, only="*", today=TODAY), [])
    shown = " ".join(capsys.readouterr().out.split())
    for said in ("no mode", "left out", "new", "fine", "old"):
        assert said in shown


def test_a_list_that_is_none_is_said_to_be_none(tmp_path: Path) -> None:
    for text in ("[]", "1", "{"):
        with pytest.raises(NoPriceList):
            listed(tmp_path, text)


@pytest.mark.parametrize(
    "words",
    [
        ["models", "add", "m", "--input-price", "1.25e-6", "--output-price", "10"],
        ["models", "reprice", "m", "--input-price", "1.25e-6", "--output-price", "10"],
        ["routers", "set", "r", "models.m.input_price_per_m=1.25e-6"],
    ],
)
def test_a_price_that_looks_as_if_per_token_is_asked_about(words: list[str]) -> None:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1
    assert "if it is per token, give" in done.output and " 1.25;" in done.output


def test_a_low_price_is_taken_from_who_is_sure() -> None:
    assert per_million(1.25e-6, option="--input-price", is_sure=True) == 1.25e-6
    for usual in (0.0, LEAST, 1.25):
        assert per_million(usual, option="--input-price", is_sure=False) == usual
    with pytest.raises(Failure):
        per_million(1.25e-6, option="--input-price", is_sure=False)
