"""The capability of attempts: verifiers, what their verdicts mean, and plans of several calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf

import orjson
from msgspec import Struct, structs, to_builtins
from numpy.random import Generator

from router_state.arms import Arms
from router_state.attempts import following, planning
from router_state.attempts.following import Chain
from router_state.attempts.published_plans import plan_fields
from router_state.attempts.shared_verdicts import SharedVerdicts
from router_state.attempts.verdict_evidence import NAME, PIECE, Evidence
from router_state.attempts.verdict_pairs import Pairs
from router_state.attempts.verdict_tables import Tables, pack
from router_state.attempts.verdict_waits import VerdictWaits
from router_state.attempts.verifier import Declared, OnWire, RequestOnWire
from router_state.attempts.verifier_standing import LastStandings, standings
from router_state.billing import Billing
from router_state.capability import Capability, VerdictEffect
from router_state.changes import Journal
from router_state.choice import Choice
from router_state.config import Vector
from router_state.events import Judged, Verified
from router_state.kernel import Chance, Options, PlannedOptions, PlannedSpend
from router_state.packing.framing import Json, Whole, converted, decoded
from router_state.plan import Plan, Taught
from router_state.record import Records, RequestRecord
from router_state.shared_numbers import ByModel


class _Piece(Struct, array_like=True):
    """The contents of the piece: tables by verifier, the verifiers that each slot's request named,
    tables by signal, pairs by verifier, the labels of each model, what requests cost, and what is
    shared of verifiers.
    """

    tables: dict[str, tuple[tuple[str, ...], list[float]]]
    named_by_slot: list[tuple[Whole, tuple[str, ...]]]
    signals: dict[str, tuple[tuple[str, ...], list[float]]] = {}
    pairs: dict[str, Pairs] = {}
    labels: dict[str, Whole] = {}
    spend: tuple[float, float, float, float, Whole] = (0.0, 0.0, 0.0, 0.0, 0)
    shared: dict[str, SharedVerdicts] = {}


NOTHING_SHUT: dict[int, frozenset[int]] = {}
"""The looks that are closed to the window's requests, where none named its verifiers."""
NO_VERIFIERS = Declared({}, 1)
"""The verifiers of a router that declares none; its requests may follow each other all the same."""


class Attempts(Capability):
    """The verifiers of a router.

    Attributes:
        declared: the router's declaration of its verifiers.
        tables: what their verdicts mean.
        evidence: the evidence behind these tables.
        named_by_slot: by slot of the window, the verifiers that the request named, where it named
            any.
        spend: cost of requests, compared with the cost that solutions of the dollar dual expected.
        waits: by verifier, the requests that await a verdict; empty until the next decision.
        weighs: see `arms.Planner`.
    """

    __slots__ = (
        "declared",
        "evidence",
        "last_standings",
        "named_by_slot",
        "spend",
        "tables",
        "waits",
        "weighs",
    )
    name = NAME
    declaration = Declared
    undeclared = True
    # They concern requests that follow others, or name their verifiers.
    undeclared_hooks = frozenset({"expect", "rule_out", "decided"})

    def __init__(self, arms: Arms, journal: Journal) -> None:
        super().__init__(arms, journal)
        self.declared, self.tables, self.weighs = NO_VERIFIERS, Tables(), False
        self.named_by_slot: dict[int, tuple[str, ...]] = {}
        self.evidence, self.last_standings = Evidence(self.tables, journal), LastStandings()
        self.spend = PlannedSpend()
        self.waits: dict[str, VerdictWaits] = {}
        self.tables.keep(arms.names)

    @classmethod
    def read(cls, wire: OnWire) -> Declared | None:
        """See Capability."""
        return Declared.read(wire)

    @classmethod
    def document(cls, declared: Declared) -> dict[str, object]:
        """See Capability."""
        return declared.document()

    @classmethod
    def request_field(cls, wire: RequestOnWire) -> tuple[str, ...] | None:
        """See Capability: the verifiers that a request has."""
        return None if wire.verifiers is None else tuple(wire.verifiers)

    def declare(self, declared: Declared | None, *, now: float) -> None:
        """See Capability. A verifier keeps its table if its `bins` and `exact` stay the same."""
        before, self.declared = self.declared, declared or NO_VERIFIERS
        self.weighs = self.declared.max_attempts > 1
        if not (before.verifiers or self.declared.verifiers):
            return
        self.tables.declare(self.declared.verifiers, self.arms.names)
        verifiers = self.declared.verifiers
        pairs = self.evidence.pairs
        self.evidence.pairs = {name: one for name, one in pairs.items() if name in verifiers}
        self.evidence.keep_shared()
        self.waits, self.journal.overdue_at = {}, -inf
        self.arms.planner = self if self.declared.verifiers else None
        if not self.declared.verifiers:
            # Without verifiers none of these is stored.
            self.named_by_slot, self.tables.labels, self.spend = {}, {}, PlannedSpend()
        self.journal.pieces.add(PIECE)
        self.journal.jumped = True

    def without(self, model: str) -> None:
        """See Capability."""
        self._fit([name for name in self.arms.names if name != model])
        for one in self.evidence.shared.values():
            one.without(model)
        for name, pairs in self.evidence.pairs.items():
            pairs.by_model.pop(model, None)
            self.tables.coming(name, pairs)

    def _fit(self, names: list[str] | tuple[str, ...]) -> None:
        """Give every table one row per arm, in the order of the arms."""
        if self.tables.names is not names and self.tables.names != tuple(names):
            self.tables.keep(names)
            self.journal.pieces.add(PIECE)

    # A decision.

    def expect(self, choice: Choice) -> None:
        """See Capability: what follows a failure is expected to be worse. Raises UnknownVerifier,
        VerdictOutOfRange, ChainTooLong.
        """
        request, chain = choice.request, None
        if request.follows is not None:
            self._fit(self.arms.names)
            following.check(request.follows, self.tables)
            chain = following.begin(choice, self.tables, self.arms, self.name)
        unknown = () if request.fields is None else self._unknown(choice)
        if unknown:
            chain = structs.replace(chain or Chain(), unknown=unknown)
        if chain is not None:
            choice.keep(self.name, to_builtins(chain))
            following.expect(choice, chain, self.tables)

    def _unknown(self, choice: Choice) -> tuple[str, ...]:
        """Return the verifiers of a request that the router does not declare."""
        named = choice.request.field_of(self.name) or ()
        return tuple(name for name in named if name not in self.declared.verifiers)

    def rule_out(self, choice: Choice) -> None:
        """See Capability: the models that were tried are ruled out, while there are others."""
        kept = None if choice.kept is None else choice.kept.get(self.name)
        if kept is not None:
            chain = converted(kept, Chain, "chain of a request")
            following.rule_out(choice, chain, self.arms)

    def decided(self, choice: Choice, record: RequestRecord) -> None:
        """See Capability."""
        follows = choice.request.follows
        if follows is not None and following.count_signals(choice, self.tables, self.arms):
            self.journal.pieces.add(PIECE)

    @classmethod
    def route_fields(cls, kept: Json) -> dict[str, object]:
        """See Capability."""
        return following.route_fields(kept)

    @classmethod
    def published(cls, record: RequestRecord) -> dict[str, object]:
        """See Capability."""
        plan = record.plan
        return plan_fields(plan) if plan is not None and plan.was_decided else {}

    def planned(
        self, single: Options, rewards: Options | None = None, *, per_dollar: float = 0.0
    ) -> Options:
        """See arms.Planner."""
        if self.declared.max_attempts < 2:
            return single
        self._fit(self.arms.names)
        self.tables.views.refresh()
        shut = self._shut() if self.named_by_slot else NOTHING_SHUT
        return PlannedOptions(single, self.tables.views.sure, shut, rewards, per_dollar)

    def share_of(self, debt: float) -> float:
        """See arms.Planner. Requests are not counted while new models get their first calls, which
        the dual does not choose."""
        arms, spend = self.arms, self.spend
        window = arms.window
        if window is None or not (
            len(self.named_by_slot) < window.size or any(self.named_by_slot.values())
        ):
            return 1.0  # no request has a verifier, so none has a plan
        if not arms.onboarding:
            spend.count(debt, window.next)
        return spend.share()

    def solved(self, mean: float, debt: float) -> None:
        """See arms.Planner."""
        window = self.arms.window
        self.spend.solved(mean, debt, 0 if window is None else window.next)
        self.journal.pieces.add(PIECE)

    def _shut(self) -> dict[int, frozenset[int]]:
        return {slot: self.tables.shut(names) for slot, names in self.named_by_slot.items()}

    @property
    def slots(self) -> Iterable[int]:
        """See Capability."""
        return self.named_by_slot

    def placed(self, slot: int, choice: Choice) -> None:
        """See Capability. A router without verifiers plans nothing and stores nothing."""
        if choice.request.fields is None and not self.named_by_slot:
            return
        names = choice.request.field_of(self.name) if self.declared.verifiers else None
        if names is not None:
            self.named_by_slot[slot] = tuple(names)
        elif slot in self.named_by_slot:
            del self.named_by_slot[slot]
        else:
            return
        self.journal.pieces.add(PIECE)

    def begin_window(self) -> None:
        """See Capability."""
        self.named_by_slot = {}
        self.spend.mean = 0.0
        self.journal.pieces.add(PIECE)

    def follow(self, choice: Choice, chance: Chance | Generator, budget_usd: float | None) -> None:
        """See Capability."""
        declared = self.declared
        if not declared.verifiers:
            return
        assert isinstance(chance, Chance)  # as the only profile with verifiers made it
        arms, tables = self.arms, self.tables
        if tables.names is not arms.names:
            self._fit(arms.names)
        plan = planning.plan(tables, declared, arms, choice, chance, budget_usd)
        if plan is not None and len(plan.steps) > 1:
            self._await(choice.request.request_id, choice.now, choice.seq, plan)

    # What follows it.

    def verified(
        self, event: Verified, record: RequestRecord, plan: Plan, x: Vector | None, now: float
    ) -> VerdictEffect | None:
        """See Capability."""
        self._fit(self.arms.names)
        found = self.evidence.verdict(event, record, plan, x, self.arms, now)
        waits = self.waits.get(event.verifier)
        if waits is not None and event.attempt == 0:
            waits.came(event.request_id, self._given_seconds(event.verifier))
        if len(plan.steps) > 2:
            self._await(event.request_id, record.decided_at, record.seq, plan)
        if self.waits:
            self.journal.overdue_at = self._next_overdue()
        return found

    def overdue(
        self, opened: Mapping[str, float], records: Records, now: float, longest: float
    ) -> Sequence[str]:
        """See Capability."""
        if not self.waits:
            self.waits = {
                name: VerdictWaits(name, opened, self._given_seconds(name), longest)
                for name in self.declared.verifiers
            }
        found: Sequence[str] = ()
        for waits in self.waits.values():
            found = [*found, *waits.overdue(records, now)]
        self.journal.overdue_at = self._next_overdue()
        return found

    def _await(self, request_id: str, decided_at: float, seq: int, plan: Plan) -> None:
        """Let a request wait that may await a verdict, again or of a later answer."""
        waits = self.waits.get(plan.steps[0].verify or "")
        if waits is not None:
            due = waits.add(request_id, decided_at, seq)
            self.journal.overdue_at = min(due, self.journal.overdue_at)

    def _next_overdue(self) -> float:
        return min((one.due for one in self.waits.values()), default=inf)

    def _given_seconds(self, verifier: str) -> float:
        pairs = self.evidence.pairs.get(verifier)
        return 0.0 if pairs is None else pairs.given_seconds

    def judged(self, record: RequestRecord, x: Vector, reward: float) -> Taught | None:
        """See Capability."""
        self._fit(self.arms.names)
        return self.evidence.label(record, x, reward, self.arms)

    def billed(self, billing: Billing) -> None:
        """See Capability."""
        self.evidence.bill(billing)
        record, plan = billing.record, billing.record.plan
        event = billing.event
        # With the first answer's bill a request waits for what it waits for since its decision.
        usual = billing.first and event.attempt == 0 and not billing.unanswered
        if plan is not None and not usual and plan.awaits_verdict is not None:
            self._await(event.request_id, record.decided_at, record.seq, plan)

    def taken(self, record: RequestRecord, event: Judged, labels: object, now: float) -> None:
        """See Capability."""
        self.evidence.alert(record, now)

    # What a family learns of verifiers.

    def shares(self) -> ByModel:
        """See Capability."""
        self._fit(self.arms.names)
        return self.evidence.shareable()

    def take_shared(self, numbers: ByModel | None) -> None:
        """See Capability: tables follow from the router's own labels and other routers'
        evidence."""
        self._fit(self.arms.names)
        self.evidence.take_shared(numbers)

    def start_over(self) -> None:
        """See Capability."""
        for one in self.evidence.shared.values():
            one.adopt_others()

    # Its state.

    @property
    def pieces(self) -> tuple[str, ...]:
        """See Capability."""
        return (PIECE,) if self.declared.verifiers or self.tables.signals else ()

    def pack(self, piece: str) -> bytes | None:
        """See Capability."""
        if piece != PIECE or not self.pieces:
            return None
        tables = self.tables
        kept: list[object] = [
            pack(tables.tables),
            list(self.named_by_slot.items()),
            pack(tables.signals),
        ]
        kept += [to_builtins(self.evidence.pairs), tables.labels, self.spend.numbers]
        # Most routers share nothing, and store nothing of it.
        shared = [to_builtins(self.evidence.shared)] if self.evidence.shared else []
        return orjson.dumps([*kept, *shared])

    def restore(self, head: Mapping[str, Json], piece: Callable[[str], bytes]) -> None:
        """See Capability."""
        if kept := piece(PIECE):
            found = decoded(kept, _Piece, self.name)
            self.tables.labels = dict(found.labels)
            self.tables.restore(found.tables, found.signals, self.arms.names)
            self.named_by_slot, self.evidence.pairs = dict(found.named_by_slot), found.pairs
            self.evidence.shared, self.spend = found.shared, PlannedSpend(*found.spend)
            for name, pairs in found.pairs.items():
                self.tables.coming(name, pairs)

    def faults(self) -> Iterator[str]:
        """See Capability."""
        yield from self.tables.faults()
        if not all(one.is_sound for one in self.evidence.pairs.values()):
            yield "pairs of verdicts and labels"
        if not self.spend.is_sound:
            yield "spend of requests with plans"
        if self.waits and self.journal.overdue_at != self._next_overdue():
            yield "time of the next overdue verdict"

    def lambda_fields(self, now: float) -> dict[str, object]:
        """See Capability."""
        if not self.tables.verifiers:
            return {}
        found, shared = standings(self.tables, self.last_standings), self.evidence.shared
        shown = [
            shared[name].with_family_counts(one)
            if (name := str(one["verifier"])) in shared
            else one
            for one in found
        ]
        return {"verifiers": shown}
