"""A study as one HTML file that needs nothing beside itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from html import escape
from pathlib import Path

from streams.simulate.answer import answer
from streams.simulate.charts import COLOURS, Line, Rule, chart
from streams.simulate.describe import short
from streams.simulate.figures import models_of, phase_labels
from streams.simulate.study import Study
from streams.simulate.track import Bucket, Track

POINTS, LEAST_REQUESTS = 40, 20
STYLE = Path(__file__).with_name("report.css")


def render(study: Study) -> str:
    """Return the report."""
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(study.runs)}
    title = escape(study.scenario.name)
    return "".join(
        [
            (
                '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta '
                'name="viewport" content="width=device-width">'
            ),
            (
                "<title>Replay: "
                f"{title}</title><style>{STYLE.read_text(encoding='utf-8')}</style></head><body>"
            ),
            f"<h1>{title}</h1>",
            *_answer(study),
            *_notes(study),
            _legend(colours),
            *_charts(study, colours),
            "<h2>Phases</h2>",
            _phases(study),
            _estimates(study),
            _alerts(study),
            _skipped(study),
            "</body></html>\n",
        ]
    )


def _answer(study: Study) -> list[str]:
    result, *others, over = answer(study) if len(study.runs) else [""]
    rest = f"<ul>{''.join(f'<li>{escape(other)}</li>' for other in others)}</ul>" if others else ""
    return [f'<p class="answer">{escape(result)}</p>{rest}<p class="note">{escape(over)}</p>']


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
    return [f'<p class="note">{escape(note)}</p>' for note in notes]


def _legend(colours: dict[str, str]) -> str:
    items = "".join(
        f'<span><i style="background:{colour}"></i>{escape(name)}</span>'
        for name, colour in colours.items()
    )
    return f'<p class="legend">{items}</p>'


def _charts(study: Study, colours: dict[str, str]) -> list[str]:
    rules = [
        Rule(mark.index, mark.label, number=at) for at, mark in enumerate(study.world.marks, 1)
    ]
    ticks = [
        Rule(index, f"{name}: {kind} {direction} {short(model or '')}", colours[name], tick=True)
        for name, run in study.runs.items()
        for index, kind, model, direction in run.track.alerts
    ]
    n = study.survey.requests
    marks = "; ".join(
        f"{at} at request {mark.index:,}: {mark.label}"
        for at, mark in enumerate(study.world.marks, 1)
    )
    drawn = ["<h2>Over the requests</h2>", f'<p class="note">{escape(marks)}</p>' if marks else ""]

    def lines(value: Callable[[Bucket], float | None]) -> list[Line]:
        return [
            Line(name, colours[name], _points(run.track, value)) for name, run in study.runs.items()
        ]

    drawn.append(
        chart(
            "Spend ÷ budget",
            lines(lambda b: b.cost_over_budget),
            [*rules, *ticks],
            x_max=n,
            level=1.0,
        )
    )
    drawn.append(chart("Mean reward", lines(lambda b: b.mean_reward), rules, x_max=n, y_max=1.0))
    for line in lines(
        lambda b: b.lambda_t / b.requests
    ):  # each in its own scale: λ_t means another thing under each profile
        if any(y for _, y in line.points):
            drawn.append(chart(f"λ_t of {line.name}", [line], rules, x_max=n))
    for model in models_of(study):
        drawn.append(
            chart(
                f"Share of {short(model)}", lines(partial(_share, model)), rules, x_max=n, y_max=1.0
            )
        )
    return drawn


def _share(model: str, bucket: Bucket) -> float:
    return bucket.calls.get(model, 0) / bucket.requests


def _points(
    track: Track, value: Callable[[Bucket], float | None]
) -> list[tuple[float, float | None]]:
    """Return a point per stretch of requests, so that single ones do not hide the line."""
    group = _group(track)
    points: list[tuple[float, float | None]] = []
    for at in range(0, len(track.buckets), group):
        bucket = Bucket()
        for part in track.buckets[at : at + group]:
            bucket.merge(part)
        middle = (at + min(group, len(track.buckets) - at) / 2) * track.width
        points.append((middle, value(bucket) if bucket.requests else None))
    return points


def _group(track: Track) -> int:
    """Return how many buckets a point stands for: a fortieth of the history, and twenty requests at
    least.
    """
    return max(1, -(-len(track.buckets) // POINTS), -(-LEAST_REQUESTS // track.width))


def _binned(study: Study) -> int:
    track = next(iter(study.runs.values())).track
    return min(_group(track) * track.width, study.survey.requests)


def _phases(study: Study) -> str:
    models = models_of(study)
    head = [
        "phase",
        "policy",
        "requests",
        "reward",
        "$ per request",
        "÷ budget",
        "λ_t",
        *(short(m) for m in models),
        "modelled",
    ]
    rows = []
    for phase, label in enumerate(phase_labels(study)):
        for name, run in study.runs.items():
            bucket = run.track.phases[phase]
            if not bucket.requests:
                continue
            ratio = bucket.cost_over_budget
            over = ' class="over"' if ratio is not None and ratio > 1.05 else ""
            cells = [
                f"<td>{escape(label)}</td><td>{escape(name)}</td><td>{bucket.requests:,}</td>",
                f"<td>{_text(bucket.mean_reward, '.4f')}</td>"
                f"<td>{_text(bucket.mean_cost_usd, '.3g')}</td>",
                f"<td{over}>{_text(ratio, '.2f')}</td>"
                f"<td>{bucket.lambda_t / bucket.requests:.3g}</td>",
                *(
                    f"<td>{bucket.calls.get(model, 0) / bucket.requests:.0%}</td>"
                    for model in models
                ),
                f"<td>{bucket.modelled / bucket.requests:.0%}</td>",
            ]
            rows.append(f"<tr>{''.join(cells)}</tr>")
    return _table("phases", head, rows)


def _estimates(study: Study) -> str:
    rows = []
    for name, run in study.runs.items():
        for what, off in (("reward", run.reward), ("cost, $", run.cost)):
            if not off.weight.n:
                continue
            found = off.estimates()
            values = "".join(
                f"<td>{found.get(key, '—')}</td>"
                for key in ("direct", "inverse propensity", "doubly robust")
            )
            rows.append(
                f"<tr><td>{escape(name)}</td><td>{what}</td>{values}<td>{off.effective:,.0f}</td><td>{escape(off.verdict())}</td></tr>"
            )
    if not rows:
        return ""
    head = [
        "policy",
        "mean of",
        "direct",
        "inverse propensity",
        "doubly robust",
        "effective n",
        "verdict",
    ]
    return "<h2>What history itself says of these policies</h2>" + _table("estimates", head, rows)


def _alerts(study: Study) -> str:
    rows = [
        f"<tr><td>{escape(name)}</td><td>{escape(kind)}</td><td>{index:,}</td>"
        f"<td>{escape(short(model or '—'))}</td><td>{escape(direction)}</td></tr>"
        for name, run in study.runs.items()
        for index, kind, model, direction in run.track.alerts[:100]
    ]
    return (
        "<h2>Alerts</h2>"
        + _table("alerts", ["policy", "kind", "request", "model", "direction"], rows)
        if rows
        else ""
    )


def _skipped(study: Study) -> str:
    refused = [
        f"{name}: {count:,} requests refused ({reason})"
        for name, run in study.runs.items()
        for reason, count in run.track.refused.items()
    ]
    lines = [*study.account.lines(), *refused]
    if not lines:
        return '<p class="note">Nothing of the history was left out.</p>'
    return "<h2>Left out</h2><ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def _table(name: str, head: list[str], rows: list[str]) -> str:
    columns = "".join(f"<th>{escape(column)}</th>" for column in head)
    return (
        '<div class="wide"><table '
        f'id="{name}"><thead><tr>{columns}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _text(value: float | None, form: str) -> str:
    return "—" if value is None else format(value, form)
