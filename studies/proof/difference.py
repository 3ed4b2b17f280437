"""The difference of a mean outcome between two sides that were drawn with unequal shares.

A unit is what a side is drawn for: a request, or a whole session. A unit with outcome y, which the
router answers (z = 1) with probability s, has the term

    (z/s − (1 − z)/(1 − s))·(y − c),    c = (1 − s)·m₁ + s·m₀,

with the means m₁ and m₀ of the requests before it on either side. Whatever these means are, the
expectation of the term is the difference. With the true means its variance is least: this is the
augmented estimate by inverse propensities (Robins, Rotnitzky and Zhao 1994, JASA 89) without
features. The terms of a session are added up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from router_state.incumbents.anytime import half_width

LEAST_UNITS = 50
"""Units that either side must have before a difference has an interval, which rests on the central
limit theorem."""


@dataclass(slots=True)
class Side:
    """The requests of one side: their number, the sum of their outcomes, and the number of requests
    that were drawn one by one.
    """

    n: int = 0
    total: float = 0.0
    alone: int = 0

    @property
    def mean(self) -> float | None:
        """Return the mean outcome; None: there is none."""
        return self.total / self.n if self.n else None


@dataclass(slots=True)
class Shown:
    """The mean difference per request, router − incumbent, and the ends of its interval (None: too
    few units).

    Attributes:
        router, incumbent: means of the two sides.
        requests, units: numbers of requests and of units, each of the router's side and of the
            incumbent's.
    """

    value: float | None
    low: float | None
    high: float | None
    router: float | None
    incumbent: float | None
    requests: tuple[int, int]
    units: tuple[int, int]


@dataclass(slots=True)
class Terms:
    """Terms whose mean is shown per request, those of a session added up.

    Attributes:
        units: of each session, its term and its number of requests.
        sums: over all other requests: their number, Σ term and Σ term².
    """

    units: dict[str, list[float]] = field(default_factory=dict)
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])

    def add(self, term: float, session: str | None) -> None:
        """Take a request's term in."""
        if session is None:
            for power in range(3):
                self.sums[power] += term**power
            return
        found = self.units.setdefault(session, [0.0, 0.0])
        found[0] += term
        found[1] += 1.0

    def shown(self) -> tuple[float, float]:
        """Return the mean per request, and half of its interval. Raises ZeroDivisionError without
        requests."""
        singles, total, squares = self.sums
        terms = list(self.units.values())
        n = int(singles) + len(terms)
        requests = singles + math.fsum(count for _, count in terms)
        value = (total + math.fsum(term for term, _ in terms)) / requests
        # A ratio of two sums, which is off as a mean of term − value·requests is.
        off = squares - 2.0 * value * total + value * value * singles
        off += math.fsum((term - value * count) ** 2 for term, count in terms)
        return value, half_width(n, off / max(n - 1, 1)) * n / requests


@dataclass(slots=True)
class Difference:
    """See the module.

    Attributes:
        sides: the incumbent's requests, and the router's.
        terms: terms of all units.
        drawn: for each session for which a side was drawn, whether the router answers it.
    """

    sides: tuple[Side, Side] = field(default_factory=lambda: (Side(), Side()))
    terms: Terms = field(default_factory=Terms)
    drawn: dict[str, bool] = field(default_factory=dict)

    def add(self, outcome: float, *, routed: bool, share: float, session: str | None) -> None:
        """Take a request's outcome in.

        Args:
            share: probability with which the router answered it, between 0 and 1.
            session: the session for which the side was drawn; None: it was drawn for this request
                alone.
        """
        router, incumbent = self.sides[1].mean, self.sides[0].mean
        if router is None or incumbent is None:
            center = (router or 0.0) + (incumbent or 0.0)
        else:
            center = (1.0 - share) * router + share * incumbent
        self.terms.add((outcome - center) / (share if routed else share - 1.0), session)
        side = self.sides[routed]
        side.n, side.total = side.n + 1, side.total + outcome
        if session is None:
            side.alone += 1
        else:
            self.drawn[session] = routed

    def shown(self) -> Shown:
        """Return the difference per request so far."""
        counts, means = self._counts(), (self.sides[1].mean, self.sides[0].mean)
        made = self.sides[1].n, self.sides[0].n
        if not min(made):
            return Shown(None, None, None, *means, made, counts)
        value, half = self.terms.shown()
        if min(counts) < LEAST_UNITS:
            return Shown(value, None, None, *means, made, counts)
        return Shown(value, value - half, value + half, *means, made, counts)

    def _counts(self) -> tuple[int, int]:
        routed = sum(self.drawn.values())
        incumbent, router = self.sides
        return router.alone + routed, incumbent.alone + len(self.drawn) - routed
