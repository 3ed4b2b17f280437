"""A request that was answered by another model than was decided: the books and that model's
learning are true.
"""

import numpy as np
import pytest

from benchmarks.played import Played
from router_state.changes import HEAD, Outcome
from router_state.config import ModelConfig, Price, RouterConfig
from router_state.errors import UnpricedModel
from router_state.profiles import knobs_for
from router_state.state import invariants, record_bytes, state_pieces
from tests.router_state.core_reference import observed

X = np.array([0.5, -0.5, 1.0])
SMALL, LARGE = Price(0.1, 0.4), Price(1.25, 10.0)


def engine(profile: str = "live") -> Played:
    """Return a router of two models."""
    models = {"small": ModelConfig(SMALL, None, 0), "large": ModelConfig(LARGE, None, 0)}
    return Played.start(
        RouterConfig(
            models=models,
            budget_usd_per_request=0.01,
            dimensions=3,
            profile=profile,
            knobs=knobs_for(profile, {}),
        )
    )


def decided(profile: str = "live") -> Played:
    """Return a router that has decided one request for the large model."""
    router = engine(profile)
    assert router.decide("r", X, now=1.0, allowed_models=["large"]).model == "large"
    return router


def learned(router: Played) -> dict[str, bytes]:
    """Return what a router knows, its counters apart."""
    return {
        name: piece
        for name, piece in state_pieces.pack_pieces(router.state).items()
        if name != HEAD
    }


@pytest.mark.parametrize("profile", ["live", "paper"])
def test_a_fallbacks_bill_settles_the_late_decision_and_teaches_the_fallback(profile: str) -> None:
    router = decided(profile)
    arms = router.state.arms
    bills = {arm.name: arm.costs.bills for arm in arms}
    assert router.settle("r", tokens=(1000, 500), model="small") is Outcome.APPLIED
    assert router.state.spend_usd == pytest.approx(
        SMALL.cost_usd(input_tokens=1000, output_tokens=500)
    )
    assert (router.state.settled, router.state.committed_usd, router.state.open_commitments) == (
        1,
        0.0,
        {},
    )
    after = {arm.name: arm.costs.bills for arm in arms}
    assert (after["small"] - bills["small"], after["large"] - bills["large"]) == (1, 0)
    assert router.settle("r", cost_usd=5.0, model="large") is Outcome.DUPLICATE
    assert router.state.spend_usd == pytest.approx(3e-4)
    invariants.check(router.state, router.records)


def test_a_bills_revision_is_priced_as_the_bill_was() -> None:
    router = decided()
    router.settle("r", tokens=(1000, 500), model="small")
    assert router.settle("r", tokens=(2000, 500), revision=1) is Outcome.REVISED
    assert router.state.spend_usd == pytest.approx(
        SMALL.cost_usd(input_tokens=2000, output_tokens=500)
    )


@pytest.mark.parametrize("named", ["by the bill", "by the reward"])
def test_a_reward_is_learned_of_the_model_that_was_called(named: str) -> None:
    router = decided()
    arms = router.state.arms
    router.settle("r", cost_usd=1e-4, model="small" if named == "by the bill" else None)
    assert (
        router.learn("r", reward=0.8, model=None if named == "by the bill" else "small")
        is Outcome.APPLIED
    )
    assert router.learn("r", reward=0.2, rank=9, source="human", model="large") is Outcome.REVISED
    seen = {arm.name: observed(arm.rewards, arms.rewards)[-1, -1] for arm in arms}
    assert seen == pytest.approx({"large": 0.0, "small": 1.0}, abs=1e-9)


def test_a_decision_that_came_after_all_is_booked_as_if_in_time() -> None:
    late, prompt = decided(), decided()
    late.settle("r", cost_usd=0.002, model="large")
    late.learn("r", reward=0.9, model="large")
    prompt.settle("r", cost_usd=0.002)
    prompt.learn("r", reward=0.9)
    assert state_pieces.pack_piece(late.state, HEAD) == state_pieces.pack_piece(prompt.state, HEAD)
    assert record_bytes.pack_record(late.records["r"]) == record_bytes.pack_record(
        prompt.records["r"]
    )


def test_a_model_outside_the_portfolio_is_billed_in_dollars_only_and_teaches_nothing() -> None:
    router = decided()
    before = learned(router)
    with pytest.raises(UnpricedModel):
        router.settle("r", tokens=(10, 10), model="elsewhere")
    assert router.state.open_commitments
    assert router.settle("r", cost_usd=0.003, model="elsewhere") is Outcome.APPLIED
    assert router.learn("r", reward=1.0) is Outcome.APPLIED
    assert router.state.spend_usd == 0.003
    assert learned(router) == before


def test_what_was_called_is_remembered_across_a_restart() -> None:
    router = decided()
    plain = record_bytes.pack_record(router.records["r"])
    router.settle("r", cost_usd=1e-4, model="small")
    record = record_bytes.unpack_record(record_bytes.pack_record(router.records["r"]))
    assert (record.called, record.model, record.price) == ("small", "large", SMALL)
    assert record_bytes.unpack_record(plain).called == "large"
