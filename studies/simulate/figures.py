"""The numbers of a study, for programs: one JSON object, and tables as CSV."""

from __future__ import annotations

import csv
import io

from ground.json_values import Document
from studies.simulate.answer import answer
from studies.simulate.simulation import PolicyRun
from studies.simulate.study import Study
from studies.simulate.track import Bucket


def numbers_of(bucket: Bucket) -> Document:
    """Return the number of requests of a bucket, and its rounded means and shares."""
    requests = bucket.requests or 1
    return {
        "requests": bucket.requests,
        "reward": _rounded(bucket.mean_reward),
        "cost_usd_per_request": _rounded(bucket.mean_cost_usd),
        "cost_over_budget": _rounded(bucket.cost_over_budget),
        "lambda_t": _rounded(bucket.mean_lambda_t),
        "mean_ms": _milliseconds(bucket.mean_seconds),
        "p95_ms": _milliseconds(bucket.p95_seconds),
        "without_price": _rounded(bucket.without_price / requests),
        "modelled": _rounded(bucket.modelled / requests),
        "shares": {
            model: _rounded(calls / requests) for model, calls in sorted(bucket.calls.items())
        },
    }


def figures(study: Study) -> Document:
    """Return a study as one JSON object; equal studies give equal objects."""
    starts = [0, *next(iter(study.runs.values())).track.boundaries]
    labels = phase_labels(study)
    return {
        "answer": answer(study),
        "scenario": study.scenario.model_dump(mode="json", exclude_defaults=True),
        "requests": study.survey.requests,
        "without_outcomes": study.survey.without_outcomes,
        "marks": [{"index": mark.index, "label": mark.label} for mark in study.world.marks],
        "skipped": dict(sorted(study.skipped.counts.items())),
        "policies": {
            name: {
                "total": numbers_of(run.track.total),
                "phases": [
                    {"from": start, "label": label, **numbers_of(bucket)}
                    for start, label, bucket in zip(starts, labels, run.track.phases, strict=True)
                ],
                "refused": run.track.refused,
                "alerts": [
                    {"index": index, "kind": kind, "model": model, "direction": direction}
                    for index, kind, model, direction in run.track.alerts
                ],
                "estimates": _estimates(run),
                "series": [
                    {"from": at * run.track.width, **numbers_of(bucket)}
                    for at, bucket in enumerate(run.track.buckets)
                    if bucket.requests
                ],
            }
            for name, run in study.runs.items()
        },
    }


def models_of(study: Study) -> list[str]:
    """Return the models that any policy called."""
    return sorted(
        {
            model
            for run in study.runs.values()
            for bucket in run.track.phases
            for model in bucket.calls
        }
    )


def phase_labels(study: Study) -> list[str]:
    """Return what each phase begins with."""
    labels: dict[int, str] = {}
    for mark in study.world.marks:
        # Several events may begin at one request, which is the beginning of one phase.
        labels[mark.index] = (
            f"{labels[mark.index]}; {mark.label}" if mark.index in labels else mark.label
        )
    boundaries = next(iter(study.runs.values())).track.boundaries
    return [labels.get(0, "start"), *(labels[index] for index in boundaries)]


def phases_csv(study: Study) -> str:
    """Return the phases as CSV, a row per policy and phase."""
    return _csv(study, "phases")


def series_csv(study: Study) -> str:
    """Return the series as CSV, a row per policy and bucket of requests."""
    return _csv(study, "series")


def _csv(study: Study, part: str) -> str:
    models = models_of(study)
    plain = [
        "requests",
        "reward",
        "cost_usd_per_request",
        "cost_over_budget",
        "lambda_t",
        "mean_ms",
        "p95_ms",
        "modelled",
    ]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["policy", "from", *plain, *(f"share:{model}" for model in models)])
    for name, policy in figures(study)["policies"].items():
        for row in policy[part]:
            shares = [row["shares"].get(model, 0) for model in models]
            writer.writerow(
                [
                    name,
                    row["from"],
                    *("" if row[key] is None else row[key] for key in plain),
                    *shares,
                ]
            )
    return out.getvalue()


def _estimates(run: PolicyRun) -> Document:
    found = {}
    for what, off in (("reward", run.reward), ("cost_usd", run.cost)):
        if off.weight.n:
            found[what] = {
                "supported": off.supported,
                "verdict": off.verdict(),
                "effective_sample_size": _rounded(off.effective),
                **{
                    name: {"value": e.value, "half_width": e.half_width}
                    for name, e in off.estimates().items()
                },
            }
    return found


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else _rounded(1e3 * seconds)


def _rounded(value: float | None) -> float | None:
    # Six digits: equal studies on different processors then write equal files.
    return None if value is None else float(f"{value:.6g}")
