"""The arrays of a state as bytes and back, equal to the bit: one piece per arm, per cost model, per block of contexts."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import orjson

from router_state.arms import Arms
from router_state.config import Matrix, Vector
from router_state.drift import Run, Suspicion, Watch
from router_state.errors import CorruptSnapshot
from router_state.window import BLOCK, Window

WATCH_SIZE, SUSPICION_SIZE = 10, 5


@lru_cache
def lower_triangle(d: int) -> npt.NDArray[np.intp]:
    """Return where the lower triangle lies in a flattened (d, d) matrix."""
    rows, columns = np.tril_indices(d)
    return rows * d + columns


def fill_symmetric(matrix: Matrix, triangle: Vector) -> None:
    lower = lower_triangle(len(matrix))
    full = np.empty(matrix.size)
    full[lower] = triangle
    square = full.reshape(matrix.shape)
    square.T.flat[lower] = triangle
    matrix[:] = square


def _floats(data: bytes, *, least: int, most: int) -> Vector:
    values = np.frombuffer(data, "<f8") if len(data) % 8 == 0 else np.empty(0)
    if not least <= len(values) <= most:
        raise CorruptSnapshot(f"an array has {len(data)} bytes, not {least * 8} to {most * 8}")
    return values


def pack_watch(watch: Watch) -> list[float]:
    sides = [value for run in (watch.up, watch.down) for value in (run.evidence, run.count, run.total, run.since)]
    return [watch.sigma, watch.mean, *sides]


def unpack_watch(values: list[float]) -> Watch:
    up, down = (Run(evidence, int(count), total, since) for evidence, count, total, since in (values[2:6], values[6:10]))
    return Watch(values[0], values[1], up, down)


def pack_arm(arms: Arms, k: int) -> bytes:
    """Return row k: the lower triangle of A_hat's inverse, θ, the watch, pending tails, and the suspicion if there is one."""
    suspicion = arms.suspicion[k]
    scalars = pack_watch(arms.watch[k])
    if suspicion is not None:
        scalars += [suspicion.offset, suspicion.count, suspicion.evidence, suspicion.since, suspicion.after]
    tails = arms.tails[k, : arms.pending[k]].ravel()
    parts = (arms.A_hat_inv[k].ravel()[lower_triangle(arms.d)], arms.theta[k], tails, np.array(scalars, dtype=np.float64))
    return np.concatenate(parts).astype("<f8", copy=False).tobytes()


def unpack_arm(arms: Arms, k: int, data: bytes) -> None:
    """Fill row k in, `pending` being restored. Raises CorruptSnapshot."""
    d, n = arms.d, arms.pending[k]
    triangle = d * (d + 1) // 2
    ends = np.cumsum([triangle, d, n * d, WATCH_SIZE])
    values = _floats(data, least=ends[-1], most=ends[-1] + SUSPICION_SIZE)
    inverse, theta, tails, watch, suspicion = np.split(values, ends)
    fill_symmetric(arms.A_hat_inv[k], inverse)
    arms.theta[k][:] = theta
    arms.tails[k, :n] = tails.reshape(n, d)
    arms.watch[k] = unpack_watch(watch.tolist())
    if len(suspicion):
        offset, count, evidence, since, after = suspicion.tolist()
        arms.suspicion[k] = Suspicion(offset, int(count), evidence, since, int(after))


def pack_costs(arms: Arms, k: int) -> bytes:
    """Return the cost model of row k: the lower triangle of its inverse, w, its decay and its watch."""
    model = arms.costs[k]
    scalars = [model.decay, *pack_watch(model.watch)]
    parts = (model.inverse.ravel()[lower_triangle(arms.d)], model.w, np.array(scalars, dtype=np.float64))
    return np.concatenate(parts).astype("<f8", copy=False).tobytes()


def unpack_costs(arms: Arms, k: int, data: bytes) -> None:
    """Fill the cost model of row k in. Raises CorruptSnapshot."""
    d, model = arms.d, arms.costs[k]
    triangle = d * (d + 1) // 2
    size = triangle + d + 1 + WATCH_SIZE
    inverse, w, scalars = np.split(_floats(data, least=size, most=size), (triangle, triangle + d))
    fill_symmetric(model.inverse, inverse)
    model.w[:] = w
    arms.show_costs(k)
    model.decay, *watch = scalars.tolist()
    model.watch = unpack_watch(watch)


def pack_window(window: Window, block: int) -> bytes:
    """Return eight contexts and what their requests were limited to."""
    start = block * BLOCK
    limited = {str(i): sorted(window.limited[start + i]) for i in range(BLOCK) if start + i in window.limited}
    return window.contexts[start : start + BLOCK].astype("<f4", copy=False).tobytes() + (orjson.dumps(limited) if limited else b"")


def unpack_window(window: Window, block: int, data: bytes) -> None:
    """Fill eight contexts in. Raises CorruptSnapshot."""
    start, size = block * BLOCK, BLOCK * window.contexts.shape[1] * 4
    if len(data) < size:
        raise CorruptSnapshot(f"a block of contexts has {len(data)} bytes, not {size}")
    window.contexts[start : start + BLOCK] = np.frombuffer(data[:size], "<f4").reshape(BLOCK, -1)
    try:
        limited = orjson.loads(data[size:]) if len(data) > size else {}
    except orjson.JSONDecodeError as error:
        raise CorruptSnapshot(str(error)) from None
    window.limited.update({start + int(i): frozenset(models) for i, models in limited.items()})
