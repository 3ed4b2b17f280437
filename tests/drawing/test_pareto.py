"""The Pareto picture: its mixes, its sentences, its characters, and the estimates behind it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawing.pareto import Pareto, Point
from drawing.plot import ALONE, EXPECTED, MIX, MODEL, STAR, plot
from studies.simulate.limits import ENOUGH
from watching.tally import Always

MODELS = (
    Point("a", 1e-4, 0.6, 0.02),
    Point("b", 5e-4, 0.8, 0.01),
    Point("b2", 6e-4, 0.7, 0.01),
    Point("maker/c", 1e-2, 0.9, 0.03, measured=False),
)
ROUTER = Point("this router", 3e-4, 0.75, 0.01)
PICTURE = Pareto(MODELS, ROUTER, budget_usd=3e-4)
points = st.builds(
    Point,
    st.just("m"),
    st.floats(0.0, 10.0) | st.just(1.0),
    st.floats(0.0, 1.0) | st.just(0.5),
)


def test_a_mix_of_models_costs_as_much_as_its_coin_says() -> None:
    assert [one.name for one in PICTURE.mixes] == ["a", "b", "maker/c"]
    mix = PICTURE.mix_as_good(0.7)
    assert mix is not None and mix.cost_usd == pytest.approx(3e-4)
    assert mix.off == pytest.approx(math.hypot(0.5 * 0.02, 0.5 * 0.01))
    assert PICTURE.mix_as_good(0.5) == MODELS[0]
    assert PICTURE.mix_as_good(0.95) is None
    assert Pareto().mix_as_good(0.5) is None
    at = PICTURE.mix_at(3e-4)
    assert at is not None and at.quality == pytest.approx(0.7)
    assert PICTURE.mix_at(5e-5) is None
    assert PICTURE.mix_at(1.0) == MODELS[3]


@given(st.lists(points, min_size=1, max_size=8), st.lists(st.floats(0, 1), min_size=8, max_size=8))
def test_no_mix_of_any_models_is_above_the_line(models: list[Point], drawn: list[float]) -> None:
    shares = np.array(drawn[: len(models)]) + 1e-9
    shares /= shares.sum()
    cost = float(shares @ [one.cost_usd for one in models])
    quality = float(shares @ [one.quality for one in models])
    best = Pareto(models).mix_at(cost + 1e-9)
    assert best is not None and best.quality >= quality - 1e-6


def test_the_sentence_compares_with_the_best_model_and_the_next_one_with_mixes() -> None:
    assert PICTURE.sentence() == "83.3% of c's quality for 3.0% of its cost."
    # The mix of quality 0.75 costs $4e-4; the one at $3e-4 earns 0.7.
    assert PICTURE.beside_mixes() == (
        "The cheapest fixed mix that is as good costs 1.3× as much; "
        "the best one at the same cost earns 0.050 ± 0.015 less."
    )
    assert PICTURE.saved == pytest.approx(0.97) and PICTURE.saved_mix == pytest.approx(0.25)
    dear = Pareto(MODELS, Point("r", 8e-4, 0.75, 0.2))
    assert "as good costs 50% less" in dear.beside_mixes()
    assert dear.beside_mixes().endswith("more, which may be chance.")
    beyond = Pareto(MODELS, Point("r", 2e-2, 0.95)).facts(10)[0]
    assert beyond == ("Saved against c", "−$0.1", "−100% of $0.1")
    assert Pareto(MODELS, Point("r", 3e-4, 0.95)).beside_mixes().startswith("No fixed mix")
    assert Pareto(MODELS[:1], ROUTER).beside_mixes() == ""
    free = Pareto(MODELS, Point("r", 0.0, 0.6))
    assert free.beside_mixes().startswith("Requests cost nothing so far")
    assert free.document()["beside"] == free.beside_mixes()


def test_the_facts_say_what_was_saved_in_dollars() -> None:
    facts = {name: (value, more) for name, value, more in PICTURE.facts(1000)}
    assert facts["Saved against c"] == ("$9.7", "97% of $10")
    assert facts["Saved against the best fixed mix"] == ("25%", "+0.050 ± 0.015 at equal cost")
    assert facts["Spend ÷ budget"] == ("1.00", "$0.0003 of $0.0003 a request")
    assert facts["Quality"] == ("0.750", "± 0.010, 95% interval")


@pytest.mark.parametrize(
    "picture",
    [
        Pareto(),
        Pareto(MODELS),
        Pareto((), ROUTER),
        Pareto([Point("free", 0.0, 0.0)], Point("r", 0.0, 0.0)),
        Pareto([Point("free", 0.0, 0.5), MODELS[1]], Point("r", 0.0, 0.5)),
        Pareto([MODELS[0], MODELS[0]], MODELS[0]),
        Pareto([Point("m", 1e-300, 1e-9)], Point("r", 1e300, 1.0)),
    ],
)
def test_degenerate_pictures_have_words_and_nothing_that_is_no_number(picture: Pareto) -> None:
    told = [picture.sentence(), picture.beside_mixes(), *map(str, picture.facts(3)), plot(picture)]
    assert told[0] and "nan" not in " ".join(told)
    assert picture.document()["sentence"] == told[0]


def test_the_plot_has_every_point_at_its_place() -> None:
    width, height = 61, 11
    picture = Pareto(MODELS, ROUTER)
    rows = [row.split("┤")[1].ljust(width) for row in plot(picture, width=width).split("\n")[:-2]]
    low, high = 0.58, 0.93
    for one, sign in zip((*MODELS, ROUTER), (MODEL, MODEL, MODEL, EXPECTED, STAR), strict=True):
        column = round((width - 1) * math.log10(one.cost_usd / 1e-4) / 2)
        row = round(height * (high - one.quality) / (high - low))
        assert rows[row][column] == sign, one
    text = plot(picture, width=width)
    assert all(name in text for name in ("this router", "b", "c", "$0.0001", "$0.01"))
    assert ALONE not in text


def test_the_router_without_plans_stands_beside_it() -> None:
    alone = Point("without plans", 3e-2, 0.72, measured=False)
    picture = Pareto(MODELS, ROUTER, alone=alone)
    text = plot(picture)
    assert STAR in text and ALONE in text and "without plans" in text
    assert text.endswith("$0.03")  # the axis reaches it
    assert "earn 0.030 more and to cost $0.0297 less a request" in picture.beside_alone()
    assert picture.beside_alone() in str(picture.document()["beside"])
    worse = Pareto(MODELS, ROUTER, alone=Point("without plans", 1e-4, 0.8))
    assert "earn 0.050 less and to cost $0.0002 more" in worse.beside_alone()
    assert text.count(MIX) > 10


def outcomes(called: np.ndarray, p: np.ndarray, truth: np.ndarray, guess: np.ndarray) -> Always:
    found = Always()
    for at in range(len(truth)):
        found.expect(guess[at])
        if called[at]:
            found.observe(truth[at], guess[at], p[at], before=None)
    return found


def test_calls_by_chance_correct_a_wrong_expectation_and_the_interval_holds_the_truth() -> None:
    rng, n = np.random.default_rng(1), 2000
    hits = 0
    for _ in range(40):
        x = rng.random(n)
        truth = 0.5 + 0.4 * x
        p = 0.2 + 0.6 * x  # so the mean of its labels is too high
        found = outcomes(rng.random(n) < p, p, truth, np.full(n, 0.2))
        estimate = found.robust(1.0)
        assert estimate is not None
        hits += abs(estimate[0] - truth.mean()) <= estimate[1]
    assert hits >= 33  # of 40 at 95 %: fewer in one run of ten thousand


def test_calls_that_were_no_chance_are_not_taken_for_such() -> None:
    n = 1000
    x = np.arange(n) / n
    found = outcomes(x > 0.5, np.ones(n), 0.5 + 0.4 * x, np.full(n, 0.6))
    assert found.robust(1.0) is None
    # What was seen counts as seen, the rest as expected.
    assert found.filled(1.0) == pytest.approx(0.5 * 0.6 + 0.5 * 0.8, abs=1e-3)


def test_a_few_calls_are_no_estimate_and_a_label_that_is_replaced_counts_once() -> None:
    few = outcomes(np.ones(5, bool), np.ones(5), np.ones(5), np.zeros(5))
    assert few.robust(1.0) is None
    many, again = (
        outcomes(np.ones(n, bool), np.ones(n), np.ones(n), np.zeros(n)) for n in (2 * ENOUGH,) * 2
    )
    again.observe(0.5, 0.0, 1.0, before=1.0)
    again.observe(1.0, 0.0, 1.0, before=0.5)
    assert many.robust(1.0) == again.robust(1.0) == (1.0, 0.0)
