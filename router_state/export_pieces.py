"""A router's state as named pieces, values and arrays, and back: what a file holds, however the
program keeps it.

Every name that is written stands here, so that a change of the program's objects does not change a
file. A piece that is added later has a name of its own; where a file lacks it, the reader says here
what it was before. A name that the reader does not know is an error: a router would go on without
it, and nobody would see.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from router_state import migration
from router_state.arms import Arm, Arms
from router_state.arrays import lower_triangle
from router_state.caps import Bucket
from router_state.config import (
    Cap,
    ModelConfig,
    Price,
    ProjectionRef,
    RouterConfig,
    knobs_for,
)
from router_state.drift import Side, Suspicion, Watch
from router_state.dual_pacer import DualPacer
from router_state.errors import CorruptSnapshot
from router_state.export_checks import check
from router_state.familiar import Familiar
from router_state.framing import Json
from router_state.pacing import EmaPacer, Pacer
from router_state.snapshot import (
    paid_of,
    restore_counters,
    restore_pacer,
    restore_tokens,
    tokens_of,
)
from router_state.state import RouterState

MAX_DIMENSIONS = 4096
"""Above it a file is refused before arrays of d² numbers are made of it."""
COUNTERS = (
    "t",
    "seq",
    "settled",
    "expired",
    "rewards_applied",
    "spend_usd",
    "committed_usd",
    "unmatched_cost_usd",
    "latest",
    "unreachable",
)
"""Of the books, by the names of `RouterState`."""
KNOBS = (
    "alpha",
    "gamma",
    "lambda_c",
    "ridge",
    "v_max",
    "n_eff",
    "onboarding_pulls",
    "epsilon",
    "seed",
    "commitment_ttl_seconds",
    "dollar_dual",
    "commit_and_settle",
    "feedback_clock",
    "drift_alarms",
    "paced_onboarding",
    "shared_learning",
)
"""Of a configuration."""
PRICE = ("input_price_per_m", "output_price_per_m")
"""Dollars per million tokens."""
CAP = ("usd", "seconds", "hard")
"""Dollars, seconds, and whether it stops traffic."""
REF = ("ref", "sha256")
"""Of a projection."""
BUCKET = ("left_usd", "at", "reached")
"""Dollars left, at which second since the epoch, and whether its alert was raised."""
ARM = (
    "decay",
    "forgotten",
    "last_update",
    "last_played",
    "pulls_left",
    "pending",
    "ratio",
    "bills",
    "retired_at",
)
"""Of `Arm.scalars`."""
SUSPICION = ("offset", "count", "evidence", "since", "after")
"""Of a `Suspicion`, in the order of `Suspicion.pack`."""
SIDE = ("evidence", "count", "total", "since")
"""Of one side of the CUSUM on residuals."""
DUAL = ("lambda_t", "debt_usd", "target_usd", "stale")
"""Of `DualPacer`: dimensionless, dollars, dollars per request, decisions."""
EMA = ("lambda_t", "cost_ema_usd")
"""Of `EmaPacer`: dimensionless, dollars per request."""
COSTS = ("smear", "smeared", "awaited")
"""Of `CostModel.scalars`."""
FAMILIAR = ("mean", "deviation", "count", "lately")
"""Of `Familiar.pack`, in leverages of the bias; `count` in prompts."""
POOL = ("ridge", "bias_ridge", "shared_ridge", "noise", "fourth", "noise_count", "seen", "due_at")
"""Of a `Pool`, in the order of its piece."""
RNG = ("state", "inc", "has_uint32", "uinteger")
"""Fields by their name in a file; they do not follow the objects' names, see above."""

Values = dict[str, Json]
Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Pieces:
    """What a file holds of a state: JSON values, and arrays by name."""

    values: Values
    arrays: dict[str, Array]

    def take(self, name: str, *shape: int) -> Array:
        """Return an array and take it out. Raises CorruptSnapshot where it has another shape."""
        array = self.arrays.pop(name)
        if array.shape != shape:
            raise CorruptSnapshot(f"{name} has the shape {array.shape}, not {shape}")
        return array


def gathered(state: RouterState) -> Pieces:
    """Return everything that a router goes on from; its requests are not part of it."""
    values = {
        "config": _config(state.config),
        "counters": _fields(state, COUNTERS),
        "pacer": _pacer(state.pacer),
        "buckets": [_fields(bucket, BUCKET) for bucket in state.buckets],
        "rng": _rng(state.rng),
        "arms": [_arm(arm) for arm in state.arms],
        "shared": _shared(state.arms),
        **({"tokens": tokens_of(state.arms)} if state.arms.tokens.count else {}),
    }
    return Pieces(values, _arrays(state))


def restored(pieces: Pieces) -> RouterState:
    """Invert `gathered`. Raises CorruptSnapshot, LookupError, TypeError, ValueError."""
    names = ("config", "counters", "pacer", "buckets", "rng", "arms", "shared", "tokens")
    # Written before arms learned together: None. No request has said its tokens: None.
    config, counters, pacer, buckets, rng, arms, shared, tokens = _known(
        "the router", {"shared": None, "tokens": None, **pieces.values}, names
    )
    state = RouterState.start(_restored_config(config))
    named = dict(zip(COUNTERS, _known("its counters", counters, COUNTERS), strict=True))
    restore_counters(state, named)
    state.rng.bit_generator.state = _restored_rng(rng)
    declared = zip(state.config.caps, buckets, strict=True)
    state.buckets = [Bucket(cap, *_known("a cap", bucket, BUCKET)) for cap, bucket in declared]
    _restore_arms(state, arms, pieces)
    _restore_pacer(state, pacer, pieces, unreachable=named["unreachable"])
    if shared is None:
        check(state)
        migration.share(state)
    else:
        _restore_shared(state.arms, shared, pieces)
    if tokens is not None:
        restore_tokens(state.arms, tokens)
    if pieces.arrays:
        raise CorruptSnapshot(_unknown("the router", pieces.arrays))
    return state


def _fields(thing: object, names: Iterable[str]) -> Values:
    return {name: getattr(thing, name) for name in names}


def _known(what: str, body: Mapping[str, Json], names: tuple[str, ...]) -> list[Json]:
    """Return a piece's values in the order of their names. Raises CorruptSnapshot for a name that
    is none of these."""
    if unknown := set(body) - set(names):
        raise CorruptSnapshot(_unknown(what, unknown))
    return [body[name] for name in names]


def _unknown(what: str, names: Iterable[str]) -> str:
    unknown = ", ".join(sorted(names))
    return f"{what} has {unknown}, which this program does not know: use a newer pbstream"


def _config(config: RouterConfig) -> Values:
    return {
        "models": {
            name: {**_fields(model.price, PRICE), "onboarding_pulls": model.onboarding_pulls}
            for name, model in config.models.items()
        },
        "budget_usd_per_request": config.budget_usd_per_request,
        "dimensions": config.dimensions,
        "profile": config.profile,
        "knobs": _fields(config.knobs, KNOBS),
        "caps": [_fields(cap, CAP) for cap in config.caps],
        **({} if config.projection is None else {"projection": _fields(config.projection, REF)}),
    }


def _restored_config(body: Mapping[str, Json]) -> RouterConfig:
    names = ("models", "budget_usd_per_request", "dimensions", "profile", "knobs", "caps")
    # Routers had no projection of their own at first: None.
    models, budget, dimensions, profile, knobs, caps, projection = _known(
        "the configuration", {"projection": None, **body}, (*names, "projection")
    )
    if not 2 <= dimensions <= MAX_DIMENSIONS:  # before anything of that size is made
        raise CorruptSnapshot(f"{dimensions} dimensions can't be")
    known = {
        name: _known(f"model {name}", model, (*PRICE, "onboarding_pulls"))
        for name, model in models.items()
    }
    return RouterConfig(
        models={
            name: ModelConfig(Price(i, o), None, pulls) for name, (i, o, pulls) in known.items()
        },
        budget_usd_per_request=budget,
        dimensions=dimensions,
        profile=profile,
        knobs=knobs_for(profile, knobs),
        caps=tuple(Cap(*_known("a cap", cap, CAP)) for cap in caps),
        projection=projection and ProjectionRef(*_known("the projection", projection, REF)),
    )


def _rng(rng: np.random.Generator) -> Values:
    found = rng.bit_generator.state
    state, inc = (
        f"{found['state'][name]:x}" for name in ("state", "inc")
    )  # 128 bits, more than JSON's integers
    return {
        "state": state,
        "inc": inc,
        "has_uint32": found["has_uint32"],
        "uinteger": found["uinteger"],
    }


def _restored_rng(body: Mapping[str, Json]) -> Values:
    state, inc, has_uint32, uinteger = _known("the random generator", body, RNG)
    return {
        "bit_generator": "PCG64",
        "state": {"state": int(state, 16), "inc": int(inc, 16)},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }


def _pacer(pacer: Pacer) -> Values | None:
    if isinstance(pacer, DualPacer):
        window, scalars = pacer.window, dict(zip(DUAL, pacer.scalars(), strict=True))
        limited = {str(slot): sorted(models) for slot, models in window.limited.items()}
        return {
            "dual": {
                **scalars,
                "idle": pacer.idle,
                "window": {"size": window.size, "next": window.next, "limited": limited},
            }
        }
    return {"ema": _fields(pacer, EMA)} if isinstance(pacer, EmaPacer) else None


def _restore_pacer(
    state: RouterState, body: Mapping[str, Json] | None, pieces: Pieces, *, unreachable: bool
) -> None:
    if body is None or "ema" in body:
        restore_pacer(
            state,
            None if body is None else {"ema": _known("the pacer", body["ema"], EMA)},
            unreachable=unreachable,
        )
        return
    # Written before credit was kept for a while: 0.
    *scalars, idle, packed = _known(
        "the pacer", {"idle": 0, **body["dual"]}, (*DUAL, "idle", "window")
    )
    size, following, limited = _known("the window", packed, ("size", "next", "limited"))
    window = restore_pacer(
        state,
        {"dual": scalars, "size": size, "next": following, "idle": idle},
        unreachable=unreachable,
    )
    if window is not None:
        window.reserve(size)
        window.contexts[:size] = pieces.take("window", size, state.arms.d)
        window.limited = {int(slot): frozenset(models) for slot, models in limited.items()}


def _arm(arm: Arm) -> Values:
    suspicion = arm.suspicion
    return {
        "name": arm.name,
        "price": _fields(arm.price, PRICE),
        **dict(zip(ARM, arm.scalars(), strict=True)),
        "watch": _watch(arm.watch),
        "suspicion": None if suspicion is None else _fields(suspicion, SUSPICION),
        "costs": {
            "decay": arm.costs.decay,
            "watch": _watch(arm.costs.watch),
            "pending": arm.costs.pending,
        },
    }


def _shared(arms: Arms) -> Values:
    return {
        "costs": [dict(zip(COSTS, costs.scalars(), strict=True)) for costs in arms.costs],
        "familiar": [_fields(costs.familiar, FAMILIAR) for costs in arms.costs],
        **paid_of(arms),
        "rewards": _fields(arms.rewards, POOL),
        "bills": _fields(arms.bills, POOL),
        "draw": {"levels": arms.doubt.levels, "drawn": arms.doubt.drawn, "left": arms.doubt.left},
    }


def _restore_shared(arms: Arms, body: Mapping[str, Json], pieces: Pieces) -> None:
    names = ("costs", "familiar", "paid", "rewards", "bills", "draw")
    # Written before it was known which prompts are new to a model: none. No bill was of nothing:
    # none.
    costs, familiar, paid, rewards, bills, draw = _known(
        "what arms share", {"familiar": [], "paid": [], **body}, names
    )
    for model, share in zip(arms.costs, paid, strict=bool(paid)):
        model.paid = share
    for model, packed in zip(arms.costs, costs, strict=True):
        model.restore_scalars(_known("a cost model", packed, COSTS))
    for model, packed in zip(arms.costs, familiar, strict=bool(familiar)):
        model.familiar = Familiar(*_known("what a model is used to", packed, FAMILIAR))
    for name, pool, packed in (("rewards", arms.rewards, rewards), ("bills", arms.bills, bills)):
        for field, value in zip(POOL, _known("a pool", packed, POOL), strict=True):
            setattr(pool, field, value)
        pool.mean, pool.center = (
            pieces.take(f"{name}/{part}", arms.d).copy() for part in ("mean", "center")
        )
    doubt = arms.doubt
    doubt.levels, doubt.drawn, doubt.left = _known("the draw", draw, ("levels", "drawn", "left"))
    doubt.offsets, doubt.center = (
        pieces.take("draw/offsets", len(arms), arms.d).copy(),
        pieces.take("draw/center", arms.d).copy(),
    )


def _watch(watch: Watch) -> Values:
    return {
        "sigma": watch.sigma,
        "mean": watch.mean,
        "up": _fields(watch.up, SIDE),
        "down": _fields(watch.down, SIDE),
    }


def _restored_watch(body: Mapping[str, Json]) -> Watch:
    sigma, mean, up, down = _known("a watch", body, ("sigma", "mean", "up", "down"))
    return Watch(sigma, mean, *(Side(*_known("a side", side, SIDE)) for side in (up, down)))


def _arrays(state: RouterState) -> dict[str, Array]:
    found: dict[str, Array] = {}
    lower = lower_triangle(state.arms.d)
    for k, arm in enumerate(state.arms):
        inverse, theta, _ = arm.belief.pack()
        found[f"arm/{k}/inverse"] = inverse.astype("<f8")
        found[f"arm/{k}/theta"] = theta.astype("<f8")
        found[f"arm/{k}/tails"] = arm.belief.tails[: arm.belief.pending].astype("<f8")
        found[f"arm/{k}/costs/inverse"] = arm.costs.inverse.ravel()[lower].astype("<f8")
        found[f"arm/{k}/costs/w"] = arm.costs.w.astype("<f8")
        if arm.costs.pending:
            found[f"arm/{k}/costs/tails"] = arm.costs.tails[: arm.costs.pending].astype("<f8")
    for name, pool in (("rewards", state.arms.rewards), ("bills", state.arms.bills)):
        found[f"{name}/mean"], found[f"{name}/center"] = (
            pool.mean.astype("<f8"),
            pool.center.astype("<f8"),
        )
    found["draw/offsets"], found["draw/center"] = (
        state.arms.doubt.offsets.astype("<f8"),
        state.arms.doubt.center.astype("<f8"),
    )
    if isinstance(state.pacer, DualPacer):
        found["window"] = state.pacer.window.contexts[: state.pacer.window.size].astype("<f4")
    return found


def _restore_arms(state: RouterState, packed: list[Mapping[str, Json]], pieces: Pieces) -> None:
    arms, d = state.arms, state.arms.d
    names = ("name", "price", *ARM, "watch", "suspicion", "costs")
    bodies = [dict(zip(names, _known("an arm", arm, names), strict=True)) for arm in packed]
    for body in bodies:
        arms.restore(
            body["name"],
            Price(*_known("a price", body["price"], PRICE)),
            [body[name] for name in ARM],
        )
    arms.make_room()
    half = d * (d + 1) // 2
    for k, (arm, body) in enumerate(zip(arms, bodies, strict=True)):
        pending = arm.belief.pending
        inverse, theta = pieces.take(f"arm/{k}/inverse", half), pieces.take(f"arm/{k}/theta", d)
        arm.belief.unpack(
            np.concatenate([inverse, theta, pieces.take(f"arm/{k}/tails", pending, d).ravel()])
        )
        # Written before rows could be pending: none are.
        decay, watch, pending = _known(
            "a cost model", {"pending": 0, **body["costs"]}, ("decay", "watch", "pending")
        )
        triangle, w = (
            pieces.take(f"arm/{k}/costs/inverse", half),
            pieces.take(f"arm/{k}/costs/w", d),
        )
        tails = pieces.take(f"arm/{k}/costs/tails", pending, d) if pending else np.zeros((0, d))
        arm.costs.restore(triangle, w, tails, decay=decay, watch=_restored_watch(watch))
        arm.watch = _restored_watch(body["watch"])
        if body["suspicion"] is not None:
            arm.suspicion = Suspicion(*_known("a suspicion", body["suspicion"], SUSPICION))
    arms.derive()
