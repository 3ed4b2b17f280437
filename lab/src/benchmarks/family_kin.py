"""The regression of a family: what one model's coefficients are in each of N routers.

θ_ra = θ_a + c_r·e + δ_ra, δ_ra ~ N(0, σ²(w_r·R_a)⁻¹), c_r ~ N(0, κ²), e the bias. Above θ_a stands
the shared prior of the models, as in every router. With V = (A + wR)⁻¹, a router says of θ_a

    J_r = wR − wR·V·wR,   h_r = wR·V·(b − c·A·e),

and the others say of its own θ_ra, with J and h their sums and R for the scatter between them,

    P = R − R(J + R)⁻¹R,   P·m = R(J + R)⁻¹h                     (Lindley and Smith 1972).

A router whose labels mean something else is left out: its coefficients, beside its level, do not
rise with those of the others. The slope is a regression of h_r on J_r·θ_a, θ_a without r.

R_a, its features and its bias, is estimated by the fixed point of the evidence (MacKay 1992), and
w_r as in a Student's t with `MEMBERS_TAIL` degrees of freedom (Lange, Little and Taylor 1989).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from benchmarks.family_sums import Sums
from router_state.changes import Journal
from router_state.config import Matrix, Vector
from router_state.kernel import GUESSED, Regression, SharedPrior, estimate
from router_state.learning.guess import Guess

MOST_SCATTER_RIDGE = 1e5
"""Largest scale R, in observations, and inverse of the least; see `SharedPrior`."""
MEMBERS_TAIL = 4.0
"""Degrees of freedom of the scatter between routers: one that is far off counts for little."""
LEAST_MEMBER_SLOPE = 0.5
"""Slope of a router's coefficients on the others' below which it is left out: 1 fits, 0 is
constant, −1 inverted, and another scale is its factor."""
SURE_OF_SLOPE = 2.0
"""Deviations by which the slope is below 1 then."""
LEVEL_SCATTER = 0.1
"""First guess of κ, by how much levels of routers differ, in deviations σ ÷ 0.3."""

Members = Mapping[str, Mapping[str, Sums]]
"""Sums by router and model."""


@dataclass(slots=True)
class Scatter:
    """The scatter of a model between routers: σ² ÷ variance, of features and of the bias."""

    ridge: float
    bias: float

    def diagonal(self, d: int) -> Vector:
        """Return R, shape (d,)."""
        found = np.full(d, self.ridge)
        found[-1] = self.bias
        return found


@dataclass(slots=True, eq=False)
class Kin:
    """A family's regression of rewards, or of logarithms of bills.

    Attributes:
        d, guess: dimensions, and what is assumed before the first observation.
        noise: σ².
        scatter: by model; weights, levels: by router; aside: routers that are left out.
        said: (J, h) by model and router; theta: θ_a by model.
    """

    d: int
    guess: Guess
    noise: float = 0.0
    common: Scatter = field(default_factory=lambda: Scatter(1.0, 1.0))
    scatter: dict[str, Scatter] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)
    aside: set[str] = field(default_factory=set)
    level_variance: float = LEVEL_SCATTER**2
    said: dict[str, dict[str, Sums]] = field(default_factory=dict)
    theta: dict[str, Vector] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.noise = self.noise or self.guess.noise
        self.common = Scatter(self.guess.features * max(self.d - 1, 1), self.guess.bias)

    def estimate(self, members: Members, *, noise: float, rounds: int = 3) -> None:
        """Move all estimates by some rounds of the fixed point, given what members say of σ²."""
        self.noise = noise
        models = sorted({model for of in members.values() for model in of})
        self.scatter = {
            name: self.scatter.get(name, Scatter(self.common.ridge, self.common.bias))
            for name in models
        }
        self.weights = {name: self.weights.get(name, 1.0) for name in sorted(members)}
        self.levels = {name: self.levels.get(name, 0.0) for name in sorted(members)}
        square = _square(members, self.d)
        for _ in range(rounds):
            self._say(members, models)
            covariances = self._conclude(models)
            self._move(members, models, covariances, square)
        self._say(members, models)

    def hear(self, member: str, of: Mapping[str, Sums]) -> None:
        """Take in what one member says, at the present scales; one that is new has a weight of
        1."""
        self.weights.setdefault(member, 1.0)
        self.levels.setdefault(member, 0.0)
        for model, sums in of.items():
            self.scatter.setdefault(model, Scatter(self.common.ridge, self.common.bias))
            self.said.setdefault(model, {})[member] = self._message(member, model, sums)

    def told(self, member: str, model: str) -> Sums | None:
        """Return what the others say of a member's model; None: nothing."""
        others = [
            one
            for name, one in self.said.get(model, {}).items()
            if name != member and not self.is_aside(name)
        ]
        if not others:
            return None
        J, h = sum(one.A for one in others), sum(one.b for one in others)
        R = self.scatter[model].diagonal(self.d)
        part = np.linalg.inv(J + np.diag(R))
        P = np.diag(R) - R[:, None] * part * R
        P = (P + P.T) / 2.0
        level = self.levels.get(member, 0.0)
        return Sums(P, R * (part @ h) + level * P[-1])

    def is_aside(self, member: str) -> bool:
        """Tell whether a member is left out."""
        return member in self.aside

    def slope(self, member: str, covariances: Mapping[str, Matrix]) -> tuple[float, float]:
        """Return the slope of a member's coefficients on those of the others, and its deviation;
        1 and infinity where nothing tells.

        Args:
            covariances: of θ_a, ÷ σ², by model.
        """
        said = {name: of[member] for name, of in self.said.items() if member in of}
        others = {}
        for model, one in said.items():
            others[model] = self.theta[model]
            if not self.is_aside(member):
                precision = np.linalg.inv(covariances[model])
                rest = precision @ self.theta[model] - one.b
                others[model] = np.asarray(np.linalg.solve(precision - one.A, rest), float)
        # A level is no slope: what models differ by counts, and what prompts do.
        J = sum(float(one.A[-1, -1]) for one in said.values())
        middle = sum(float(said[m].A[-1] @ theta) for m, theta in others.items()) / max(J, 1e-12)
        total = sum(float(one.b[-1]) for one in said.values()) / max(J, 1e-12)
        along = across = 0.0
        for model, theta in others.items():
            one, apart = said[model], theta.copy()
            apart[-1] -= middle
            along += float(apart @ (one.b - total * one.A[-1]))
            across += float(apart @ one.A @ apart)
        if across <= 0.0:
            return 1.0, np.inf
        return along / across, float(np.sqrt(self.noise / across))

    def _message(self, member: str, model: str, sums: Sums) -> Sums:
        R = self.weights[member] * self.scatter[model].diagonal(self.d)
        V = np.linalg.inv(sums.A + np.diag(R))
        J = np.diag(R) - R[:, None] * V * R
        b = sums.b - self.levels[member] * sums.A[-1]
        return Sums((J + J.T) / 2.0, R * (V @ b))

    def _say(self, members: Members, models: list[str]) -> None:
        """Compute what every router says of every model."""
        self.said = {model: {} for model in models}
        for member, of in members.items():
            for model, sums in of.items():
                self.said[model][member] = self._message(member, model, sums)

    def _conclude(self, models: list[str]) -> dict[str, Matrix]:
        """Compute θ_a under the shared prior of the models; return their covariances ÷ σ²."""
        prior = SharedPrior("", self.d, self.guess, Journal())
        prior.noise = self.noise
        ridges, ones = prior.ridges, []
        for model in models:
            said = [one for name, one in self.said[model].items() if not self.is_aside(name)]
            A = sum((one.A for one in said), np.diag(ridges))
            b = sum((one.b for one in said), ridges * prior.mean)
            one = Regression(model, self.d, Journal())
            one.start(A, b)
            ones.append(one)
        for _ in range(2):
            estimate(prior, ones)
        self.theta = {name: np.array(one.theta) for name, one in zip(models, ones, strict=True)}
        return {name: one.A_inv() for name, one in zip(models, ones, strict=True)}

    def _move(
        self, members: Members, models: list[str], covariances: dict[str, Matrix], square: float
    ) -> None:
        """Move scatters, levels and weights by one step."""
        d, unit = self.d, max(self.d - 1, 1) * square
        known = {model: np.zeros(d) for model in models}
        sizes = {model: np.zeros(d) for model in models}
        misfit = dict.fromkeys(members, 0.0)
        freedom = dict.fromkeys(members, 0.0)
        level: dict[str, tuple[float, float]] = {}
        for member, of in members.items():
            weight, aside = self.weights[member], self.is_aside(member)
            response = information = 0.0
            for model, sums in of.items():
                R = self.scatter[model].diagonal(d)
                theta, S = self.theta[model], covariances[model]
                V = np.linalg.inv(sums.A + np.diag(weight * R))
                B = V @ sums.A
                delta = V @ (sums.b - self.levels[member] * sums.A[-1] - sums.A @ theta)
                squares = delta * delta
                misfit[member] += float(squares @ R) / self.noise
                freedom[member] += float(np.trace(B))
                said = self.said[model][member]
                information += float(said.A[-1, -1])
                # What the level would say if there was none yet.
                response += float(said.b[-1] - said.A[-1] @ theta)
                response += self.levels[member] * float(said.A[-1, -1])
                if not aside:
                    doubt = np.einsum("ij,jk,ik->i", B, S, B) * weight * R
                    known[model] += np.maximum(np.diag(B) - doubt, 0.0)
                    sizes[model] += weight * squares
            level[member] = response, information
        self._rescale(models, known, sizes, unit)
        self._level(level)
        found = {
            name: (MEMBERS_TAIL + freedom[name]) / (MEMBERS_TAIL + misfit[name]) for name in members
        }
        # Where all are unlike none is broken: the scatter has not grown as much yet.
        usual = float(np.median(list(found.values()))) if found else 1.0
        self.weights |= {name: min(one / min(usual, 1.0), 1.0) for name, one in found.items()}
        slopes = {name: self.slope(name, covariances) for name in members}
        self.aside = {
            name
            for name, (at, doubt) in slopes.items()
            if at < min(LEAST_MEMBER_SLOPE, 1.0 - SURE_OF_SLOPE * doubt)
        }

    def _rescale(
        self, models: list[str], known: dict[str, Vector], sizes: dict[str, Vector], unit: float
    ) -> None:
        """Move the scatter of all models together, and of each around that of all."""
        guess, low = self.guess, 1.0 / MOST_SCATTER_RIDGE
        measured = self.noise / guess.noise if guess.absolute else 1.0
        for kind, part in (("ridge", slice(0, self.d - 1)), ("bias", slice(self.d - 1, self.d))):
            scale = unit if kind == "ridge" else 1.0
            first = (guess.features * unit if kind == "ridge" else guess.bias) * measured
            count = {name: float(known[name][part].sum()) for name in models}
            size = {name: float(sizes[name][part].sum()) / self.noise for name in models}
            total, squares = sum(count.values()), sum(size.values())
            common = (total + GUESSED) / (squares + GUESSED / first)
            setattr(self.common, kind, min(max(common, low * scale), MOST_SCATTER_RIDGE * scale))
            for name in models:
                found = (count[name] + GUESSED) / (size[name] + GUESSED / common)
                setattr(
                    self.scatter[name],
                    kind,
                    min(max(found, low * scale), MOST_SCATTER_RIDGE * scale),
                )

    def _level(self, level: dict[str, tuple[float, float]]) -> None:
        """Move the levels of routers, and κ²."""
        squares = determined = 0.0
        for member, (response, information) in level.items():
            shrunk = self.noise / self.level_variance
            found = response / (information + shrunk)
            self.levels[member] = found
            if not self.is_aside(member):
                squares += found * found
                determined += information / (information + shrunk)
        first = LEVEL_SCATTER**2 * self.guess.noise / 0.09
        moved = (squares + GUESSED * first) / (determined + GUESSED)
        self.level_variance = max(moved, 1e-6)


def _square(members: Members, d: int) -> float:
    """Return the mean square of a feature over all that was observed; 1 before anything was."""
    found = [sums.A for of in members.values() for sums in of.values()]
    count = sum(float(A[-1, -1]) for A in found)
    squares = sum(float(np.trace(A)) - float(A[-1, -1]) for A in found)
    return squares / (count * (d - 1)) if d > 1 and count > 0.0 and squares > 0.0 else 1.0
