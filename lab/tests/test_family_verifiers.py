"""Families whose members have a verifier: newcomers know what its verdicts mean."""

from __future__ import annotations

import pytest

from benchmarks.family_verifiers import KINDS, one, tenants, verifier_of


def test_newcomers_who_are_told_of_the_verifier_earn_more() -> None:
    unshared, shared = one(100, "alike", 1.0)[:, 0].mean(1)
    assert shared > unshared + 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_tenants_have_requests_of_their_own(kind: str) -> None:
    found = tenants(3, kind, 1.0)
    assert len({float(part.contexts[0, 0]) for part in found}) == len(found)


def test_only_the_verifiers_of_tenants_that_differ_are_drawn() -> None:
    assert {verifier_of("alike", k, 1) for k in range(5)} == {"good"}
    assert all(verifier_of("half alike", k, 1) == "good" for k in (0, 2, 4))
    assert len({verifier_of("unlike", k, seed) for k in range(5) for seed in range(5)}) > 3
