"""The entrants by name: their settings, and the value that trades reward against dollars."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from benchmarks.arena import Policy
from benchmarks.beside.bandits import Kind, Linear, VowpalWabbit, has_vowpal_wabbit
from benchmarks.beside.field import Field
from benchmarks.beside.litellm_routers import Adaptive
from benchmarks.policies import core

Trade = Literal["budget", "price", "weight"]
OURS = "live"
COUNT = 10
"""Budgets, prices of a dollar or weights that one curve is drawn from."""
WEIGHTS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.55, 0.7, 1.0)
"""Weights of LiteLLM's list price."""

Maker = Callable[[Field | None, int, float], Policy]


@dataclass(frozen=True, slots=True)
class Entrant:
    """An online router.

    Attributes:
        trade: what its curve is drawn over: budgets, prices of a dollar, or LiteLLM's weights.
        settings: makers by the setting's name, from a field, a seed and a value of `trade`.
    """

    trade: Trade
    settings: Mapping[str, Maker]

    def values(self, field: Field) -> tuple[float, ...]:
        """Return the values that its curve is drawn over."""
        if self.trade == "budget":
            return field.budgets(COUNT)
        return field.prices_of_a_dollar(COUNT) if self.trade == "price" else WEIGHTS


def _core(
    profile: str, knobs: Mapping[str, float], field: Field | None, seed: int, value: float
) -> Policy:
    return core(profile, knobs)(seed)


def _linear(kind: Kind, explore: float) -> Maker:
    return lambda field, seed, value: Linear(seed, value, kind=kind, explore=explore)


def _vowpal(options: str, field: Field | None, seed: int, value: float) -> Policy:
    return VowpalWabbit(seed, value, options=options)


def _adaptive(field: Field | None, seed: int, value: float) -> Policy:
    assert field is not None
    return Adaptive(seed, value, field=field)


ENTRANTS: dict[str, Entrant] = {
    OURS: Entrant("budget", {"as shipped": partial(_core, "live", {})}),
    "ParetoBandit": Entrant(
        "budget",
        {
            f"α {alpha:g}": partial(_core, "paper", {"lambda_c": 0.0, "alpha": alpha})
            for alpha in (0.01, 0.1, 1.0)
        },
    ),
    "LinUCB": Entrant("price", {f"α {a:g}": _linear("ucb", a) for a in (0.03, 0.1, 0.3, 1.0)}),
    "LinTS": Entrant("price", {f"σ {s:g}": _linear("sample", s) for s in (0.03, 0.1, 0.3)}),
    "ε-greedy": Entrant("price", {f"ε {e:g}": _linear("greedy", e) for e in (0.02, 0.05, 0.1)}),
    "LiteLLM adaptive": Entrant("weight", {"as shipped": _adaptive}),
}
"""The online routers. ParetoBandit is the `paper` profile, equal to the reference library decision
for decision (`lab/docs/parity.md`)."""
if has_vowpal_wabbit():
    ENTRANTS["Vowpal Wabbit"] = Entrant(
        "price",
        {
            name: partial(_vowpal, options)
            for name, options in {
                "ε 0.05": "--epsilon 0.05",
                "SquareCB": "--squarecb",
                "bag of 5": "--bag 5",
            }.items()
        },
    )
