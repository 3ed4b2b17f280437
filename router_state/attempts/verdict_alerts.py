"""Raise the alerts of a verifier: that it is worthless, and that it has changed."""

from __future__ import annotations

from router_state.attempts.verdict_pairs import Pairs
from router_state.changes import Journal

FALSE_ALERTS = 0.01
"""Probability that a router ever raises a false alert of one kind."""


def raise_alerts(journal: Journal, verifier: str, pairs: Pairs, verifiers: int, now: float) -> None:
    """Raise the alerts that are due on a verifier after another pair.

    Args:
        verifiers: number of the router's verifiers, which share the probability of a false alert.
    """
    alpha = FALSE_ALERTS / max(verifiers, 1)
    change = pairs.parted(alpha)
    if change is not None:
        before, after = change.before, change.now
        evidence = {
            "verifier": verifier,
            # The separation is about twice what a pair says.
            "separation_before": 2.0 * before.value,
            "separation_now": 2.0 * after.value,
            "low": 2.0 * after.low,
            "high": 2.0 * after.high,
        }
        journal.alert(
            "verifier_parted",
            2.0 * abs(after.value - before.value),
            evidence,
            now=now,
            direction="up" if after.value > before.value else "down",
        )
    found = pairs.worthless(alpha)
    if found is not None:
        evidence = {
            "verifier": verifier,
            "separation": found.value,
            "low": found.low,
            "high": found.high,
            "pairs": pairs.count,
            "verdicts": pairs.verdicts,
            "fees_usd": pairs.fees_usd,
            "further_usd": pairs.further_usd,
            "usd_per_day": pairs.usd_per_day(now),
        }
        size = pairs.usd_per_day(now)
        journal.alert("verifier_worthless", size, evidence, now=now, direction="down")
