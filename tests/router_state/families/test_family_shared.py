"""What members share beside their regressions: shrunk by the estimated scatter, never one's own."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_state.errors import UnusablePrior
from router_state.families.family_shared import Known, Shared
from router_state.shared_numbers import MOST_SHARED_BYTES, Numbers, bytes_of, numbers_of, packed

SUBJECT = "attempts:tests"
SEEDS = st.integers(0, 10**6)


def said(z: np.ndarray, precision: float = 50.0) -> dict[str, dict[str, dict[str, bytes]]]:
    """Return what members say of one model; z has shape (members, numbers)."""
    found = {}
    for k, row in enumerate(z):
        numbers = Numbers(np.full(len(row), precision), precision * row)
        found[f"r{k}"] = {"a": {SUBJECT: bytes_of(numbers)}}
    return found


def told(z: np.ndarray, member: str = "new", aside: set[str] | None = None) -> Numbers:
    """Return what a member is told."""
    return Shared.of(said(z), aside or set()).numbers_for(member, "a")[SUBJECT]


@given(SEEDS)
def test_alike_members_are_believed_more_than_members_that_differ(seed: int) -> None:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(8, 3))
    alike, unlike = told(1.0 + 0.1 * z), told(1.0 + 3.0 * z)
    assert (alike.precision > 2.0 * unlike.precision).all()
    np.testing.assert_allclose(alike.means, 1.0, atol=0.3)


@given(SEEDS)
def test_own_evidence_is_not_in_what_a_member_is_told(seed: int) -> None:
    z = 0.2 * np.random.default_rng(seed).normal(size=(3, 2))
    known = Shared.of(said(z), set())
    before = known.numbers_for("r0", "a")[SUBJECT]
    known.stacks[SUBJECT, "a"].z[0] = 99.0
    np.testing.assert_array_equal(known.numbers_for("r0", "a")[SUBJECT].means, before.means)


def test_a_member_that_is_far_off_counts_for_little() -> None:
    z = np.zeros((6, 3))
    z[5] = 8.0
    assert (np.abs(told(z).means) < 0.8).all()


def test_a_member_that_is_left_out_or_has_left_says_nothing() -> None:
    z = np.array([[0.0], [0.0], [5.0]])
    without = told(z[:2])
    np.testing.assert_allclose(told(z, aside={"r2"}).means, without.means)
    known = Shared.of(said(z), set())
    known.forget("r2")
    assert abs(known.numbers_for("new", "a")[SUBJECT].means[0]) < 1e-9


def test_members_with_other_bins_do_not_mix() -> None:
    both = said(np.zeros((2, 4))) | {"r9": said(np.ones((1, 6)))["r0"]}
    assert len(Shared.of(both, set()).numbers_for("new", "a")[SUBJECT].means) == 4


def brought(known: Shared) -> dict[str, dict[str, bytes]]:
    """Return what a family knows, as another one gets it."""
    return {"a": {subject: one.pack() for subject, one in known.known_of("a").items()}}


@given(SEEDS)
def test_what_is_brought_tells_a_newcomer_what_the_first_family_told(seed: int) -> None:
    z = 1.0 + 0.3 * np.random.default_rng(seed).normal(size=(6, 3))
    first = Shared.of(said(z), set())
    here, there = (
        one.numbers_for("new", "a")[SUBJECT]
        for one in (first, Shared.of({}, set(), brought(first)))
    )
    np.testing.assert_allclose(there.precision, here.precision, rtol=1e-4)
    np.testing.assert_allclose(there.means, here.means, atol=1e-4)


def test_members_and_what_was_brought_count_together() -> None:
    elsewhere = brought(Shared.of(said(np.ones((6, 3))), set()))
    alone = Shared.of(said(np.ones((2, 3))), set())
    both = Shared.of(said(np.ones((2, 3))), set(), elsewhere)
    more = [one.numbers_for("new", "a")[SUBJECT].precision for one in (alone, both)]
    assert (more[1] > more[0]).all()
    # A member that has other bins than what was brought counts alone.
    other = Shared.of(said(np.ones((2, 4))), set(), elsewhere).numbers_for("new", "a")[SUBJECT]
    assert len(other.means) == 4


@pytest.mark.parametrize(
    "data", [b"1234567", b"\0" * 24, np.full(3, np.nan, "<f4").tobytes(), b"\0" * 12 * 33]
)
def test_what_is_no_knowledge_is_refused(data: bytes) -> None:
    with pytest.raises(UnusablePrior):
        Known.unpack(data)


class Many:
    """A capability with more subjects than a report holds."""

    name: ClassVar[str] = "attempts"

    def shares(self) -> dict[str, dict[str, Numbers]]:
        """Return ten verifiers of one model; later ones have more evidence."""
        return {"a": {f"v{k}": Numbers(np.full(16, 1.0 + k), np.zeros(16)) for k in range(10)}}

    def take_shared(self, numbers: object) -> None:
        """Take nothing."""


def test_of_many_subjects_those_with_most_evidence_leave() -> None:
    found = packed([Many()])["a"]
    assert sum(len(name) + len(data) for name, data in found.items()) <= MOST_SHARED_BYTES
    assert set(found) == {f"attempts:v{k}" for k in range(10 - len(found), 10)}


@pytest.mark.parametrize("data", [b"", b"1234567", b"\0" * 8 * 33])
def test_what_are_no_numbers_is_refused(data: bytes) -> None:
    with pytest.raises(UnusablePrior):
        numbers_of(data)


def test_numbers_without_an_end_are_refused() -> None:
    for bad in (np.array([np.nan, 0.0]), np.array([-1.0, 0.0]), np.array([1.0, np.inf])):
        with pytest.raises(UnusablePrior):
            numbers_of(bad.astype("<f4").tobytes())
