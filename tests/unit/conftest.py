"""Settings of hypothesis: `ci`, the same few examples every time; `--hypothesis-profile=long` for a
night (pytest tests/unit).
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import engine

SHRINKING = 30
"""Most seconds that Hypothesis may spend on making a failing example smaller. Its own five minutes
are those of a test: pytest's limit would end the test before the error is said."""

settings.register_profile(
    "ci", derandomize=True, max_examples=40, stateful_step_count=40, deadline=None, database=None
)
settings.register_profile(
    "long",
    max_examples=10_000,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--hypothesis-profile", default=None) is None:
        settings.load_profile("ci")
        engine.MAX_SHRINKING_SECONDS = SHRINKING
