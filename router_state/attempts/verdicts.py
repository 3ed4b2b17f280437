"""The capability of attempts: verifiers, what their verdicts mean, and plans of two calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

import orjson
from msgspec import Struct, structs, to_builtins
from numpy.random import Generator

from router_state.arms import Arms
from router_state.attempts import planning
from router_state.attempts.verdict_tables import Tables
from router_state.attempts.verifier import Declared, Said, SaidRequest, Verifier
from router_state.attempts.verifier_standing import standings
from router_state.capability import Capability, Heard
from router_state.changes import Journal
from router_state.choice import Choice
from router_state.config import Vector
from router_state.events import Verified
from router_state.kernel import Chance, Options, PlannedOptions
from router_state.packing.framing import Json, Whole, converted, decoded
from router_state.plan import Plan, Taught, Verdict
from router_state.record import RequestRecord

PIECE = "\x1fattempts"
"""Name of the piece with the tables."""


class _Kept(Struct, array_like=True):
    """The contents of the piece: tables by verifier, and the verifiers that each slot's request
    named.
    """

    tables: dict[str, tuple[tuple[str, ...], list[float]]]
    said: list[tuple[Whole, tuple[str, ...]]]


LEAST_WEIGHT = 0.02
"""Least weight of an observation that is learned. Verdicts of a coin weigh less, and so do labels
of an answer that has an exact verdict.
"""


def weighted(x: Vector, value: float, weight: float) -> Taught | None:
    """Return an observation with this weight; None if the weight is below `LEAST_WEIGHT`."""
    if weight < LEAST_WEIGHT:
        return None
    root = math.sqrt(weight)
    return Taught(x * root, value * root)


class Attempts(Capability):
    """The verifiers of a router.

    Attributes:
        declared: the router's declaration of its verifiers.
        tables: what their verdicts mean.
        said: by slot of the window, the verifiers that the request named, where it named any.
    """

    __slots__ = ("declared", "said", "tables")
    name = "attempts"
    declared: Declared

    def __init__(self, arms: Arms, journal: Journal) -> None:
        super().__init__(arms, journal)
        self.tables, self.said = Tables(), dict[int, tuple[str, ...]]()

    @classmethod
    def read(cls, said: Said) -> Declared | None:
        """See Capability."""
        if said.verifiers is None:
            return None
        found = {
            name: Verifier(one.usd, one.exact, one.bins or 2)
            for name, one in said.verifiers.items()
        }
        return Declared(found, said.max_attempts or 2)

    @classmethod
    def document(cls, declared: Declared) -> dict[str, object]:
        """See Capability."""
        verifiers = {
            name: {"usd": one.usd}
            | ({"exact": True} if one.exact else {})
            | ({} if one.bins == 2 else {"bins": one.bins})
            for name, one in declared.verifiers.items()
        }
        return {"verifiers": verifiers, "max_attempts": declared.max_attempts}

    @classmethod
    def asked(cls, said: SaidRequest) -> tuple[str, ...] | None:
        """See Capability: the verifiers that a request has."""
        return None if said.verifiers is None else tuple(said.verifiers)

    @classmethod
    def pack_declared(cls, declared: Declared | None) -> Json | None:
        """See Capability."""
        return None if declared is None else to_builtins(declared)

    @classmethod
    def unpack_declared(cls, kept: Json | None) -> Declared | None:
        """See Capability."""
        return None if kept is None else converted(kept, Declared, cls.name)

    def declare(self, declared: Declared, *, now: float) -> None:
        """See Capability; a verifier whose number of bins stays the same keeps its table."""
        self.declared = declared
        self.tables.declare(declared.verifiers, self.arms.names)
        self.arms.planner = self
        self.journal.pieces.add(PIECE)
        self.journal.jumped = True

    def dropped(self) -> None:
        """See Capability."""
        super().dropped()
        self.arms.planner = None
        self.journal.jumped = True

    def without(self, model: str) -> None:
        """See Capability."""
        self._fit([name for name in self.arms.names if name != model])

    def _fit(self, names: list[str] | tuple[str, ...]) -> None:
        """Give every table one row per arm, in the order of the arms."""
        if self.tables.names is not names and self.tables.names != tuple(names):
            self.tables.keep(names)
            self.journal.pieces.add(PIECE)

    # A decision.

    def planned(self, single: Options) -> Options:
        """See arms.Planner."""
        self._fit(self.arms.names)
        self.tables.refresh()
        if self.declared.max_attempts < 2:
            return single
        return PlannedOptions(single, self.tables.sure, self._shut())

    def _shut(self) -> dict[int, frozenset[int]]:
        return {slot: self.tables.shut(said) for slot, said in self.said.items()}

    @property
    def slots(self) -> Iterable[int]:
        """See Capability."""
        return self.said

    def placed(self, slot: int, choice: Choice) -> None:
        """See Capability."""
        said = choice.request.said_of(self.name)
        if said is not None:
            self.said[slot] = tuple(said)
        elif slot in self.said:
            del self.said[slot]
        else:
            return
        self.journal.pieces.add(PIECE)

    def begin_window(self) -> None:
        """See Capability."""
        self.said = {}
        self.journal.pieces.add(PIECE)

    def follow(self, choice: Choice, chance: Chance | Generator, budget_usd: float | None) -> None:
        """See Capability."""
        self._fit(self.arms.names)
        self.tables.refresh()
        planning.plan(self.tables, self.declared, self.arms, choice, chance, budget_usd)

    # What follows it.

    def verified(
        self, event: Verified, record: RequestRecord, plan: Plan, x: Vector | None
    ) -> Heard | None:
        """See Capability."""
        verifier = self.declared.verifiers.get(event.verifier)
        if verifier is None:
            return None
        made = plan.made[event.attempt]
        said = Verdict(float(event.verdict), event.revision, verifier.usd)
        before = made.verdicts.get(event.verifier)
        if before is not None:
            # The bill and the label are those of the first call.
            said = structs.replace(before, verdict=float(event.verdict), revision=event.revision)
            return said, None
        known = self._known(plan.steps[event.attempt].model, x)
        if known is None or x is None:
            return said, None
        k, reward, variance = known
        table, j = self.tables.tables[event.verifier], verifier.bin_of(event.verdict)
        less = self._less(plan, event.attempt)
        reward -= less
        table.see(k, j, reward)
        self.tables.changed(event.verifier, k)
        self.journal.pieces.add(PIECE)
        if record.label is not None and plan.labelled == event.attempt:
            table.learn(k, j, reward, variance, record.label.reward)
            self.tables.changed(event.verifier)
            return structs.replace(said, learned=True), None
        value, weight = table.tells(k, j, reward, self.arms.rewards.noise)
        return said, weighted(x, value + less, weight)

    def judged(self, record: RequestRecord, x: Vector, reward: float) -> Taught | None:
        """See Capability: an answer that has a verdict and a label tells what the verdict means."""
        plan = record.plan
        taught: Taught | None = Taught(x, reward)
        if plan is None or record.call is None or plan.labelled < 0:
            return taught
        made, known = plan.made[plan.labelled], self._known(plan.steps[plan.labelled].model, x)
        if known is None:
            return taught
        k, mean, variance = known
        less = self._less(plan, plan.labelled)
        if plan.labelled == 1 and plan.failed:
            first = self.tables.tables.get(plan.steps[0].verify or "")
            if first is not None:
                taught = weighted(x, *first.learn_second(plan.gap, mean, variance, reward))
                self.journal.pieces.add(PIECE)
        verdicts = dict(made.verdicts)
        for name, said in made.verdicts.items():
            table = self.tables.tables.get(name)
            if table is None or said.learned:
                continue
            j = self.declared.verifiers[name].bin_of(said.verdict)
            value, weight, revised = table.learn(k, j, mean - less, variance, reward)
            self.tables.changed(name)
            self.journal.pieces.add(PIECE)
            verdicts[name] = structs.replace(said, learned=True)
            if len(plan.steps) == 1:
                # Labelled whatever the verdict: as it is, less what the verdict has taught.
                value, weight = reward, 1.0 - table.tells(k, j, mean, self.arms.rewards.noise)[1]
                revised = weight
            taught, plan = weighted(x, value + less, weight), structs.replace(plan, revised=revised)
        plan = plan.with_attempt(plan.labelled, structs.replace(made, verdicts=verdicts))
        record.call = structs.replace(record.call, plan=plan)
        return taught

    def _less(self, plan: Plan, attempt: int) -> float:
        """Return the reward that an answer is expected to lose because an answer before it did not
        pass.
        """
        table = self.tables.tables.get(plan.steps[0].verify or "")
        return plan.gap * table.alike if attempt == 1 and plan.failed and table else 0.0

    def _known(self, model: str, x: Vector | None) -> tuple[int, float, float] | None:
        """Return a model's position, its expected reward for a context, and the variance of that
        expectation; None where one of the three is not known.
        """
        self._fit(self.arms.names)
        arm = self.arms.find(model)
        if arm is None or x is None:
            return None
        mean, spread = arm.rewards.look(x)
        return self.arms.row[model], mean, self.arms.rewards.noise * spread / arm.rewards.decay

    # Its state.

    @property
    def pieces(self) -> tuple[str, ...]:
        """See Capability."""
        return (PIECE,)

    def pack(self, piece: str) -> bytes | None:
        """See Capability."""
        kept = [self.tables.pack(), list(self.said.items())]
        return orjson.dumps(kept) if piece == PIECE else None

    def restore(self, head: Mapping[str, Json], piece: Callable[[str], bytes]) -> None:
        """See Capability."""
        if kept := piece(PIECE):
            found = decoded(kept, _Kept, self.name)
            self.tables.restore(found.tables, self.arms.names)
            self.said = dict(found.said)

    def faults(self) -> Iterator[str]:
        """See Capability."""
        yield from self.tables.faults()

    def lambda_fields(self, now: float) -> dict[str, object]:
        """See Capability."""
        return {"verifiers": standings(self.tables)}
