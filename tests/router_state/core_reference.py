"""The core's mathematics once more, dense and slow, out of plain lists: what the tests compare it
with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from benchmarks.played import Played
from router_state.asking.label_budget import LabelBudget
from router_state.cache_price import CachePrice
from router_state.capability import Capability
from router_state.changes import CONFIG, HEAD
from router_state.config import ModelConfig, Price, RouterConfig
from router_state.engine import Engine
from router_state.families.family_declared import FamilyDeclared
from router_state.incumbents.assigning import Incumbent
from router_state.kernel import Regression, SharedPrior
from router_state.latency.goal import LatencyGoal
from router_state.needs.offers import Offers
from router_state.profiles import knobs_for
from router_state.record import RequestRecord
from router_state.router import RouterState
from router_state.state import record_bytes, restoring, state_pieces

C = TypeVar("C", bound=Capability)

Array = npt.NDArray[np.float64]

_NAMES = {CONFIG: "config", HEAD: "head"}
CHEAP, MIDDLE, DEAR = Price(0.1, 0.1), Price(0.5, 1.5), Price(1.25, 10.0)
PORTFOLIO = {"cheap": CHEAP, "middle": MIDDLE, "dear": DEAR}


def declaration(
    prices: Mapping[str, Price] = PORTFOLIO,
    *,
    budget: float | None = 5e-4,
    dimensions: int = 4,
    profile: str = "paper",
    pulls: int | None = 0,
    offset: int = 0,
    offers: Mapping[str, Offers] | None = None,
    caches: Mapping[str, CachePrice] | None = None,
    latency: LatencyGoal | None = None,
    error_reward: float | None = None,
    incumbent: Incumbent | None = None,
    family: FamilyDeclared | None = None,
    others: Mapping[str, Any] | None = None,
    labels: LabelBudget | None = None,
    **knobs: Any,
) -> RouterConfig:
    """Return a router of these models without priors."""
    models = {name: ModelConfig(price, onboarding_pulls=pulls) for name, price in prices.items()}
    declared = {
        "offers": offers or None,
        "caches": caches or None,
        "error_reward": error_reward,
        "latency": latency,
        "incumbent": incumbent,
        "family": family,
        **(others or {}),
        "labels": labels,
    }
    return RouterConfig(
        models=models,
        budget_usd_per_request=budget,
        dimensions=dimensions,
        profile=profile,
        knobs=knobs_for(profile, knobs),
        offset=offset,
        capabilities={name: one for name, one in declared.items() if one is not None},
    )


def context(*features: float) -> Array:
    """Return these features and the bias."""
    return np.array([*features, 1.0])


@dataclass
class Observation:
    """A reward as an arm learned it, at clock t."""

    t: int
    x: Array
    reward: float
    withdrawn: bool = False


@dataclass
class DenseArm:
    """An arm that remembers every observation and computes its statistics anew each time."""

    born: int = 0
    observations: list[Observation] = field(default_factory=list)

    def statistics(self, *, gamma: float, ridge: float, d: int) -> tuple[Array, Array]:
        """Return A (d, d) and b (d,) as of the last observation."""
        A, b, left, last = ridge * np.eye(d), np.zeros(d), 1.0, self.born
        for seen in self.observations:
            g = gamma ** min(seen.t - last, 1000)
            last = seen.t
            A, b, left = g * A, g * b, g * left
            if left < 0.1:
                A, left = A + (1.0 - left) * ridge * np.eye(d), 1.0
            if not seen.withdrawn:
                A, b = A + np.outer(seen.x, seen.x), b + seen.reward * seen.x
        return A, b


def weighted_sums(
    observations: Sequence[Observation], *, gamma: float, ridge: float, d: int
) -> tuple[Array, Array]:
    """Return A and b as one sum, each observation with its weight γ^age, where the ridge was never
    restored.
    """
    end = observations[-1].t
    A = ridge * gamma**end * np.eye(d)
    b = np.zeros(d)
    for seen in observations:
        weight = gamma ** (end - seen.t)
        A += weight * np.outer(seen.x, seen.x)
        b += weight * seen.reward * seen.x
    return A, b


def observed(regression: Regression, prior: SharedPrior) -> Array:
    """Return Σ xxᵀ, shape (d, d), of what a regression has observed, as much as is left of it."""
    seen: Array = regression.A() - regression.decay * np.diag(prior.ridges)
    return seen


def having(state: RouterState, kind: type[C]) -> C:
    """Return a router's capability of a kind, which it must have."""
    found = state.having(kind)
    assert found is not None
    return found


def freeze(engine: Engine) -> dict[str, bytes]:
    """Return everything that a router is, as bytes, piece by piece."""
    state = engine.state
    pieces = {named(name): piece for name, piece in state_pieces.pack_pieces(state).items()}
    return pieces | {
        f"request {request_id}": record_bytes.pack_record(record)
        for request_id, record in engine.records.items()
    }


def named(piece: str) -> str:
    """Return how `freeze` calls a piece."""
    return _NAMES.get(piece, f"array {piece}")


def thaw(pieces: Mapping[str, bytes], contexts: Mapping[str, Array]) -> Played:
    """Invert `freeze`; the contexts of the requests were kept elsewhere."""
    records: dict[str, RequestRecord] = {}
    for key, data in pieces.items():
        if key.startswith("request "):
            record = record_bytes.unpack_record(data)
            record.x = contexts[key.removeprefix("request ")]
            records[key.removeprefix("request ")] = record
    awaited = {request_id: r.decided_at for request_id, r in records.items() if r.is_awaited}
    state = restoring.unpack(lambda name: pieces.get(named(name)), awaited)
    return Played(state, records)


def same(left: float, right: float, *, tolerance: float = 1e-9) -> bool:
    """Say whether two amounts are equal up to rounding."""
    return math.isclose(left, right, rel_tol=tolerance, abs_tol=tolerance * 1e-3)
