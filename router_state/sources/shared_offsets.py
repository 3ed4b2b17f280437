"""Share by how much judges' labels are above gold: a router's own pairs, and what others told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
from msgspec import json

from router_state.packing.framing import decoded
from router_state.shared_numbers import ByModel, Numbers
from router_state.sources.learned_labels import Of
from router_state.sources.offsets import PAIR_DEVIATION, Told
from router_state.sources.parting import Cell

TOLD = "\x1ftold-offsets"
"""Name of the piece with what others told."""
LEAST_PAIRS_TOLD = 20.0
"""Least pairs of a judge that an offset is of before it leaves its router."""
OFFSETS_APART = 0.1
"""Deviation of an offset that is expected between routers."""

ToldOffsets: TypeAlias = dict[Of, Told]
"""Offsets that others told, by judge and model."""


def pack(told: ToldOffsets) -> bytes:
    """Return what others told as bytes."""
    return json.encode([(judge, model, one) for (judge, model), one in told.items()])


def unpack(body: bytes) -> ToldOffsets:
    """Invert `pack`. Raises DamagedState."""
    kept = decoded(body, list[tuple[str, str, Told]], "offsets of judges that others told")
    return {(judge, model): one for judge, model, one in kept}


def tellable(judges: Iterable[str], models: Iterable[str], cells: Mapping[Of, Cell]) -> ByModel:
    """Return the offsets that may leave the router, by model and judge. Of a model with fewer than
    `LEAST_PAIRS_TOLD` pairs the mean of all models leaves."""
    found: dict[str, dict[str, Numbers]] = {}
    for judge in judges:
        pairs = {
            model: cell.last_means()
            for model in models
            if (cell := cells.get((judge, model))) is not None
        }
        total = sum(n for n, _, _ in pairs.values())
        if total < LEAST_PAIRS_TOLD:
            continue
        common = sum(n * (label - gold) for n, label, gold in pairs.values()) / total
        for model, (n, label, gold) in pairs.items():
            offset = label - gold if n >= LEAST_PAIRS_TOLD else common
            precision = n * (OFFSETS_APART / PAIR_DEVIATION) ** 2
            one = Numbers(np.array([precision]), np.array([precision * offset / OFFSETS_APART]))
            found.setdefault(model, {})[judge] = one
    return found


def take(told: ToldOffsets, judges: Iterable[str], found: ByModel | None) -> set[str]:
    """Put what others tell of some models in place of what they told before; None: of all models
    nothing. Return the judges of which that says anything new."""
    if found is None:
        gone = {judge for judge, _ in told}
        told.clear()
        return gone
    changed = set()
    for judge in judges:
        for model, subjects in found.items():
            before = told.pop((judge, model), None)
            if (one := subjects.get(judge)) is not None and len(one.precision) == 1:
                precision = float(one.precision[0]) / OFFSETS_APART**2
                if precision > 0.0:
                    told[judge, model] = Told(precision, float(one.weighted[0]) / OFFSETS_APART)
            if told.get((judge, model)) != before:
                changed.add(judge)
    return changed
