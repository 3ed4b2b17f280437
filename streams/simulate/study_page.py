"""A study as one HTML file that needs nothing beside itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from streams.drawing.inks import line_colours
from streams.drawing.lines import Line, Tick, line_chart
from streams.drawing.page import page
from streams.simulate.answer import answer
from streams.simulate.describe import short
from streams.simulate.figures import models_of, phase_labels
from streams.simulate.simulation import PolicyRun
from streams.simulate.study import Study
from streams.simulate.track import Bucket

MOST_ALERTS = 100
"""Alerts of a policy that the table lists; a chart has a tick for each of them."""
OVERSPENT = 1.05
"""Cost ÷ budget above which a cell is red: the floor that the benchmarks hold is 5 %."""
TEMPLATE = Path(__file__).with_name("study_page.html")


class Row(NamedTuple):
    """A table's row: its cells, and the columns in which a number is too high."""

    cells: list[str]
    over: tuple[int, ...] = ()
    kind: str = ""


class Sheet(NamedTuple):
    """A table."""

    head: list[str]
    rows: list[Row]


def render(study: Study) -> str:
    """Return the report."""
    runs = told_apart(study)
    colours = line_colours(list(runs))
    result, *others, over = answer(study) if study.runs else ["", ""]
    return page(
        TEMPLATE,
        {
            "title": study.scenario.name,
            "result": result,
            "others": others,
            "over": over,
            "notes": _notes(study),
            "marks": study.world.marks,
            "colours": colours,
            "charts": list(_charts(study, runs, colours)),
            "phases": _phases(study),
            "estimates": _estimates(study),
            "alerts": _alerts(study),
            "left_out": _left_out(study),
        },
    )


def told_apart(study: Study) -> dict[str, PolicyRun]:
    """Return the policies, those that decided alike under one name: one line would hide the
    other.
    """
    alike: list[tuple[list[str], PolicyRun]] = []
    for name, run in study.runs.items():
        same = (names for names, other in alike if other.track.buckets == run.track.buckets)
        if (names := next(same, None)) is not None:
            names.append(name)
        else:
            alike.append(([name], run))
    return {", ".join(names): run for names, run in alike}


def _notes(study: Study) -> list[str]:
    survey = study.survey
    notes = [
        f"{len(study.runs)} policies. Cost and reward are those of the calls that each policy "
        "made. "
        f"Each point of a line is the mean of {_binned(study):,} requests."
    ]
    if survey.without_outcomes:
        notes.append(
            f"For {survey.without_outcomes:,} requests history knows only the model that was "
            "called. What another one would have "
            "earned there is what a ridge regression per model expects, counted as modelled: it "
            "may be biased, see the estimates."
        )
    return notes


def _charts(study: Study, runs: dict[str, PolicyRun], colours: dict[str, str]) -> Iterator[str]:
    draw = partial(
        line_chart,
        x_max=study.survey.requests,
        events=[mark.index for mark in study.world.marks],
    )
    ticks = [
        Tick(index, colours[name]) for name, run in runs.items() for index, *_ in run.track.alerts
    ]

    def lines(value: Callable[[Bucket], float | None]) -> list[Line]:
        return [
            Line(
                name,
                colours[name],
                [(at, value(sums) if sums.requests else None) for at, sums in run.track.points()],
            )
            for name, run in runs.items()
        ]

    yield draw("Spend ÷ budget", lines(lambda b: b.cost_over_budget), level=1.0, ticks=ticks)
    yield draw("Mean reward", lines(lambda b: b.mean_reward), y_max=1.0)
    # Each in its own scale: λ_t means another thing under each profile.
    for line in lines(lambda b: b.lambda_t / b.requests):
        if any(y for _, y in line.points):
            yield draw(f"λ_t of {line.name}", [line])
    for model in models_of(study):
        yield draw(f"Share of {short(model)}", lines(partial(_share, model)), y_max=1.0)


def _share(model: str, bucket: Bucket) -> float:
    return bucket.calls.get(model, 0) / bucket.requests


def _binned(study: Study) -> int:
    return min(next(iter(study.runs.values())).track.stretch, study.survey.requests)


def _phases(study: Study) -> Sheet:
    models = models_of(study)
    head = ["phase", "policy", "requests", "reward", "$ per request", "÷ budget", "λ_t"]
    ratio_at = head.index("÷ budget")
    rows = []
    for phase, label in enumerate(phase_labels(study)):
        for name, run in study.runs.items():
            bucket = run.track.phases[phase]
            if not bucket.requests:
                continue
            ratio = bucket.cost_over_budget
            cells = [
                *(label, name, f"{bucket.requests:,}", _text(bucket.mean_reward, ".4f")),
                *(_text(bucket.mean_cost_usd, ".3g"), _text(ratio, ".2f")),
                f"{bucket.lambda_t / bucket.requests:.3g}",
                *(f"{_share(model, bucket):.0%}" for model in models),
                f"{bucket.modelled / bucket.requests:.0%}",
            ]
            over = ratio is not None and ratio > OVERSPENT
            rows.append(Row(cells, (ratio_at,) if over else ()))
    return Sheet([*head, *map(short, models), "modelled"], rows)


def _estimates(study: Study) -> Sheet:
    ways = ("direct", "inverse propensity", "doubly robust")
    rows = []
    for name, run in study.runs.items():
        for what, off in (("reward", run.reward), ("cost, $", run.cost)):
            if off.weight.n:
                found = off.estimates()
                values = [str(found.get(way, "—")) for way in ways]
                rows.append(Row([name, what, *values, f"{off.effective:,.0f}", off.verdict()]))
    return Sheet(["policy", "mean of", *ways, "effective n", "verdict"], rows)


def _alerts(study: Study) -> Sheet:
    rows = [
        Row([name, kind, f"{index:,}", short(model or "—"), direction])
        for name, run in study.runs.items()
        for index, kind, model, direction in run.track.alerts[:MOST_ALERTS]
    ]
    return Sheet(["policy", "kind", "request", "model", "direction"], rows)


def _left_out(study: Study) -> list[str]:
    refused = [
        f"{name}: {count:,} requests refused ({reason})"
        for name, run in study.runs.items()
        for reason, count in run.track.refused.items()
    ]
    return [*study.account.lines(), *refused]


def _text(value: float | None, form: str) -> str:
    return "—" if value is None else format(value, form)
