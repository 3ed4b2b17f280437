"""Count the pairs of labels by source and model, and raise an alert when a judge departs from
gold."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import orjson
from msgspec import structs, to_builtins

from router_state.arms import Arms
from router_state.changes import Journal
from router_state.packing.framing import decoded
from router_state.sources.declared_sources import DeclaredSources
from router_state.sources.label_pairs import ITSELF, Pair
from router_state.sources.parting import FALSE_A_YEAR, Cell

PIECE = "\x1fsource:"
"""Prefix of the names of pieces; the source and the model follow, \\x1f between them."""
NO_CELL = -2
"""`born` of cells that a router took over from the router whose state it started with: they contain
none of its own pairs."""


class CountedPairs:
    """The pairs of a router's sources; it alone changes their cells.

    Attributes:
        declared: the router's sources.
        cells: pairs by source and model, see `label_pairs.ITSELF`.
    """

    __slots__ = ("arms", "cells", "declared", "journal")

    def __init__(self, arms: Arms, journal: Journal) -> None:
        self.arms, self.journal, self.declared = arms, journal, DeclaredSources()
        self.cells: dict[tuple[str, str], Cell] = {}

    def drop(self, gone: Callable[[str, str], bool]) -> None:
        """Forget the pairs of sources and models for which `gone` is true."""
        for cell in [cell for cell in self.cells if gone(*cell)]:
            del self.cells[cell]
            self.journal.pieces.add(_piece(cell))

    def replace(
        self, before: list[Pair], present: list[Pair], *, born: int, now: float
    ) -> list[Pair]:
        """Remove the pairs that are no longer present, add the new ones, and raise alerts for
        judges that depart from gold. Return all present pairs with the blocks in which they are
        counted.

        Args:
            born: offset of the declaration that is in force.
        """
        stay: list[Pair] = []
        for pair in before:
            same = structs.replace(pair, block=0, born=0)
            if same in present:
                present.remove(same)
                stay.append(pair)
            else:
                self._take_back(pair)
        return stay + [self._add(pair, born, now) for pair in present]

    def _take_back(self, pair: Pair) -> None:
        cell = self.cells.get(pair.cell)
        if cell is not None and cell.born == pair.born:
            cell.take_back(pair.y, pair.r, pair.block)
            self.journal.pieces.add(_piece(pair.cell))

    def _add(self, pair: Pair, born: int, now: float) -> Pair:
        cell = self.cells.get(pair.cell)
        if cell is None:
            cell = self.cells[pair.cell] = Cell.empty(born)
        block = cell.add(pair.y, pair.r, now)
        self.journal.pieces.add(_piece(pair.cell))
        if pair.source in self.declared.judges:
            self._alert(pair, cell, now)
        return structs.replace(pair, block=block, born=cell.born)

    def _alert(self, pair: Pair, cell: Cell, now: float) -> None:
        """Raise an alert where a judge has parted from gold, or from its earlier answers."""
        cells = len(self.declared.judges) * (len(self.arms) + 1)
        offset = cell.parted(FALSE_A_YEAR / cells)
        if offset is None:
            return
        itself = pair.model == ITSELF
        evidence = {
            "source": pair.source,
            "from": "its earlier answers" if itself else self.declared.gold,
            "low": offset.low,
            "high": offset.high,
            "pairs": cell.all.n,
        }
        self.journal.alert(
            "source_parted",
            abs(offset.value),
            evidence,
            now=now,
            direction="up" if offset.value > 0.0 else "down",
            model=None if itself else pair.model,
            signal="reward",
        )

    def start_over(self) -> None:
        """Keep the pairs for a new router, none of whose own requests is counted in them yet."""
        for cell in self.cells.values():
            cell.born = NO_CELL

    # Its state.

    @property
    def pieces(self) -> tuple[str, ...]:
        """Names of the pieces with cells."""
        return tuple(map(_piece, self.cells))

    def pack(self, piece: str) -> bytes | None:
        """Return the bytes of a piece; None: there is no such cell."""
        source, _, model = piece.removeprefix(PIECE).partition("\x1f")
        found = self.cells.get((source, model)) if piece.startswith(PIECE) else None
        return None if found is None else orjson.dumps(to_builtins(found))

    def restore(self, cells: Iterable[tuple[str, str]], piece: Callable[[str], bytes]) -> None:
        """Read these cells, as far as they are stored."""
        for cell in cells:
            if body := piece(_piece(cell)):
                self.cells[cell] = decoded(body, Cell, "pairs of a source")


def _piece(cell: tuple[str, str]) -> str:
    return PIECE + "\x1f".join(cell)
