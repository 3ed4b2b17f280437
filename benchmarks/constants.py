"""Write the table of constants in `docs/explanation/algorithm.md`, with the values of the code:
`python -m benchmarks.constants`.

`ROWS` is the one place that names where each constant stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[1] / "docs/explanation/algorithm.md"
BEGIN, END = "<!-- constants: begin -->", "<!-- constants: end -->"
"""Lines between which the table stands."""


class Row(NamedTuple):
    """One constant: what it is, its unit, and where it stands, as `module:NAME` or
    `module:NAME.attribute`."""

    what: str
    unit: str
    place: str


CONFIG = "router_state.config"
LIVE = "router_state.policies.live"
PACING = "router_state.kernel.pacing.window"
COUNTS = "router_state.kernel.learning.counts"
GUESS = "router_state.learning.guess"
SAMPLE = "router_state.kernel.choosing.sample"
DEBT = "router_state.kernel.pacing.debt"
TRAFFIC = "router_state.periods.hourly_traffic"
HEALTH = "router_state.outages.health"
SPEED = "router_state.latency.speed"
WAITS = "router_state.latency.pricing"
ASKED = "router_state.asking.label_traffic"

GUESSES = {
    "rewards": f"{GUESS}:REWARDS",
    "ln(bill ÷ list price)": f"{GUESS}:COSTS",
    "ln(seconds)": f"{GUESS}:LATENCIES",
}
"""First guesses, by what they are of."""

ROWS: dict[str, tuple[Row, ...]] = {
    "Memory": (
        Row("γ of `live`, per step of the clock", "", f"{CONFIG}:LIVE.gamma"),
        Row("most observations that an estimate rests on", "observations", f"{COUNTS}:MEMORY"),
        Row("what a first guess counts for", "observations", f"{COUNTS}:GUESSED"),
        Row("bills that outweigh a declared mean", "bills", f"{COUNTS}:BELIEVED"),
        Row(
            "growth of the evidence between two estimates of ridges and noise",
            "share",
            "router_state.kernel.learning.shared_prior:GROWTH",
        ),
        Row(
            "most steps that one gap decays by",
            "steps",
            "router_state.kernel.learning.regression:MAX_DECAY_STEPS",
        ),
    ),
    "First guesses": tuple(
        Row(f"{name}: {words}", unit, f"{place}.{attribute}")
        for name, place in GUESSES.items()
        for attribute, words, unit in (
            ("mean", "mean of the shared bias", ""),
            ("deviation", "deviation of the shared bias", ""),
            ("noise", "variance σ² of an observation", ""),
            ("features", "σ² ÷ variance that all features of a model explain", "ratio"),
            ("bias", "σ² ÷ variance of the models' biases", "ratio"),
            ("absolute", "whether these two are of the first σ², not of the estimated", ""),
        )
    ),
    "The draw": (
        Row("deviations of a model's level", "deviations", f"{SAMPLE}:LEVEL"),
        Row("deviations of the rest", "deviations", f"{SAMPLE}:FEATURES"),
        Row("contexts that the present traffic's mean is about", "contexts", f"{SAMPLE}:LATELY"),
        Row("decisions that a measure of levels serves", "decisions", f"{SAMPLE}:EVERY"),
        Row(
            "least propensity that is logged",
            "probability",
            "router_state.kernel.choosing.propensity:LEAST_PROPENSITY",
        ),
        Row(
            "reward that trying may cost per request",
            "reward",
            "router_state.newcomers:LOSS",
        ),
    ),
    "Costs": (
        Row(
            "most of a bill's expectation that it counts for in a mean",
            "times",
            "router_state.kernel.costs.cost_model:MOST_TAUGHT",
        ),
        Row(
            "largest variance of a bill's logarithm",
            "",
            "router_state.kernel.costs.predictive:MOST_LOG_VARIANCE",
        ),
        Row(
            "“in one of ten cases”: deviations that nine in ten stay below",
            "deviations",
            "router_state.kernel.costs.predictive:Z90",
        ),
        Row(
            "most bills that a prior counts for by default",
            "bills",
            "router_state.costs.believed:MOST_BILLS",
        ),
        Row(
            "probability that a warm prefix is billed as cached",
            "probability",
            "router_state.sessions.caching:FIRST_HIT",
        ),
        Row("bills that this counts for", "bills", "router_state.sessions.caching:HITS"),
    ),
    "Pacing": (
        Row(
            "last contexts that λ_t is solved over",
            "contexts",
            f"{PACING}:WINDOW",
        ),
        Row("decisions between two solutions", "decisions", f"{SAMPLE}:EVERY"),
        Row(
            "“within 10 %”: share of λ_t within which a request has its own price",
            "share",
            f"{PACING}:PRICE_SPREAD",
        ),
        Row("requests over which a debt is paid back", "requests", f"{DEBT}:HORIZON"),
        Row("most that may be saved up", "budgets", f"{DEBT}:SAVED"),
        Row("most of one call in one of ten cases", "budgets", f"{LIVE}:MOST_RISKED"),
        Row(
            "most of all calls in flight beyond their expectation, in one of ten cases",
            "budgets",
            f"{LIVE}:MOST_RISKED",
        ),
        Row(
            "the same for each of very many calls in flight",
            "budgets",
            f"{LIVE}:TOLERATED",
        ),
        Row(
            "most of a call whose only use is to learn, with the debt",
            "budgets",
            "router_state.pacing.dollar_dual:MOST_TRIED",
        ),
        Row(
            "“surely”: probability that a model is within the budget, below which it is not",
            "probability",
            "router_state.pacing.dollar_dual:SURE",
        ),
        Row(
            "λ_t where no price meets the budget",
            "",
            "router_state.pacing.dollar_dual:UNREACHABLE",
        ),
    ),
    "Change": (
        Row(
            "deviations at which a residual is cut",
            "deviations",
            "router_state.kernel.learning.detector:CUT_AT",
        ),
        Row(
            "log-likelihood ratio of an alarm",
            "",
            "router_state.kernel.learning.detector:LIMIT",
        ),
        Row(
            "log-likelihood ratio that ends a suspicion",
            "",
            "router_state.kernel.learning.suspicion:RETURNED",
        ),
        Row(
            "rewards after which a shift is permanent",
            "rewards",
            "router_state.kernel.learning.suspicion:ACCEPTED_AFTER",
        ),
    ),
    "Periods and floors": (
        Row("hours over which the traffic of a day is forgotten", "hours", f"{TRAFFIC}:DAY_HOURS"),
        Row("and that of a week", "hours", f"{TRAFFIC}:WEEK_HOURS"),
        Row("hours ahead that the day's level is right for", "hours", f"{TRAFFIC}:LEVEL_AHEAD"),
        Row("share of an hour of the week that a week leaves", "share", f"{TRAFFIC}:HOUR_KEPT"),
        Row(
            "share of a period that counts as watched before the first request",
            "share",
            f"{TRAFFIC}:FIRST",
        ),
        Row(
            "deviations of the bills in flight that are reserved",
            "deviations",
            "router_state.periods.ledger:RESERVED",
        ),
        Row(
            "requests over which a floor holds on average",
            "requests",
            "router_state.periods.floor:FLOOR_REQUESTS",
        ),
        Row(
            "most that the target differs from the floor",
            "reward",
            "router_state.periods.floor:MOST_CORRECTED",
        ),
    ),
    "Time": (
        Row(
            "share of calls that may be slower than `p95_ms`",
            "share",
            "router_state.latency.goal:TAIL",
        ),
        Row(
            "calls with a time from which a target has an effect",
            "calls",
            "router_state.latency.timing:ENOUGH_CALLS",
        ),
        Row("most reward that a target may cost", "rewards", f"{WAITS}:MOST_PER_TARGET"),
        Row("and a second, where it has a price", "rewards", f"{WAITS}:MOST_PER_SECOND"),
        Row("most that calls may be behind", "targets", f"{WAITS}:MOST_DEBT"),
        Row(
            "decisions after which an unheard model counts as fast",
            "decisions",
            f"{SPEED}:TRIAL_EVERY",
        ),
        Row("and the first time", "decisions", f"{SPEED}:FIRST_TRIAL"),
    ),
    "Outages": (
        Row("failures in a row after which a model is down", "calls", f"{HEALTH}:IN_A_ROW"),
        Row("first trial of a model that is down", "seconds", f"{HEALTH}:FIRST_WAIT"),
        Row("most between two trials", "seconds", f"{HEALTH}:MOST_WAIT"),
        Row("decisions between two trials", "decisions", f"{HEALTH}:TRIAL_SHARE"),
        Row("factor of the rate at a refusal", "factor", f"{HEALTH}:RATE_CUT"),
        Row("seconds in which the rate grows by e", "seconds", f"{HEALTH}:RATE_GROWTH"),
    ),
    "Labels": (
        Row(
            "labels that are divided evenly among models",
            "share",
            "router_state.asking.asking:FLOOR",
        ),
        Row("parts of a period that are counted apart", "parts", f"{ASKED}:PERIOD_PARTS"),
        Row("weight of the latest period", "share", f"{ASKED}:LATEST_WEIGHT"),
        Row(
            "usual requests after which half of a surprise is believed",
            "share",
            f"{ASKED}:SURE_AFTER",
        ),
        Row(
            "deviations beyond which a surprise is believed",
            "deviations",
            f"{ASKED}:SURE_DEVIATIONS",
        ),
        Row("usual requests that may come at any time", "share", f"{ASKED}:EVEN"),
        Row("the first period's labels that are spread over time", "share", f"{ASKED}:KEPT_BACK"),
    ),
}
"""The table, by its parts."""


def value_of(place: str) -> object:
    """Return the value of a constant.

    Raises:
        LookupError: nothing stands there.
    """
    module, _, path = place.partition(":")
    try:
        return reduce(
            lambda found, name: attrgetter(name)(found), path.split("."), import_module(module)
        )
    except (ImportError, AttributeError) as error:
        raise LookupError(f"no constant {place}: point `ROWS` in {__file__} to it") from error


def table() -> str:
    """Return the lines between the marks."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    for part, rows in ROWS.items():
        yield f"\n| {part} | value | unit | constant |"
        yield "| --- | --- | --- | --- |"
        for what, unit, place in rows:
            name = place.rpartition(":")[2]
            where = _file(place.partition(":")[0])
            yield f"| {what} | {_told(value_of(place))} | {unit} | `{name}` in `{where}` |"


def _file(module: str) -> str:
    """Return where a module's text stands, Cython's too."""
    path = module.replace(".", "/")
    return f"{path}.pyx" if (PAGE.parents[2] / f"{path}.pyx").exists() else f"{path}.py"


def _told(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    assert isinstance(value, int | float), value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def written(page: str) -> str:
    """Return the page with the table as the code has it."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table()}\n\n{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
