"""Sums of a model as bytes: what rounding may change, and bytes that are no sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_state.errors import UnusablePrior
from router_state.families.family_sums import Sums, bytes_of, sums_of
from router_state.families.sum_bytes import most_size

SEEDS = st.integers(0, 10**6)
DIMENSIONS = st.integers(1, 26)


def drawn(seed: int, d: int, n: int, scale: float = 1.0) -> Sums:
    """Return the sums of n contexts, fewer than d among them, whose last feature is 1."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([scale * rng.normal(size=(n, d - 1)), np.ones(n)])
    return Sums(X.T @ X, X.T @ rng.random(n))


@given(SEEDS, DIMENSIONS, st.integers(0, 200), st.sampled_from([1e-3, 1.0, 1e3]))
def test_rounding_keeps_counts_levels_and_a_usable_matrix(
    seed: int, d: int, n: int, scale: float
) -> None:
    sums = drawn(seed, d, n, scale)
    data = bytes_of(sums)
    assert len(data) % 2 == 1 and len(data) <= most_size(d)
    found = sums_of(data, d)
    assert found.count == pytest.approx(n) and found.b[-1] == pytest.approx(sums.b[-1], rel=1e-6)
    assert np.linalg.eigvalsh(found.A)[0] >= -1e-6 * max(1.0, float(np.trace(found.A)))
    size = np.sqrt(np.maximum(np.diag(sums.A), 1e-12))
    # Half a step of a correlation for each feature, which the diagonal may grow by as well.
    assert np.abs((found.A - sums.A) / np.outer(size, size)).max() <= (d + 2) / 62


@given(SEEDS, DIMENSIONS, st.data())
def test_bytes_that_were_cut_or_changed_are_refused_or_are_finite_sums(
    seed: int, d: int, data: st.DataObject
) -> None:
    packed = bytearray(bytes_of(drawn(seed, d, 40)))
    at = data.draw(st.integers(0, len(packed) - 1))
    packed[at] ^= data.draw(st.integers(1, 255))
    for damaged in (bytes(packed), bytes(packed[:at])):
        try:
            found = sums_of(damaged, d)
        except UnusablePrior:
            continue
        assert np.isfinite(found.A).all() and np.isfinite(found.b).all()


@pytest.mark.parametrize("data", [b"", b"\0", b"\0" * 21, b"\0" * 2_000, b"\xff" * 601])
def test_other_bytes_are_no_sums(data: bytes) -> None:
    with pytest.raises(UnusablePrior):
        sums_of(data, 26)
