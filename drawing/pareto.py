"""Compute the Pareto picture: dollars a request against quality, for models, their mixes and a
router."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import hypot
from typing import NamedTuple

from drawing.numbers import number, usd


class Point(NamedTuple):
    """A way to answer requests.

    Attributes:
        cost_usd: mean dollars a request; quality: mean reward.
        off, cost_off: half the widths of the 95 % intervals of quality and cost; None: not known.
        measured: whether the means come from enough calls; else they are the router's expectations.
    """

    name: str
    cost_usd: float
    quality: float
    off: float | None = None
    cost_off: float | None = None
    measured: bool = True


@dataclass(frozen=True, slots=True)
class Pareto:
    """The content of the picture.

    Attributes:
        router: None without a bill or without a label.
        tail: cost and quality of the router over the last days, the oldest first.
        alone: the router with one call a request, where it plans several; as expected.
        basis: what the numbers rest on, as the end of a sentence.
    """

    models: Sequence[Point] = ()
    router: Point | None = None
    tail: Sequence[tuple[float, float]] = ()
    budget_usd: float | None = None
    basis: str = ""
    alone: Point | None = None

    @property
    def best(self) -> Point | None:
        """Return the model of the highest quality, the cheapest of several."""
        return max(self.models, key=lambda one: (one.quality, -one.cost_usd), default=None)

    @property
    def mixes(self) -> list[Point]:
        """Return the corners of the best fixed mixes, the cheapest first.

        A fixed mix picks each request's model at random, whatever the request. The best ones are
        the upper hull of the models.
        """
        hull: list[Point] = []
        for one in sorted(self.models, key=lambda one: (one.cost_usd, -one.quality)):
            if hull and one.quality <= hull[-1].quality:
                continue
            while len(hull) > 1 and _slope(hull[-2], one) >= _slope(hull[-2], hull[-1]):
                hull.pop()
            hull.append(one)
        return hull

    def mix_as_good(self, quality: float) -> Point | None:
        """Return the cheapest mix that reaches a quality; None: no mix does."""
        hull = self.mixes
        if hull and hull[0].quality >= quality:
            return hull[0]
        for low, high in pairwise(hull):
            if quality <= high.quality:
                return _between(low, high, (quality - low.quality) / (high.quality - low.quality))
        return None

    def mix_at(self, cost_usd: float) -> Point | None:
        """Return the best mix at a cost; None: all models are dearer."""
        hull = self.mixes
        if not hull or hull[0].cost_usd > cost_usd:
            return None
        for low, high in pairwise(hull):
            if cost_usd <= high.cost_usd:
                share = (cost_usd - low.cost_usd) / (high.cost_usd - low.cost_usd)
                return _between(low, high, share)
        return hull[-1]

    def mix_shares(self, cost_usd: float) -> dict[str, float]:
        """Return the models of the best mix at a cost, with their shares of the requests; empty:
        all models are dearer."""
        hull = self.mixes
        if not hull or hull[0].cost_usd > cost_usd:
            return {}
        for low, high in pairwise(hull):
            if cost_usd <= high.cost_usd:
                share = (cost_usd - low.cost_usd) / (high.cost_usd - low.cost_usd)
                return {low.name: 1.0 - share, high.name: share}
        return {hull[-1].name: 1.0}

    @property
    def saved(self) -> float | None:
        """Return the share of the best model's cost that the router saves."""
        best = self.best
        if self.router is None or best is None or best.cost_usd <= 0.0:
            return None
        return 1.0 - self.router.cost_usd / best.cost_usd

    @property
    def saved_mix(self) -> float | None:
        """Return the share that the router saves of the cost of the cheapest mix of the same
        quality; infinity if no mix is as good.
        """
        if self.router is None or not self.models:
            return None
        mix = self.mix_as_good(self.router.quality)
        if mix is None:
            return float("inf")
        return 1.0 - self.router.cost_usd / mix.cost_usd if mix.cost_usd > 0.0 else None

    @property
    def lead(self) -> tuple[float, float | None] | None:
        """Return how much better the router is than the best mix at its cost, and half the width of
        the 95 % interval.
        """
        mix = None if self.router is None else self.mix_at(self.router.cost_usd)
        if self.router is None or mix is None:
            return None
        offs = (self.router.off, mix.off)
        off = None if None in offs else hypot(*(one or 0.0 for one in offs))
        return self.router.quality - mix.quality, off

    def sentence(self) -> str:
        """Return the answer in a sentence."""
        router, best = self.router, self.best
        if best is None:
            return "Nothing is known of any model yet."
        if router is None:
            return "What routing saves is known once calls have bills and answers have labels."
        cost = f"at {usd(router.cost_usd)} a request"
        if not router.measured:
            return f"Quality {number(router.quality)} {cost}: too few requests yet to compare."
        if best.quality <= 0.0 or best.cost_usd <= 0.0:
            return f"Quality {number(router.quality)} {cost}."
        return (
            f"{router.quality / best.quality:.1%} of {short(best.name)}'s quality for "
            f"{share(router.cost_usd / best.cost_usd)} of its cost"
            f"{', ' * bool(self.basis)}{self.basis}."
        )

    def beside_mixes(self) -> str:
        """Return a sentence that compares the router with fixed mixes; empty if not known."""
        if len(self.models) < 2 or (saved := self.saved_mix) is None:
            return ""
        if saved == float("inf"):
            told = "No fixed mix of the models is as good"
        elif saved >= 1.0:
            told = "Requests cost nothing so far"
        elif saved >= 0.0:
            times = 1.0 / (1.0 - saved)
            told = f"The cheapest fixed mix that is as good costs {times:.1f}× as much"
        else:
            told = f"A fixed mix that is as good costs {share(-saved / (1.0 - saved))} less"
        if self.lead is None:
            return f"{told}."
        gain, off = self.lead
        less = "less" if gain >= 0.0 else "more"
        by = "" if off is None else f" ± {number(off)}"
        chance = ", which may be chance" if off is not None and abs(gain) <= off else ""
        return (
            f"{told}; the best one at the same cost earns {number(abs(gain))}{by} {less}{chance}."
        )

    def beside_alone(self) -> str:
        """Return a sentence that compares the router with itself without plans; empty if there are
        none."""
        if self.router is None or self.alone is None:
            return ""
        gain = self.router.quality - self.alone.quality
        saved = self.alone.cost_usd - self.router.cost_usd
        return (
            f"Plans are expected to earn {number(abs(gain))} {'more' if gain >= 0.0 else 'less'} "
            f"and to cost {usd(float(f'{abs(saved):.3g}'))} {'less' if saved >= 0.0 else 'more'} "
            "a request than one call each."
        )

    def facts(self, calls: int) -> list[tuple[str, str, str]]:
        """Return the facts beside the picture: name, value and explanation.

        Args:
            calls: calls that have a bill.
        """
        router, best, lead = self.router, self.best, self.lead
        missing, saved, mixed = ("–", "needs bills and labels"), self.saved, self.saved_mix
        if router is None or best is None:
            names = ("the best model", "the best fixed mix")
            return [*((f"Saved against {name}", *missing) for name in names), ("Quality", *missing)]
        alone = calls * best.cost_usd
        off = "" if lead is None or lead[1] is None else f" ± {number(lead[1])}"
        facts = [
            (
                f"Saved against {short(best.name)}",
                "–" if saved is None else usd(float(f"{alone - calls * router.cost_usd:.3g}")),
                "" if saved is None else f"{share(saved)} of {usd(float(f'{alone:.3g}'))}",
            ),
            (
                "Saved against the best fixed mix",
                "–" if mixed is None else "no mix is as good" if mixed > 1.0 else share(mixed),
                "" if lead is None else f"{number(lead[0], signed=True)}{off} at equal cost",
            ),
            (
                "Quality",
                number(router.quality),
                "" if router.off is None else f"± {number(router.off)}, 95% interval",
            ),
        ]
        if self.budget_usd:
            ratio = f"{router.cost_usd / self.budget_usd:.2f}"
            costs = f"{usd(router.cost_usd)} of {usd(self.budget_usd)} a request"
            facts.insert(2, ("Spend ÷ budget", ratio, costs))
        else:
            facts.insert(2, ("Dollars a request", usd(router.cost_usd), "no budget per request"))
        return facts

    def document(self) -> dict[str, object]:
        """Return the picture as `pareto.js` takes it."""
        return {
            "models": [_drawn(one) for one in self.models],
            "mixes": [[one.cost_usd, one.quality] for one in self.mixes],
            "router": self.router and _drawn(self.router),
            "tail": [list(one) for one in self.tail],
            "budget_usd": self.budget_usd,
            "sentence": self.sentence(),
            "beside": " ".join(filter(None, (self.beside_mixes(), self.beside_alone()))),
            "alone": self.alone and _drawn(self.alone),
        }


def share(value: float) -> str:
    """Write a share as a percentage, with one decimal below ten percent."""
    return (f"{value:.0%}" if abs(value) >= 0.0995 else f"{value:.1%}").replace("-", "−")


def short(model: str) -> str:
    """Return a model's name without its provider's."""
    return model.rpartition("/")[2]


def _slope(low: Point, high: Point) -> float:
    cost = high.cost_usd - low.cost_usd
    return (high.quality - low.quality) / cost if cost > 0.0 else float("inf")


def _between(low: Point, high: Point, share: float) -> Point:
    offs = (low.off, high.off)
    # The two models' errors are independent: both are means over calls of their own.
    off = None if None in offs else hypot((1 - share) * (low.off or 0), share * (high.off or 0))
    cost = low.cost_usd + share * (high.cost_usd - low.cost_usd)
    return Point("", cost, low.quality + share * (high.quality - low.quality), off)


def _drawn(one: Point) -> dict[str, object]:
    return {
        "name": short(one.name),
        "cost_usd": one.cost_usd,
        "quality": one.quality,
        "off": one.off,
        "cost_off": one.cost_off,
        "measured": one.measured,
    }
