"""The tables of a router's verifiers, and the looks at answers that follow from the tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from router_state.attempts.verifier import Verifier
from router_state.errors import DamagedState
from router_state.kernel import Looks, VerdictTable
from router_state.packing.framing import Json

DEVIATIONS = 0.3
"""Posterior deviations by which a verdict is assumed to tell less where a plan is made, and more
where a plan is tried. From 0.3 to 1 good verifiers gain less, and coins lose the same (attempts,
in the laboratory).
"""


class Look(NamedTuple):
    """A look at an answer: the verifier, and the first bin that passes."""

    verifier: str
    edge: int


class Tables:
    """The tables by verifier, and the looks of all of them.

    Attributes:
        names: of the models, in the order of their rows.
        looks: the looks, in the order of their numbers.
        sure, likely, hopeful: the shares of answers that looks pass, at worst, as expected and at
            best.
    """

    def __init__(self) -> None:
        self.verifiers: Mapping[str, Verifier] = {}
        self.tables: dict[str, VerdictTable] = {}
        self.looks: list[Look] = []
        self.names: tuple[str, ...] = ()
        self._stale: set[tuple[str, int]] = set()

    def declare(self, verifiers: Mapping[str, Verifier], names: Sequence[str]) -> None:
        """Keep one table for each of these verifiers; a table whose number of bins stays the same
        is kept.
        """
        before = self.tables
        self.tables = {
            name: before[name]
            if name in before and one.bins == before[name].J
            else VerdictTable(one.bins, names, exact=one.exact)
            for name, one in verifiers.items()
        }
        self.verifiers = verifiers
        self.looks = [Look(name, e) for name, one in verifiers.items() for e in range(1, one.bins)]
        self.keep(names)

    def keep(self, names: Sequence[str]) -> None:
        """Give every table one row for each of these models."""
        self.names = names if isinstance(names, tuple) else tuple(names)
        for table in self.tables.values():
            if table.names != self.names:
                table.keep(self.names)
        size = len(self.looks), len(names)
        self.sure, self.likely, self.hopeful = Looks(*size), Looks(*size), Looks(*size)
        self._stale = {(name, k) for name in self.tables for k in range(len(names))}

    def changed(self, verifier: str, k: int | None = None) -> None:
        """Note that a table has changed: the row of the k-th model, or all."""
        rows = range(self.tables[verifier].K) if k is None else (k,)
        self._stale.update((verifier, row) for row in rows)

    def refresh(self) -> None:
        """Compute the likelihoods of the looks anew where a table has changed."""
        if not self._stale:
            return
        for number, (verifier, edge) in enumerate(self.looks):
            table, usd = self.tables[verifier], self.verifiers[verifier].usd
            for one in (self.sure, self.likely, self.hopeful):
                one.charge(number, usd, table.alike)
            for name, k in self._stale:
                if name == verifier:
                    self.sure.put(number, k, *table.likelihoods(k, edge, -DEVIATIONS))
                    self.likely.put(number, k, *table.likelihoods(k, edge, 0.0))
                    self.hopeful.put(number, k, *table.likelihoods(k, edge, DEVIATIONS))
        self._stale.clear()

    def shut(self, verifiers: Collection[str] | None) -> frozenset[int]:
        """Return the numbers of the looks that are closed to a request with these verifiers only;
        None: it has all verifiers.
        """
        if verifiers is None:
            return frozenset()
        return frozenset(n for n, one in enumerate(self.looks) if one.verifier not in verifiers)

    def pack(self) -> Json:
        """Return the tables as JSON."""
        return {
            name: [list(table.names), table.array.tolist()] for name, table in self.tables.items()
        }

    def restore(
        self, packed: Mapping[str, tuple[tuple[str, ...], list[float]]], names: Sequence[str]
    ) -> None:
        """Invert `pack`. Raises DamagedState."""
        for name, (rows, numbers) in packed.items():
            if name in self.tables:
                self.tables[name].keep(rows)
                try:
                    self.tables[name].restore(numbers)
                except ValueError as error:
                    raise DamagedState(f"table of verifier {name!r}: {error}") from None
        self.keep(names)

    def faults(self) -> Iterator[str]:
        """Yield what can't be true of the tables."""
        for name, table in self.tables.items():
            if not table.is_sound():
                yield f"table of verifier {name}"
