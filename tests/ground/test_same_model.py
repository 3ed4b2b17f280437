"""Names of one model: with a provider before them, or a snapshot behind them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ground.same_model import is_same_model

SAME = [
    ("gpt-4o", "gpt-4o-2024-08-06"),
    ("openai/gpt-4o", "gpt-4o-2024-11-20"),
    ("gpt-4o-2024-08-06", "gpt-4o"),
    ("gpt-4", "gpt-4-0613"),
    ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
    ("claude-opus-4-1", "claude-opus-4-1-20250805"),
    ("vertex_ai/claude-3-5-sonnet@20240620", "claude-3-5-sonnet-20240620"),
    ("bedrock/us.anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet-20241022"),
    ("gemini-1.5-pro", "gemini-1.5-pro-002"),
    ("gemini/gemini-2.5-flash-preview", "models/gemini-2.5-flash-preview-05-20"),
    ("mistral-large-latest", "mistral-large-2407"),
    ("command-r", "command-r-08-2024"),
    ("Llama-3.1-8B", "llama-3.1-8b"),
    ("o1", "o1-2024-12-17"),
]
OTHER = [
    ("gpt-4o", "gpt-4o-mini"),
    ("gpt-4o", "gpt-4o-mini-2024-07-18"),
    ("gpt-4o-2024-08-06", "gpt-4o-2024-11-20"),
    ("gpt-4-0314", "gpt-4-0613"),
    ("claude-opus-4", "claude-opus-4-1-20250805"),
    ("gemini-2.5-pro", "gemini-2.5-flash"),
    ("llama-3.1-8b", "llama-3.3-8b"),
    ("llama-3.1-8b", "llama-3.1-70b"),
    ("openrouter/auto", "anthropic/claude-sonnet-4"),
    ("o1", "o3"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_snapshots_and_prefixes_are_the_same_model(one: str, other: str) -> None:
    assert is_same_model(one, other) and is_same_model(other, one)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_other_sizes_versions_and_dates_are_other_models(one: str, other: str) -> None:
    assert not is_same_model(one, other) and not is_same_model(other, one)


@given(name=st.text(min_size=1, max_size=200))
def test_every_name_is_its_own(name: str) -> None:
    assert is_same_model(name, name)
