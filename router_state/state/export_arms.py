"""What a file holds of a router's arms, each one's and what they share, and back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from router_state.arm import SCALARS, Arm
from router_state.arms import Arms
from router_state.change.detector import Side, Suspicion, Watch
from router_state.change.novelty import Familiar
from router_state.config import Price
from router_state.learning.linalg import lower_triangle
from router_state.state.export_config import PRICE
from router_state.state.export_fields import Array, Pieces, Values, fields_of, values_of
from router_state.state.framing import Json
from router_state.state.snapshot import paid_of

ARM = SCALARS
"""Of `Arm.scalars`."""
SUSPICION = ("offset", "count", "evidence", "since", "after")
"""Of a `Suspicion`, in the order of `Suspicion.pack`."""
SIDE = ("evidence", "count", "total", "since")
"""Of one side of the CUSUM on residuals."""
COSTS = ("smear", "smeared", "awaited")
"""Of `CostModel.scalars`."""
FAMILIAR = ("mean", "deviation", "count", "lately")
"""Of `Familiar.pack`, in leverages of the bias; `count` in prompts."""
POOL = ("ridge", "bias_ridge", "shared_ridge", "noise", "fourth", "noise_count", "seen", "due_at")
"""Of a `Pool`, in the order of its piece."""


def arm_values(arm: Arm) -> Values:
    """Return what a file names of one arm, its arrays apart."""
    suspicion = arm.suspicion
    return {
        "name": arm.name,
        "price": fields_of(arm.price, PRICE),
        **dict(zip(ARM, arm.scalars(), strict=True)),
        "watch": _watch(arm.watch),
        "suspicion": None if suspicion is None else fields_of(suspicion, SUSPICION),
        "costs": {
            "decay": arm.costs.decay,
            "watch": _watch(arm.costs.watch),
            "pending": arm.costs.pending,
        },
    }


def shared_values(arms: Arms) -> Values:
    """Return what arms conclude from together, and of each what only that needs."""
    return {
        "costs": [dict(zip(COSTS, costs.scalars(), strict=True)) for costs in arms.costs],
        "familiar": [fields_of(costs.familiar, FAMILIAR) for costs in arms.costs],
        **paid_of(arms),
        "rewards": fields_of(arms.rewards, POOL),
        "bills": fields_of(arms.bills, POOL),
        "draw": {"levels": arms.doubt.levels, "drawn": arms.doubt.drawn, "left": arms.doubt.left},
    }


def restore_shared(arms: Arms, body: Mapping[str, Json], pieces: Pieces) -> None:
    """Invert `shared_values`, with its arrays."""
    names = ("costs", "familiar", "paid", "rewards", "bills", "draw")
    # Written before it was known which prompts are new to a model: none. No bill was of nothing:
    # none.
    costs, familiar, paid, rewards, bills, draw = values_of(
        "what arms share", {"familiar": [], "paid": [], **body}, names
    )
    for model, share in zip(arms.costs, paid, strict=bool(paid)):
        model.paid = share
    for model, packed in zip(arms.costs, costs, strict=True):
        model.restore_scalars(values_of("a cost model", packed, COSTS))
    for model, packed in zip(arms.costs, familiar, strict=bool(familiar)):
        model.familiar = Familiar(*values_of("what a model is used to", packed, FAMILIAR))
    for name, pool, packed in (("rewards", arms.rewards, rewards), ("bills", arms.bills, bills)):
        for field, value in zip(POOL, values_of("a pool", packed, POOL), strict=True):
            setattr(pool, field, value)
        pool.mean, pool.center = (
            pieces.take(f"{name}/{part}", arms.d).copy() for part in ("mean", "center")
        )
    doubt = arms.doubt
    doubt.levels, doubt.drawn, doubt.left = values_of("the draw", draw, ("levels", "drawn", "left"))
    doubt.offsets, doubt.center = (
        pieces.take("draw/offsets", len(arms), arms.d).copy(),
        pieces.take("draw/center", arms.d).copy(),
    )


def _watch(watch: Watch) -> Values:
    return {
        "sigma": watch.sigma,
        "mean": watch.mean,
        "up": fields_of(watch.up, SIDE),
        "down": fields_of(watch.down, SIDE),
    }


def _restored_watch(body: Mapping[str, Json]) -> Watch:
    sigma, mean, up, down = values_of("a watch", body, ("sigma", "mean", "up", "down"))
    return Watch(sigma, mean, *(Side(*values_of("a side", side, SIDE)) for side in (up, down)))


def arm_arrays(arms: Arms) -> dict[str, Array]:
    """Return the arrays of all arms, and of what they share, by their names in a file."""
    found: dict[str, Array] = {}
    lower = lower_triangle(arms.d)
    for k, arm in enumerate(arms):
        inverse, theta, *_ = arm.belief.pack()
        found[f"arm/{k}/inverse"] = inverse.astype("<f8")
        found[f"arm/{k}/theta"] = theta.astype("<f8")
        found[f"arm/{k}/tails"] = arm.belief.tails[: arm.belief.pending].astype("<f8")
        found[f"arm/{k}/costs/inverse"] = arm.costs.inverse.ravel()[lower].astype("<f8")
        found[f"arm/{k}/costs/w"] = arm.costs.w.astype("<f8")
        if arm.costs.pending:
            found[f"arm/{k}/costs/tails"] = arm.costs.tails[: arm.costs.pending].astype("<f8")
    for name, pool in (("rewards", arms.rewards), ("bills", arms.bills)):
        found[f"{name}/mean"], found[f"{name}/center"] = (
            pool.mean.astype("<f8"),
            pool.center.astype("<f8"),
        )
    found["draw/offsets"], found["draw/center"] = (
        arms.doubt.offsets.astype("<f8"),
        arms.doubt.center.astype("<f8"),
    )
    return found


def restore_arms(arms: Arms, packed: list[Mapping[str, Json]], pieces: Pieces) -> None:
    """Invert `arm_values` for all arms, with their arrays."""
    d = arms.d
    names = ("name", "price", *ARM, "watch", "suspicion", "costs")
    bodies = [dict(zip(names, values_of("an arm", arm, names), strict=True)) for arm in packed]
    for body in bodies:
        arms.restore(
            body["name"],
            Price(*values_of("a price", body["price"], PRICE)),
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
        decay, watch, pending = values_of(
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
            arm.suspicion = Suspicion(*values_of("a suspicion", body["suspicion"], SUSPICION))
    arms.derive()
