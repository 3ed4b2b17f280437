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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from router_state.changes import Journal
from router_state.config import Matrix, Vector
from router_state.families.family_sums import Sums
from router_state.kernel import GUESSED, MEMORY, Regression, SharedPrior, estimate
from router_state.learning.guess import Guess

MOST_SCATTER_RIDGE = 1e5
"""Largest scale R, in observations, and inverse of the least; see `SharedPrior`."""
MEMBERS_TAIL = 4.0
"""Degrees of freedom of the scatter between routers: one that is far off counts for little."""
LEAST_MEMBER_SLOPE = 0.5
"""Slope of a router's coefficients on the others' below which it is left out: 1 fits, 0 is
constant, −1 inverted, and another scale is its factor. Weights by the chance to fit harm no less
(benchmarks.families)."""
SURE_OF_SLOPE = 2.0
"""Deviations by which the slope is below 1 then."""
LEVEL_SCATTER = 0.1
"""First guess of κ, by how much levels of routers differ, in deviations σ ÷ 0.3."""
ROUNDS = 3
"""Steps of the fixed point at one estimate."""

Members = Mapping[str, Mapping[str, Sums]]
"""Sums by router and model."""
Stack = npt.NDArray[np.float64]
"""Matrices (n, d, d), or vectors (n, d), of the routers that have a model."""


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
class Of:
    """Statements of the routers that have one model.

    Attributes:
        at: their positions among all routers; A, b: their sums; J, h: see the module.
    """

    at: npt.NDArray[np.int64]
    A: Stack
    b: Stack
    J: Stack
    h: Stack


@dataclass(slots=True, eq=False)
class Kin:
    """A family's regression of rewards, or of logarithms of bills.

    Attributes:
        d, guess: dimensions, and what is assumed before the first observation.
        noise: σ².
        common, scatter: of all models together, and by model.
        weights, levels, slope: by router; aside: routers that are left out.
        level_variance: κ².
        total: (J, h) of all routers that count, by model; brought: of another family, by model.
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
    total: dict[str, Sums] = field(default_factory=dict)
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

    # What is told.

    def says(self, member: str, own: Mapping[str, Sums]) -> dict[str, Sums]:
        """Return the sums that a router contributes for its models, at the present scales; nothing
        while the router is left out.
        """
        if not own or member in self.aside:
            return {}
        R = self.weights.get(member, 1.0) * self._scatters(own)
        A, b = (np.stack([getattr(one, part) for one in own.values()]) for part in ("A", "b"))
        J, h = _statements(R, A, b - self.levels.get(member, 0.0) * A[:, -1])
        return {name: Sums(J[k], h[k]) for k, name in enumerate(own)}

    def hear(self, member: str, before: Mapping[str, Sums], now: Mapping[str, Sums]) -> None:
        """Replace a router's earlier sums by its new ones, at the present scales."""
        for model, said in self.says(member, before).items():
            if model in self.total:
                self.total[model] = self.total[model].less(said)
        for model, said in self.says(member, now).items():
            known = self.total.get(model, Sums.none(self.d))
            self.total[model] = Sums(known.A + said.A, known.b + said.b)

    def told(
        self, member: str, own: Mapping[str, Sums], names: Iterable[str] | None = None
    ) -> dict[str, Sums]:
        """Return what a router is told of each model: the sums of all members without its own.

        Args:
            names: models of the router; None: all.
        """
        known = {**dict.fromkeys(self.brought), **self.total}
        models = [name for name in (known if names is None else names) if name in known]
        if not models:
            return {}
        others = {name: Sums(*self._known(name, self.total.get(name))) for name in models}
        said = self.says(member, {name: own[name] for name in models if name in own})
        for name, one in said.items():
            others[name] = others[name].less(one)
        J, h = (np.stack([getattr(one, part) for one in others.values()]) for part in ("A", "b"))
        P, b = self._beyond(J, h, self._scatters(models))
        b = b + self.levels.get(member, 0.0) * P[:, -1]
        # What counts for more than a memory would be forgotten no faster than it is learned.
        share = np.minimum(1.0, MEMORY / np.maximum(P[:, -1, -1], 1.0))
        return {name: Sums(share[k] * P[k], share[k] * b[k]) for k, name in enumerate(models)}

    def _beyond(self, J: Stack, h: Stack, R: Stack) -> tuple[Stack, Stack]:
        """Return what follows for a router's own coefficients, divided by the prior of a router
        that hears nothing: its own estimates have that already."""
        Q, one = self.models.diagonal(self.d), np.eye(self.d)
        known = np.linalg.inv(J + np.diag(Q))
        P = np.linalg.inv(known + (1.0 / R)[:, None] * one)
        center = known @ (h + Q * self.mean)[:, :, None]
        alone = R * Q / (R + Q)
        b = (P @ center)[:, :, 0] - alone * self.mean
        return (P + P.transpose(0, 2, 1)) / 2.0 - alone[:, None] * one, b

    def _scatters(self, models: Iterable[str]) -> Stack:
        """Return R of models, shape (n, d)."""
        return np.stack([self.scatter_of(name).diagonal(self.d) for name in models])

    def knows(self, model: str) -> Sums:
        """Return what all say of a model."""
        return Sums(*self._known(model, self.total.get(model)))

    def _known(self, model: str, total: Sums | None) -> tuple[Matrix, Vector]:
        found = Sums.none(self.d) if total is None else total
        brought = self.brought.get(model)
        if brought is None:
            return found.A, found.b
        return found.A + brought.A, found.b + brought.b

    def scatter_of(self, model: str) -> Scatter:
        """Return the scatter of a model; a model without reports has the scatter of the others."""
        return self.scatter.get(model, self.common)

    def forget(self, member: str) -> None:
        """Forget a router that has left."""
        for by_member in (self.weights, self.levels, self.slope):
            by_member.pop(member, None)
        self.aside.discard(member)

    # What is estimated.

    def estimate(self, members: Members, *, noise: float, rounds: int = ROUNDS) -> None:
        """Move all estimates by some rounds of the fixed point, from the members' estimates of
        σ².
        """
        names = sorted(members)
        if not names:
            self.total = {}
            return
        self.noise = noise
        models = sorted({model for of in members.values() for model in of})
        self.scatter = {name: self.scatter.get(name, self.common) for name in models} | {
            name: one for name, one in self.scatter.items() if name in self.brought
        }
        self.weights = {name: self.weights.get(name, 1.0) for name in names}
        self.levels = {name: self.levels.get(name, 0.0) for name in names}
        self.aside &= set(names)
        said = {model: _stacked(model, names, members) for model in models}
        square = _square(said.values(), self.d)
        for _ in range(rounds):
            self._say(names, said)
            theta, covariances = self.conclude(models)
            self._move(names, said, theta, covariances, square)
        self._say(names, said)

    def _of(self, names: list[str], values: Mapping[str, float]) -> Vector:
        return np.array([values[name] for name in names])

    def _counting(self, names: list[str]) -> Vector:
        """Return 1 for each router, 0 for one that is left out."""
        return np.array([float(name not in self.aside) for name in names])

    def _say(self, names: list[str], said: Mapping[str, Of]) -> None:
        """Compute what every router says of every model, and the sums."""
        weights, levels = self._of(names, self.weights), self._of(names, self.levels)
        counts = self._counting(names)
        self.total = {}
        for model, of in said.items():
            R = weights[of.at, None] * self.scatter[model].diagonal(self.d)
            of.J, of.h = _statements(R, of.A, of.b - levels[of.at, None] * of.A[:, -1])
            here = counts[of.at]
            self.total[model] = Sums(np.einsum("n,nij->ij", here, of.J), here @ of.h)

    def conclude(self, models: list[str]) -> tuple[dict[str, Vector], dict[str, Matrix]]:
        """Return θ_a under the shared prior of the models, which is estimated, and their
        covariances ÷ σ²."""
        prior = SharedPrior("", self.d, self.guess, Journal())
        prior.noise = self.noise
        ridges, ones = prior.ridges, []
        for model in models:
            J, h = self._known(model, self.total.get(model))
            one = Regression(model, self.d, Journal())
            one.start(J + np.diag(ridges), h + ridges * prior.mean)
            ones.append(one)
        for _ in range(2):
            estimate(prior, ones)
        self.models, self.mean = Scatter(prior.ridge, prior.bias_ridge), np.array(prior.mean)
        theta = {name: np.array(one.theta) for name, one in zip(models, ones, strict=True)}
        return theta, {name: one.A_inv() for name, one in zip(models, ones, strict=True)}

    def _move(
        self,
        names: list[str],
        said: Mapping[str, Of],
        theta: Mapping[str, Vector],
        covariances: Mapping[str, Matrix],
        square: float,
    ) -> None:
        """Move scatters, levels and weights by one step."""
        d, n = self.d, len(names)
        weights, levels = self._of(names, self.weights), self._of(names, self.levels)
        counts = self._counting(names)
        known: dict[str, Vector] = {}
        sizes: dict[str, Vector] = {}
        misfit, freedom, response, information = np.zeros((4, n))
        for model, of in said.items():
            R, w = self.scatter[model].diagonal(d), weights[of.at, None]
            V = np.linalg.inv(of.A + (w * R)[:, :, None] * np.eye(d))
            B = V @ of.A
            rest = of.b - levels[of.at, None] * of.A[:, -1] - of.A @ theta[model]
            squares = (V @ rest[:, :, None])[:, :, 0] ** 2
            misfit[of.at] += squares @ R / self.noise
            own = np.einsum("nii->ni", B)
            freedom[of.at] += own.sum(1)
            information[of.at] += of.J[:, -1, -1]
            # What the level would say if there was none yet.
            response[of.at] += of.h[:, -1] - of.J[:, -1] @ theta[model]
            response[of.at] += levels[of.at] * of.J[:, -1, -1]
            doubt = ((B @ covariances[model]) * B).sum(2) * w * R
            known[model] = counts[of.at] @ np.maximum(own - doubt, 0.0)
            sizes[model] = counts[of.at] @ (w * squares)
        self._rescale(known, sizes, max(d - 1, 1) * square)
        self._level(names, response, information, counts)
        found = (MEMBERS_TAIL + freedom) / (MEMBERS_TAIL + misfit)
        # Where all are unlike none is broken: the scatter has not grown as much yet.
        usual = min(float(np.median(found)), 1.0) if n else 1.0
        self.weights = dict(zip(names, np.minimum(found / usual, 1.0).tolist(), strict=True))
        slopes, doubts = self.slopes(names, said, theta, covariances)
        least = np.minimum(LEAST_MEMBER_SLOPE, 1.0 - SURE_OF_SLOPE * doubts)
        self.slope = dict(zip(names, slopes.tolist(), strict=True))
        self.aside = {name for name, out in zip(names, slopes < least, strict=True) if out}

    def slopes(
        self,
        names: list[str],
        said: Mapping[str, Of],
        theta: Mapping[str, Vector],
        covariances: Mapping[str, Matrix],
    ) -> tuple[Vector, Vector]:
        """Return the slope of each router's coefficients on those of the others, and its deviation;
        1 and infinity for a router without evidence.

        Args:
            theta, covariances: of θ_a, the latter ÷ σ², by model.
        """
        counts = self._counting(names)
        others: dict[str, Stack] = {}
        n = len(names)
        J, middle, total, along, across = np.zeros((5, n))
        for model, of in said.items():
            precision = np.linalg.inv(covariances[model])
            own = counts[of.at]
            left = precision - own[:, None, None] * of.J
            rest = precision @ theta[model] - own[:, None] * of.h
            others[model] = np.asarray(np.linalg.solve(left, rest[:, :, None])[:, :, 0], np.float64)
            J[of.at] += of.J[:, -1, -1]
            middle[of.at] += (of.J[:, -1] * others[model]).sum(1)
            total[of.at] += of.h[:, -1]
        # A level is no slope: what models differ by counts, and what prompts do.
        middle, total = middle / np.maximum(J, 1e-12), total / np.maximum(J, 1e-12)
        for model, of in said.items():
            apart = others[model].copy()
            apart[:, -1] -= middle[of.at]
            along[of.at] += (apart * (of.h - total[of.at, None] * of.J[:, -1])).sum(1)
            across[of.at] += (apart * (of.J @ apart[:, :, None])[:, :, 0]).sum(1)
        tells = across > 0.0
        across = np.where(tells, across, 1.0)
        slopes = np.where(tells, along / across, 1.0)
        return np.asarray(slopes, np.float64), np.where(tells, np.sqrt(self.noise / across), np.inf)

    def _rescale(
        self, known: Mapping[str, Vector], sizes: Mapping[str, Vector], unit: float
    ) -> None:
        """Move the scatter of all models together, and of each around that of all."""
        guess, low = self.guess, 1.0 / MOST_SCATTER_RIDGE
        measured = self.noise / guess.noise if guess.absolute else 1.0
        moved: list[tuple[float, dict[str, float]]] = []
        for first, part, scale in (
            (guess.features * unit * measured, slice(0, self.d - 1), unit),
            (guess.bias * measured, slice(self.d - 1, self.d), 1.0),
        ):
            bounds = low * scale, MOST_SCATTER_RIDGE * scale
            count = {name: float(one[part].sum()) for name, one in known.items()}
            size = {name: float(one[part].sum()) / self.noise for name, one in sizes.items()}
            first_size = GUESSED / first
            total, squares = sum(count.values()), sum(size.values())
            common = float(np.clip((total + GUESSED) / (squares + first_size), *bounds))
            by_model = {
                name: float(
                    np.clip((count[name] + GUESSED) / (size[name] + GUESSED / common), *bounds)
                )
                for name in known
            }
            moved.append((common, by_model))
        (ridge, ridges), (bias, biases) = moved
        self.common = Scatter(ridge, bias)
        self.scatter |= {name: Scatter(ridges[name], biases[name]) for name in known}

    def _level(
        self, names: list[str], response: Vector, information: Vector, counts: Vector
    ) -> None:
        """Move the levels of routers, and κ²."""
        shrunk = self.noise / self.level_variance
        found = response / (information + shrunk)
        self.levels = dict(zip(names, found.tolist(), strict=True))
        squares = float(counts @ (found * found))
        determined = float(counts @ (information / (information + shrunk)))
        first = LEVEL_SCATTER**2 * self.guess.noise / 0.09
        self.level_variance = max((squares + GUESSED * first) / (determined + GUESSED), 1e-6)


def _statements(R: Stack, A: Stack, b: Stack) -> tuple[Stack, Stack]:
    """Return J and h of the module, of n sums, given the diagonals of R, shape (n, d)."""
    one = np.eye(R.shape[1])
    V = np.linalg.inv(A + R[:, :, None] * one)
    J = R[:, :, None] * (one - V * R[:, None, :])
    return (J + J.transpose(0, 2, 1)) / 2.0, R * (V @ b[:, :, None])[:, :, 0]


def _stacked(model: str, names: list[str], members: Members) -> Of:
    """Return the sums of all routers that have a model."""
    at = [k for k, name in enumerate(names) if model in members[name]]
    A = np.stack([members[names[k]][model].A for k in at])
    b = np.stack([members[names[k]][model].b for k in at])
    return Of(np.array(at), A, b, np.zeros_like(A), np.zeros_like(b))


def _square(said: Iterable[Of], d: int) -> float:
    """Return the mean square of a feature over all that was observed; 1 before anything was."""
    count = squares = 0.0
    for of in said:
        counted = float(of.A[:, -1, -1].sum())
        count += counted
        squares += float(np.einsum("nii->", of.A)) - counted
    return squares / (count * (d - 1)) if d > 1 and count > 0.0 and squares > 0.0 else 1.0
