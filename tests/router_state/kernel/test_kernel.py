"""The kernel runs compiled, and does to the bit what its text does and what it did elsewhere."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import router_state.kernel
from benchmarks.played import Played
from ground.refusing import DamagedState
from router_state.changes import Journal
from router_state.config import ModelConfig, Price, RouterConfig
from router_state.events import Asked
from router_state.kernel.choosing.candidates import VARIANCE
from router_state.learning.guess import COSTS, REWARDS
from router_state.profiles import knobs_for

compiled: Any = router_state.kernel
VALUES = np.concatenate(
    [np.linspace(-30.0, 30.0, 301), 10.0 ** np.linspace(-300, 300, 61), [0.0, -745.5, 709.9, 1e9]]
)
Array = npt.NDArray[np.float64]


def digest(*arrays: Any) -> str:
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array, "<f8").tobytes())
    return found.hexdigest()[:16]


def of(kernel: Any, name: str, values: Array) -> Array:
    found: Array = kernel.tabulated(name, values)
    return found


def played(kernel: Any, *, d: int, K: int, n: int) -> list[str]:
    """Let a kernel learn, estimate, draw, price and choose; return digests of what it holds."""
    rng, journal = np.random.default_rng(d), Journal()
    prior = kernel.SharedPrior("rewards", d, REWARDS, journal)
    bills = kernel.SharedPrior("bills", d, COSTS, journal)
    known = kernel.Portfolio(journal, prior, bills)
    known.all = [kernel.Arm(str(k), bills, Price(1.0 + k, 2.0), journal) for k in range(K)]
    known.derive()
    arms, costs, billed = known.regressions, known.costs, known.billed
    for arm, cost in zip(arms, costs, strict=True):
        arm.know_only(prior.ridge, prior.bias_ridge, prior.mean)
        cost.begin()
    draw, chance, seen = known.sample, kernel.Chance(7), []
    doubts: list[float] = []
    draw.resize(K)
    window, lots = np.zeros((2, d, 8), np.float32), rng.normal(size=16 * K)
    for i in range(n):
        x = np.append(rng.normal(size=d - 1), 1.0)
        window[i % 16 // 8, :, i % 8] = x
        if prior.due:
            for arm in arms:
                arm.forget(t=i, gamma=0.9995)
            kernel.estimate(prior, arms)
        if bills.due:
            kernel.estimate(bills, billed)
        if not draw.serve(x):
            draw.measure(arms, noise=prior.noise, free=i % 3 == 0)
        found = known.look(x, 100.0)
        options = kernel.options(
            window,
            min(i + 1, 16),
            d,
            rewards=arms,
            deviations=draw.deviations(),
            lots=lots,
            shifts=None,
            models=costs,
            tokens=np.full(16, 100.0),
            prices=np.linspace(0.9, 1.1, 16),
        )
        price = options.price(target=0.7 * options.cheapest() + 1e-3, start=1.0)
        known.draw(found, price or 0.0, chance)
        doubts += found.unsure
        found.excluded = [None] * K
        k, chosen = found.choose()
        assert k == found.best()[0]
        residual, variance = arms[k].observe(x, float(rng.random()))
        prior.observe(residual, variance)
        costs[k].observe(float(rng.lognormal()), x, known=0.1, now=float(i))
        spreads = found.column(VARIANCE)
        expected = found.expected_cost_usd
        seen += [*found.mean, *spreads, *expected, price or -1.0, chosen, residual]
    held = [arm.kept for arm in (*arms, *billed)]
    numbers = [[c.ratio, c.calibration, c.input_share, c.detector.sigma] for c in costs]
    return [
        digest(seen),
        digest(doubts),
        digest(*held),
        digest(prior.mean, prior.center, bills.mean, [prior.noise, prior.ridge, bills.bias_ridge]),
        digest(draw.array, [chance.state % 2**32]),
        digest(numbers),
    ]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("exp", "b049ee887e3d26c9"), ("log", "379541345fe26404"), ("below", "eb1dab45ae937bce")],
)
def test_elementary_functions_return_the_stored_bytes(name: str, wanted: str) -> None:
    values = np.abs(VALUES) if name == "log" else VALUES
    assert digest(of(compiled, name, values)) == wanted


def test_what_is_learned_and_drawn_has_the_stored_bytes() -> None:
    assert played(compiled, d=26, K=3, n=60) == [
        "6e67049b1a83955a",
        "8ea2c1a12a73ab07",
        "7f103d4d62af328c",
        "b90deb575e9b9149",
        "e665e4880e70ba33",
        "613aabd4decc7912",
    ]


def test_elementary_functions_are_within_two_units_of_the_last_digit() -> None:
    values = np.linspace(-700.0, 700.0, 5001)
    assert (np.abs(of(compiled, "exp", values) / np.exp(values) - 1.0) < 5e-16).all()
    values = 10.0 ** np.linspace(-300.0, 300.0, 5001)
    wanted = np.log(values)
    assert (np.abs(of(compiled, "log", values) - wanted) <= 5e-16 * np.abs(wanted)).all()
    values = np.linspace(-8.0, 8.0, 1001)
    wanted = np.array([0.5 * math.erfc(-z / math.sqrt(2.0)) for z in values.tolist()])
    assert np.abs(of(compiled, "below", values) - wanted).max() < 1e-7


def test_exp_fades_out_into_numbers_below_the_normal_ones() -> None:
    values = np.linspace(-745.1, -708.0, 372)
    found = of(compiled, "exp", values)
    assert (np.abs(found - np.exp(values)) <= np.maximum(5e-16 * np.exp(values), 5e-324)).all()


def test_normal_draws_are_normal() -> None:
    drawn = np.array(compiled.Chance(3).standard_normal(200_001))
    assert abs(drawn.mean()) < 0.01 and abs(drawn.std() - 1.0) < 0.01
    assert abs((drawn**4).mean() - 3.0) < 0.06
    assert abs((drawn[1:] * drawn[:-1]).mean()) < 0.01
    whole = [compiled.Chance(seed).integers(5) for seed in range(2000)]
    assert min(np.bincount(whole, minlength=5)) > 320


X = np.array([0.5, -0.5, 1.0])
BAD: dict[str, Any] = {
    "short": X[:2],
    "long": np.ones(4),
    "empty": np.empty(0),
    "flat": np.float64(1.0),
    "table": np.ones((3, 3)),
    "strided": np.ones(6)[::2],
    "reversed": np.ones(3)[::-1],
    "single": X.astype(np.float32),
    "whole": np.ones(3, dtype=np.int64),
    "swapped": X.astype(">f8"),
    "complex": X.astype(complex),
    "text": "abc",
    "none": None,
    "list": [0.5, -0.5, 1.0],
    "nan": np.array([math.nan, 0.0, 1.0]),
    "infinite": np.array([math.inf, 0.0, 1.0]),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_context_is_an_error_of_python(name: str) -> None:
    kernel = compiled
    journal, bad = Journal(), BAD[name]
    arm = kernel.Regression("m", 3, journal)
    arm.know_only(1.0, 1.0, np.zeros(3))
    draw = kernel.PosteriorSample(3, journal)
    draw.resize(1)
    before = arm.kept.copy()
    calls = [
        lambda: arm.observe(bad, 0.5),
        lambda: arm.look(bad),
        lambda: arm.revise(bad, difference=0.1, discount=1.0),
        lambda: portfolio_of([arm], kernel).look(bad, 0.0),
        lambda: kernel.check(bad, 3),
    ]
    if name not in ("nan", "infinite"):
        calls += [
            lambda: draw.serve(bad),
            lambda: arm.know_only(1.0, 1.0, bad),
        ]
    for call in calls:
        with pytest.raises((ValueError, TypeError, AttributeError, compiled_errors())):
            call()
    np.testing.assert_array_equal(arm.kept, before)


def compiled_errors() -> type[Exception]:
    from router_state.errors import RouterStateError

    return RouterStateError


@pytest.mark.parametrize("d", [1, 2, 4096])
def test_few_and_many_dimensions(d: int) -> None:
    arm = compiled.Regression("m", d, Journal())
    arm.know_only(2.0, 1.0, np.zeros(d))
    x = np.full(d, 1e-3)
    x[-1] = 1.0
    for _ in range(3):
        residual, variance = arm.observe(x, 0.5)
    assert 0.0 < residual < 0.5 and 0.0 < variance < 1.0
    found = portfolio_of([arm]).look_at_means(x)
    assert found.mean[0] == pytest.approx(0.5 - residual, abs=0.2)


def test_a_thousand_models() -> None:
    d, journal = 4, Journal()
    arms = [compiled.Regression(str(k), d, journal) for k in range(1000)]
    prior = compiled.SharedPrior("p", d, REWARDS, journal)
    for arm in arms:
        arm.know_only(prior.ridge, prior.bias_ridge, prior.mean)
    x = np.array([0.1, 0.2, 0.3, 1.0])
    arms[7].observe(x, 0.9)
    compiled.estimate(prior, arms)
    assert arms[7].predict(x) > arms[8].predict(x) > 0.0
    assert compiled.wins(0, [0.0] * 1000, [1.0] * 1000) == pytest.approx(1e-3, rel=0.3)


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-160, 1e150, 1e300, 1.7e308])
def test_numbers_at_the_ends_of_their_range_are_learned_or_refused(size: float) -> None:
    arm = compiled.Regression("m", 3, Journal())
    arm.know_only(1.0, 1.0, np.zeros(3))
    x = np.array([size, -size, 1.0])
    try:
        arm.observe(x, 0.5)
    except compiled_errors():
        pass
    assert np.isfinite(arm.kept).all()


def shared() -> Any:
    """Return what regressions of three dimensions share."""
    return compiled.SharedPrior("p", 3, REWARDS, Journal())


def regression_of(d: int) -> Any:
    """Return a regression that knows nothing."""
    return compiled.Regression("m", d, Journal())


def one_sample() -> Any:
    """Return the posterior sample of one model."""
    found = compiled.PosteriorSample(3, Journal())
    found.resize(1)
    return found


def model() -> Any:
    """Return the costs of one model."""
    return compiled.CostModel(
        "m", compiled.SharedPrior("p", 3, COSTS, Journal()), Price(1.0, 1.0), Journal()
    )


def learned(reward: float, **other: Any) -> Any:
    """Let a regression learn a reward."""
    given = {"detector": compiled.Detector()} | other
    arm = compiled.Regression("m", 3, Journal())
    arm.know_only(1.0, 1.0, np.zeros(3))
    prior = compiled.SharedPrior("p", 3, REWARDS, Journal())
    return compiled.learn_reward(arm, prior, given["detector"], X, reward, 0, 0.997, 0.0)


def shared_of(d: int) -> Any:
    """Return a shared prior of d dimensions."""
    return compiled.SharedPrior("p", d, REWARDS, Journal())


def without_reasons() -> Any:
    """Return candidates whose reasons are gone."""
    found = seen()
    found.excluded = []
    return found


def solved(n: int = 2, **other: Any) -> Any:
    """Return the options of one model for two contexts."""
    arm = compiled.Regression("m", 3, Journal())
    given = {
        "contexts": np.ones((1, 3, 8), np.float32),
        "rewards": [arm],
        "deviations": [1.0],
        "lots": np.ones(2),
        "shifts": None,
        "models": [model()],
        "tokens": np.zeros(2),
        "prices": np.ones(2),
    }
    given |= other
    return compiled.options(given.pop("contexts"), n, 3, **given)


def portfolio_of(regressions: Any, kernel: Any = compiled, models: Any = None) -> Any:
    """Return a portfolio with these regressions of rewards and, in their place, cost models."""
    journal, d = Journal(), regressions[0].d if regressions and regressions[0] else 3
    bills = kernel.SharedPrior("p", d, COSTS, journal)
    found = kernel.Portfolio(journal, kernel.SharedPrior("p", d, REWARDS, journal), bills)
    found.all = [
        kernel.Arm(str(k), bills, Price(1.0, 2.0), journal) for k in range(len(regressions))
    ]
    found.sample.resize(len(regressions))
    found.derive()
    found.regressions = regressions
    if models is not None:
        found.costs = models
    return found


def three(**given: Any) -> Any:
    """Return a portfolio of three arms, but for what is given."""
    found = portfolio_of([regression_of(3)] * 3)
    for name, value in given.items():
        setattr(found, name, value)
    return found


def seen(**given: Any) -> Any:
    """Return candidates of one arm, but for what is given."""
    args: dict[str, Any] = {
        "models": ("m",),
        "terms": [0.5, 0.1, 1.0],
        "penalty": [0.1],
        "excluded": [None],
    } | given
    return compiled.Candidates(**args)


def deciding_state(**given: Any) -> Any:
    """Return a router of three models, but for what is given."""
    models = {name: ModelConfig(Price(1.0, 2.0)) for name in "abc"}
    config = RouterConfig(models, 1e-3, 3, "live", knobs_for("live"))
    found = Played.start(config).state
    for name, value in given.items():
        setattr(found, name, value)
    return found


def drawn(arms: Any = None, **given: Any) -> Any:
    """Draw for one arm, but for what is given."""
    arms = arms or portfolio_of([regression_of(3)])
    args = {"seen": arms.look(X, 0.0), "per_dollar": 1.0, "chance": compiled.Chance(1)} | given
    arms.draw(**args)
    return args["seen"]


def stored(x: Any = X, *, slot: int = 1, d: int = 3) -> Any:
    """Store a context in a window's slot; return all slots' contexts, shape (n, d)."""
    window = compiled.Window(d, Journal())
    window.next = slot
    window.push(x, None)
    return window.rows()


def tried(**given: Any) -> Any:
    """Score one arm as the paper does, but for what is given."""
    arms = portfolio_of([regression_of(3)])
    args = {"seen": arms.look_at_means(X), "per_log_price": 0.3, "t": 5} | given
    arms.hope(**args, alpha=0.1, gamma=0.99, least=0.01)
    return args["seen"]


def test_a_draw_of_one_arm() -> None:
    found = drawn()
    assert [len(one) for one in (found.terms, found.penalty, found.unsure)] == [3, 1, 4]
    assert found.penalty == found.expected_cost_usd and found.unsure is not None


@pytest.mark.parametrize("slot", [0, 1, 7, 8, 63, 127])
def test_a_stored_context_is_in_its_slot_alone(slot: int) -> None:
    contexts = stored(slot=slot)
    np.testing.assert_array_equal(contexts[slot], X.astype(np.float32))
    assert np.count_nonzero(contexts.any(axis=1)) == 1 and slot < len(contexts) <= compiled.WINDOW


def test_the_papers_score_of_one_arm() -> None:
    mean, bonus, cost_usd = tried().terms
    assert mean == 0.0 and bonus > 0.0 and cost_usd > 0.0 and tried().penalty[0] >= 0.0


def test_candidates_are_as_a_record_has_kept_them() -> None:
    one = seen()
    assert (one.terms, one.penalty, one.unsure) == ([0.5, 0.1, 1.0], [0.1], None)
    assert (one.mean, one.bonus, one.expected_cost_usd) == ([0.5], [0.1], [1.0])
    assert (one.reward(0), one.cost_usd(0)) == (0.5, 1.0)
    assert one.score(0) == 0.5 + 0.1 - 0.1 and one.best() == [0]
    assert one == seen() and one != seen(penalty=[0.2]) and one != "m"


def test_options_of_one_model() -> None:
    assert 0.0 < solved().cheapest() < 1.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: compiled.Regression("m", 0, Journal()),
        lambda: compiled.Regression("m", -1, Journal()),
        lambda: compiled.Options(0, 3),
        lambda: compiled.Options(3, 0),
        lambda: compiled.Options.of(np.ones((2, 3)), np.ones((2, 2))),
        lambda: compiled.wins(3, [1.0], [1.0]),
        lambda: compiled.wins(0, [1.0, 2.0], [1.0]),
        lambda: compiled.wins(0, [1.0, "x"], [1.0, 1.0]),
        lambda: seen(terms=[1.0]),
        lambda: seen(terms=["x", 0.0, 0.0]),
        lambda: seen(penalty=[]),
        lambda: seen(excluded=[]),
        lambda: seen(excluded=None),
        lambda: seen(models=None),
        lambda: seen(models=["m"]),
        lambda: seen().score(1),
        lambda: seen().score(-1),
        lambda: seen().reward(1),
        lambda: seen().cost_usd(-1),
        lambda: seen().column(10),
        lambda: seen().column(-1),
        lambda: setattr(seen(), "penalty", []),
        lambda: setattr(seen(), "penalty", None),
        lambda: setattr(seen(), "expected_cost_usd", ["x"]),
        lambda: without_reasons().best(),
        lambda: without_reasons().chance_of(0),
        lambda: seen(excluded=["retired"]).best(),
        lambda: seen(excluded=["retired"]).choose(),
        lambda: seen(terms=[1.0, math.nan, 0.0]).choose(),
        lambda: seen().chance_of(1),
        lambda: seen().chance_of(-1),
        lambda: seen().cheapest([0, 7]),
        lambda: seen().cheapest([0, -1]),
        lambda: seen().cheapest([]),
        lambda: compiled.Chance("x"),
        lambda: compiled.Chance(1).integers(0),
        lambda: compiled.estimate(None, []),
        lambda: compiled.estimate(
            compiled.SharedPrior("p", 3, REWARDS, Journal()),
            [compiled.Regression("m", 4, Journal())],
        ),
        lambda: portfolio_of([None]).look(X, 0.0),
        lambda: portfolio_of([regression_of(5)]).look(X, 0.0),
        lambda: three(regressions=[regression_of(5)] * 3).look(X, 0.0),
        lambda: three(regressions=[regression_of(3)]).look(X, 0.0),
        lambda: three(regressions=None).look(X, 0.0),
        lambda: three(billed=[]).look(X, 0.0),
        lambda: three(billed=[None] * 3).look_at_means(X),
        lambda: three(costs=[]).look(X, 0.0),
        lambda: three(costs=[None] * 3).look(X, 0.0),
        lambda: three(costs=[]).look_at_means(X),
        lambda: three(costs=[None] * 3).look_at_means(X),
        lambda: three(names=()).look(X, 0.0),
        lambda: three(names=None).look(X, 0.0),
        lambda: three(suspect=True, all=[]).look(X, 0.0),
        lambda: three(suspect=True, all=[None] * 3).look(X, 0.0),
        lambda: three(rewards=None).look(X, 0.0),
        lambda: three(rewards=shared_of(4)).look(X, 0.0),
        lambda: three().look(X, math.nan),
        lambda: three().look(None, 0.0),
        lambda: compiled.Portfolio(Journal(), shared_of(3), shared_of(4)),
        lambda: compiled.Portfolio(Journal(), None, None),
        lambda: three(all=[None]).derive(),
        lambda: three(all=None).derive(),
        lambda: compiled.decide(None, None, 0.0, None),
        lambda: compiled.decide(deciding_state(), None, 0.0, None),
        lambda: compiled.decide(deciding_state(), Asked("q", X), "now", None),
        lambda: compiled.decide(deciding_state(), Asked("q", X[:1]), 0.0, None),
        lambda: compiled.decide(deciding_state(), Asked("q", None), 0.0, None),  # type: ignore[arg-type]
        lambda: compiled.decide(deciding_state(arms=three()), Asked("q", X), 0.0, None),
        lambda: compiled.decide(deciding_state(policy=None), Asked("q", X), 0.0, None),
        lambda: compiled.decide(deciding_state(config=None), Asked("q", X), 0.0, None),
        lambda: compiled.decide(deciding_state(chance=None), Asked("q", X), 0.0, None),
        lambda: compiled.Thompson("x"),
        lambda: compiled.Thompson(0).look(None, X, None),
        lambda: compiled.Thompson(0).look(deciding_state(), X, "many"),
        lambda: compiled.Thompson(0).prepare(deciding_state(), X[:1], None),
        lambda: compiled.Thompson(0).admit(deciding_state(), [], seen()),
        lambda: compiled.Thompson(0).admit(deciding_state(), [None], None),
        lambda: compiled.Thompson(0).choose(deciding_state(), seen(), 0.0),
        lambda: compiled.Optimism(0).choose(deciding_state(), None, 0.0),
        lambda: compiled.Optimism(0).choose(deciding_state(chance=None), without_reasons(), 0.0),
        lambda: compiled.DollarDual(1.0, 3, Journal()).weigh(three(), X[:1], None, 1, 0.0),
        lambda: compiled.DollarDual(1.0, 3, Journal()).weigh(None, X, None, 1, 0.0),
        lambda: compiled.DollarDual(None, 3, Journal()).commit(1.0),
        lambda: compiled.DollarDual(0.0, 3, Journal()).per_dollar(1.0),
        lambda: compiled.DollarDual(1.0, 3, Journal()).settle(None, 1.0, True),
        lambda: compiled.EmaPacer(0.0, per_log_price=0.3).settle(1.0, 1.0, True),
        lambda: compiled.Window(3, Journal()).push(X[:1], None),
        lambda: compiled.Debt("x"),
        lambda: compiled.Debt().note("x", 1.0),
        lambda: three().played(3, 0, False),
        lambda: three().played(-1, 0, False),
        lambda: three(all=[None] * 3).played(0, 0, False),
        lambda: three().hopeless(seen(), 0, 1.0, 1.0),
        lambda: three().hopeless(None, 0, 1.0, 1.0),
        lambda: portfolio_of([regression_of(3)]).hopeless(seen(), 1, 1.0, 1.0),
        lambda: compiled.Regression("m", 3, Journal()).restore(np.zeros(2)),
        lambda: compiled.Regression("m", 3, Journal()).start(np.eye(2), np.zeros(2)),
        lambda: compiled.PosteriorSample(3, Journal()).measure(
            [compiled.Regression("m", 3, Journal())], noise=1.0, free=False
        ),
        lambda: one_sample().measure(
            [compiled.Regression("m", 4, Journal())], noise=1.0, free=True
        ),
        lambda: one_sample().measure([None], noise=1.0, free=True),
        lambda: drawn(chance=None),
        lambda: drawn(seen=None),
        lambda: drawn(seen=seen(models=(), terms=[], penalty=[], excluded=[])),
        lambda: drawn(per_dollar="x"),
        lambda: drawn(three(), seen=seen()),
        lambda: drawn(three(sample=None)),
        lambda: drawn(three(sample=one_sample())),
        lambda: drawn(three(all=[None] * 3)),
        lambda: drawn(three(bills=None)),
        lambda: stored(slot=compiled.WINDOW),
        lambda: stored(slot=-1),
        lambda: stored(X[:2]),
        lambda: stored(X.astype(np.float32)),
        lambda: stored(d=4),
        lambda: tried(seen=seen(models=(), terms=[], penalty=[], excluded=[])),
        lambda: tried(seen=None),
        lambda: tried(t="x"),
        lambda: compiled.within_risk([None], [None], seen(), 1.0, 1.0),
        lambda: compiled.within_risk([model()], [None], None, 1.0, 1.0),
        lambda: compiled.within_risk([model()], [], seen(), 1.0, 1.0),
        lambda: compiled.within_risk([], [], seen(), 1.0, 1.0),
        lambda: compiled.estimate(shared(), [regression_of(3)], left=[]),
        lambda: compiled.conclude_shifted(shared(), [regression_of(3)], []),
        lambda: compiled.conclude_shifted(shared(), [None], [1.0]),
        lambda: compiled.learn_reward(None, None, None, X, 0.5, 0, 0.997, 0.0),
        lambda: compiled.learn_bill(None, [], 1.0, X, 0.0, 0.0),
        lambda: compiled.learn_bill(model(), [], 1.0, X[:2], 0.0, 0.0),
        lambda: compiled.learn_bill(model(), [], 1.0, X.astype(np.float32), 0.0, 0.0),
        lambda: learned(math.nan),
        lambda: learned(0.5, detector=None),
        lambda: solved(contexts=np.ones((1, 3, 8))),
        lambda: solved(contexts=np.ones((1, 3, 7), np.float32)),
        lambda: solved(contexts=np.ones((1, 6, 8), np.float32)[:, ::2]),
        lambda: solved(contexts=None),
        lambda: solved(lots=np.ones(1)),
        lambda: solved(lots=np.ones(4)[::2]),
        lambda: solved(tokens=np.ones(2, np.float32)),
        lambda: solved(prices=np.array([1.0, math.nan])),
        lambda: solved(rewards=[None]),
        lambda: solved(models=[None]),
        lambda: solved(models=[]),
        lambda: solved(rewards=[regression_of(4)]),
        lambda: solved(deviations=[]),
        lambda: solved(shifts=[]),
        lambda: solved(n=-1),
        lambda: solved(n=0),
    ],
)
def test_what_does_not_fit_is_an_error_of_python(call: Any) -> None:
    with pytest.raises(
        (
            ValueError,
            TypeError,
            IndexError,
            AttributeError,
            ZeroDivisionError,
            DamagedState,
            compiled_errors(),
        )
    ):
        call()
