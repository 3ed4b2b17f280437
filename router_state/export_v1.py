"""Layout 1 of an exported router: a JSON head and plain arrays. It never changes: a new layout gets a module of its own.

The length of the head (4 bytes, big-endian), the head, then arrays, little-endian, one after the other: of each arm A_hat⁻¹ (lower
triangle), θ, w, pending rows, the cost model's inverse (lower triangle); of the window the contexts, in single precision.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from router_state.caps import Bucket
from router_state.config import Cap, Knobs, ModelConfig, Price, RouterConfig
from router_state.drift import Suspicion, Watch
from router_state.dual import DualPacer
from router_state.errors import CorruptSnapshot
from router_state.pacing import EmaPacer
from router_state.pieces import fill_symmetric, lower_triangle, pack_watch, unpack_watch
from router_state.state import RouterState
from router_state.window import Window

_HEAD = struct.Struct(">I")
MAX_DIMENSIONS = 4096
ARM_SCALARS = ("decay", "forgotten", "last_update", "last_played", "pulls_left", "pending", "ratio", "bills", "retired_at")
COUNTERS = (
    "t", "seq", "settled", "expired", "rewards_applied", "spend_usd", "committed_usd", "unmatched_cost_usd", "latest",
    "unreachable",
)  # fmt: skip


def pack(state: RouterState, about: Mapping[str, str]) -> bytes:
    """Return head and arrays."""
    head = orjson.dumps(_head(state) | {"about": dict(about)})
    return b"".join([_HEAD.pack(len(head)), head, *(array.tobytes() for array in _gathered(state))])


def unpack(data: bytes) -> tuple[dict[str, str], RouterState]:
    """Invert `pack`: what the writer said about it, and the state. Raises CorruptSnapshot, LookupError, TypeError, ValueError."""
    size = int.from_bytes(data[: _HEAD.size], "big")
    head = orjson.loads(data[_HEAD.size : _HEAD.size + size])
    about = {str(name): str(value) for name, value in head["about"].items()}
    return about, _restored(head, data[_HEAD.size + size :])


def _head(state: RouterState) -> dict[str, Any]:
    arms, config, rng = state.arms, state.config, state.rng.bit_generator.state
    return {
        "config": {
            "models": {
                name: [model.price.input_price_per_m, model.price.output_price_per_m, model.onboarding_pulls]
                for name, model in config.models.items()
            },
            "budget": config.budget_usd_per_request,
            "dimensions": config.dimensions,
            "profile": config.profile,
            "knobs": {name: getattr(config.knobs, name) for name in Knobs.__slots__},
            "caps": [[cap.usd, cap.seconds, cap.hard] for cap in config.caps],
        },
        "counters": {name: getattr(state, name) for name in COUNTERS},
        "pacer": _pacer(state.pacer),
        "buckets": [[bucket.left_usd, bucket.at, bucket.reached] for bucket in state.buckets],
        "rng": [f"{rng['state']['state']:x}", f"{rng['state']['inc']:x}", rng["has_uint32"], rng["uinteger"]],
        "arms": [
            {
                "name": name,
                "price": [arms.price[k].input_price_per_m, arms.price[k].output_price_per_m],
                "scalars": [getattr(arms, scalar)[k] for scalar in ARM_SCALARS],
                "watch": pack_watch(arms.watch[k]),
                "suspicion": _suspicion(arms.suspicion[k]),
                "cost_decay": arms.costs[k].decay,
                "cost_watch": pack_watch(arms.costs[k].watch),
            }
            for k, name in enumerate(arms.names)
        ],
    }


def _pacer(pacer: EmaPacer | DualPacer | None) -> dict[str, Any] | None:
    if isinstance(pacer, DualPacer):
        limited = {str(slot): sorted(models) for slot, models in pacer.window.limited.items()}
        scalars = [pacer.lambda_t, pacer.debt_usd, pacer.target_usd, pacer.stale]
        return {"dual": scalars, "size": pacer.window.size, "next": pacer.window.next, "limited": limited}
    return None if pacer is None else {"ema": [pacer.lambda_t, pacer.cost_ema_usd]}


def _suspicion(suspicion: Suspicion | None) -> list[float] | None:
    return None if suspicion is None else [suspicion.offset, suspicion.count, suspicion.evidence, suspicion.since]


def _gathered(state: RouterState) -> Iterator[npt.NDArray[Any]]:
    arms = state.arms
    lower = lower_triangle(arms.d)
    for k in range(len(arms)):
        yield arms.A_hat_inv[k].ravel()[lower].astype("<f8")
        yield arms.theta[k].astype("<f8")
        yield arms.w[k].astype("<f8")
        yield arms.tails[k, : arms.pending[k]].astype("<f8")
        yield arms.costs[k].inverse.ravel()[lower].astype("<f8")
    if isinstance(state.pacer, DualPacer):
        yield state.pacer.window.contexts[: state.pacer.window.size].astype("<f4")


class _Arrays:
    """Take arrays off a file's end, in order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, *shape: int, kind: str = "<f8") -> npt.NDArray[Any]:
        """Return the next array. Raises CorruptSnapshot: the file is over."""
        count = int(np.prod(shape))
        end = self._at + count * np.dtype(kind).itemsize
        if min(shape) < 0 or end > len(self._data):
            raise CorruptSnapshot("its arrays are shorter than its head says")
        found = np.frombuffer(self._data[self._at : end], kind).reshape(shape)
        self._at = end
        return found

    def require(self, count: int) -> None:
        """Raise CorruptSnapshot where fewer than `count` numbers of eight bytes are left."""
        if self._at + 8 * count > len(self._data):
            raise CorruptSnapshot("its arrays are shorter than its head says")

    def finish(self) -> None:
        """Raise CorruptSnapshot where something is left."""
        if self._at != len(self._data):
            raise CorruptSnapshot("its arrays are longer than its head says")


def _restored(head: Mapping[str, Any], data: bytes) -> RouterState:
    state = RouterState.start(_config(head["config"]))
    for name in COUNTERS:
        setattr(state, name, head["counters"][name])
    seed, inc, has_uint32, uinteger = head["rng"]
    state.rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": int(seed, 16), "inc": int(inc, 16)},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }
    state.buckets = [Bucket(cap, *left) for cap, left in zip(state.config.caps, head["buckets"], strict=True)]
    arrays = _Arrays(data)
    _restore_arms(state, head["arms"], arrays)
    state.pacer = _restored_pacer(head["pacer"], arrays, d=state.arms.d)
    arrays.finish()
    return state


def _config(body: Mapping[str, Any]) -> RouterConfig:
    if not 2 <= body["dimensions"] <= MAX_DIMENSIONS:  # before anything of that size is made
        raise CorruptSnapshot(f"{body['dimensions']} dimensions can't be")
    return RouterConfig(
        models={name: ModelConfig(Price(i, o), None, pulls) for name, (i, o, pulls) in body["models"].items()},
        budget_usd_per_request=body["budget"],
        dimensions=body["dimensions"],
        profile=body["profile"],
        knobs=Knobs(**body["knobs"]),
        caps=tuple(Cap(usd, seconds, hard) for usd, seconds, hard in body["caps"]),
    )


def _restore_arms(state: RouterState, packed: list[Mapping[str, Any]], arrays: _Arrays) -> None:
    arms, d = state.arms, state.arms.d
    half = d * (d + 1) // 2
    arrays.require(len(packed) * (2 * half + 2 * d))
    columns = list(zip(*(arm["scalars"] for arm in packed), strict=True)) or [()] * len(ARM_SCALARS)
    scalars = {name: list(column) for name, column in zip(ARM_SCALARS, columns, strict=True)}
    arms.restore(tuple(arm["name"] for arm in packed), prices=[Price(*arm["price"]) for arm in packed], scalars=scalars)
    for k, arm in enumerate(packed):
        fill_symmetric(arms.A_hat_inv[k], arrays.take(half))
        arms.theta[k][:] = arrays.take(d)
        model = arms.costs[k]
        model.w[:] = arrays.take(d)
        arms.show_costs(k)
        arms.tails[k, : arms.pending[k]] = arrays.take(arms.pending[k], d)
        fill_symmetric(model.inverse, arrays.take(half))
        model.decay, model.watch = arm["cost_decay"], _watch(arm["cost_watch"])
        arms.watch[k] = _watch(arm["watch"])
        if arm["suspicion"] is not None:
            arms.suspicion[k] = Suspicion(*arm["suspicion"])
    arms.derive()


def _watch(values: list[float]) -> Watch:
    return unpack_watch([float(value) for value in values])


def _restored_pacer(packed: Mapping[str, Any] | None, arrays: _Arrays, *, d: int) -> EmaPacer | DualPacer | None:
    if packed is None:
        return None
    if "ema" in packed:
        return EmaPacer(*packed["ema"])
    window = Window(d)
    window.size, window.next = packed["size"], packed["next"]
    window.contexts[: window.size] = arrays.take(window.size, d, kind="<f4")
    window.limited = {int(slot): frozenset(models) for slot, models in packed["limited"].items()}
    lambda_t, debt_usd, target_usd, stale = packed["dual"]
    return DualPacer(lambda_t, debt_usd, target_usd, stale, window)
