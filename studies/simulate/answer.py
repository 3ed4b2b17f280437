"""Write a study's result in sentences: which policy earned most, by how much, at which cost, over
which time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version

import numpy as np

from drawing.pareto import Pareto, Point
from studies.simulate.direct import DirectModel
from studies.simulate.estimators import guessed_difference
from studies.simulate.limits import NO_LINES
from studies.simulate.simulation import PolicyRun
from studies.simulate.study import Study
from studies.simulate.track import Track

LEAST_STRETCHES, MOST_STRETCHES = 8, 40
"""Fewest and most stretches into which a history is cut for an interval. Fewer give a poor estimate
of the spread, and shorter ones are correlated."""
OVER = 1.05
"""Spend ÷ budget above which a policy counts as over the budget."""


def doubt(track: Track, best: Track) -> float | None:
    """Return half of the 95 % interval of the difference between two mean rewards, paired by
    stretches of the history.
    """
    return spread(track, [(1.0, best)])


def spread(track: Track, mix: Sequence[tuple[float, Track]]) -> float | None:
    """Return half of the 95 % interval of the difference in mean reward between a track and a mix
    of tracks; None: there are too few stretches.

    Args:
        mix: the share and the track of each part of the mix.
    """
    stretches = _stretches(track, mix)
    if len(stretches) < LEAST_STRETCHES:
        return None
    differences, rewarded = np.array([s[0] for s in stretches]), sum(s[1] for s in stretches)
    # Computed over stretches: neighbouring requests are correlated, so single requests would give
    # too narrow an interval.
    return float(1.96 * differences.std(ddof=1) * len(stretches) ** 0.5 / max(rewarded, 1))


def _stretches(track: Track, mix: Sequence[tuple[float, Track]]) -> list[tuple[float, int]]:
    """Return the difference of rewards in each stretch, and the number of rewards."""
    size = -(-len(track.buckets) // MOST_STRETCHES)
    others = zip(*(other.buckets for _, other in mix), strict=False)
    pairs = list(zip(track.buckets, others, strict=False))
    parts = [pairs[at : at + size] for at in range(0, len(pairs), size or 1)]
    shares = [share for share, _ in mix]
    sums = [
        (
            sum(
                a.reward - sum(s * b.reward for s, b in zip(shares, mixed, strict=True))
                for a, mixed in part
            ),
            sum(a.rewarded for a, _ in part),
        )
        for part in parts
    ]
    return [(difference, count) for difference, count in sums if count]


def answer(study: Study) -> list[str]:
    """Return what a study found, the result first."""
    return [*_result(study), _over(study)]


def distinct(runs: Mapping[str, PolicyRun]) -> dict[str, PolicyRun]:
    """Return the policies to be drawn. Policies with identical lines share one name, as one line
    would hide the other.
    """
    alike: list[tuple[list[str], PolicyRun]] = []
    for name, run in runs.items():
        same = (names for names, other in alike if other.track.buckets == run.track.buckets)
        if (names := next(same, None)) is not None:
            names.append(name)
        else:
            alike.append(([name], run))
    return {", ".join(names): run for names, run in alike}


def _result(study: Study) -> Iterator[str]:
    runs, q = distinct(study.runs), study.survey.outcomes.rewards
    earned = {name: run.track.total.mean_reward for name, run in runs.items()}
    ranked = sorted(
        (name for name, reward in earned.items() if reward is not None),
        key=lambda name: -(earned[name] or 0.0),
    )
    if not ranked:
        yield "No request of this history has a reward: nothing can be said of quality."
        return
    # A policy that spends over the budget can't be the best one within it.
    within = [name for name in ranked if not _is_over(runs[name])]
    best = (within or ranked)[0]
    over = "" if within else ", as all of them over the budget"
    reward = runs[best].reward
    off = reward.estimates().get("direct", reward.direct).half_width
    by = f" ± {off:.3f}" if off else ""
    yield f"{best} earned {earned[best]:.3f}{by} per request{_money(runs[best])}{over}."
    if q.by_products:
        yield f"What other models would have earned is not supported: {NO_LINES}."
    for other in ranked:
        if other != best:
            yield f"{other}: {_compared(runs[other], runs[best], q)}{_money(runs[other])}."
    for name, run in runs.items():
        if (beside := beside_mix(study, run)) is not None:
            yield f"{name} beside the best fixed mix of models at its cost: {beside}."
    for names in runs:
        if names not in study.runs:
            yield f"{names} decided alike."


def _compared(other: PolicyRun, best: PolicyRun, q: DirectModel) -> str:
    gap = (other.track.total.mean_reward or 0.0) - (best.track.total.mean_reward or 0.0)
    half = doubt(other.track, best.track)
    guessed = guessed_difference([(1.0, other.reward.filled), (-1.0, best.reward.filled)], q)
    return _told(gap, half, guessed, q)


def _told(gap: float, half: float | None, guessed: float, q: DirectModel) -> str:
    if not math.isfinite(guessed):
        why = f"not supported: {NO_LINES}" if q.by_products else "nothing is known of a model in it"
        return f"{gap:+.3f}, but {why}"
    if half is None:
        return f"{gap:+.3f}, too short a history to tell chance from more"
    # Stretches show how far requests differ, not how wrong guesses may be.
    half = math.hypot(half, guessed)
    if abs(gap) <= half:
        return f"{gap:+.3f} ± {half:.3f}, which chance may make"
    return f"{gap:+.3f} ± {half:.3f}"


def beside_mix(study: Study, run: PolicyRun) -> str | None:
    """Return how much more a policy earned than the best fixed mix of models at its cost, with the
    95 % interval; None where no mix is to be had, or the policy is one of its models.
    """
    total, alone = run.track.total, study.alone
    sums = {model: other.track.total for model, other in alone.items()}
    points = [
        Point(model, one.mean_cost_usd, one.mean_reward)
        for model, one in sums.items()
        if one.mean_cost_usd is not None and one.mean_reward is not None
    ]
    if total.mean_cost_usd is None or total.mean_reward is None or len(total.calls) < 2:
        return None
    shares = Pareto(points).mix_shares(total.mean_cost_usd)
    if not shares:
        return None
    parts = [(share, alone[model]) for model, share in shares.items()]
    gap = total.mean_reward - sum(s * (sums[model].mean_reward or 0) for model, s in shares.items())
    q = study.survey.outcomes.rewards
    guessed = guessed_difference(
        [(1.0, run.reward.filled), *((-share, one.reward.filled) for share, one in parts)], q
    )
    half = spread(run.track, [(share, one.track) for share, one in parts])
    return _told(gap, half, guessed, q)


def _is_over(run: PolicyRun) -> bool:
    ratio = run.track.total.cost_over_budget
    return ratio is not None and ratio > OVER


def _money(run: PolicyRun) -> str:
    total = run.track.total
    if total.mean_cost_usd is None:
        return ""
    ratio = total.cost_over_budget
    return f", at ${total.mean_cost_usd:.3g} a request" + (
        "" if ratio is None else f", {ratio:.2f} of the budget"
    )


def _over(study: Study) -> str:
    survey = study.survey
    when = (
        ""
        if survey.first is None or survey.last is None
        else f", {_day(survey.first)} to {_day(survey.last)} UTC"
    )
    guessed = (
        (
            f" For {survey.without_outcomes:,} of them only the called model's outcome is known; "
            "what others would have earned is estimated."
        )
        if survey.without_outcomes
        else ""
    )
    made = (
        f" Made by pbstream {version('paretobandit-streams')}; ± is a 95 % interval: of "
        "differences over stretches of the history, and of what is estimated."
    )
    return f"Over {survey.requests:,} requests{when}.{guessed}{made}"


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"
