"""The paper's claims that a number can show, each with the numbers that came out here."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from benchmarks.report import Interval
from paper.compare import Row

Found = Mapping[str, Mapping[str, Interval]]
PROFILES = ("paper", "live")


def claims(results: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return a table's lines: a claim, and what the paper profile and the live profile show; only
    of experiments that ran.
    """
    found = {f"{name} {row.name}": row.found for name, rows in results.items() for row in rows}
    lines = ["| the paper claims | paper profile | live profile |", "| --- | --- | --- |"]
    for needed, claim, show in _CLAIMS:
        if all(any(key.startswith(f"{name} ") for key in found) for name in needed):
            lines.append(f"| {claim} | {show(found, 'paper')} | {show(found, 'live')} |")
    return lines


def _of(found: Found, policy: str, *, start: str, part: str) -> list[float]:
    """Return a policy's means of all rows that start and contain so, baselines left out."""
    baselines = ("naive", "forgetting", "recalibrated", "cold")
    return [
        values[policy].mean
        for key, values in found.items()
        if key.startswith(start)
        and part in key
        and policy in values
        and not any(name in key for name in baselines)
    ]


def _most(start: str, part: str, *, unit: str = "") -> Callable[[Found, str], str]:
    return lambda found, policy: (
        f"at most {max(_of(found, policy, start=start, part=part)):.3f}{unit}"
    )


def _range(start: str, part: str, *, form: str = ".3f") -> Callable[[Found, str], str]:
    def show(found: Found, policy: str) -> str:
        values = _of(found, policy, start=start, part=part)
        return f"{min(values):{form}} to {max(values):{form}}"

    return show


def _dial(found: Found, policy: str) -> str:
    values = _of(found, policy, start="E1 $", part=" reward")
    steps = sum(later > earlier for earlier, later in itertools.pairwise(values))
    return (
        f"reward rises in {steps} of {len(values) - 1} steps, {values[0]:.3f} to {values[-1]:.3f}"
    )


def _adopted(kind: str) -> Callable[[Found, str], str]:
    def show(found: Found, policy: str) -> str:
        shares = _of(found, policy, start=f"E4 {kind} ", part="seeds adopted")
        return f"{sum(shares) / len(shares):.0f} % of seeds and budgets"

    return show


def _given_back(found: Found, policy: str) -> str:
    def at(phase: int) -> float:
        return found[f"E2 T reward P{phase}"][policy].mean

    return f"T: {at(1):.3f}, {at(2):.3f} at the low price, {at(3):.3f} after"


def _light(found: Found, policy: str) -> str:
    values = [found[f"G {level} P3 of 608 ÷P1 %"][policy].mean for level in ("0.75", "0.8", "0.85")]
    return f"{min(values):.1f} % of the reward before, at the least"


_CLAIMS: tuple[tuple[tuple[str, ...], str, Callable[[Found, str], str]], ...] = (
    (("E1",), "cost ≤ 1.004 B in a constant world", _most("E1 ", "cost÷B", unit=" B")),
    (("E2", "E3"), "cost ≤ about 1.04 B in every phase (E2)", _most("E2 ", "cost÷B", unit=" B")),
    (("E3",), "the same while a model fails (E3)", _most("E3 ", "cost÷B", unit=" B")),
    (
        ("E4 good dear",),
        "the same while a dear model joins (E4, T and M; 1.31 B in the paper's own T)",
        lambda found, policy: " and ".join(
            f"{found[f'E4 good dear {name} cost e-4'][policy].mean / budget:.2f} B"
            for name, budget in (("T", 3.0), ("M", 6.62))
        ),
    ),
    (("E2",), "a freed budget is used, then given back, unaided", _given_back),
    (
        ("E1",),
        "λ → 0 where the budget does not bind: median λ at the two loosest",
        lambda found, policy: ", ".join(
            f"{found[f'E1 ${b} median λ'][policy].mean:.3g}" for b in ("5.3e-03", "1.5e-02")
        ),
    ),
    (("E1",), "the budget dials between the fixed models", _dial),
    (("E4 good cheap",), "a good, cheap newcomer is adopted in every seed", _adopted("good cheap")),
    (("E4 bad cheap",), "a bad one in none", _adopted("bad cheap")),
    (("E3",), "a regression is seen from rewards alone: P3 ÷ P1", _range("E3 ", "P3÷P1")),
    (("G",), "falls of up to 20 % are recovered within 608 requests", _light),
    (
        ("F",),
        "about 22,000 cycles a second on one core (d 26)",
        lambda found, policy: (
            f"{found['F d 26 router cycles/s'][policy].mean:,.0f} on this machine"
        ),
    ),
)
