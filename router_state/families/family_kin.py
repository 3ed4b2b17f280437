"""The regression of a family: what one model's coefficients are in each of N routers.

θ_ra = θ_a + c_r·e + δ_ra, δ_ra ~ N(0, σ²(w_r·R_a)⁻¹), c_r ~ N(0, κ²), e the bias. Above θ_a stands
the shared prior of the models, as in every router. With V = (A + wR)⁻¹, a router's statement on θ_a
is

    J_r = wR − wR·V·wR,   h_r = wR·V·(b − c·A·e),

and that of the others on its own θ_ra, with J and h their sums and R for the scatter, is

    P = R − R(J + R)⁻¹R,   P·m = R(J + R)⁻¹h                     (Lindley and Smith 1972).

R, c, w and κ are estimated by `family_fit`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from router_state.config import Vector
from router_state.families.family_statements import Stack, statements
from router_state.families.family_sums import Sums
from router_state.kernel import GUESSED, MEMORY
from router_state.learning.guess import Guess
from router_state.learning.intervals import TWO_SIDED

LEVEL_SCATTER = 0.1
"""First guess of κ, the deviation of the routers' levels, in units of σ ÷ 0.3."""


@dataclass(slots=True)
class Scatter:
    """The scatter of a model between routers: σ² ÷ variance, of features and of the bias.

    Attributes:
        freedom: degrees of freedom of the estimate of `bias`: some 1 for each router of which data
            determine the model's level.
    """

    ridge: float
    bias: float
    freedom: float = GUESSED

    def diagonal(self, d: int) -> Vector:
        """Return R, shape (d,)."""
        found = np.full(d, self.ridge)
        found[-1] = self.bias
        return found


@dataclass(slots=True, eq=False)
class Kin:
    """A family's regression of rewards, or of logarithms of bills.

    Attributes:
        d, guess: dimensions, and the assumptions before the first observation.
        noise: σ², the variance of an observation.
        common, scatter: the scatter of all models together, and that of each model.
        weights, levels: w_r, where that is not 1, and c_r by router.
        aside, slope: the routers that are left out, and the slope of each of these.
        level_variance: κ².
        total: `Sums.triangle` of (J, h) of all routers that count, by model; brought: (J, h) of
            another family, by model.
        models, mean: scatter and mean of the shared prior above θ_a.
    """

    d: int
    guess: Guess
    noise: float = 0.0
    common: Scatter = field(default_factory=lambda: Scatter(0.0, 0.0))
    scatter: dict[str, Scatter] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)
    slope: dict[str, float] = field(default_factory=dict)
    aside: set[str] = field(default_factory=set)
    level_variance: float = LEVEL_SCATTER**2
    total: dict[str, Vector] = field(default_factory=dict)
    brought: dict[str, Sums] = field(default_factory=dict)
    models: Scatter = field(default_factory=lambda: Scatter(0.0, 0.0))
    mean: Vector = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        self.noise = self.noise or self.guess.noise
        first = Scatter(self.guess.features * max(self.d - 1, 1), self.guess.bias)
        if not self.common.bias:
            self.common = first
        if not self.models.bias:
            self.models = first
        if not len(self.mean):
            self.mean = self.guess.mean * np.eye(max(self.d, 1))[-1]

    # Sums of routers, and priors for routers.

    def contribution(self, member: str, own: Mapping[str, Sums]) -> dict[str, Sums]:
        """Return the sums that a router contributes for its models, at the present scales; nothing
        while the router is left out.
        """
        if not own or member in self.aside:
            return {}
        R = self.weights.get(member, 1.0) * self._scatters(own)
        A, b = (np.stack([getattr(one, part) for one in own.values()]) for part in ("A", "b"))
        J, h, _ = statements(R, A, b - self.levels.get(member, 0.0) * A[:, -1])
        return {name: Sums(J[k], h[k]) for k, name in enumerate(own)}

    def replace(self, member: str, before: Mapping[str, Sums], now: Mapping[str, Sums]) -> None:
        """Replace a router's earlier sums by its new ones, at the present scales."""
        for model, one in self.contribution(member, before).items():
            if model in self.total:
                self.total[model] = self.total[model] - one.triangle()
        for model, one in self.contribution(member, now).items():
            total = self.total.get(model)
            self.total[model] = one.triangle() if total is None else total + one.triangle()

    def prior_for(
        self, member: str, own: Mapping[str, Sums], names: Iterable[str] | None = None
    ) -> dict[str, Sums]:
        """Return the sums that a router gets from its family: by model, the sums of all members
        without the router's own.

        Args:
            own: the router's own sums by model.
            names: models of the router; None: all models of the family.
        """
        every = {**dict.fromkeys(self.brought), **self.total}
        models = [name for name in (every if names is None else names) if name in every]
        if not models:
            return {}
        others = {name: self.total_of(name) for name in models}
        own_part = self.contribution(member, {name: own[name] for name in models if name in own})
        for name, one in own_part.items():
            others[name] = others[name].less(one)
        J, h = (np.stack([getattr(one, part) for one in others.values()]) for part in ("A", "b"))
        P, b = self._beyond(J, h, self._scatters(models))
        b = b + self.levels.get(member, 0.0) * P[:, -1]
        # What counts for more than a memory would be forgotten no faster than it is learned.
        share = np.minimum(1.0, MEMORY / np.maximum(P[:, -1, -1], 1.0))
        return {name: Sums(share[k] * P[k], share[k] * b[k]) for k, name in enumerate(models)}

    def _beyond(self, J: Stack, h: Stack, R: Stack) -> tuple[Stack, Stack]:
        """Return what follows for a router's own coefficients, divided by the prior of a router
        without a family: its own estimates have that already."""
        Q, one = self.models.diagonal(self.d), np.eye(self.d)
        covariance = np.linalg.inv(J + np.diag(Q))
        P = np.linalg.inv(covariance + (1.0 / R)[:, None] * one)
        center = covariance @ (h + Q * self.mean)[:, :, None]
        alone = R * Q / (R + Q)
        b = (P @ center)[:, :, 0] - alone * self.mean
        return (P + P.transpose(0, 2, 1)) / 2.0 - alone[:, None] * one, b

    def _scatters(self, models: Iterable[str]) -> Stack:
        """Return R of models, shape (n, d)."""
        return np.stack([self.scatter_of(name).diagonal(self.d) for name in models])

    def total_of(self, model: str) -> Sums:
        """Return (J, h) of a model, summed over all members that count and over what another family
        brought.
        """
        total, brought = self.total.get(model), self.brought.get(model)
        found = Sums.none(self.d) if total is None else Sums.of_triangle(total, self.d)
        return found if brought is None else Sums(found.A + brought.A, found.b + brought.b)

    @property
    def reported_noise(self) -> float:
        """Return σ², the noise of a reward; 0 while no router has reported."""
        return self.noise if self.total or self.brought else 0.0

    def scatter_of(self, model: str) -> Scatter:
        """Return the scatter of a model; a model without reports has the scatter of the others."""
        return self.scatter.get(model, self.common)

    def apart(self, model: str) -> tuple[float, float, float]:
        """Return the deviation of a model's level between routers, and the ends of its 95 %
        interval: the variance is a scaled inverse χ²."""
        one = self.scatter_of(model)
        found = float((self.noise / one.bias) ** 0.5)
        ends = TWO_SIDED, -TWO_SIDED
        low, high = (float(found / _chi_square(one.freedom, z) ** 0.5) for z in ends)
        return found, low, high

    def forget(self, member: str) -> None:
        """Forget a router that has left."""
        for by_member in (self.weights, self.levels, self.slope):
            by_member.pop(member, None)
        self.aside.discard(member)


def _chi_square(freedom: float, z: float) -> float:
    """Return a quantile of χ² ÷ its degrees of freedom, given that of a normal (Wilson and Hilferty
    1931)."""
    spread = 2.0 / (9.0 * freedom)
    return float(max(1.0 - spread + z * spread**0.5, 0.05)) ** 3
