"""The estimate of a family's regression: the scatter of each model between routers, and the level
and the weight of each router.

R_a, for features and for the bias, is estimated by the fixed point of the evidence (MacKay 1992),
and w_r as in a Student's t with `MEMBERS_TAIL` degrees of freedom (Lange, Little and Taylor 1989).
The names are those of `family_kin`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from router_state.changes import Journal
from router_state.config import Matrix, Vector
from router_state.families.family_kin import LEVEL_SCATTER, Kin, Scatter
from router_state.families.family_slopes import broken, slopes
from router_state.families.family_statements import Members, mean_square, stacked, statements
from router_state.kernel import GUESSED, Regression, SharedPrior, estimate

MOST_SCATTER_RIDGE = 1e5
"""Largest scale R, in observations; the least R is its inverse. See `SharedPrior`."""
MEMBERS_TAIL = 4.0
"""Degrees of freedom of the scatter between routers: one that is far off counts for little."""
ROUNDS = 3
"""Steps of the fixed point at one estimate."""


def fit(kin: Kin, members: Members, *, noise: float, rounds: int = ROUNDS) -> None:
    """Improve all estimates by some rounds of the fixed point.

    Args:
        noise: σ² of the members' observations.
    """
    if not members:
        kin.total = {}
        return
    kin.noise = noise
    one = Fit(kin, members)
    for _ in range(rounds):
        one.update_statements()
        one.move(*conclude(kin, list(one.by_model)))
    one.update_statements()


def conclude(kin: Kin, models: Sequence[str]) -> tuple[dict[str, Vector], dict[str, Matrix]]:
    """Return θ_a under the shared prior of the models, which is estimated, and their
    covariances ÷ σ²."""
    prior = SharedPrior("", kin.d, kin.guess, Journal())
    prior.noise = kin.noise
    ridges, ones = prior.ridges, []
    for model in models:
        total = kin.total_of(model)
        one = Regression(model, kin.d, Journal())
        one.start(total.A + np.diag(ridges), total.b + ridges * prior.mean, alone=True)
        ones.append(one)
    for _ in range(2):
        estimate(prior, ones)
    kin.models, kin.mean = Scatter(prior.ridge, prior.bias_ridge), np.array(prior.mean)
    theta = {name: np.array(one.theta) for name, one in zip(models, ones, strict=True)}
    return theta, {name: one.A_inv() for name, one in zip(models, ones, strict=True)}


class Fit:
    """One estimate.

    Attributes:
        names: names of the routers; by_model: their sums and statements; unit: mean square of all
            features together.
    """

    def __init__(self, kin: Kin, members: Members) -> None:
        self.kin, self.names = kin, sorted(members)
        models = sorted({model for of in members.values() for model in of})
        self.by_model = {model: stacked(model, self.names, members) for model in models}
        self.unit = max(kin.d - 1, 1) * mean_square(self.by_model.values(), kin.d)
        kin.scatter = {name: kin.scatter_of(name) for name in models} | {
            name: one for name, one in kin.scatter.items() if name in kin.brought
        }
        kin.weights = {name: w for name in self.names if (w := kin.weights.get(name, 1.0)) != 1.0}
        kin.levels = {name: kin.levels.get(name, 0.0) for name in self.names}
        kin.aside &= set(self.names)

    def _of(self, values: Mapping[str, float], default: float = 0.0) -> Vector:
        return np.array([values.get(name, default) for name in self.names])

    def _by_name(self, values: Vector) -> dict[str, float]:
        return dict(zip(self.names, values.tolist(), strict=True))

    @property
    def _counting(self) -> Vector:
        """Return 1 for each router, 0 for one that is left out."""
        return np.array([float(name not in self.kin.aside) for name in self.names])

    def update_statements(self) -> None:
        """Compute the statement of every router on every model, and their sums."""
        kin, counts = self.kin, self._counting
        weights, levels = self._of(kin.weights, 1.0), self._of(kin.levels)
        kin.total = {}
        for model, of in self.by_model.items():
            R = weights[of.at, None] * kin.scatter[model].diagonal(kin.d)
            of.J, of.h, of.V = statements(R, of.A, of.without(levels))
            kin.total[model] = of.total(counts).triangle()

    def move(self, theta: Mapping[str, Vector], covariances: Mapping[str, Matrix]) -> None:
        """Move scatters, levels and weights by one step, and find the routers to be left out."""
        kin, counts, levels = self.kin, self._counting, self._of(self.kin.levels)
        weights = self._of(kin.weights, 1.0)
        determined: dict[str, Vector] = {}
        sizes: dict[str, Vector] = {}
        misfit, freedom, response, information = np.zeros((4, len(self.names)))
        for model, of in self.by_model.items():
            R, w = kin.scatter[model].diagonal(kin.d), weights[of.at, None]
            B = of.V @ of.A
            rest = of.without(levels) - of.A @ theta[model]
            squares = (of.V @ rest[:, :, None])[:, :, 0] ** 2
            misfit[of.at] += squares @ R / kin.noise
            own = np.einsum("nii->ni", B)
            freedom[of.at] += own.sum(1)
            information[of.at] += of.J[:, -1, -1]
            # What the level would say if there was none yet.
            response[of.at] += of.h[:, -1] - of.J[:, -1] @ theta[model]
            response[of.at] += levels[of.at] * of.J[:, -1, -1]
            doubt = ((B @ covariances[model]) * B).sum(2) * w * R
            determined[model] = counts[of.at] @ np.maximum(own - doubt, 0.0)
            sizes[model] = counts[of.at] @ (w * squares)
        self._rescale(determined, sizes)
        self._level(response, information, counts)
        self._weigh(misfit, freedom)
        found, doubts = slopes(self.by_model, theta, covariances, counts=counts, noise=kin.noise)
        out = broken(found, doubts, counts)
        left_out = zip(self.names, found.tolist(), out, strict=True)
        kin.slope = {name: slope for name, slope, one in left_out if one}
        kin.aside = set(kin.slope)

    def _weigh(self, misfit: Vector, freedom: Vector) -> None:
        """Move the weights of routers."""
        found = (MEMBERS_TAIL + freedom) / (MEMBERS_TAIL + misfit)
        # Where all are unlike none is broken: the scatter has not grown as much yet.
        usual = min(float(np.median(found)), 1.0)
        moved = self._by_name(np.minimum(found / usual, 1.0))
        self.kin.weights = {name: w for name, w in moved.items() if w != 1.0}

    def _rescale(self, determined: Mapping[str, Vector], sizes: Mapping[str, Vector]) -> None:
        """Move the scatter of all models together, and of each around that of all."""
        kin, guess, last = self.kin, self.kin.guess, self.kin.d - 1
        measured = kin.noise / guess.noise if guess.absolute else 1.0
        freedom = {name: float(one[last]) + GUESSED for name, one in determined.items()}
        moved: list[tuple[float, dict[str, float]]] = []
        for first, part, scale in (
            (guess.features * self.unit * measured, slice(0, last), self.unit),
            (guess.bias * measured, slice(last, last + 1), 1.0),
        ):
            bounds = scale / MOST_SCATTER_RIDGE, MOST_SCATTER_RIDGE * scale
            count = {name: float(one[part].sum()) for name, one in determined.items()}
            size = {name: float(one[part].sum()) / kin.noise for name, one in sizes.items()}
            total, squares = sum(count.values()), sum(size.values())
            common = float(np.clip((total + GUESSED) / (squares + GUESSED / first), *bounds))
            by_model = {
                name: float(
                    np.clip((count[name] + GUESSED) / (size[name] + GUESSED / common), *bounds)
                )
                for name in determined
            }
            moved.append((common, by_model))
        (ridge, ridges), (bias, biases) = moved
        kin.common = Scatter(ridge, bias)
        kin.scatter |= {
            name: Scatter(ridges[name], biases[name], freedom[name]) for name in determined
        }

    def _level(self, response: Vector, information: Vector, counts: Vector) -> None:
        """Move the levels of routers, and κ²."""
        kin = self.kin
        shrunk = kin.noise / kin.level_variance
        found = response / (information + shrunk)
        kin.levels = self._by_name(found)
        squares = float(counts @ (found * found))
        determined = float(counts @ (information / (information + shrunk)))
        first = LEVEL_SCATTER**2 * kin.guess.noise / 0.09
        kin.level_variance = max((squares + GUESSED * first) / (determined + GUESSED), 1e-6)
