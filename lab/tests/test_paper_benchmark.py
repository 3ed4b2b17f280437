"""The benchmark of the paper: what is compared with what, the stacked search against the engine,
and what a missing folder says.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest

from benchmarks.data import Benchmark
from benchmarks.report import Interval
from paper import cold, newcomer, stationary, tuning
from paper import data as paper_data
from paper.claims import claims
from paper.compare import Row, gather, half_digit
from paper.experiments import EXPERIMENTS, OURS, THEIRS
from paper.frontier import area, frontier, knee
from paper.judges import concordance, kendall
from paper.lockstep import Lockstep, Setting
from paper.newcomer import adopted_at
from paper.outcome import Sheet, moving, running
from paper.prices import spearman
from paper.printed import Published, spread
from paper.published import PUBLISHED
from paper.reasons import reason_of
from paper.router import Router
from paper.runner import code_digest, kept_at, merged, run, sources
from paper.summaries import resampled, share
from paper.table import cells, tally
from router_state.config import PAPER, Price
from streams.priors.fitted_priors import Priors

NEAR, FAR = Interval(0.91, 0.90, 0.92), Interval(0.80, 0.79, 0.81)


def row(printed: Published | None, name: str = "T reward", **found: Interval) -> Row:
    return Row("E1", name, printed, found)


def test_a_number_agrees_when_the_intervals_overlap() -> None:
    assert row(Published(0.93, 0.915, 0.95), paper=NEAR).agrees() is True
    assert row(Published(0.93, 0.915, 0.95), paper=FAR).agrees() is False


def test_a_number_without_an_interval_agrees_within_rounding_or_our_interval() -> None:
    assert row(Published(0.919), paper=NEAR).agrees() is True
    assert row(Published(0.93), paper=NEAR).agrees() is False
    exact = Interval(0.934, 0.934, 0.934)
    assert row(Published(0.93, digits=2), paper=exact).agrees() is True
    assert row(Published(0.93, digits=3), paper=exact).agrees() is False


def test_nothing_is_compared_without_a_printed_number_or_on_another_machine() -> None:
    assert row(None, paper=NEAR).agrees() is None
    assert Row("F", "d 26 router cycles/s", Published(22199), {"paper": NEAR}).agrees() is None


def test_printed_numbers_keep_the_digits_that_they_are_printed_with() -> None:
    table = spread("E", "{} of it", "a b", "0.50", "7 6 8")
    assert table["E a of it"] == Published(0.5, None, None, 2)
    assert table["E b of it"] == Published(7, 6, 8, 0)
    assert half_digit(table["E a of it"]) == 0.005
    assert half_digit(Published(2.86)) == 0.005


@pytest.mark.parametrize(
    ("name", "paper", "live", "worse"),
    [
        ("T reward", NEAR, FAR, True),
        ("T reward", FAR, NEAR, False),
        ("T regret", FAR, NEAR, True),
        ("T regret", NEAR, FAR, False),
        ("T saved regret", NEAR, FAR, False),
        ("T cost÷B", Interval(1.0, 0.9, 1.02), Interval(1.2, 1.1, 1.3), True),
        ("T cost÷B", Interval(0.5, 0.4, 0.6), Interval(1.0, 0.9, 1.04), False),
        ("T mean λ", FAR, NEAR, False),
    ],
)
def test_live_is_worse_only_on_the_bad_side_of_a_number(
    name: str, paper: Interval, live: Interval, worse: bool
) -> None:
    assert row(None, name, paper=paper, live=live).worse is worse
    assert ("worse" in cells(row(None, name, paper=paper, live=live))[-1]) is worse


def test_a_row_says_when_the_library_gives_the_same_and_why_it_does_not_agree() -> None:
    alike = row(Published(0.99, 0.98, 1.0), reference=FAR, paper=FAR)
    assert cells(alike)[2] == "same"
    assert "library, run here, gives the same" in reason_of(alike)
    assert not alike.ours_to_explain
    ours = row(Published(0.91, 0.9, 0.92), reference=NEAR, paper=FAR)
    assert ours.ours_to_explain
    assert "paper profile does not" in reason_of(ours)
    assert tally([alike]) == {
        "compared": 1,
        "agree": 0,
        "library_compared": 1,
        "library_agree": 0,
        "live_worse": 0,
    }


def test_seeds_are_gathered_into_rows_that_stand_beside_the_printed_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from paper.page import page

    sheets = []
    for reward in (0.79, 0.80):
        theirs, ours = Sheet(), Sheet()
        theirs.put("U random reward", "reference", reward)
        ours.put("U random reward", "paper", reward)
        sheets.append(merged([ours, theirs]))
    monkeypatch.setitem(EXPERIMENTS, "C", replace(EXPERIMENTS["C"], summary=None))
    (found,) = gather("C", sheets)
    assert found.printed == PUBLISHED["C U random reward"]
    assert found.found["paper"] == found.found["reference"]
    assert found.found["paper"].mean == pytest.approx(0.795)
    text = page(
        {"C": [found], "E": []}, {"C": ["paper-c.png"]}, seeds={"C": 2, "E": 0}, encoder="onnx"
    )
    assert "paper-c.png" in text
    assert "| U random reward | 0.883 | same |" in text


def test_kept_seeds_are_taken_from_the_disk_and_unfinished_ones_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("PB_DATA", raising=False)
    for seed, groups in ((0, (OURS, THEIRS)), (1, (OURS,)), (2, (OURS, THEIRS))):
        for group in groups:
            target = kept_at(("E1", seed, group, "onnx"))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(
                orjson.dumps({"rows": {"oracle reward": {group[0]: float(seed)}}, "curves": {}})
            )
    sheets = run(["E1", "C"], 5, "onnx", kept_only=True)
    assert [sheet.rows["oracle reward"] for sheet in sheets["E1"]] == [
        {"paper": s, "reference": s} for s in (0.0, 2.0)
    ]
    assert sheets["C"] == []
    assert gather("C", sheets["C"]) == []


def test_kept_results_depend_on_their_code_and_the_librarys_not_on_the_engine() -> None:
    theirs, ours = sources(stationary), sources(tuning)
    assert {path.name for path in theirs} >= {
        "stationary.py",
        "reference.py",
        "router.py",
        "outcome.py",
    }
    assert "lockstep.py" in {path.name for path in ours} - {path.name for path in theirs}
    assert code_digest("E1", THEIRS) != code_digest("E1", OURS)
    assert code_digest("E2", THEIRS) == code_digest("E3", THEIRS) != code_digest("C", THEIRS)


def test_every_printed_experiment_is_one_that_runs() -> None:
    assert {key.partition(" ")[0] for key in PUBLISHED} == set(EXPERIMENTS)


def test_the_knee_is_the_frontiers_farthest_point_from_its_chord() -> None:
    one = np.array([0.0, 0.5, 0.9, 1.0, 0.4])
    other = np.array([1.0, 0.95, 0.9, 0.0, 0.2])
    assert frontier(one, other).tolist() == [0, 1, 2, 3]
    assert knee(one, other) == 2


def test_the_area_goes_level_outside_the_points_and_ignores_dearer_worse_ones() -> None:
    assert area(np.array([1.0, 2.0]), np.array([0.5, 1.0]), 0.0, 3.0) == pytest.approx(
        (0.5 + 0.75 + 1.0) / 3
    )
    assert area(np.array([1.0, 2.0, 2.5]), np.array([0.5, 1.0, 0.2]), 0.0, 3.0) == pytest.approx(
        (0.5 + 0.75 + 1.0) / 3
    )


def test_windows_and_running_means_at_checkpoints() -> None:
    values = np.arange(1.0, 7.0)
    assert moving(values, every=2, window=2) == [1.0, 1.5, 3.5, 5.5]
    assert running(values, every=3) == [1.0, 2.0, 3.5]


def test_a_newcomer_is_adopted_only_after_its_forced_pulls_have_left_the_window() -> None:
    called = np.zeros(400, dtype=bool)
    called[:20] = True
    assert adopted_at(called) == 0.0
    called[::10] = True
    assert adopted_at(called) == 121.0
    called[300:] = False
    called[:250] = False
    called[250:] = True
    assert adopted_at(called) == 260.0


def test_a_share_of_seeds_has_an_interval_even_where_all_are_alike() -> None:
    always = share(np.ones(20, dtype=bool))
    assert always.mean == 100.0
    assert always.high == pytest.approx(100.0)
    assert 80.0 < always.low < 90.0
    assert share(np.arange(20) < 10).low < 50.0 < share(np.arange(20) < 10).high


def test_a_spread_over_seeds_has_an_interval() -> None:
    spread_of = resampled(np.array([1.0, 2.0, 3.0, 4.0]), np.std)
    assert spread_of.mean == pytest.approx(np.std([1, 2, 3, 4]))
    assert spread_of.low < spread_of.mean <= spread_of.high


def test_without_the_papers_own_data_nothing_is_held_against_its_numbers(
    monkeypatch: pytest.MonkeyPatch, judged: tuple[Benchmark, Priors]
) -> None:
    monkeypatch.delenv("PB_DATA", raising=False)
    data, priors = judged
    small = paper_data.Data("onnx")
    vars(small).update(val=data, test=data, priors=priors, mismatched={"MMLU": priors})
    monkeypatch.setattr(newcomer, "BUDGETS", {"T": 3.0e-4})
    joins = newcomer.onboarding(small, 0, ("paper",))
    assert all(name.startswith("Mistral joins, ") for name in joins.rows)
    found = {
        "E4": gather("E4", [joins]),
        "D": gather("D", [cold.prior_mismatch(small, 0, ("paper",))]),
    }
    assert [row.name for row in found["E4"] if row.printed is not None] == []
    assert "near MMLU n_eff 10 regret" in {row.name for row in found["D"]}
    assert {row.name for row in found["D"] if row.printed and "MMLU" in row.name} == set()
    assert "| the paper claims" in claims(found)[0]


def test_rank_correlations_and_concordance() -> None:
    one, other = np.array([1.0, 2.0, 2.0, 4.0]), np.array([10.0, 30.0, 20.0, 40.0])
    assert spearman(one, one) == pytest.approx(1.0)
    assert spearman(one, -other) == pytest.approx(-0.9487, abs=1e-4)
    assert kendall(one, other) == pytest.approx(5 / np.sqrt(5 * 6))
    agreeing = np.array([[[0.1, 0.2, 0.3]], [[0.4, 0.5, 0.6]]])
    assert concordance(agreeing) == pytest.approx(1.0)
    assert concordance(np.array([[[0.1, 0.2, 0.3]], [[0.3, 0.2, 0.1]]])) == pytest.approx(0.0)


@pytest.fixture
def judged() -> tuple[Benchmark, Priors]:
    rng = np.random.default_rng(3)
    n, d = 500, 26
    contexts = rng.normal(size=(n, d))
    contexts[:, -1] = 1.0
    weights = rng.normal(size=(3, d)) * 0.02
    weights[:, -1] = (0.80, 0.92, 0.93)
    rewards = np.clip(contexts @ weights.T + rng.normal(size=(n, 3)) * 0.05, 0.0, 1.0)
    costs = np.array([3e-5, 5e-4, 1.5e-2]) * rng.lognormal(0.0, 0.5, size=(n, 3))
    prices = (Price(0.1, 0.1), Price(0.5, 1.5), Price(1.25, 10.0))
    priors = Priors(("a", "b", "c"), np.stack([np.eye(d) * 50.0] * 3), weights * 50.0, "none")
    return Benchmark(
        ("a", "b", "c"), prices, ("",) * n, contexts, rewards, costs, ("",) * n
    ), priors


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("budget", [None, 6.6e-4])
def test_the_stacked_search_chooses_as_the_engine_does(
    judged: tuple[Benchmark, Priors], cold: bool, budget: float | None
) -> None:
    data, priors = judged
    knobs = [
        replace(PAPER, alpha=alpha, gamma=gamma, lambda_c=0.1, n_eff=30.0, seed=5)
        for alpha, gamma in ((0.05, 0.99), (0.5, 1.0))
    ]
    settings = [
        Setting(one.alpha, one.gamma, None if cold else one.n_eff, budget, one.lambda_c, one.seed)
        for one in knobs
    ]
    order = np.random.default_rng(1).permutation(len(data))
    earned, paid = Lockstep(data, settings, priors).run(
        data.contexts, data.rewards, data.costs, order
    )
    for at, one in enumerate(knobs):
        router = Router(
            data.models, data.prices, knobs=one, priors=None if cold else priors, budget=budget
        )
        outcome = router.run(data.contexts, data.rewards, data.costs, order)
        assert len(set(outcome.arms.tolist())) > 1
        assert np.array_equal(outcome.costs, paid[at])
        assert np.array_equal(outcome.rewards, earned[at])


def test_copies_of_a_run_go_on_alike(judged: tuple[Benchmark, Priors]) -> None:
    data, priors = judged
    base = Lockstep(data, [Setting(0.01, 0.997, 30.0, 6.6e-4)], priors)
    base.run(data.contexts, data.rewards, data.costs, range(200))
    twice = base.repeat(2)
    alone = base.run(data.contexts, data.rewards, data.costs, range(200, 400))[1]
    both = twice.run(data.contexts, data.rewards, data.costs, range(200, 400))[1]
    assert np.array_equal(both, np.repeat(alone, 2, axis=0))


def test_without_more_data_every_experiment_that_it_would_complete_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PB_DATA", raising=False)
    assert [line.partition(":")[0] for line in paper_data.missing()] == ["E4", "B", "D", "E"]
    monkeypatch.setenv("PB_DATA", str(tmp_path))
    assert "test_k4.jsonl" in paper_data.missing()[0]
    place = tmp_path / "data_collection" / "rewards"
    place.mkdir(parents=True)
    (place / "test_k4.jsonl").write_text("")
    (tmp_path / "val_k4.jsonl").write_text("")
    assert [line.partition(":")[0] for line in paper_data.missing()] == ["D", "E"]
    assert paper_data.find("test_k4.jsonl") == place / "test_k4.jsonl"
