"""Warm-up priors: what offline judgements say about each model, as a design matrix and a response."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streams.files.array_folder import Array, UnusableArrays, checksum_arrays, read_arrays, write_arrays

_NAME = "priors"


@dataclass(frozen=True, slots=True, eq=False)
class Priors:
    """One (A, b) per model, in the coordinates of one projection.

    Args:
        models: K names, in the arrays' order.
        A: shape (K, d, d), ridge·I + Σ xxᵀ.
        b: shape (K, d), Σ reward·x.
        projection: checksum of the projection that made x.
    """

    models: tuple[str, ...]
    A: Array
    b: Array
    projection: str

    def __post_init__(self) -> None:
        count = len(self.models)
        d = self.b.shape[-1]
        if self.A.shape != (count, d, d) or self.b.shape != (count, d):
            raise UnusableArrays(f"{count} models, but A {self.A.shape} and b {self.b.shape}")

    @property
    def dimensions(self) -> int:
        """The length d of the contexts they were fitted on."""
        return int(self.b.shape[1])

    @property
    def checksum(self) -> str:
        """The SHA-256 by which a declaration refers to these priors."""
        return checksum_arrays(self._arrays(), self._details())

    def save(self, folder: Path) -> str:
        """Write `priors.npz` and `priors.json` into `folder`; return the checksum."""
        return write_arrays(folder, _NAME, self._arrays(), self._details())

    def _arrays(self) -> dict[str, Array]:
        return {"A": self.A, "b": self.b}

    def _details(self) -> dict[str, Any]:
        return {"models": list(self.models), "projection": self.projection}


def load_priors(folder: Path) -> Priors:
    """Read saved priors.

    Raises:
        UnusableArrays: missing, another version, damaged, or arrays that do not fit together.
    """
    stored = read_arrays(folder, _NAME)
    try:
        details, arrays = stored.details, stored.arrays
        return Priors(tuple(details["models"]), arrays["A"], arrays["b"], str(details["projection"]))
    except KeyError as absent:
        raise UnusableArrays(f"{folder}/{_NAME} lacks {absent}") from absent


def prior_for_wire(priors: Priors, model: str, *, n_eff: float | None = None) -> dict[str, Any]:
    """Return one model's prior as the JSON-able `prior` field of a declared router.

    Args:
        n_eff: how many observations the prior shall count for, > 0; None leaves it to the router's `t_adapt`.

    Raises:
        UnusableArrays: there is no prior for the model.
    """
    if model not in priors.models:
        raise UnusableArrays(f"no prior for {model!r}; there are priors for {', '.join(priors.models)}")
    index = priors.models.index(model)
    prior = {"A": priors.A[index].tolist(), "b": priors.b[index].tolist()}
    return prior if n_eff is None else {**prior, "n_eff": n_eff}
