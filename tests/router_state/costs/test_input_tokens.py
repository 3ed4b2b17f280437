"""What a call costs where requests say how many input tokens they have."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import orjson
import pytest

from benchmarks.played import Played
from router_state.config import CostPrior, ModelConfig, Price, RouterConfig
from router_state.costs.input_tokens import IN_USE_FROM, PIECE
from router_state.packing.framing import body_of
from router_state.profiles import knobs_for
from router_state.state import invariants, portable, record_bytes, restoring, state_pieces

D = 4
MODELS = {"small": ModelConfig(Price(1.0, 4.0)), "large": ModelConfig(Price(5.0, 20.0))}
OUTPUT = 200.0
Bill = Callable[[Price, int, float], float]


def listed(price: Price, tokens: int, output: float) -> float:
    """Return a bill at list price."""
    return (tokens * price.input_price_per_m + output * price.output_price_per_m) / 1e6


def half(price: Price, tokens: int, output: float) -> float:
    """Return a bill at half the list price."""
    return 0.5 * listed(price, tokens, output)


def cached(price: Price, tokens: int, output: float) -> float:
    """Return a bill whose input costs a tenth."""
    return listed(price, tokens // 10, output)


def often_free(price: Price, tokens: int, output: float) -> float:
    """Return a bill at list price, of nothing for some outputs."""
    return 0.0 if output * 1000 % 1 < 0.4 else listed(price, tokens, output)


def started() -> Played:
    config = RouterConfig(
        MODELS, budget_usd_per_request=1e-2, dimensions=D, knobs=knobs_for("live")
    )
    return Played.start(config)


def asked(
    engine: Played, n: int, *, first: int = 0, bill: Bill = listed, says: bool = True
) -> np.ndarray:
    """Play requests of 50 to 5,000 input tokens; return expected and billed dollars, shape
    (n, 2)."""
    found = []
    for i in range(first, first + n):
        rng = np.random.default_rng(i)
        x = np.append(rng.standard_normal(D - 1), 1.0)
        tokens = int(50 * 100 ** rng.random())
        name = f"r-{i}"
        record = engine.decide(name, x, now=float(i), input_tokens=tokens if says else None)
        output = OUTPUT * float(np.exp(0.3 * rng.standard_normal()))
        cost = bill(record.price, tokens, output)
        found.append((record.expected_cost_usd, cost))
        engine.settle(name, cost_usd=cost, x=x)
        engine.learn(name, reward=0.7 if record.model == "large" else 0.6, x=x)
    invariants.check(engine.state, engine.records)
    return np.array(found)


def off(found: np.ndarray) -> float:
    """Return the mean error of expected costs, in mean costs."""
    return float(np.abs(found[:, 0] - found[:, 1]).mean() / found[:, 1].mean())


def test_what_a_prompt_s_tokens_cost_is_expected_with_its_call() -> None:
    told, silent = asked(started(), 600)[300:], asked(started(), 600, says=False)[300:]
    assert off(told) < 0.5 * off(silent)
    assert told[:, 0].sum() == pytest.approx(told[:, 1].sum(), rel=0.05)


@pytest.mark.parametrize("bill", [half, cached, often_free])
def test_expected_costs_are_right_on_average_where_input_is_not_billed_at_its_list_price(
    bill: Bill,
) -> None:
    # Two calls in five are free where some are: their sum scatters.
    n = 6000 if bill is often_free else 1500
    told = asked(started(), n, bill=bill)[500:]
    silent = asked(started(), n, bill=bill, says=False)[500:]
    assert told[:, 0].sum() == pytest.approx(told[:, 1].sum(), rel=0.12)
    if bill is not cached:  # else what comes on top hides how little input costs
        assert off(told) < off(silent)


def test_a_router_may_begin_to_say_its_tokens() -> None:
    engine = started()
    asked(engine, 500, says=False)
    found = asked(engine, 300, first=500)
    assert found[int(IN_USE_FROM) : 100, 0].sum() == pytest.approx(
        found[int(IN_USE_FROM) : 100, 1].sum(), rel=0.15
    )
    assert off(found[200:]) < 0.5 * off(asked(started(), 300, first=500, says=False)[200:])


def test_requests_that_do_not_say_count_as_long_as_others_are() -> None:
    engine = started()
    asked(engine, 400)
    x = np.append(np.zeros(D - 1), 1.0)
    usual = int(engine.state.arms.tokens.mean)
    without = engine.decide("without", x, now=1e3).candidates
    with_mean = engine.decide("with", x, now=1e3, input_tokens=usual).candidates
    assert without is not None and with_mean is not None
    assert without.expected_cost_usd == pytest.approx(with_mean.expected_cost_usd, rel=0.01)


def test_models_without_a_bill_are_not_moved_by_what_others_bills_are_split_into() -> None:
    engine = started()
    asked(engine, 60, says=False)
    config = engine.state.config
    models = {**MODELS, **{f"new-{i}": ModelConfig(Price(10.0**i, 1e3)) for i in range(4)}}
    engine.configure(
        RouterConfig(models, budget_usd_per_request=1e-2, dimensions=D, knobs=config.knobs),
        now=60.0,
    )
    asked(engine, int(IN_USE_FROM), first=60)
    for arm in engine.state.arms:
        if arm.costs.bills <= 1.0:
            assert abs(arm.costs.regression.theta[-1] - engine.state.arms.bills.mean[-1]) < 1e-6


@pytest.mark.parametrize("prior", ["mean", "bills"])
def test_what_is_declared_of_whole_bills_is_expected_of_whole_bills(prior: str) -> None:
    engine = started()
    asked(engine, 100)
    tokens, usd = engine.state.arms.tokens.mean, 0.02
    A = 50.0 * np.diag([1.0] * D)
    known = (
        ModelConfig(Price(5.0, 20.0), expected_cost_usd=usd)
        if prior == "mean"
        else ModelConfig(
            Price(5.0, 20.0), cost_prior=CostPrior(A, A[-1] * np.log(usd), mean_usd=usd)
        )
    )
    config = engine.state.config
    engine.configure(
        RouterConfig(
            {**MODELS, "new": known},
            budget_usd_per_request=1e-2,
            dimensions=D,
            knobs=config.knobs,
        ),
        now=100.0,
    )
    x = engine.state.arms.bills.center if prior == "mean" else np.append(np.zeros(D - 1), 1.0)
    seen = engine.decide("r", x, now=100.0, input_tokens=int(tokens)).candidates
    assert seen is not None
    assert seen.expected_cost_usd[2] == pytest.approx(usd, rel=0.1)


def test_a_router_goes_on_after_a_restart_as_if_there_had_been_none() -> None:
    one = started()
    asked(one, 150, bill=often_free)
    pieces = state_pieces.pack_pieces(one.state)
    back = restoring.unpack(pieces.get, one.state.open_commitments)
    other = Played(back, dict(one.records))
    assert state_pieces.pack_pieces(other.state) == pieces
    assert (
        asked(one, 50, first=150) == asked(other, 50, first=150)
    ).all() and state_pieces.pack_pieces(one.state) == state_pieces.pack_pieces(other.state)
    exported = portable.unpack(portable.pack(one.state, {})).state
    assert state_pieces.pack_pieces(exported) == state_pieces.pack_pieces(one.state)


@pytest.mark.parametrize("tokens", [None, 0, 68])
def test_a_record_ends_with_what_it_has(tokens: int | None) -> None:
    engine = started()
    x = np.append(np.zeros(D - 1), 1.0)
    record = engine.decide("r", x, now=0.0, input_tokens=tokens)
    packed = record_bytes.pack_record(record)
    assert record_bytes.unpack_record(packed).input_tokens == tokens
    fields = orjson.loads(body_of(packed))
    assert fields[16:] == ([] if tokens is None else [None, tokens])


def test_a_router_whose_requests_do_not_say_has_no_piece_more() -> None:
    engine = started()
    asked(engine, 50, says=False)
    assert PIECE not in state_pieces.pack_pieces(engine.state)


def test_the_paper_s_policy_takes_no_notice_of_tokens() -> None:
    def decided(says: bool) -> list[str]:
        config = RouterConfig(
            MODELS,
            budget_usd_per_request=1e-2,
            dimensions=D,
            profile="paper",
            knobs=knobs_for("paper"),
        )
        engine = Played.start(config)
        asked(engine, 200, says=says)
        return [f"{r.model} {r.expected_cost_usd}" for r in engine.records.values()]

    assert decided(True) == decided(False)
