"""Verifiers of the application's own: what they say, and that none of them holds a call up."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paretobandit_client import Verifier, is_json, json_schema, matches, non_empty
from paretobandit_client import verifying as module
from paretobandit_client.verifying import verdict_of, verifiers_of


def said(look: Callable[[Any], Any], answer: object = "x", *, seconds: float = 30.0) -> Any:
    return asyncio.run(verdict_of("v", Verifier(look, seconds), answer))


async def later(answer: object) -> bool:
    await asyncio.sleep(0)
    return answer == "x"


class Asynchronous:
    async def __call__(self, answer: object) -> float:
        return 0.25


@pytest.mark.parametrize(
    ("look", "verdict"),
    [
        (lambda answer: True, 1.0),
        (lambda answer: answer == "y", 0.0),
        (lambda answer: 0.5, 0.5),
        (lambda answer: 1, 1.0),
        (lambda answer: np.bool_(True), 1.0),
        (lambda answer: np.float32(0.5), 0.5),
        (lambda answer: Decimal("0.25"), 0.25),
        (later, 1.0),
        (partial(later), 1.0),
        (Asynchronous(), 0.25),
    ],
)
def test_verdicts_are_truths_or_numbers_from_0_to_1(look: Any, verdict: float) -> None:
    assert said(look) == verdict


def failing(answer: object) -> bool:
    raise ValueError(f"the answer was {answer}")


async def exhausted(answer: object) -> bool:
    raise StopAsyncIteration


@pytest.mark.parametrize(
    "look",
    [
        failing,
        exhausted,
        lambda answer: None,
        lambda answer: 1.5,
        lambda answer: float("nan"),
        lambda answer: "yes",
        lambda answer: next(iter(())),
        lambda answer: sys.exit(1),
        lambda: True,
    ],
)
def test_a_verifier_that_fails_gives_no_verdict_and_the_log_has_no_answer(
    look: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert said(look, "secret") is None
    assert "secret" not in caplog.text


def test_one_that_takes_too_long_gives_no_verdict_even_if_it_does_not_let_itself_be_ended() -> None:
    release = threading.Event()

    async def stubborn(answer: object) -> bool:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return True

    assert said(lambda answer: release.wait(), seconds=0.05) is None
    assert said(stubborn, seconds=0.05) is None
    release.set()


def test_threads_that_hang_are_bounded_and_a_verifier_works_again_after_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = threading.Event()
    verifier = Verifier(lambda answer: release.wait(), seconds=0.05)
    monkeypatch.setattr(module, "MOST_THREADS", 2)
    before = threading.active_count()
    for _ in range(5):
        assert asyncio.run(verdict_of("v", verifier, "x")) is None
    assert threading.active_count() - before <= 2
    release.set()
    while verifier._threads:
        time.sleep(0.01)
    assert asyncio.run(verdict_of("v", verifier, "x")) == 1.0


async def test_the_application_goes_on_while_a_verifier_blocks() -> None:
    release = threading.Event()
    verdict = asyncio.create_task(verdict_of("v", Verifier(lambda answer: release.wait()), "x"))
    await asyncio.sleep(0)
    release.set()  # only reached if the loop is free
    assert await verdict == 1.0


def test_names_and_limits_are_checked_at_once() -> None:
    assert verifiers_of({"json": is_json})["json"] == Verifier(is_json)
    for wrong in ({"": is_json}, {"json": "is_json"}, {"a\nb": is_json}):
        with pytest.raises(ValueError, match="verifier"):
            verifiers_of(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="time limit"):
        Verifier(is_json, seconds=0.0)


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ('{"a": [1, 2.5, null]}', True),
        ("7", True),
        ("", False),
        ("```json\n{}\n```", False),
        ("{} {}", False),
        ("NaN", False),
        ("\ud83d", False),
        ("[" * 100_000, False),
    ],
)
def test_json_is_json_and_nothing_else(text: str, passes: bool) -> None:
    assert is_json(text) is passes


SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


def test_a_schema_passes_what_it_describes_and_fetches_nothing() -> None:
    fits = json_schema(SCHEMA)
    assert fits('{"n": 1}') and not fits('{"n": "1"}') and not fits("{}") and not fits("n = 1")
    elsewhere = json_schema({"$ref": "http://127.0.0.1:9/schema.json"})
    assert said(elsewhere, "1") is None
    with pytest.raises(Exception, match="is not valid under any of the given schemas"):
        json_schema({"type": "no such type"})


def test_without_jsonschema_a_schema_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema.validators", None)
    with pytest.raises(RuntimeError, match="pip install jsonschema"):
        json_schema(SCHEMA)


@given(st.text())
def test_a_text_is_empty_where_it_has_white_space_only(text: str) -> None:
    assert non_empty(text) is (text.split() != [])


def test_a_pattern_is_searched_for_and_may_be_bound_to_the_whole() -> None:
    assert matches("[0-9]+")("about 42") and not matches("^[0-9]+$")("about 42")
