"""Write a report as one HTML file that loads nothing: the dashboard's charts and style, with the
data as JSON.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from pathlib import Path

import orjson

ASSETS = Path(__file__).parent / "assets"
"""Folder of scripts and styles; the dashboard uses them too."""
MODULES = ("dom.js", "format.js", "axes.js", "chart.js", "pareto.js", "figures.js", "report.js")
"""Scripts, each after those that it imports."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of lines over the same x values; None leaves a gap.

    Args:
        line: the height of a dashed line.
        high: the least upper end of the scale; with `low` the scale is fixed to these two.
        show: how numbers are written: fixed, percent or usd; None: with three significant digits.
        more: the title of the folded group that holds the chart; None: always visible.
        models: whether the series are models, coloured as in the Pareto picture.
        alarms: (place, series): a tick at the bottom, in the colour of the series.
    """

    title: str
    at: Sequence[float]
    series: Mapping[str, Sequence[float | None]]
    line: float | None = None
    low: float | None = None
    high: float | None = None
    show: str | None = None
    more: str | None = None
    models: bool = False
    alarms: Sequence[tuple[float, str]] = ()

    def drawn(self) -> dict[str, object]:
        """Return the chart as `figures.js` takes it."""
        return {
            "title": self.title,
            "at": self.at,
            "series": self.series,
            "line": self.line,
            "low": self.low,
            "high": self.high,
            "show": self.show,
            "more": self.more,
            "models": self.models,
            "alarms": [{"at": at, "of": name} for at, name in self.alarms],
        }


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its title; columns in `numbers` are set as numbers."""

    title: str
    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: Sequence[int] = (0,)

    def drawn(self) -> dict[str, object]:
        """Return the table as `report.js` takes it."""
        heads = [
            {"label": label, "number": at not in self.words} for at, label in enumerate(self.heads)
        ]
        return {"title": self.title, "caption": self.caption, "heads": heads, "rows": self.rows}


@dataclass(frozen=True, slots=True)
class Report:
    """The content of a report.

    Args:
        answer: the result, in a sentence or two.
        others: further findings, a sentence each.
        notes: the requests, times and version covered, and what a reader has to know; at the end.
        over: the name of the charts' x axis.
        names: series in the order of their colours; others are coloured within their chart.
        marks: (place, text) of the events that explain the charts.
        pareto: the data that `pareto.js` draws under the answer; its `facts` are name, value,
            explanation.
        lists: lists of sentences, by title.
    """

    title: str
    answer: str
    others: Sequence[str] = ()
    notes: Sequence[str] = ()
    over: str = "request"
    names: Sequence[str] = ()
    marks: Sequence[tuple[float, str]] = ()
    charts: Sequence[Chart] = ()
    pareto: Mapping[str, object] | None = None
    facts: Sequence[tuple[str, str, str]] = ()
    tables: Sequence[Table] = ()
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict)


def marked(marks: Sequence[tuple[float, str]]) -> list[dict[str, object]]:
    """Return events as `figures.js` takes them."""
    return [{"at": at, "text": text} for at, text in marks]


def page(report: Report) -> str:
    """Return a report as HTML. Names can't become markup: they are escaped, or inserted as text by
    the script. The page's policy runs no other script and loads nothing.
    """
    data = {
        "over": report.over,
        "names": report.names,
        "marks": marked(report.marks),
        "charts": [one.drawn() for one in report.charts],
        "pareto": report.pareto,
        "facts": report.facts,
        "tables": [one.drawn() for one in report.tables if one.rows],
        "lists": {title: items for title, items in report.lists.items() if items},
    }
    # Inside a script element `</script>` would end it, also within a JSON string.
    packed = orjson.dumps(data, option=orjson.OPT_SERIALIZE_NUMPY).decode().replace("<", r"\u003c")
    program = _program()
    # The policy names the script by its hash: a script smuggled in by a model's name would not run.
    digest = b64encode(sha256(program.encode()).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'"
    items = "".join(f"<li>{escape(text)}</li>" for text in report.others)
    others = f'<ul class="others">{items}</ul>\n' if items else ""
    notes = "".join(f"<p>{escape(text)}</p>\n" for text in report.notes)
    about = f"<footer>\n<h2>How it was made</h2>\n{notes}</footer>\n" if notes else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(report.title)}</title>
<style>
{_asset("style.css")}
</style>
</head>
<body>
<main>
<h1>{escape(report.title)}</h1>
<p class="answer">{_figures(report.answer)}</p>
{others}<noscript><p>Charts and tables need JavaScript.</p></noscript>
</main>
{about}<script type="application/json" id="report">{packed}</script>
<script type="module">{program}</script>
</body>
</html>
"""


def _program() -> str:
    """Return the dashboard's modules as one script: they are in order and share no names."""
    parts = "\n".join(map(_asset, MODULES))
    return re.sub(r"^(import .*\n|export )", "", parts, flags=re.MULTILINE)


def _figures(text: str) -> str:
    """Return an answer as HTML, with dollars and percentages in bold."""
    return re.sub(r"\$[\d,]*\.?\d+|\d[\d,.]*[%×]", r"<b>\g<0></b>", escape(text))


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")
