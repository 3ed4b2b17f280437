"""The page `lab/docs/paper.md`, made of what was run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.report import signed
from benchmarks.twins import shown
from paper.claims import claims
from paper.compare import Row
from paper.data import missing
from paper.experiments import EXPERIMENTS
from paper.reasons import NOT_RUN, NOTES, reason_of
from paper.table import markdown, tallies, tally

PAPER_SEEDS = 20
HOW = """
```sh
uv run python -m paper all                 # 20 seeds; goes on where a run was stopped
uv run python -m paper E2 C --seeds 5      # some experiments, fewer seeds
uv run python -m paper all --quick         # 2 seeds, and the encoder of a worker
# With more data; writes this page and its figures:
PB_DATA=FOLDER uv run python -m paper all --docs
```

The prompts, rewards, costs and priors of three models come with the `paretobandit` wheel. `PB_DATA`
names a clone of the paper's public repository, or a flat folder with some of its files; it adds:
"""
READ = """
- **paper prints**: the number in the paper with its 95 % interval over 20 seeds.
- **reference library**: `paretobandit` 0.1.1, run here and now on the same prompts with the same
  seeds; "same": the paper profile's number to nine digits.
- **paper profile**, **live profile**: the engine that a worker runs, one request after the other,
  bill and reward at once. Means (D: medians) with 95 % bootstrap intervals over seeds; numbers
  without a policy stand under "paper profile". `live` is what ships by default; this protocol has
  no delays, no lost bills and nothing in flight: where the paper's policy is at its best.
- **agrees**: the paper's interval and ours overlap; where it prints none, our interval or rounding
  reaches its number.
- **worse**: `live` earns less, loses more or exceeds the budget further than `paper`, intervals
  apart.
- Budgets T, M, L, U: $3.0e-4, $6.62e-4, $1.87e-3 a request, none. P1–P3: phases of 608 requests.
  naive, forgetting, recalibrated: the paper's baselines without a pacer. cold: without priors.
"""


def page(
    results: Mapping[str, Sequence[Row]],
    figures: Mapping[str, Sequence[str]],
    *,
    seeds: Mapping[str, int],
    encoder: str,
) -> str:
    """Return the page; `figures`: file names per experiment; `seeds`: how many ran of each."""
    every = [row for rows in results.values() for row in rows]
    told = tally(every)
    reached = f"{told['library_agree']} of {told['library_compared']}"
    lines = [
        "# The paper's experiments, run again",
        "",
        f"**{told['agree']} of {told['compared']} numbers that the paper prints agree with the "
        "paper profile; the reference "
        f"library, run here, agrees with {reached}.** Encoder `{encoder}`.",
        *_fewer(seeds),
        HOW,
        *_added(),
        READ,
        *tallies(results, seeds),
        "",
        "## Claims",
        "",
        *claims(results),
        "",
        *_outside(every),
        *_worse(every),
        "## Not run, and why",
        "",
        *(f"- {line}" for line in NOT_RUN),
    ]
    for name, rows in results.items():
        lines += ["", f"## {name}: {EXPERIMENTS[name].title}", ""]
        if not rows:
            lines.append(
                "Not run: "
                + (
                    "; ".join(line for line in missing() if line.startswith(f"{name}:"))
                    or "no seed finished"
                )
            )
            continue
        lines += [f"{note}\n" for note in NOTES.get(name, ())]
        lines += [
            f"{shown(file, f'{name}, drawn as in the paper')}\n" for file in figures.get(name, ())
        ]
        lines += markdown(rows)
    return signed("\n".join(lines) + "\n")


def _fewer(seeds: Mapping[str, int]) -> list[str]:
    """Return what fewer seeds than the paper's mean for the comparison."""
    fewer = [
        name for name, count in seeds.items() if count < PAPER_SEEDS and not EXPERIMENTS[name].once
    ]
    if not fewer:
        return []
    return [
        "",
        f"The paper has {PAPER_SEEDS} seeds; of these ran here: "
        f"{', '.join(f'{name} {seeds[name]}' for name in fewer)}. "
        "Intervals over fewer seeds are wider or, over very few, too narrow: such rows say little.",
    ]


def _added() -> list[str]:
    from paper.data import ADDS

    return [
        f"- {name}: {what}: {', '.join(f'`{file}`' for file in files)}"
        for name, (what, files) in ADDS.items()
    ]


def _outside(rows: Sequence[Row]) -> list[str]:
    """Return what does not agree, by reason."""
    by_reason: dict[str, list[str]] = {}
    for row in rows:
        if row.agrees() is False:
            by_reason.setdefault(reason_of(row), []).append(f"{row.experiment} {row.name}")
    if not by_reason:
        return []
    return [
        "## What does not agree, and why",
        "",
        *(f"- {'; '.join(names)}: {reason}" for reason, names in by_reason.items()),
        "",
    ]


def _worse(rows: Sequence[Row]) -> list[str]:
    """Return where live is worse than paper."""
    worse = [f"{row.experiment} {row.name}" for row in rows if row.worse]
    if not worse:
        return []
    return ["## Where `live` is worse than `paper`", "", "; ".join(worse) + ".", ""]
