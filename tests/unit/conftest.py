"""Settings of hypothesis: `ci`, the same few examples every time; `--hypothesis-profile=long` for a
night (pytest tests/unit).
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

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
