"""The judgement of a soak tells a leak and a creeping latency from noise."""

import numpy as np
import pytest

from benchmarks.trend import trend

SECONDS = np.arange(0.0, 600.0, 5.0)


def noise(level: float, spread: float) -> np.ndarray:
    return level + np.random.default_rng(1).normal(0.0, spread, len(SECONDS))


def test_noise_about_a_level_is_flat() -> None:
    found = trend(SECONDS, noise(100.0, 3.0))
    assert found.is_flat(tolerance=0.05)
    assert abs(found.per_hour) < 10.0


def test_a_leak_under_the_noise_is_not_flat() -> None:
    found = trend(SECONDS, noise(100.0, 3.0) + SECONDS / 40.0)
    assert not found.is_flat(tolerance=0.05)
    assert found.per_hour == pytest.approx(90.0, rel=0.1)


def test_a_few_spikes_do_not_make_a_trend() -> None:
    values = noise(100.0, 1.0)
    values[[3, 50, 118]] += 500.0
    found = trend(SECONDS, values)
    assert found.is_flat(tolerance=0.05)
    assert found.peak > 550.0


def test_what_sinks_is_flat() -> None:
    assert trend(SECONDS, noise(100.0, 1.0) - SECONDS / 20.0).is_flat(tolerance=0.0)


def test_growth_from_nothing_is_growth() -> None:
    assert not trend(SECONDS, np.maximum(SECONDS - 300.0, 0.0)).is_flat(tolerance=0.5)


def test_too_few_values_are_refused() -> None:
    with pytest.raises(ValueError, match="too few"):
        trend([0.0, 1.0], [1.0, 1.0])
