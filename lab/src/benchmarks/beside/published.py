"""Published rows of CodeRouterBench beside those that are played here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from benchmarks.beside.curve import reward_at
from benchmarks.beside.entrants import OURS
from benchmarks.beside.field import Field
from benchmarks.beside.result import Seeds

Published = Sequence[tuple[str, float, float | None]]
PUBLISHED: Mapping[str, Published] = {
    "code": (
        ("oracle", 57.00, None),
        ("ACRouter", 49.98, 3.79),
        ("best model per dimension", 47.50, None),
        ("kNN", 47.18, None),
        ("LinUCB", 46.84, 4.38),
        ("LinTS", 46.48, 4.49),
        ("always claude-opus-4-6", 43.83, None),
        ("random", 38.75, None),
    ),
    "agentic": (
        ("ACRouter", 73.30, None),
        ("always claude-opus-4-6", 63.64, None),
        ("LinUCB", 55.11, None),
    ),
}
"""Published rows by field: mean score in percent, and score per dollar of all tasks. Those of
`code` were warm-started on other tasks."""


def beside(name: str, played: Mapping[str, Seeds], field: Field, warm: Seeds | None = None) -> str:
    """Return published and played routers as Markdown: mean score, score per dollar, regret. What
    is published above `live` is said first.

    Args:
        played: the online routers' points, by name.
        warm: those of `live` with priors of half of the tasks, on the other half.
    """
    tasks, rows = len(field) - field.before, PUBLISHED[name]
    above = "; ".join(_above(rows, played[OURS], warm, tasks)) or "none"
    head = [
        f"Published above `live`: {above}.\n",
        "| router | score, % | score per dollar | $ a request | regret |",
        "| --- | --- | --- | --- | --- |",
    ]
    theirs = (
        f"| {router} (published) | {score:.2f} | "
        + (f"{per:.2f} | {score / per / tasks:.5f} |  |" if per else " |  |  |")
        for router, score, per in rows
    )
    return "\n".join([*head, *theirs, *_played(played, tasks)])


def _above(rows: Published, ours: Seeds, warm: Seeds | None, tasks: int) -> Iterator[str]:
    """Yield what is published above `live`: for the same dollars where these are known, else above
    its best."""
    curve = _means(ours)
    for router, score, per in rows:
        if router == "oracle":
            continue
        usd = max(usd for usd, _ in curve) if per is None else score / per / tasks
        us = _percent(curve, usd)
        if score > us:
            same = "at its best" if per is None else f"for the same ${usd:.5f} a request"
            known = (
                f"; with priors, on the last half of the tasks: {_percent(_means(warm), usd):.2f} %"
                if warm
                else ""
            )
            yield f"{router}, {score:.2f} % (`live` {same}: {us:.2f} %{known})"


def _percent(curve: Sequence[tuple[float, float]], usd: float) -> float:
    return 100.0 * float(reward_at(curve, np.array([usd]))[0])


def _played(played: Mapping[str, Seeds], tasks: int) -> Iterator[str]:
    for router, seeds in played.items():
        points = list(zip(_means(seeds), np.mean(_regrets(seeds), axis=0), strict=True))
        for (usd, reward), regret in points if router == OURS else points[:1]:
            told = f"{router}, ${usd:.4f}" if router == OURS else f"{router}, dollars for nothing"
            score = 100.0 * float(reward)
            per = score / usd / tasks
            yield f"| {told} | {score:.2f} | {per:.2f} | {usd:.5f} | {regret:.0f} |"


def _means(seeds: Seeds) -> list[tuple[float, float]]:
    table = np.array([[point.at(late=False) for point in points] for points in seeds])
    return [(float(usd), float(reward)) for usd, reward in table.mean(0)]


def _regrets(seeds: Seeds) -> list[list[float]]:
    return [[point.regret for point in points] for points in seeds]
