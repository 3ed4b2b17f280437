"""Write an alert as a sentence: what happened to which model, by how much, on what evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from drawing.numbers import seconds, times, usd
from schemas import AlertRaised


def sentence(alert: AlertRaised) -> str:
    """Return an alert as a sentence. An unknown kind, of a newer worker, gives its name and
    numbers."""
    evidence = alert.evidence
    match alert.kind.value:
        case "budget_unreachable":
            cheapest = _number(evidence.get("cheapest_usd"))
            costs = "" if cheapest is None else f" ({usd(cheapest)} a request)"
            return (
                f"even the cheapest model, {alert.model}, costs {times(alert.size)} the "
                f"budget{costs}"
            )
        case "newcomer_unaffordable":
            needed = _number(evidence.get("needed_budget_usd_per_request"))
            takes = (
                ""
                if needed is None
                else f"; with {usd(needed)} a request, 20 of 1,000 requests could go to it"
            )
            return (
                f"{alert.model} can't be afforded: a call costs {times(alert.size)} the "
                f"budget{takes}"
            )
        case kind if kind in WORDS_OF:
            return WORDS_OF[kind](alert)
        # A newer worker may raise kinds that this program has never heard of: a name and its
        # numbers say more than nothing.
        case kind:
            known = ", ".join(
                f"{name} {value:.3g}"
                for name, value in evidence.items()
                if _number(value) is not None
            )
            whom = f"{alert.model}: " if alert.model else ""
            return f"{whom}{kind.replace('_', ' ')}" + (f" ({known})" if known else "")


def _ramped(alert: AlertRaised) -> str:
    evidence = alert.evidence
    before, low, high = (
        _number(evidence.get(name))
        for name in ("share_before", "difference_low", "difference_high")
    )
    shown = "" if low is None or high is None else f": reward {low:+.3f} to {high:+.3f} to it"
    of = "" if before is None else f" of {100 * before:.3g} %"
    if alert.kind.value == "ramped":
        return f"{100 * alert.size:.3g} %{of and ' instead' + of} are routed from now on{shown}"
    return f"the router is worse than the incumbent, {100 * alert.size:.3g} % are routed{shown}"


def _of_money(alert: AlertRaised) -> str:
    if alert.kind.value == "cap_reached":
        return f"a cap in dollars is used up{_of(alert.evidence)}"
    if alert.kind.value == "budget_spent":
        return f"nothing is left of the period's budget{_of_period(alert.evidence)}"
    if alert.kind.value == "session_budget":
        return (
            f"a session has spent {100 * alert.size:.0f} % of its budget{_of_run(alert.evidence)}"
        )
    return _contradiction(alert)


def _of_run(evidence: dict[str, object]) -> str:
    budget = _number(evidence.get("budget_usd"))
    return "" if budget is None else f" ({usd(budget)}): {evidence.get('session_id')}"


def _of_period(evidence: dict[str, object]) -> str:
    limit = _number(evidence.get("usd"))
    if limit is None:
        return ""
    then = {"cheapest": "the cheapest model answers", "refuse": "requests are refused"}
    what = then.get(str(evidence.get("when_spent")), "requests go on as before")
    return f" ({usd(limit)} per {evidence.get('period')}): {what}"


def _contradiction(alert: AlertRaised) -> str:
    evidence = alert.evidence
    needed = _number(evidence.get("needed_budget_usd"))
    per_request = _number(evidence.get("needed_budget_usd_per_request"))
    if per_request is None:
        takes = "no budget would meet it"
    elif needed is None:
        takes = f"{usd(per_request)} a request would meet it"
    else:
        takes = f"{usd(needed)} per {evidence.get('period')} would meet it"
    return f"the budget misses the floor of rewards by {alert.size:.3f}; {takes}"


def _answers(alert: AlertRaised) -> str:
    return {
        "model_down": f"{alert.model} is down: {alert.size:.0f} calls in a row were not answered",
        "model_back": f"{alert.model} answers again, after {alert.size:.0f} s",
        "all_models_down": "no model answers: requests still go to the best one",
    }[alert.kind.value]


def _ends(alert: AlertRaised) -> str:
    """Tell of a model that retires, is gone, or is answered for."""
    model, evidence = alert.model, alert.evidence
    then = f"; try its successor: {advice}" if (advice := evidence.get("advice")) else ""
    if alert.kind.value == "model_gone":
        return f"{model} is gone, and not called until it is declared again{then}"
    if alert.kind.value == "model_redirected":
        name = evidence.get("answered_by")
        return (
            f"{name} answers for {model}: bills count, labels count for no model{then}; or declare "
            f"that {model} answers_as {name}"
        )
    day = str(evidence.get("retires_at"))[:10]
    return f"{model} retires on {day}, in {alert.size:.0f} days{then}"


def _late(alert: AlertRaised) -> str:
    evidence = alert.evidence
    if alert.kind.value == "latency_unknown":
        return f"{alert.size:.0f} answers in a row had no time: the target has no effect on them"
    limit = _number(evidence.get("p95_ms")) or _number(evidence.get("mean_ms"))
    reachable = _number(evidence.get("reachable_ms"))
    needed = _number(evidence.get("needed_usd_per_request"))
    missed = "" if limit is None else f" of {seconds(limit)}"
    if needed is not None:
        takes = f"{usd(needed)} a request would meet it"
    else:
        takes = "" if reachable is None else f"the fastest models keep {seconds(reachable)}"
    return f"calls miss the target{missed} by a factor of {alert.size:.2g}; {takes}"


def _behind(alert: AlertRaised) -> str:
    waiting = _number(alert.evidence.get("waiting"))
    what = "bills and labels" if waiting is None else f"{waiting:.0f} bills and labels"
    return f"decides without {what}, which have waited for up to {alert.size:.0f} s"


def _parted(alert: AlertRaised) -> str:
    source, origin = alert.evidence.get("source"), alert.evidence.get("from")
    where = {"up": "above", "down": "below"}[alert.direction]
    on = "" if alert.model is None else f" on {alert.model}"
    return (
        f"the labels of {source} are {where} {origin} by {alert.size:.2f}{on}"
        f"{_seen(alert.evidence, 'pairs')}"
    )


def _kin(alert: AlertRaised) -> str:
    family = alert.evidence.get("family")
    if alert.kind.value == "family_refused":
        return f"family {family} does not take the router: {alert.evidence.get('why')}"
    slope = _number(alert.evidence.get("slope"))
    how = "" if slope is None else f" (slope {slope:.2f} instead of 1)"
    return f"family {family} leaves the router out: its labels mean something else{how}"


def _verifier(alert: AlertRaised) -> str:
    evidence, verifier = alert.evidence, alert.evidence.get("verifier")
    if alert.kind.value == "verifier_worthless":
        return (
            f"verdicts of {verifier} tell little or nothing, and cost {usd(alert.size)} a day "
            f"with the calls that follow them{_seen(evidence, 'pairs')}"
        )
    moved = {"up": "more", "down": "less"}[alert.direction]
    before, now = (_number(evidence.get(f"separation_{name}")) or 0.0 for name in ("before", "now"))
    return (
        f"verdicts of {verifier} tell {moved} than before: labels of answers that pass are "
        f"{now:.2f} above those of others, and were {before:.2f}"
    )


def _drift(alert: AlertRaised) -> str:
    return f"{alert.model}: {_moved(alert)}"


def _moved(alert: AlertRaised) -> str:
    if alert.kind.value == "recovered":
        return f"as good as before again{_seen(alert.evidence, 'rewards')}"
    moved = {"up": "rose", "down": "fell"}[alert.direction]
    if alert.signal == "reward":
        return f"quality {moved} by {abs(alert.size):.2f}{_seen(alert.evidence, 'rewards')}"
    factor = _number(alert.evidence.get("factor"))
    if alert.signal == "latency":
        how = "" if factor is None else f", {times(factor)}"
        return f"time of a call {moved}{how}{_seen(alert.evidence, 'calls')}"
    what = f"cost {moved}" if factor is None else f"a call costs {times(factor)} what it did"
    return f"{what}{_seen(alert.evidence, 'bills')}"


def _seen(evidence: dict[str, object], what: str) -> str:
    count = _number(evidence.get(what))
    return "" if count is None else f", seen in {count:.0f} {what}"


def _of(evidence: dict[str, object]) -> str:
    limit, seconds = _number(evidence.get("cap_usd")), _number(evidence.get("seconds"))
    if limit is None:
        return ""
    period = {3600.0: " an hour", 86_400.0: " a day"}.get(seconds or 0.0, "")
    return f" ({usd(limit)}{period})"


def _number(value: object) -> float | None:
    # Evidence is free-form JSON, and `true` is an int in Python.
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


WORDS_OF: Mapping[str, Callable[[AlertRaised], str]] = {
    "drift": _drift,
    "recovered": _drift,
    "cap_reached": _of_money,
    "budget_spent": _of_money,
    "session_budget": _of_money,
    "goals_contradict": _of_money,
    "source_parted": _parted,
    "family_parted": _kin,
    "family_refused": _kin,
    "verifier_worthless": _verifier,
    "verifier_parted": _verifier,
    "model_down": _answers,
    "model_back": _answers,
    "all_models_down": _answers,
    "model_retires": _ends,
    "model_gone": _ends,
    "model_redirected": _ends,
    "latency_unreachable": _late,
    "latency_unknown": _late,
    "feedback_behind": _behind,
    "ramped": _ramped,
    "fell_back": _ramped,
}
"""Sentences of an alert, by its kind."""
