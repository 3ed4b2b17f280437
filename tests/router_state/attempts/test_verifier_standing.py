"""What is published of verifiers: shares with their intervals, whatever came before."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_state.attempts.verdict_tables import Tables
from router_state.attempts.verifier import Verifier
from router_state.attempts.verifier_standing import LastStandings, standings
from schemas.verifiers import VerifierStanding

MODELS = ("large", "small")
Seen = list[tuple[int, int, float, float | None]]
SEEN = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(0, 2),
        st.floats(-0.5, 1.5),
        st.none() | st.floats(0.0, 1.0),
    ),
    max_size=60,
)


def told(verifier: Verifier, seen: Seen) -> VerifierStanding:
    """Return the standing of a verifier after these verdicts and labels, as readers get it."""
    tables = Tables()
    tables.declare({"judge": verifier}, MODELS)
    table = tables.tables["judge"]
    for k, step, reward, label in seen:
        j = min(step, verifier.bins - 1)
        table.see(k, j, reward)
        if label is not None:
            table.learn(k, j, reward, 0.01, label)
    (found,) = standings(tables, {})
    return VerifierStanding.model_validate_json(orjson.dumps(found))


@given(SEEN, st.integers(2, 3), st.booleans())
def test_shares_lie_in_their_intervals_and_counts_are_those_of_what_came(
    seen: Seen, bins: int, exact: bool
) -> None:
    found = told(Verifier(4e-5, exact, bins), seen)
    assert [one.model for one in found.models] == list(MODELS)
    assert found.accept_at in {edge / bins for edge in range(1, bins)}
    for k, one in enumerate(found.models):
        for share in (one.passes_right, one.stops_wrong):
            assert 0.0 <= share.low <= share.value <= share.high <= 1.0
        of = [label for model, _, _, label in seen if model == k]
        assert one.verdicts == len(of)
        assert one.labels == sum(label is not None for label in of)


@pytest.mark.parametrize(("passes", "stops"), [(0.95, 0.9), (0.5, 0.5)])
def test_a_good_verifier_and_a_coin_are_told_apart(passes: float, stops: float) -> None:
    seen: Seen = []
    for n in range(400):
        right = n % 2 == 0
        share = (n // 2 % 20) / 20.0
        passed = share < passes if right else share >= stops
        seen.append((n // 40 % 2, int(passed), 0.5, float(right)))
    found = told(Verifier(), seen)
    for one in found.models:
        assert one.passes_right.low - 0.05 <= passes <= one.passes_right.high + 0.05
        assert one.stops_wrong.low - 0.05 <= stops <= one.stops_wrong.high + 0.05


def test_a_standing_is_told_again_until_something_is_learned_or_declared() -> None:
    tables, before = Tables(), LastStandings()
    tables.declare({"judge": Verifier(4e-5)}, MODELS)
    (first,) = standings(tables, before)
    assert standings(tables, before)[0] is first
    tables.tables["judge"].learn(0, 1, 0.5, 0.01, 1.0)
    (second,) = standings(tables, before)
    assert second == standings(tables, {})[0] != first
    tables.declare({"judge": Verifier(5e-5)}, (*MODELS, "third"))
    (third,) = standings(tables, before)
    assert third == standings(tables, {})[0] and third["usd"] == 5e-5


def test_what_is_not_known_yet_has_a_wide_interval_and_more_labels_a_narrower_one() -> None:
    wide = [
        told(Verifier(), [(0, n % 2, 0.5, float(n % 2)) for n in range(labels)]).models[0]
        for labels in (0, 20, 200)
    ]
    widths = [one.stops_wrong.high - one.stops_wrong.low for one in wide]
    assert widths[0] > widths[1] > widths[2]
