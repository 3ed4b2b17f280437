"""The tables of a router's verifiers, and the looks at answers that follow from the tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from router_state.attempts.verdict_pairs import Pairs
from router_state.attempts.verifier import Verifier
from router_state.errors import DamagedState
from router_state.kernel import VerdictTable, Views
from router_state.packing.framing import Json

DEVIATIONS = 0.3
"""Posterior deviations by which a verdict is assumed to tell less where a plan is made, and more
where a plan is tried. From 0.3 to 1 good verifiers gain less, and coins lose the same (attempts,
in the laboratory).
"""
APART = 1.0
"""Posterior deviations by which two models are assumed to err together more often where a plan is
made. Without it verdicts that tell only how hard a prompt is cost 0.4 ± 0.3 points more on
CodeRouterBench; with 2, good verifiers gain 0.4 ± 0.4 less (attempts, in the laboratory).
"""

ENOUGH_LABELS = 3
"""Labels of a model's answers that it needs before it may be called second in a plan. Without them
a model that begins unluckily is hardly ever called, and never known (attempts, in the laboratory).
"""
COMES_STEPS = 50
"""Steps to which a share of arriving verdicts is rounded, as a new share renews a table."""
SIGNALS = ("tests_passed", "repeats", "severity")
"""Names of the signals of an answer, beside verdicts, that a request which follows it may have."""
SIGNAL_BINS = 4
"""Bins of a signal, from bad to good."""


class Coming(NamedTuple):
    """The share of a verifier's awaited verdicts that arrive, and that of verdicts on each model's
    answers where it is known.
    """

    share: float = 1.0
    by_model: Mapping[str, float] = {}

    def of(self, names: Sequence[str]) -> list[float]:
        """Return the share of each of these models."""
        return [self.by_model.get(name, self.share) for name in names]


ALL_COME = Coming()
"""The shares of a verifier before the first plan."""


class Look(NamedTuple):
    """A look at an answer: the verifier, and the first bin that passes."""

    verifier: str
    edge: int


Packed = Mapping[str, tuple[tuple[str, ...], list[float]]]
"""Tables as they are kept: names of the models, and numbers."""


def pack(tables: Mapping[str, VerdictTable]) -> dict[str, Json]:
    """Return tables as JSON."""
    return {name: [list(table.names), table.array.tolist()] for name, table in tables.items()}


class Tables:
    """The tables of all verifiers by name, and the looks that follow from them.

    Attributes:
        names: names of the models, in the order of the tables' rows.
        signals: tables of the signals that requests have sent so far, see `SIGNALS`.
        comes: by verifier, the shares of awaited verdicts that arrive; an answer without a verdict
            passes.
        labels: number of labels of each model's answers, counted up to `ENOUGH_LABELS`.
        looks: all looks by number; stops: the verifier of each look, the least verdict that passes,
            and the dollars of a verdict.
        views: the shares of answers that looks pass, at worst, as expected and at best.
    """

    def __init__(self) -> None:
        self.verifiers: Mapping[str, Verifier] = {}
        self.tables: dict[str, VerdictTable] = {}
        self.signals: dict[str, VerdictTable] = {}
        self.labels: dict[str, int] = {}
        self.comes: dict[str, Coming] = {}
        self.looks: list[Look] = []
        self.stops: list[tuple[str, float, float]] = []
        self.names: tuple[str, ...] = ()
        self.views = Views([], 0, DEVIATIONS, APART)

    def declare(self, verifiers: Mapping[str, Verifier], names: Sequence[str]) -> None:
        """Keep one table for each of these verifiers. A verifier keeps its earlier table if `bins`
        and `exact` stay the same; otherwise its table starts anew.
        """
        before = self.tables
        self.tables = {
            name: before[name]
            if name in before and (one.bins, one.exact) == (before[name].J, before[name].exact)
            else VerdictTable(one.bins, names, exact=one.exact)
            for name, one in verifiers.items()
        }
        self.verifiers = verifiers
        self.comes = {name: one for name, one in self.comes.items() if name in verifiers}
        self.looks = [Look(name, e) for name, one in verifiers.items() for e in range(1, one.bins)]
        self.stops = [
            (name, edge / verifiers[name].bins, verifiers[name].usd) for name, edge in self.looks
        ]
        self.keep(names)

    def keep(self, names: Sequence[str]) -> None:
        """Give every table one row for each of these models."""
        self.names = names if isinstance(names, tuple) else tuple(names)
        for table in (*self.tables.values(), *self.signals.values()):
            if table.names != self.names:
                table.keep(self.names)
        for name in self.tables:
            self._expect(name)
        self.views = Views([*self.tables.values()], len(names), DEVIATIONS, APART)
        self.labels = {name: count for name, count in self.labels.items() if name in self.names}
        for k in range(len(names)):
            self._know(k)

    def table_of(self, name: str) -> VerdictTable | None:
        """Return the table of a verifier or of a signal; None: neither has this name. A signal that
        no request has sent yet has the table of the prior.
        """
        known = self.tables.get(name) or self.signals.get(name)
        if known is None and name in SIGNALS:
            return VerdictTable(SIGNAL_BINS, self.names)
        return known

    def signal(self, name: str) -> VerdictTable:
        """Return the table of a signal, to be changed."""
        if name not in self.signals:
            self.signals[name] = VerdictTable(SIGNAL_BINS, self.names)
        return self.signals[name]

    def coming(self, verifier: str, pairs: Pairs, model: str | None = None) -> None:
        """Note the shares of a verifier's awaited verdicts that arrive, once the share of `model`
        has changed; None: the shares of all models may have changed.
        """
        if verifier not in self.tables:
            return
        before, share = self.comes.get(verifier, ALL_COME), _stepped(pairs.comes)
        if model is None or share != before.share:
            by_model = {name: _stepped(pairs.comes_of(name, share)) for name in pairs.by_model}
        else:
            by_model = {**before.by_model, model: _stepped(pairs.comes_of(model, share))}
        if (share, by_model) != before:
            self.comes[verifier] = Coming(share, by_model)
            self._expect(verifier)

    def _expect(self, verifier: str) -> None:
        comes, usd = self.comes.get(verifier, ALL_COME), self.verifiers[verifier].usd
        self.tables[verifier].expect(usd, comes.share, comes.of(self.names))

    def labelled(self, model: str) -> bool:
        """Count a label of a model's answer, up to `ENOUGH_LABELS`; tell whether the count rose."""
        count = self.labels.get(model, 0)
        if count >= ENOUGH_LABELS or model not in self.names:
            return False
        self.labels[model] = count + 1
        if count + 1 == ENOUGH_LABELS:
            self._know(self.names.index(model))
        return True

    def note_known(self, models: Collection[str]) -> None:
        """Note models that other routers know: as if their answers had labels here."""
        for name in models:
            if name in self.names and self.labels.get(name, 0) < ENOUGH_LABELS:
                self.labels[name] = ENOUGH_LABELS
                self._know(self.names.index(name))

    def _know(self, k: int) -> None:
        # An exact verdict tells as much as a label.
        exact = any(one.exact for one in self.verifiers.values())
        known = exact or self.labels.get(self.names[k], 0) >= ENOUGH_LABELS
        for looks in (self.views.sure, self.views.likely, self.views.hopeful):
            looks.know(k, known)

    def shut(self, verifiers: Collection[str] | None) -> frozenset[int]:
        """Return the numbers of the looks that a request can't have, as it has only these
        verifiers; None: it has all verifiers.
        """
        if verifiers is None:
            return frozenset()
        return frozenset(n for n, one in enumerate(self.looks) if one.verifier not in verifiers)

    def restore(self, packed: Packed, signals: Packed, names: Sequence[str]) -> None:
        """Invert `pack` of the tables, and of those of signals. Raises DamagedState."""
        for name in signals:
            self.signal(name)
        for stored, tables in ((packed, self.tables), (signals, self.signals)):
            for name, (rows, numbers) in stored.items():
                if name in tables:
                    tables[name].keep(rows)
                    try:
                        tables[name].restore(numbers)
                    except ValueError as error:
                        raise DamagedState(f"table of {name!r}: {error}") from None
        self.keep(names)

    def faults(self) -> Iterator[str]:
        """Yield the names of tables with impossible numbers."""
        for name, table in (*self.tables.items(), *self.signals.items()):
            if not table.is_sound():
                yield f"table of {name}"


def _stepped(share: float) -> float:
    return round(share * COMES_STEPS) / COMES_STEPS
