"""Share offsets of judges, by which their labels are above gold: the router's own, and those of
other routers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
from msgspec import json

from router_state.packing.framing import decoded
from router_state.shared_numbers import ByModel, Numbers
from router_state.sources.learned_labels import Of
from router_state.sources.offsets import PAIR_DEVIATION, OthersOffset
from router_state.sources.parting import Cell

PIECE = "\x1fothers-offsets"
"""Name of the piece with the offsets of other routers."""
LEAST_PAIRS_SHARED = 20.0
"""Least pairs of a judge that an offset is of before it leaves its router."""
OFFSETS_APART = 0.1
"""Deviation of an offset that is expected between routers."""

OthersOffsets: TypeAlias = dict[Of, OthersOffset]
"""Offsets of other routers, by judge and model."""


def pack(others: OthersOffsets) -> bytes:
    """Return offsets as bytes."""
    return json.encode([(judge, model, one) for (judge, model), one in others.items()])


def unpack(body: bytes) -> OthersOffsets:
    """Invert `pack`. Raises DamagedState."""
    kept = decoded(body, list[tuple[str, str, OthersOffset]], "offsets of other routers")
    return {(judge, model): one for judge, model, one in kept}


def shareable(judges: Iterable[str], models: Iterable[str], cells: Mapping[Of, Cell]) -> ByModel:
    """Return the offsets that may leave the router, by model and judge. Of a model with fewer than
    `LEAST_PAIRS_SHARED` pairs the mean of all models leaves."""
    found: dict[str, dict[str, Numbers]] = {}
    for judge in judges:
        pairs = {
            model: cell.last_means()
            for model in models
            if (cell := cells.get((judge, model))) is not None
        }
        total = sum(n for n, _, _ in pairs.values())
        if total < LEAST_PAIRS_SHARED:
            continue
        common = sum(n * (label - gold) for n, label, gold in pairs.values()) / total
        for model, (n, label, gold) in pairs.items():
            offset = label - gold if n >= LEAST_PAIRS_SHARED else common
            precision = n * (OFFSETS_APART / PAIR_DEVIATION) ** 2
            one = Numbers(np.array([precision]), np.array([precision * offset / OFFSETS_APART]))
            found.setdefault(model, {})[judge] = one
    return found


def take(others: OthersOffsets, judges: Iterable[str], found: ByModel | None) -> set[str]:
    """Put other routers' offsets of some models in place of earlier ones; None: remove all. Return
    the judges of which an offset changed."""
    if found is None:
        gone = {judge for judge, _ in others}
        others.clear()
        return gone
    changed = set()
    for judge in judges:
        for model, subjects in found.items():
            before = others.pop((judge, model), None)
            if (one := subjects.get(judge)) is not None and len(one.precision) == 1:
                precision = float(one.precision[0]) / OFFSETS_APART**2
                if precision > 0.0:
                    others[judge, model] = OthersOffset(
                        precision, float(one.weighted[0]) / OFFSETS_APART
                    )
            if others.get((judge, model)) != before:
                changed.add(judge)
    return changed
