"""The evidence of one verdict or label: how much of it is learned."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_state.attempts.verdict_evidence import LEAST_WEIGHT, weighted

X = np.array([0.5, -0.25, 1.0])


@given(st.floats(LEAST_WEIGHT, 4.0), st.floats(-1.0, 1.0))
def test_an_observation_of_some_weight_counts_as_that_share_of_one(
    weight: float, value: float
) -> None:
    taught = weighted(X, value, weight)
    assert taught is not None
    np.testing.assert_allclose(np.outer(taught.x, taught.x), weight * np.outer(X, X), rtol=1e-9)
    assert taught.reward * taught.x[-1] == pytest.approx(weight * value, abs=1e-12)


def test_an_observation_of_hardly_any_weight_is_not_learned() -> None:
    assert weighted(X, 1.0, LEAST_WEIGHT / 2) is None and weighted(X, 1.0, 0.0) is None
