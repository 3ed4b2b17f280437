"""Prove what a router saved compared with its incumbent: the figures, and a sentence about them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from drawing.numbers import usd
from ground.json_values import Document
from router_state.incumbents.anytime import MISSED_AT_ANY_LOOK
from studies.proof.compared_requests import Compared
from studies.proof.difference import Difference, Shown


@dataclass(slots=True)
class Saved:
    """The differences that a part of the requests shows.

    Attributes:
        cost, reward: differences, router − incumbent, of dollars and of rewards.
        routed: requests that the router answered.
    """

    cost: Difference = field(default_factory=Difference)
    reward: Difference = field(default_factory=Difference)
    routed: int = 0

    def add(self, one: Compared) -> None:
        """Take a request in."""
        self.routed += one.routed
        how = {"routed": one.routed, "share": one.share, "session": one.unit}
        if (cost_usd := one.cost_usd) is not None:
            self.cost.add(cost_usd, **how)  # type: ignore[arg-type]  # as `add` has them
        if one.reward is not None:
            self.reward.add(one.reward[0], **how)  # type: ignore[arg-type]

    def figures(self) -> Document:
        """Return the figures in the form of the file of a proof: dollars saved, rewards gained."""
        cost, reward = self.cost.shown(), self.reward.shown()
        return {
            "routed": self.routed,
            "saved_usd_per_request": _negative(cost),
            "saved_usd": _times(_negative(cost), self.routed),
            "reward_gain": _plain(reward),
            "cost_usd": {"router": cost.router, "incumbent": cost.incumbent},
            "reward": {"router": reward.router, "incumbent": reward.incumbent},
            "bills": _pair(cost.requests),
            "rewards": _pair(reward.requests),
            "units": _pair(cost.units),
        }


def _plain(shown: Shown) -> Document:
    return {"value": shown.value, "low": shown.low, "high": shown.high}


def _negative(shown: Shown) -> Document:
    value, low, high = (
        None if one is None else -one for one in (shown.value, shown.low, shown.high)
    )
    return {"value": value, "low": high, "high": low}


def _times(found: Document, n: int) -> Document:
    return {name: None if one is None else one * n for name, one in found.items()}


def _pair(counts: tuple[int, int]) -> Document:
    return {"router": counts[0], "incumbent": counts[1]}


def prove(requests: Iterable[Compared]) -> Document:
    """Return the figures of all requests, of each week, and of each kind that callers name."""
    whole, weeks, kinds = Saved(), dict[str, Saved](), dict[str, Saved]()
    for one in requests:
        whole.add(one)
        weeks.setdefault(one.week, Saved()).add(one)
        if one.kind is not None:
            kinds.setdefault(one.kind, Saved()).add(one)
    return {
        "missed_at_most": MISSED_AT_ANY_LOOK,
        "whole": whole.figures(),
        "weeks": {name: one.figures() for name, one in sorted(weeks.items())},
        "kinds": {name: one.figures() for name, one in sorted(kinds.items())},
    }


def sentence(figures: Document) -> str:
    """Say in a sentence what the figures show."""
    whole = figures["whole"]
    money, reward = whole["saved_usd"], whole["reward_gain"]
    if money["value"] is None:
        return (
            "Nothing can be compared: the history has no bills of both sides. They come with "
            "traffic, once an incumbent is declared with a share, a ramp or a holdout."
        )
    if money["low"] is None:
        return (
            f"It is too early to say: {whole['units']['router']:,} bills of the router's and "
            f"{whole['units']['incumbent']:,} of the incumbent's are too few for an interval."
        )
    return f"{_money(whole)}{_quality(reward)}"


def _money(whole: Document) -> str:
    saved, each, n = whole["saved_usd"], whole["saved_usd_per_request"], whole["routed"]
    between = f"between {usd(saved['low'])} and {usd(saved['high'])}"
    on = f"on {n:,} requests ({usd(each['value'])} each)"
    if saved["low"] > 0.0:
        return f"The router saved {usd(saved['value'])} {on}, {between}"
    if saved["high"] < 0.0:
        lost = f"between {usd(-saved['high'])} and {usd(-saved['low'])}"
        return f"The router cost {usd(-saved['value'])} more {on}, {lost}"
    return f"No difference in dollars is shown {on}: saved are {between}"


def _quality(gain: Document) -> str:
    if gain["low"] is None:
        return "; there are too few rewards to compare quality."
    between = f"between {gain['low']:+.3f} and {gain['high']:+.3f}"
    if gain["low"] > 0.0:
        return f", and answers are better by {gain['value']:.3f}, {between}."
    if gain["high"] < 0.0:
        return f", and answers are worse by {-gain['value']:.3f}, {between}."
    return f", and no difference in reward is shown, {between}."
