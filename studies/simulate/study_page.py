"""A study as one HTML file that needs nothing beside itself."""

from __future__ import annotations

from drawing.numbers import dual
from drawing.page import Report, Table, page
from studies.simulate.answer import answer, distinct
from studies.simulate.describe import short
from studies.simulate.figures import models_of, phase_labels
from studies.simulate.simulation import PolicyRun
from studies.simulate.study import MOST_CHANGES, Study
from studies.simulate.study_charts import charts_of, marks_of
from studies.simulate.track import Bucket

MOST_ALERTS = 100
"""Most alerts of a policy that the table lists; a chart has a tick for each of them."""
OVERSPENT = 1.05
"""Cost ÷ budget above which a cell says so; the benchmarks' floor is 5 %."""


def render(study: Study) -> str:
    """Return the report."""
    runs = distinct(study.runs)
    result, *others, over = answer(study) if study.runs else ["", ""]
    return page(
        Report(
            title=f"Replay: {study.scenario.name}",
            answer=result,
            others=others,
            notes=[over, *_notes(study)],
            pareto=_picture(runs),
            names=list(runs),
            marks=marks_of(study),
            charts=list(charts_of(study, runs)),
            tables=[_phases(study), _alerts(study), _estimates(study)],
            lists={"Left out": _left_out(study) or ["Nothing of the history was left out."]},
        )
    )


def _picture(runs: dict[str, PolicyRun]) -> dict[str, object] | None:
    """Return the policies as the Pareto picture takes them, in the colours of their lines."""
    totals = {name: run.track.total for name, run in runs.items()}
    dots = [
        {
            "name": name,
            "cost_usd": total.mean_cost_usd,
            "quality": total.mean_reward,
            "ink": f"c{at % 8}",
        }
        for at, (name, total) in enumerate(totals.items())
        if total.mean_cost_usd is not None and total.mean_reward is not None
    ]
    return {"dots": dots} if dots else None


def _notes(study: Study) -> list[str]:
    survey = study.survey
    notes = [
        f"{len(study.runs)} policies. Cost and reward are those of the calls that each policy "
        f"made. Each point of a line is the mean of {_binned(study):,} requests; a tick at the "
        "bottom of the first chart is an alert."
    ]
    if survey.without_outcomes:
        notes.append(
            f"For {survey.without_outcomes:,} requests history knows only the model that was "
            "called. What another one would have "
            "earned there is what a regression expects, which keeps each model's mean and lets "
            "models share what prompts tell; it is counted as modelled."
        )
    if len(survey.changes) == MOST_CHANGES:
        notes.append(f"Of what was declared in history, the last {MOST_CHANGES} changes are drawn.")
    return notes


def _binned(study: Study) -> int:
    return min(next(iter(study.runs.values())).track.stretch, study.survey.requests)


def _phases(study: Study) -> Table:
    models = models_of(study)
    timed = any(run.track.total.timed for run in study.runs.values())
    heads = ["Phase", "Policy", "Requests", "Reward", "$ per request", "÷ budget", "λ_t"]
    heads += ["Mean s", "p95 s"] if timed else []
    rows = []
    for phase, label in enumerate(phase_labels(study)):
        for name, run in study.runs.items():
            bucket = run.track.phases[phase]
            if not bucket.requests:
                continue
            ratio = bucket.cost_over_budget
            over = " over" if ratio is not None and ratio > OVERSPENT else ""
            shares = (bucket.calls.get(model, 0) / bucket.requests for model in models)
            rows.append(
                [
                    *(label, name, f"{bucket.requests:,}", _text(bucket.mean_reward, ".4f")),
                    *(_text(bucket.mean_cost_usd, ".3g"), _text(ratio, ".2f") + over),
                    _price(bucket),
                    *(_times(bucket) if timed else ()),
                    *(f"{share:.0%}" for share in shares),
                    f"{bucket.modelled / bucket.requests:.0%}",
                ]
            )
    caption = (
        f"over: more than {OVERSPENT:g} budgets; shares of the models' calls; modelled: guessed; "
        "λ_t none: no price meets the budget"
    )
    return Table("Phases", caption, [*heads, *map(short, models), "Modelled"], rows, words=(0, 1))


def _times(bucket: Bucket) -> tuple[str, str]:
    return _text(bucket.mean_seconds, ".3g"), _text(bucket.p95_seconds, ".3g")


def _price(bucket: Bucket) -> str:
    share = bucket.without_price / bucket.requests
    none = f"; none for {share:.0%}" if 0.0 < share < 1.0 else ""
    return dual(bucket.mean_lambda_t, 3) + none


def _estimates(study: Study) -> Table:
    ways = ("direct", "inverse propensity", "doubly robust")
    rows = []
    for name, run in study.runs.items():
        for what, off in (("reward", run.reward), ("cost, $", run.cost)):
            if off.weight.n:
                found = off.estimates()
                values = [str(found.get(way, "—")) for way in ways]
                rows.append([name, what, *values, f"{off.effective:,.0f}", off.verdict()])
    return Table(
        "What history itself says of these policies",
        "Means with half of their 95 % intervals, from the propensities that were recorded",
        ["Policy", "Mean of", *ways, "Effective n", "Verdict"],
        rows,
        words=(0, 1, 6),
    )


def _alerts(study: Study) -> Table:
    rows = [
        [name, kind, f"{index:,}", short(model or "—"), direction]
        for name, run in study.runs.items()
        for index, kind, model, direction in run.track.alerts[:MOST_ALERTS]
    ]
    left = sum(max(0, len(run.track.alerts) - MOST_ALERTS) for run in study.runs.values())
    caption = "By policy, in order" + (f"; {left:,} more are left out here" if left else "")
    heads = ["Policy", "Kind", "Request", "Model", "Direction"]
    return Table("Alerts", caption, heads, rows, words=(0, 1, 3, 4))


def _left_out(study: Study) -> list[str]:
    refused = [
        f"{name}: {count:,} requests refused ({reason})"
        for name, run in study.runs.items()
        for reason, count in run.track.refused.items()
    ]
    return [*study.skipped.lines(), *refused]


def _text(value: float | None, form: str) -> str:
    return "—" if value is None else format(value, form)
