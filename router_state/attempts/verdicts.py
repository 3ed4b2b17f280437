"""The capability of attempts: verifiers, what their verdicts mean, and plans of two calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

import orjson
from msgspec import Struct, structs, to_builtins
from numpy.random import Generator

from router_state.arms import Arms
from router_state.attempts import following, planning, verdict_alerts
from router_state.attempts.following import Chain
from router_state.attempts.published_plans import plan_fields
from router_state.attempts.verdict_pairs import Pairs
from router_state.attempts.verdict_tables import Tables, pack
from router_state.attempts.verifier import Declared, Said, SaidRequest, Verifier
from router_state.attempts.verifier_standing import Told, standings
from router_state.billing import Billing
from router_state.capability import Capability, Heard
from router_state.changes import Journal
from router_state.choice import Choice
from router_state.config import Vector
from router_state.events import Judged, Verified
from router_state.kernel import Chance, Options, PlannedOptions, VerdictTable
from router_state.packing.framing import Json, Whole, converted, decoded
from router_state.plan import Plan, Taught, Verdict
from router_state.record import RequestRecord, Weighed

PIECE = "\x1fattempts"
"""Name of the piece with the tables."""


class _Kept(Struct, array_like=True):
    """The contents of the piece: tables by verifier, the verifiers that each slot's request named,
    tables by signal, pairs by verifier, and the labels of each model.
    """

    tables: dict[str, tuple[tuple[str, ...], list[float]]]
    said: list[tuple[Whole, tuple[str, ...]]]
    signals: dict[str, tuple[tuple[str, ...], list[float]]] = {}
    pairs: dict[str, Pairs] = {}
    labels: dict[str, Whole] = {}


NO_VERIFIERS = Declared({}, 1)
"""The verifiers of a router that declares none; its requests may follow each other all the same."""


PASSED = 0.5
"""Least verdict that counts as passed where verdicts are compared with labels."""
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
        pairs: by verifier, what labels say of its verdicts, and what they have cost.
        said: by slot of the window, the verifiers that the request named, where it named any.
    """

    __slots__ = ("declared", "pairs", "said", "shown", "tables")
    name = "attempts"
    undeclared = True

    def __init__(self, arms: Arms, journal: Journal) -> None:
        super().__init__(arms, journal)
        self.declared, self.tables, self.said = NO_VERIFIERS, Tables(), dict[int, tuple[str, ...]]()
        self.pairs, self.shown = dict[str, Pairs](), Told()
        self.tables.keep(arms.names)

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

    def declare(self, declared: Declared | None, *, now: float) -> None:
        """See Capability; a verifier whose number of bins stays the same keeps its table."""
        before, self.declared = self.declared, declared or NO_VERIFIERS
        if not (before.verifiers or self.declared.verifiers):
            return
        self.tables.declare(self.declared.verifiers, self.arms.names)
        verifiers = self.declared.verifiers
        self.pairs = {name: one for name, one in self.pairs.items() if name in verifiers}
        self.arms.planner = self if self.declared.verifiers else None
        if not self.declared.verifiers:
            self.said = {}
        self.journal.pieces.add(PIECE)
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

    def expect(self, choice: Choice) -> None:
        """See Capability: what follows a failure is expected to be worse. Raises UnknownVerifier,
        VerdictOutOfRange, ChainTooLong.
        """
        follows = choice.request.follows
        if follows is None:
            return
        self._fit(self.arms.names)
        following.check(follows, self.tables)
        chain = following.begin(choice, self.tables, self.arms, self.name)
        if chain is not None:
            choice.keep(self.name, to_builtins(chain))
            following.expect(choice, chain, self.tables)

    def rule_out(self, choice: Choice) -> None:
        """See Capability: the models that were tried are ruled out, while there are others."""
        chain = self._chain(choice.kept)
        if chain is not None:
            following.rule_out(choice, chain, self.arms)

    def _chain(self, kept: Mapping[str, Json] | None) -> Chain | None:
        found = None if kept is None else kept.get(self.name)
        return None if found is None else converted(found, Chain, "chain of a request")

    def decided(self, choice: Choice, record: RequestRecord) -> None:
        """See Capability."""
        if following.count_signals(choice, self.tables, self.arms):
            self.journal.pieces.add(PIECE)

    @classmethod
    def told(cls, kept: Json) -> dict[str, object]:
        """See Capability."""
        return following.told(kept)

    @classmethod
    def published(cls, record: RequestRecord) -> dict[str, object]:
        """See Capability."""
        return {} if record.plan is None else plan_fields(record.plan)

    def planned(
        self, single: Options, rewards: Options | None = None, *, per_dollar: float = 0.0
    ) -> Options:
        """See arms.Planner."""
        self._fit(self.arms.names)
        self.tables.refresh()
        if self.declared.max_attempts < 2:
            return single
        return PlannedOptions(single, self.tables.sure, self._shut(), rewards, per_dollar)

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
        if not self.declared.verifiers:
            return
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
        pairs = self.pairs.setdefault(event.verifier, Pairs(record.decided_at))
        pairs.verdicts, pairs.fees_usd = pairs.verdicts + 1, pairs.fees_usd + verifier.usd
        step = plan.steps[event.attempt]
        if step.verify == event.verifier and step.accept_at is not None:
            pairs.came += 1.0
            self.tables.coming(event.verifier, pairs.comes)
        self.journal.pieces.add(PIECE)
        known = self._known(plan.steps[event.attempt].model, x)
        if known is None or x is None:
            return said, None
        k, reward, variance = known
        table, j = self.tables.tables[event.verifier], verifier.bin_of(event.verdict)
        less = self._less(record, plan, event.attempt, reward)
        reward -= less
        table.see(k, j, reward)
        self.tables.changed(event.verifier, k)
        self.journal.pieces.add(PIECE)
        if record.label is not None and plan.labelled == event.attempt:
            label = record.label.reward
            table.learn(k, j, reward, variance, label)
            pairs.add(label - reward, passes=event.verdict >= PASSED)
            self.tables.changed(event.verifier)
            return structs.replace(said, learned=True), None
        value, weight = table.tells(k, j, reward, self.arms.rewards.noise)
        return said, weighted(x, value + less, weight)

    def judged(self, record: RequestRecord, x: Vector, reward: float) -> Taught | None:
        """See Capability: an answer that has a verdict and a label tells what the verdict means."""
        if self.declared.verifiers and self.tables.labelled(record.called):
            self.journal.pieces.add(PIECE)
        plan, call = record.plan, record.call
        taught: Taught | None = Taught(x, reward)
        if call is None or not (plan is None or plan.labelled >= 0):
            return taught
        model = record.called if plan is None else plan.steps[plan.labelled].model
        known = self._known(model, x)
        if known is None:
            return taught
        k, mean, variance = known
        attempt = 0 if plan is None else plan.labelled
        less = self._less(record, plan, attempt, mean)
        before = self._before(record, plan, attempt, mean)
        if before is not None:
            stopped_by, gap = before
            taught = weighted(x, *stopped_by.learn_second(gap, mean, variance, reward))
            for name, one in self.tables.tables.items():
                if one is stopped_by:
                    self.tables.changed(name)
            self.journal.pieces.add(PIECE)
        if plan is None:
            return taught
        made = plan.made[attempt]
        verdicts = dict(made.verdicts)
        for name, said in made.verdicts.items():
            table = self.tables.tables.get(name)
            if table is None or said.learned:
                continue
            j = self.declared.verifiers[name].bin_of(said.verdict)
            value, weight, revised = table.learn(k, j, mean - less, variance, reward)
            pairs = self.pairs.setdefault(name, Pairs(record.decided_at))
            pairs.add(reward - mean + less, passes=said.verdict >= PASSED)
            self.tables.changed(name)
            self.journal.pieces.add(PIECE)
            verdicts[name] = structs.replace(said, learned=True)
            if len(plan.steps) == 1:
                # Labelled whatever the verdict: as it is, less what the verdict has taught.
                value, weight = reward, 1.0 - table.tells(k, j, mean, self.arms.rewards.noise)[1]
                revised = weight
            taught, plan = weighted(x, value + less, weight), structs.replace(plan, revised=revised)
        plan = plan.with_attempt(plan.labelled, structs.replace(made, verdicts=verdicts))
        record.call = structs.replace(call, plan=plan)
        return taught

    def billed(self, billing: Billing) -> None:
        """See Capability: count what waits for a verdict, and what followed one."""
        plan, attempt = billing.record.plan, billing.event.attempt
        if plan is None or billing.answered or billing.unanswered:
            return
        step = plan.steps[attempt]
        verifier = step.verify or ""
        if verifier in self.declared.verifiers and step.accept_at is not None:
            waited = self.pairs.setdefault(verifier, Pairs(billing.record.decided_at))
            waited.wait()
            self.tables.coming(verifier, waited.comes)
            self.journal.pieces.add(PIECE)
        if attempt == 0:
            return
        pairs = self.pairs.get(plan.steps[attempt - 1].verify or "")
        if pairs is not None:
            pairs.further_usd += billing.cost_usd
            self.journal.pieces.add(PIECE)

    def taken(self, record: RequestRecord, event: Judged, weighed: Weighed, now: float) -> None:
        """See Capability: tell of verifiers that are worthless, and of those that have changed."""
        plan = record.plan
        if plan is None or plan.labelled < 0:
            return
        for name in plan.made[plan.labelled].verdicts:
            pairs = self.pairs.get(name)
            if pairs is not None:
                verdict_alerts.tell(self.journal, name, pairs, len(self.declared.verifiers), now)

    def _less(self, record: RequestRecord, plan: Plan | None, attempt: int, reward: float) -> float:
        """Return the reward that an answer is expected to lose because of failures before it.

        Args:
            reward: what is expected of the answer without that loss.
        """
        before = self._before(record, plan, attempt, reward)
        return 0.0 if before is None else before[1] * before[0].alike

    def _before(
        self, record: RequestRecord, plan: Plan | None, attempt: int, reward: float
    ) -> tuple[VerdictTable, float] | None:
        """Return what told of the failures before an answer, and the reward that it loses by them
        at ρ = 1; None: an answer before it passed, or is not known to have failed.
        """
        if plan is not None and plan.follows_failures(attempt):
            table = self.tables.tables.get(plan.steps[attempt - 1].verify or "")
            return None if table is None else (table, plan.steps[attempt].gap)
        chain = None if record.call is None or attempt else self._chain(record.call.kept)
        return None if chain is None else following.gap_of(chain, reward, self.tables)

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
        return (PIECE,) if self.declared.verifiers or self.tables.signals else ()

    def pack(self, piece: str) -> bytes | None:
        """See Capability."""
        if piece != PIECE or not self.pieces:
            return None
        tables = self.tables
        kept = [pack(tables.tables), list(self.said.items()), pack(tables.signals)]
        return orjson.dumps([*kept, to_builtins(self.pairs), tables.labels])

    def restore(self, head: Mapping[str, Json], piece: Callable[[str], bytes]) -> None:
        """See Capability."""
        if kept := piece(PIECE):
            found = decoded(kept, _Kept, self.name)
            self.tables.labels = dict(found.labels)
            self.tables.restore(found.tables, found.signals, self.arms.names)
            self.said, self.pairs = dict(found.said), found.pairs
            for name, pairs in self.pairs.items():
                self.tables.coming(name, pairs.comes)

    def faults(self) -> Iterator[str]:
        """See Capability."""
        yield from self.tables.faults()
        if not all(one.is_sound for one in self.pairs.values()):
            yield "pairs of verdicts and labels"

    def lambda_fields(self, now: float) -> dict[str, object]:
        """See Capability."""
        return {"verifiers": standings(self.tables, self.shown)} if self.tables.verifiers else {}
