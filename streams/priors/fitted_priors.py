"""Warm-up priors of each model's rewards and costs, as design matrices and responses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ground.files.array_folder import (
    Array,
    UnusableArrays,
    checksum_arrays,
    read_arrays,
    write_arrays,
)
from ground.json_values import Document
from router_state.config import CostPrior, Prior

_NAME = "priors"
"""Name of the files in its folder."""


@dataclass(frozen=True, slots=True, eq=False)
class CostPriors:
    """Sums over the bills of each model.

    Args:
        models: M names, in the arrays' order.
        A: shape (M, d, d), Σ xxᵀ over the bills above zero.
        b: shape (M, d), Σ ln(dollars)·x over them.
        means: shape (M,), mean bill in dollars, those of zero included.
    """

    models: tuple[str, ...]
    A: Array
    b: Array
    means: Array

    def __post_init__(self) -> None:
        count, d = len(self.models), self.b.shape[-1]
        if (
            self.A.shape != (count, d, d)
            or self.b.shape != (count, d)
            or self.means.shape != (count,)
        ):
            raise UnusableArrays(
                f"costs of {count} models, but A {self.A.shape}, b {self.b.shape}, means "
                f"{self.means.shape}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Priors:
    """One (A, b) per model, in the coordinates of one projection.

    Args:
        models: K names, in the arrays' order.
        A: shape (K, d, d), ridge·I + Σ xxᵀ.
        b: shape (K, d), Σ reward·x.
        projection: checksum of the projection that made x.
        costs: priors of costs; their models may differ from `models`.
    """

    models: tuple[str, ...]
    A: Array
    b: Array
    projection: str
    costs: CostPriors | None = None

    def __post_init__(self) -> None:
        count = len(self.models)
        d = self.b.shape[-1]
        if self.A.shape != (count, d, d) or self.b.shape != (count, d):
            raise UnusableArrays(f"{count} models, but A {self.A.shape} and b {self.b.shape}")
        if self.costs is not None and self.costs.b.shape[-1] != d:
            raise UnusableArrays(
                f"rewards of {d} dimensions, but costs of {self.costs.b.shape[-1]}"
            )

    @property
    def dimensions(self) -> int:
        """The length d of the contexts on which the priors were fitted."""
        return int(self.b.shape[1])

    def of(self, model: str) -> Prior:
        """Return a model's prior of rewards and that of bills; each may be None."""
        A = b = costs = None
        if model in self.models:
            k = self.models.index(model)
            A, b = self.A[k], self.b[k]
        if self.costs is not None and model in self.costs.models:
            k = self.costs.models.index(model)
            costs = CostPrior(self.costs.A[k], self.costs.b[k], float(self.costs.means[k]))
        return Prior(A=A, b=b, costs=costs)

    @property
    def checksum(self) -> str:
        """The SHA-256 by which a declaration refers to these priors."""
        return checksum_arrays(self._arrays(), self._details())

    def save(self, folder: Path) -> str:
        """Write `priors.npz` and `priors.json` into `folder`; return the checksum."""
        return write_arrays(folder, _NAME, self._arrays(), self._details())

    def _arrays(self) -> dict[str, Array]:
        of_costs = (
            {}
            if self.costs is None
            else {"cost_A": self.costs.A, "cost_b": self.costs.b, "cost_means": self.costs.means}
        )
        return {"A": self.A, "b": self.b, **of_costs}

    def _details(self) -> Document:
        of_costs = {} if self.costs is None else {"cost_models": list(self.costs.models)}
        return {"models": list(self.models), "projection": self.projection, **of_costs}


def load_priors(folder: Path) -> Priors:
    """Read saved priors.

    Raises:
        UnusableArrays: missing, another version, damaged, or arrays that do not fit together.
    """
    stored = read_arrays(folder, _NAME)
    try:
        details, arrays, costs = stored.details, stored.arrays, None
        if "cost_models" in details:
            costs = CostPriors(
                tuple(details["cost_models"]),
                arrays["cost_A"],
                arrays["cost_b"],
                arrays["cost_means"],
            )
        return Priors(
            tuple(details["models"]), arrays["A"], arrays["b"], str(details["projection"]), costs
        )
    except KeyError as absent:
        raise UnusableArrays(f"{folder}/{_NAME} lacks {absent}") from absent


def prior_for_wire(priors: Priors, model: str, *, n_eff: float | None = None) -> dict[str, object]:
    """Return one model's prior as the JSON-able `prior` field of a declared router.

    Args:
        n_eff: how many observations the prior shall count for, > 0; None leaves it to the router's
            `t_adapt`.

    Raises:
        UnusableArrays: there is no prior for the model.
    """
    if model not in priors.models:
        raise UnusableArrays(
            f"no prior for {model!r}; there are priors for "
            f"{', '.join(priors.models) or 'no model'}: a model without one learns from its first "
            "requests"
        )
    index = priors.models.index(model)
    prior = {"A": priors.A[index].tolist(), "b": priors.b[index].tolist()}
    return prior if n_eff is None else {**prior, "n_eff": n_eff}


def cost_prior_for_wire(priors: Priors, model: str) -> dict[str, object] | None:
    """Return one model's `cost_prior` field of a declared router, or None where its bills are not
    known.
    """
    costs = priors.costs
    if costs is None or model not in costs.models:
        return None
    index = costs.models.index(model)
    return {
        "A": costs.A[index].tolist(),
        "b": costs.b[index].tolist(),
        "mean_usd": float(costs.means[index]),
    }


def fields_for_wire(priors: Priors, model: str) -> dict[str, object]:
    """Return a model's priors as fields of its declaration.

    Raises:
        UnusableArrays: they say nothing of it.
    """
    cost_prior = cost_prior_for_wire(priors, model)
    # The model was billed but never judged.
    if cost_prior is not None and model not in priors.models:
        return {"cost_prior": cost_prior}
    prior = prior_for_wire(priors, model)
    return {"prior": prior} if cost_prior is None else {"prior": prior, "cost_prior": cost_prior}
