"""Prices from LiteLLM's list: what may be taken unasked, and what is asked about."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from doors.integrations.litellm_prices import IMPORTED, Change, NoPriceList, plan, read_list

TODAY = date(2026, 11, 22)


def entry(into: float | None, out: float | None, **more: Any) -> dict[str, Any]:
    """Return an entry of the list; prices in dollars per million tokens."""
    prices = {
        "input_cost_per_token": into and into / 1e6,
        "output_cost_per_token": out and out / 1e6,
    }
    return {"mode": "chat", **prices, **more}


LIST = {
    "sample_spec": {"mode": "one of: chat, embedding"},
    "gpt-4o": entry(2.5, 10.0),
    "gpt-4o-mini": entry(0.15, 0.6),
    "gpt-old": entry(1.0, 2.0, deprecation_date="2026-01-01"),
    "gpt-going": entry(1.0, 2.0, deprecation_date="2027-01-01"),
    "gpt-free": entry(0.0, 0.0),
    "gpt-slip": entry(2500.0, 10.0),
    "gpt-half": entry(1.0, None),
    "embedding": entry(0.1, 0.1, mode="embedding"),
    "gem-writes": entry(
        1.0, 2.0, cache_read_input_token_cost=1e-7, cache_creation_input_token_cost=0.0
    ),
    "gem-reads": entry(1.0, 2.0, cache_read_input_token_cost=0.0),
    "gem-above": entry(1.0, 2.0, cache_read_input_token_cost=2e-6),
}


@pytest.fixture
def prices(tmp_path: Path) -> Any:
    """Return a list as LiteLLM's wheel has it."""
    (tmp_path / "list.json").write_text(json.dumps(LIST))
    return read_list(tmp_path / "list.json")


def model(into: float, out: float, *, imported: bool = True) -> dict[str, Any]:
    """Return a declared model."""
    declared = {"input_price_per_m": into, "output_price_per_m": out}
    return {**declared, "onboarding_pulls": 3, **({IMPORTED: declared} if imported else {})}


def only(changes: list[Change]) -> Change:
    """Return the one change."""
    (change,) = changes
    return change


def test_the_list_of_the_wheel_is_read() -> None:
    found = read_list()
    assert len(found) > 500 and found["gpt-4o-mini"].prices == {
        "input_price_per_m": 0.15,
        "output_price_per_m": 0.6,
    }
    with pytest.raises(NoPriceList):
        read_list(Path("nowhere"))


def test_only_what_answers_in_text_and_has_both_prices_is_read(prices: Any) -> None:
    assert prices.keys() == {
        "gpt-4o",
        "gpt-4o-mini",
        "gpt-old",
        "gpt-going",
        "gpt-free",
        "gpt-slip",
        "gem-writes",
        "gem-reads",
        "gem-above",
    }


def test_a_usual_change_is_taken_with_or_without_its_provider(prices: Any) -> None:
    for name in ("gpt-4o", "openai/gpt-4o"):
        change = only(plan(prices, {name: model(5.0, 15.0)}, only=None, today=TODAY))
        assert (change.doubt, change.kept, change.changes) == (None, False, True)
    assert not only(plan(prices, {"gpt-4o": model(2.5, 10.0)}, only=None, today=TODAY)).changes


@pytest.mark.parametrize(
    ("name", "declared", "doubt"),
    [
        ("gpt-slip", model(2.5, 10.0), "\\$2,500 per million, more than any model costs"),
        ("gpt-4o", model(0.2, 15.0), "jumps from \\$0.2 to \\$2.5"),
        ("gpt-half", model(1.0, 3.0), "left out: it has no output_cost_per_token"),
        ("gpt-4o", model(0.2, 10.0), "jumps from \\$0.2"),
        ("gpt-4o", model(0.0, 10.0), "jumps from \\$0 "),
        ("gpt-free", model(1.0, 1.0), "price of 0"),
        ("gpt-old", model(1.0, 3.0), "deprecated since 2026-01-01"),
        ("gpt-unknown", model(1.0, 3.0), "not in LiteLLM's list"),
    ],
)
def test_what_is_doubtful_is_asked_about(
    prices: Any, name: str, declared: dict[str, Any], doubt: str
) -> None:
    change = only(plan(prices, {name: declared}, only=None, today=TODAY))
    with pytest.raises(ValueError, match=doubt):
        raise ValueError(change.doubt)


def test_what_is_deprecated_later_is_taken_and_new_ones_that_are_free_are_not(prices: Any) -> None:
    assert only(plan(prices, {"gpt-going": model(1.0, 3.0)}, only=None, today=TODAY)).doubt is None
    new = {change.name: change.doubt for change in plan(prices, {}, only="gpt-*", today=TODAY)}
    assert [name for name, doubt in new.items() if doubt] == [
        "gpt-free",
        "gpt-half",
        "gpt-old",
        "gpt-slip",
    ]


def test_a_cached_price_that_is_left_out_is_named(prices: Any) -> None:
    notes = {one.name: (one.cache, one.note) for one in plan(prices, {}, only="gem-*", today=TODAY)}
    expected = {
        "gem-writes": ({"cached_input_price_per_m": 0.1}, "its cache write price is 0 in the list"),
        "gem-reads": (None, "its cached price is 0 in the list"),
        "gem-above": (None, "its cached price is above its input price in the list"),
    }
    for name, (cache, note) in expected.items():
        assert notes[name][0] == cache and str(notes[name][1]).startswith(note)


def test_a_price_set_by_hand_survives(prices: Any) -> None:
    assert only(
        plan(prices, {"gpt-4o": model(2.0, 8.0, imported=False)}, only=None, today=TODAY)
    ).kept
    repriced = {**model(5.0, 15.0), "input_price_per_m": 4.0}
    assert only(plan(prices, {"gpt-4o": repriced}, only=None, today=TODAY)).kept
    assert not only(plan(prices, {"gpt-4o": model(5.0, 15.0)}, only=None, today=TODAY)).kept
