"""Play a scenario over a history by several policies, and collect what a report needs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from drawing.declaration_changes import Portfolio, differences
from studies.history.encoded import Contexts
from studies.history.happened import Declared, Happened
from studies.history.rerun import ReadPrior
from studies.history.skipped import Skipped
from studies.simulate.case_file import CaseFile
from studies.simulate.cases import Case, Cases
from studies.simulate.policies import decider_of
from studies.simulate.scenario import Added, Policy, Removed, Scenario, named
from studies.simulate.simulation import Outcomes, PolicyRun, Simulation
from studies.simulate.track import Track
from studies.simulate.world import World

MOST_ALONE = 8
"""Most models that are each played alone, for the fixed mixes: each costs a tenth of a policy."""
MOST_CHANGES = 20
"""Last changes of the declaration that charts number."""


class NoRequest(Exception):
    """The history has no decided request in the range."""

    reason = "no_request"
    retriable = False


@dataclass(slots=True)
class Survey:
    """The summary of a first pass over a history; `first` and `last` decision in seconds since the
    epoch; `changes`, new declarations by the index of the next request; `prices`, last list price
    of each declared model.
    """

    requests: int = 0
    without_outcomes: int = 0
    first: float | None = None
    last: float | None = None
    models: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)
    prices: dict[str, float] = field(default_factory=dict)
    index_of: dict[datetime, int] = field(default_factory=dict)
    changes: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=MOST_CHANGES))
    outcomes: Outcomes = field(default_factory=Outcomes)

    @property
    def ranked(self) -> list[str]:
        """Return the declared models of which an outcome is known, the cheapest first."""
        return sorted(self.models & self.declared, key=lambda one: (self.prices[one], one))


@dataclass(slots=True)
class Study:
    """A finished study. `seconds` is the processor's time, from the first record to the last
    decision; `alone`, each model always called, of which fixed mixes are made.
    """

    scenario: Scenario
    survey: Survey
    world: World
    runs: dict[str, PolicyRun]
    skipped: Skipped
    seconds: float
    alone: dict[str, PolicyRun] = field(default_factory=dict)


def survey(cases: Iterable[Case | Declared], scenario: Scenario) -> Survey:
    """Read a history once: count it, place the scenario's times, fit what is needed for models that
    were not called.
    """
    found = Survey()
    times = sorted(
        {t for event in scenario.events for t in (event.at, event.until) if isinstance(t, datetime)}
    )
    before: Portfolio | None = None
    for case in cases:
        if isinstance(case, Declared):
            declared = {} if case.router is None else case.router.models
            found.declared.update(declared)
            found.prices |= {
                name: one.input_price_per_m + one.output_price_per_m
                for name, one in declared.items()
            }
            after = None if case.router is None else Portfolio.of(case.router)
            if before is not None and after is not None and found.requests:
                told = differences(before, after, at=0.0)
                found.changes.extend((found.requests, one.text) for one in told)
            before = after or before
            continue
        # A scenario's times become places, since a simulation counts requests and not seconds.
        while times and case.at >= times[0].timestamp():
            found.index_of[times.pop(0)] = case.index
        found.requests += 1
        found.first = case.at if found.first is None else min(found.first, case.at)
        found.last = case.at if found.last is None else max(found.last, case.at)
        found.models.add(case.model)
        if case.outcomes:
            found.models.update(case.outcomes)
        else:
            found.without_outcomes += 1
            found.outcomes.fit(case)
    found.outcomes.settle()
    # Times after the history: at its end, where nothing happens any more.
    found.index_of.update(dict.fromkeys(times, found.requests))
    return found


def world_of(scenario: Scenario, found: Survey) -> World:
    """Lay a scenario over a surveyed history.

    Raises:
        BadScenario: it does not fit.
        NoRequest: there is none.
    """
    if not found.requests:
        raise NoRequest
    return World(
        named(scenario, found.ranked),
        requests=found.requests,
        index_of=found.index_of,
        models=found.models,
        declared=found.declared,
    )


def study(
    happened: Iterable[Happened],
    scenario: Scenario,
    *,
    contexts: Contexts,
    read_prior: ReadPrior,
    since: float = float("-inf"),
    until: float = float("inf"),
    offsets: tuple[int, int] | None = None,
    compare: bool | None = None,
    weighted: bool = True,
    skipped: Skipped | None = None,
) -> Study:
    """Play a scenario over one router's history.

    Args:
        happened: the history, read once.
        compare: estimate what policies would have earned; None: where outcomes are missing.
        weighted: use logged propensities for this estimate.
        skipped: counter of the records that are left out; the study holds it.

    Raises:
        BadScenario: the scenario does not fit the history.
        NoRequest: the range has no request.
    """
    skipped, started = Skipped() if skipped is None else skipped, time.process_time()
    with CaseFile() as kept:
        cases = Cases(
            happened, contexts=contexts, skipped=skipped, since=since, until=until, offsets=offsets
        )
        found = survey(kept.keep(cases), scenario)
        done = run(
            kept,
            found,
            scenario,
            read_prior=read_prior,
            compare=compare,
            weighted=weighted,
            beside_mix=True,
        )
    return replace(done, skipped=skipped, seconds=time.process_time() - started)


def run(
    cases: Iterable[Case | Declared],
    found: Survey,
    scenario: Scenario,
    *,
    read_prior: ReadPrior,
    compare: bool | None = None,
    weighted: bool = True,
    beside_mix: bool = False,
) -> Study:
    """Play a scenario over cases that were surveyed.

    Args:
        beside_mix: also play each model alone, for `Study.alone`.

    Raises:
        BadScenario: the scenario does not fit the cases.
        NoRequest: there is no case.
    """
    started = time.process_time()
    scenario = named(scenario, found.ranked)
    world = world_of(scenario, found)
    boundaries = sorted({mark.index for mark in world.marks if mark.index > 0})
    runs = {
        policy.name: PolicyRun(
            decider_of(policy, seed=scenario.seed, read_prior=read_prior),
            Track(policy.name, boundaries),
        )
        for policy in scenario.policies
    }
    alone = {}
    for model in _always_there(scenario, found) if beside_mix else ():
        policy = Policy(name=model, model=model)
        decider = decider_of(policy, seed=scenario.seed, read_prior=read_prior)
        alone[model] = PolicyRun(decider, Track(model, boundaries))
    simulation = Simulation(
        world,
        found.outcomes,
        {**runs, **{f"\0{model}": run for model, run in alone.items()}},
        compare=found.without_outcomes > 0 if compare is None else compare,
        weighted=weighted,
    )
    simulation.play(cases)
    spent = time.process_time() - started
    return Study(scenario, found, world, runs, Skipped(), spent, alone)


def _always_there(scenario: Scenario, found: Survey) -> list[str]:
    """Return the models that a fixed mix may be made of: those that no event adds or removes; none
    where there are too many to play each alone.
    """
    moved = {event.model for event in scenario.events if isinstance(event, Added | Removed)}
    models = [model for model in found.ranked if model not in moved]
    return models if 2 <= len(models) <= MOST_ALONE else []
