"""The signal that LiteLLM carries from one attempt of a call to the next."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("litellm")

from paretobandit_client.litellm_signals import by_form, forms_of, named_in, next_best

SIGNAL: dict[str, Any] = {
    "candidate": "openai/small",
    "model": "small",
    "fallbacks": ["openai/large"],
    "failed": [],
    "names": {"openai/large": "large-low"},
    "plan": [],
}


def test_a_candidate_is_found_by_each_of_its_names_and_by_those_of_its_variants() -> None:
    assert forms_of("small") == ["small"]
    found = by_form(["openai/small", "azure/small"], {"small-low": "azure/small", "gone": "none"})
    assert found == {
        "openai/small": "openai/small",
        "azure/small": "azure/small",
        "small": "openai/small",
        "small-low": "azure/small",
    }


def test_after_a_failure_the_next_candidates_are_the_decisions_then_the_fallback() -> None:
    candidates = ["other/tiny", "openai/small", "openai/large"]
    second = next_best(SIGNAL, candidates, "tiny")
    assert (second["candidate"], second["model"]) == ("openai/large", "large-low")
    third = next_best(second, candidates, "tiny")
    assert third["candidate"] == "other/tiny"
    assert third["failed"] == ["openai/large", "openai/small"]
    # All have failed: they are tried again.
    assert next_best(third, candidates, None)["candidate"] == "openai/large"


def test_a_candidate_has_the_name_that_the_decision_chose() -> None:
    assert named_in(SIGNAL, "openai/small") == "small"
    assert named_in(SIGNAL, "openai/large") == "large-low"
    assert named_in(SIGNAL, "azure/other") == "azure/other"
