"""The signal that LiteLLM carries from one attempt of a call to the next."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

SIGNAL: dict[str, Any] = {
    "candidate": "openai/small",
    "model": "small",
    "fallbacks": ["openai/large"],
    "failed": [],
    "names": {"openai/large": "large-low"},
    "plan": [],
}


@pytest.fixture
def signals(litellm: Any) -> ModuleType:
    """Return the module under test, which imports LiteLLM."""
    from paretobandit_client import litellm_signals

    return litellm_signals


def test_a_candidate_is_found_by_each_of_its_names_and_by_those_of_its_variants(
    signals: ModuleType,
) -> None:
    assert signals.forms_of("small") == ["small"]
    found = signals.by_form(
        ["openai/small", "azure/small"], {"small-low": "azure/small", "gone": "none"}
    )
    assert found == {
        "openai/small": "openai/small",
        "azure/small": "azure/small",
        "small": "openai/small",
        "small-low": "azure/small",
    }


def test_after_a_failure_the_next_candidates_are_the_decisions_then_the_fallback(
    signals: ModuleType,
) -> None:
    candidates = ["other/tiny", "openai/small", "openai/large"]
    second = signals.next_best(SIGNAL, candidates, "tiny")
    assert (second["candidate"], second["model"]) == ("openai/large", "large-low")
    third = signals.next_best(second, candidates, "tiny")
    assert third["candidate"] == "other/tiny"
    assert third["failed"] == ["openai/large", "openai/small"]
    # All have failed: they are tried again.
    assert signals.next_best(third, candidates, None)["candidate"] == "openai/large"


def test_a_candidate_has_the_name_that_the_decision_chose(signals: ModuleType) -> None:
    assert signals.named_in(SIGNAL, "openai/small") == "small"
    assert signals.named_in(SIGNAL, "openai/large") == "large-low"
    assert signals.named_in(SIGNAL, "azure/other") == "azure/other"
