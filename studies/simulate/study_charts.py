"""Draw a study: what each policy spent and earned over the requests, with the events that explain
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from drawing.page import Chart, marked
from ground.json_values import Document
from studies.simulate.answer import distinct
from studies.simulate.describe import short
from studies.simulate.figures import figures, models_of
from studies.simulate.simulation import PolicyRun
from studies.simulate.study import Study
from studies.simulate.track import Bucket

MORE = "λ_t and the models' shares"
"""Summary of the charts that not every reader wants."""
Value = Callable[[Bucket], float | None]


def drawn(study: Study) -> Document:
    """Return a study as a page draws it: charts instead of the whole series."""
    found, runs = figures(study), distinct(study.runs)
    for policy in found["policies"].values():
        del policy["series"]
    return found | {
        "names": list(runs),
        "over": "request",
        "marks": marked(marks_of(study)),
        "charts": [one.drawn() for one in charts_of(study, runs)],
    }


def marks_of(study: Study) -> list[tuple[float, str]]:
    """Return the events by place: what was declared in history, then what the scenario adds."""
    told = [(float(index), text) for index, text in study.survey.changes]
    return sorted(
        [*told, *((float(mark.index), mark.label) for mark in study.world.marks)],
        key=lambda one: one[0],
    )


def charts_of(study: Study, runs: dict[str, PolicyRun]) -> Iterator[Chart]:
    """Yield the charts; a line has the colour of its policy in all of them."""
    points = {name: list(run.track.points()) for name, run in runs.items()}
    # Policies may be drawn at different places: one that refused requests has made fewer.
    at = sorted({place for some in points.values() for place, _ in some})

    def lines(value: Value, names: list[str]) -> dict[str, list[float | None]]:
        found: dict[str, list[float | None]] = {}
        for name in names:
            known = {place: value(sums) for place, sums in points[name] if sums.requests}
            found[name] = [known.get(place) for place in at]
        return found

    alarms = [(index, name) for name, run in runs.items() for index, *_ in run.track.alerts]
    everyone, ratio = list(runs), lines(lambda b: b.cost_over_budget, list(runs))
    if any(value is not None for line in ratio.values() for value in line):
        yield Chart("Spend ÷ budget", at, ratio, line=1.0, alarms=alarms)
    else:
        paid = lines(lambda b: b.mean_cost_usd, everyone)
        yield Chart("Dollars per request", at, paid, show="usd", alarms=alarms)
    earned = lines(lambda b: b.mean_reward, everyone)
    yield Chart("Mean reward", at, earned, high=1.0, show="fixed")
    # Each in its own scale: λ_t means another thing under each profile.
    for name in everyone:
        paced = lines(_price, [name])
        if any(paced[name]):
            yield Chart(f"λ_t of {name}", at, paced, more=MORE)
    for model in models_of(study):
        shares = lines(partial(_share, model), everyone)
        yield Chart(f"Share of {short(model)}", at, shares, high=1.0, show="percent", more=MORE)


def _price(bucket: Bucket) -> float | None:
    # A line to where no price meets the budget would flatten the rest.
    return bucket.mean_lambda_t if bucket.without_price < bucket.requests else None


def _share(model: str, bucket: Bucket) -> float:
    return bucket.calls.get(model, 0) / bucket.requests
