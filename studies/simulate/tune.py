"""Choose α and γ for a router from its own history: reward as it was against reward when the most
called model fails.

Every pair is simulated twice: over the history as it was, and with its most called model worth
`FAILED` in the last half. Of the pairs that nothing beats in both, the knee is the one farthest
from the line between the two ends, both scaled to [0, 1].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from router_state.profiles import n_eff_of
from studies.history.happened import Declared
from studies.history.rerun import ReadPrior
from studies.simulate.answer import doubt
from studies.simulate.cases import Case
from studies.simulate.scenario import Policy, Quality, Scenario
from studies.simulate.study import Survey, run
from studies.simulate.track import Track

FAILED = 0.5
"""Mean reward of the most called model in the last half of the history with a failure."""
SETTINGS_AT_ONCE = 10
"""Engines that share one reading of the history."""
ALPHAS = (0.01, 0.05, 0.1, 0.25)
"""Explorations that are tried."""
GAMMAS = (0.994, 0.997, 0.999, 0.9995, 1.0)
"""Forgetting factors that are tried; half of the evidence is gone after 115, 231, 693 and 1,386
requests, and never."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One pair of knobs and what it earned; `n_eff` is what `t_adapt` makes of it.

    `doubt`: half of the 95 % interval of what `reward` is below the best one, over stretches of the
    history in pairs; None where there are too few stretches, or it is the best.
    """

    alpha: float
    gamma: float
    n_eff: float
    reward: float
    reward_in_failure: float
    cost_over_budget: float | None
    doubt: float | None = None
    on_front: bool = False
    knee: bool = False


def tune(
    kept: Iterable[Case | Declared],
    found: Survey,
    *,
    read_prior: ReadPrior,
    profile: str,
    t_adapt: float,
    alphas: Sequence[float] = ALPHAS,
    gammas: Sequence[float] = GAMMAS,
) -> list[Setting]:
    """Simulate every pair of α and γ; return them with the front and its knee marked.

    Args:
        kept: cases, to be read as often as needed; found: their survey.
        profile: "paper", "live" or "declared".
        t_adapt: requests after which new evidence outweighs a prior; sets n_eff for each γ.
    """
    pairs = [(alpha, gamma, n_eff_of(t_adapt, gamma=gamma)) for alpha in alphas for gamma in gammas]
    found_ones: list[tuple[Setting, Track]] = []
    # Reading the cases costs as much as some engines; all at once would take their memory.
    for at in range(0, len(pairs), SETTINGS_AT_ONCE):
        found_ones += _search(
            kept, found, pairs[at : at + SETTINGS_AT_ONCE], profile=profile, read_prior=read_prior
        )
    best, of_best = max(found_ones, key=lambda one: one[0].reward)
    return mark(
        [s if s is best else replace(s, doubt=doubt(track, of_best)) for s, track in found_ones]
    )


def alpha_counts(settings: Iterable[Setting]) -> bool:
    """Tell whether α changed the reward for any γ; routers with a shared prior do not use α."""
    earned = {(s.gamma, s.reward, s.reward_in_failure, s.cost_over_budget) for s in settings}
    return len(earned) > len({gamma for gamma, *_ in earned})


def _search(
    kept: Iterable[Case | Declared],
    found: Survey,
    pairs: Sequence[tuple[float, float, float]],
    *,
    profile: str,
    read_prior: ReadPrior,
) -> list[tuple[Setting, Track]]:
    """Simulate some pairs of α and γ, each with its n_eff, on the history as it was and with a
    failure.
    """
    policies = [
        {
            "name": f"{alpha:g}/{gamma:g}",
            "profile": profile,
            "knobs": {"alpha": alpha, "gamma": gamma, "n_eff": n_eff},
        }
        for alpha, gamma, n_eff in pairs
    ]
    plain = Scenario.model_validate({"policies": [*policies, "recorded"]})
    as_was = run(kept, found, plain, read_prior=read_prior, compare=False)
    calls = as_was.runs["recorded"].track.total.calls
    fails = Quality(
        kind="quality", model=max(calls, key=lambda model: calls[model]), to=FAILED, at="50%"
    )
    # `recorded` is left out, as history did not meet the failure.
    failing = plain.model_copy(
        update={"events": (fails,), "policies": tuple(Policy.model_validate(p) for p in policies)}
    )
    failed = run(kept, found, failing, read_prior=read_prior, compare=False)
    found_ones = []
    for (alpha, gamma, n_eff), policy in zip(pairs, failing.policies, strict=True):
        track, last = as_was.runs[policy.name].track, failed.runs[policy.name].track.phases[-1]
        total = track.total
        rewards = total.mean_reward or 0.0, last.mean_reward or 0.0
        found_ones.append((Setting(alpha, gamma, n_eff, *rewards, total.cost_over_budget), track))
    return found_ones


def mark(settings: Sequence[Setting]) -> list[Setting]:
    """Mark the settings that no other beats in both rewards, and of these the knee."""
    front = sorted(
        (s for s in settings if not any(_beats(other, s) for other in settings)),
        key=lambda s: (s.reward, s.reward_in_failure),
    )
    knee = max(front, key=lambda s: _distance(s, front[0], front[-1]))
    return [_marked(s, on_front=s in front, knee=s is knee) for s in settings]


def _marked(s: Setting, *, on_front: bool, knee: bool) -> Setting:
    return replace(s, on_front=on_front, knee=knee)


def _beats(a: Setting, b: Setting) -> bool:
    better = a.reward > b.reward or a.reward_in_failure > b.reward_in_failure
    return better and a.reward >= b.reward and a.reward_in_failure >= b.reward_in_failure


def _distance(s: Setting, first: Setting, last: Setting) -> float:
    """Return how far a setting lies above the line between the ends of the front, in units of its
    two ranges.
    """
    width = (last.reward - first.reward) or 1.0
    height = (first.reward_in_failure - last.reward_in_failure) or 1.0
    return (s.reward - first.reward) / width + (
        s.reward_in_failure - last.reward_in_failure
    ) / height
