"""A router as declared: models with prices, a budget, and the knobs of its profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Protocol, runtime_checkable

from router_state.errors import InvalidConfig
from router_state.kernel import MEMORY, given

Vector = given.Vector
Matrix = given.Matrix
Price = given.Price
Tier = given.Tier

MAX_COST_USD = 1000.0
"""Dollars of one bill (the wire contract)."""
LEAST_RIDGE = 1e-6
"""Least λ_0, in observations. With a smaller one, rounding next to a context of the largest norm
may leave a negative ridge.
"""


@dataclass(frozen=True, slots=True)
class CostPrior:
    """A prior of a model's bills: sums over earlier bills, at the declared list price.

    Attributes:
        A: Σ xxᵀ over the bills above zero, shape (d, d).
        b: Σ ln(dollars)·x over them, shape (d,).
        mean_usd: mean of all bills in dollars, bills of zero included.
        n_eff: how many bills the prior counts for; None: the number of earlier bills, up to
            `MOST_BILLS`.
    """

    A: Matrix
    b: Vector
    mean_usd: float
    n_eff: float | None = None


@dataclass(frozen=True, slots=True)
class Prior:
    """A prior of a model's rewards.

    A prior is one of three: offline statistics `A` (d, d) and `b` (d,); another model of the
    portfolio whose coefficients are copied (`like`); a guess of the mean reward
    (`expected_reward`). `n_eff` is the number of observations that the prior counts for; None: the
    profile's. `costs` is the prior of bills from the same file.
    """

    A: Matrix | None = None
    b: Vector | None = None
    like: str | None = None
    expected_reward: float | None = None
    n_eff: float | None = None
    costs: CostPrior | None = None


@dataclass(frozen=True, slots=True)
class ProjectionRef:
    """A reference to the projection of a router's prompts: a name that workers resolve, and a
    checksum.
    """

    ref: str
    sha256: str


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """One model of a portfolio.

    Attributes:
        onboarding_pulls: calls before the model's score decides; None: the profile's number for a
            model without a prior, 0 for a model with one.
        expected_cost_usd: expected mean cost of a request before the first bill, or None.
        cost_prior: prior of costs from earlier bills; `expected_cost_usd` replaces its mean.
    """

    price: Price
    prior: Prior | None = None
    onboarding_pulls: int | None = None
    expected_cost_usd: float | None = None
    cost_prior: CostPrior | None = None


@dataclass(frozen=True, slots=True)
class Knobs:
    """All parameters that tune a router.

    Attributes:
        alpha, lambda_c, ridge, v_max: used only by the profile `paper`, see
            docs/explanation/algorithm.md.
        gamma: factor by which an observation's weight falls with each step of the clock.
        n_eff: observations that a prior counts for by default.
        onboarding_pulls: calls of a joining model before its score decides.
        epsilon: share of requests that go to a random eligible model.
        seed: of the router's random generator.
        commitment_ttl_seconds: how long a bill is awaited.
    """

    alpha: float = 0.01
    gamma: float = 0.997
    lambda_c: float = 0.3
    ridge: float = 1.0
    v_max: float = 200.0
    n_eff: float = 1163.9
    onboarding_pulls: int = 20
    epsilon: float = 0.0
    seed: int = 0
    commitment_ttl_seconds: float = 900.0

    def __post_init__(self) -> None:
        # Each comparison is false for NaN.
        _require("alpha", self.alpha, 0.0 <= self.alpha < inf, "≥ 0")
        _require("gamma", self.gamma, 0.0 < self.gamma <= 1.0, "in (0, 1]")
        _require("lambda_c", self.lambda_c, 0.0 <= self.lambda_c < inf, "≥ 0")
        _require("ridge", self.ridge, LEAST_RIDGE <= self.ridge < inf, f"≥ {LEAST_RIDGE:g}")
        _require("v_max", self.v_max, 1.0 <= self.v_max < inf, "≥ 1")
        _require("n_eff", self.n_eff, 0.0 < self.n_eff < inf, "> 0")
        for name in ("onboarding_pulls", "seed"):
            value = getattr(self, name)
            _require(name, value, isinstance(value, int) and value >= 0, "a whole number ≥ 0")
        _require("epsilon", self.epsilon, 0.0 <= self.epsilon <= 1.0, "in [0, 1]")
        _require(
            "commitment_ttl_seconds",
            self.commitment_ttl_seconds,
            0.0 < self.commitment_ttl_seconds < inf,
            "> 0",
        )


def _require(name: str, value: float, fits: bool, what: str) -> None:
    if not fits:
        raise InvalidConfig(f"{name} must be finite and {what}, not {value}")


PAPER = Knobs()
"""Knobs as the reference library has them; parity is tested bit by bit."""
LIVE = Knobs(gamma=1.0 - 1.0 / MEMORY, lambda_c=0.0, onboarding_pulls=0)
"""Knobs for a service that is never reset; docs/explanation/algorithm.md gives the reason of
each.
"""


@runtime_checkable
class Checked(Protocol):
    """A capability's declaration that may contradict the rest of a router's."""

    def check(self, config: RouterConfig) -> None:
        """Raise InvalidConfig if the declaration contradicts the router's."""


@dataclass(frozen=True, slots=True)
class RouterConfig:
    """The declaration of a router. `offset` is its offset in `pb.routers`, the version of this
    configuration.

    `applied`: last offsets of `pb.costs` and `pb.rewards` that the state contained when this
        declaration came in force (−1: none).
    `projection`: projection of prompts; None: the workers' own. `capabilities`: declarations of
        capabilities by name, see `registered`. `snapshot`: the state from which the router starts,
        see `router_state.state.portable`; not used afterwards.
    """

    models: Mapping[str, ModelConfig]
    budget_usd_per_request: float | None = None
    dimensions: int = 26
    profile: str = "live"
    knobs: Knobs = LIVE
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    offset: int = 0
    applied: tuple[int, int] = (-1, -1)
    snapshot: bytes | None = None
    projection: ProjectionRef | None = None

    def __post_init__(self) -> None:
        budget = self.budget_usd_per_request
        if budget is not None and not 0.0 < budget < inf:
            raise InvalidConfig(f"budget_usd_per_request must be positive and finite, not {budget}")
        if self.dimensions < 2:
            raise InvalidConfig("dimensions must be at least 2: one feature and the bias")
        if self.profile == "paper" and self.paces:
            raise InvalidConfig(
                "profile 'paper' paces a budget per request alone: budget and min_reward need "
                "profile live"
            )
        for one in self.capabilities.values():
            if isinstance(one, Checked):
                one.check(self)

    @property
    def paces(self) -> bool:
        """Tell whether a capability sets the price of a dollar: its declaration has the attribute
        `paces`, see `Capability.pacer`.
        """
        return any(getattr(one, "paces", False) for one in self.capabilities.values())
