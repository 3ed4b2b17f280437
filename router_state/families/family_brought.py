"""Knowledge of another family, or of histories, that begins a family."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from router_state.families.family_fit import conclude
from router_state.families.family_kin import Kin, Scatter
from router_state.families.family_reports import Model
from router_state.families.family_sums import sums_of


class Brought(Struct, frozen=True):
    """Knowledge of another family, by model.

    Attributes:
        d, projection: dimensions of contexts, and the projection that makes them. noise: σ² of
            rewards and of bills.
        models: statements of all members (`Kin.total_of`), and the knowledge of the numbers that
            they share (`family_shared.Known`).
        scatter: scatter of rewards and of bills, by model.
    """

    d: int
    projection: str
    noise: tuple[float, float]
    models: dict[str, Model]
    scatter: dict[str, tuple[tuple[float, float], tuple[float, float]]]

    def sums(self) -> Iterator[tuple[str, bytes]]:
        """Yield each model's name with its sums, as bytes."""
        for name, model in self.models.items():
            for data in filter(None, model.sides):
                yield name, data

    def count(self, kin: Kin, side: int) -> None:
        """Let a regression of the family begin with this knowledge; `side` is 0 for rewards, 1 for
        bills."""
        if self.noise[side]:
            kin.noise = self.noise[side]
        for name in self.models:
            kin.brought.pop(name, None)
        sums = {name: data for name, one in self.models.items() if (data := one.sides[side])}
        kin.brought |= {name: sums_of(data, self.d) for name, data in sums.items()}
        kin.scatter |= {name: Scatter(*self.scatter[name][side]) for name in sums}
        if not kin.brought:
            return
        scatters = [kin.scatter_of(name) for name in kin.brought]
        kin.common = Scatter(
            _mean([one.ridge for one in scatters]), _mean([one.bias for one in scatters])
        )
        if not kin.total:
            conclude(kin, sorted(kin.brought))


def _mean(ridges: list[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(ridges))))
