"""Learn from verdicts and labels: what verdicts mean, and how good the models are."""

from __future__ import annotations

import math
from typing import NamedTuple

from msgspec import structs

from router_state.arms import Arms
from router_state.attempts import following, verdict_alerts
from router_state.attempts.shared_verdicts import SharedVerdicts
from router_state.attempts.verdict_pairs import Pairs
from router_state.attempts.verdict_tables import Tables
from router_state.attempts.verdict_waits import given
from router_state.billing import Billing
from router_state.capability import VerdictEffect
from router_state.changes import Journal
from router_state.config import Vector
from router_state.events import Verified
from router_state.kernel import VerdictTable
from router_state.plan import Plan, Taught, Verdict
from router_state.record import RequestRecord
from router_state.shared_numbers import ByModel, Numbers

NAME = "attempts"
"""Name of the capability, under which a record keeps the chain of a request."""
PIECE = "\x1fattempts"
"""Name of the piece with the tables and the pairs."""
PASSED = 0.5
"""Least verdict that counts as passed where verdicts are compared with labels."""
LEAST_WEIGHT = 0.02
"""Least weight of an observation that is learned. Verdicts of a coin weigh less, and so do labels
of an answer that has an exact verdict.
"""


class Answer(NamedTuple):
    """An answer, beside its verdict and its label.

    Attributes:
        x: context of its request, shape (d,); k: position of its model.
        mean, variance: expected reward of that model for the context, and its variance.
        before: the table of the verifier that found the earlier failures, if there are any; gap:
            the reward lost through these failures at ρ = 1; less: the expected loss of reward.
    """

    x: Vector
    k: int
    mean: float
    variance: float
    before: VerdictTable | None
    gap: float
    less: float


def weighted(x: Vector, value: float, weight: float) -> Taught | None:
    """Return an observation with this weight; None if the weight is below `LEAST_WEIGHT`."""
    if weight < LEAST_WEIGHT:
        return None
    root = math.sqrt(weight)
    return Taught(x * root, value * root)


class Evidence:
    """The evidence on a router's verifiers.

    Attributes:
        tables: what their verdicts mean.
        pairs: by verifier, pairs of verdicts and labels, and the cost of its verdicts.
        shared: by verifier, evidence that the router shares; empty if no capability carries it.
    """

    __slots__ = ("journal", "pairs", "shared", "tables")

    def __init__(self, tables: Tables, journal: Journal) -> None:
        self.tables, self.journal = tables, journal
        self.pairs, self.shared = dict[str, Pairs](), dict[str, SharedVerdicts]()

    def verdict(
        self,
        event: Verified,
        record: RequestRecord,
        plan: Plan,
        x: Vector | None,
        arms: Arms,
        now: float,
    ) -> VerdictEffect | None:
        """Learn a verdict; see `Capability.verified`."""
        verifier = self.tables.verifiers.get(event.verifier)
        if verifier is None:
            return None
        made = plan.made[event.attempt]
        verdict = Verdict(float(event.verdict), event.revision, verifier.usd)
        before = made.verdicts.get(event.verifier)
        if before is not None:
            # The bill and the label are those of the first call.
            verdict = structs.replace(before, verdict=float(event.verdict), revision=event.revision)
            return verdict, None
        pairs = self._count(event, record, plan, verifier.usd, now)
        answer = self._answer(record, plan, event.attempt, x, arms)
        if answer is None:
            return verdict, None
        table, j = self.tables.tables[event.verifier], verifier.bin_of(event.verdict)
        k, less = answer.k, answer.less
        mean = answer.mean - less
        table.see(k, j, mean)
        if record.label is not None and plan.labelled == event.attempt:
            label = record.label.reward
            self._note(event.verifier, j, answer, label, arms)
            table.learn(k, j, mean, answer.variance, label)
            pairs.add(label - mean, passes=event.verdict >= PASSED)
            return structs.replace(verdict, learned=True), None
        value, weight = table.tells(k, j, mean, arms.rewards.noise)
        return verdict, weighted(answer.x, value + less, weight)

    def _count(
        self, event: Verified, record: RequestRecord, plan: Plan, usd: float, now: float
    ) -> Pairs:
        """Count a verdict, its dollars and its time."""
        pairs = self.pairs.setdefault(event.verifier, Pairs(record.decided_at))
        pairs.verdicts, pairs.fees_usd = pairs.verdicts + 1, pairs.fees_usd + usd
        step = plan.steps[event.attempt]
        if step.verify == event.verifier and step.accept_at is not None:
            pairs.come(step.model)
            self.tables.coming(event.verifier, pairs, step.model)
            if event.attempt == 0:
                pairs.given_seconds = given(pairs.given_seconds, now - record.decided_at)
        self.journal.pieces.add(PIECE)
        return pairs

    def label(self, record: RequestRecord, x: Vector, reward: float, arms: Arms) -> Taught | None:
        """Learn a request's first label; see `Capability.judged`. An answer that has a verdict and
        a label tells what the verdict means.
        """
        if self.tables.verifiers and self.tables.labelled(record.called):
            self.journal.pieces.add(PIECE)
        plan, taught = record.plan, Taught(x, reward)
        if record.call is None or not (plan is None or plan.labelled >= 0):
            return taught
        answer = self._answer(record, plan, 0 if plan is None else plan.labelled, x, arms)
        if answer is None:
            return taught
        found = taught if answer.before is None else self._learn_second(answer, reward)
        if plan is None:
            return found
        made = plan.made[plan.labelled]
        verdicts = dict(made.verdicts)
        for name, verdict in made.verdicts.items():
            if name in self.tables.tables and not verdict.learned:
                value, weight, revised = self._learn_label(
                    name, verdict, plan, answer, reward, arms
                )
                pairs = self.pairs.setdefault(name, Pairs(record.decided_at))
                pairs.add(reward - answer.mean + answer.less, passes=verdict.verdict >= PASSED)
                verdicts[name] = structs.replace(verdict, learned=True)
                found, plan = weighted(x, value, weight), structs.replace(plan, revised=revised)
        plan = plan.with_attempt(plan.labelled, structs.replace(made, verdicts=verdicts))
        record.call = structs.replace(record.call, plan=plan)
        return found

    def _learn_second(self, answer: Answer, reward: float) -> Taught | None:
        """Learn the label of an answer after failures: by how much the models err together."""
        assert answer.before is not None
        found = answer.before.learn_second(answer.gap, answer.mean, answer.variance, reward)
        self.journal.pieces.add(PIECE)
        return weighted(answer.x, *found)

    def _learn_label(
        self, name: str, verdict: Verdict, plan: Plan, answer: Answer, reward: float, arms: Arms
    ) -> tuple[float, float, float]:
        """Learn what a verdict means, by the label of its answer. Return what the label tells of
        the model beyond the verdict: a value to observe, its weight, and that of a revision.
        """
        table, k, less = self.tables.tables[name], answer.k, answer.less
        j = self.tables.verifiers[name].bin_of(verdict.verdict)
        self._note(name, j, answer, reward, arms)
        value, weight, revised = table.learn(k, j, answer.mean - less, answer.variance, reward)
        self.journal.pieces.add(PIECE)
        if len(plan.steps) == 1:
            # Labelled whatever the verdict: as it is, less what the verdict has taught.
            value = reward
            weight = revised = 1.0 - table.tells(k, j, answer.mean, arms.rewards.noise)[1]
        return value + less, weight, revised

    def shares_of(self, name: str) -> SharedVerdicts | None:
        """Return the evidence on a verifier that the router shares; None: its verdicts are exact,
        so there is nothing to learn."""
        table = self.tables.tables[name]
        if table.exact:
            return None
        if name not in self.shared:
            one = self.shared[name] = SharedVerdicts(table.J)
            one.begin(table)
        return self.shared[name]

    def shareable(self) -> ByModel:
        """Return the numbers that the router shares, by model and verifier."""
        found: dict[str, dict[str, Numbers]] = {}
        for name, table in self.tables.tables.items():
            if (one := self.shares_of(name)) is not None:
                for model, numbers in one.shareable(table).items():
                    found.setdefault(model, {})[name] = numbers
        return found

    def take_shared(self, numbers: ByModel | None) -> None:
        """See `Capability.take_shared`."""
        for name, table in self.tables.tables.items():
            if numbers is None and name not in self.shared:
                continue
            if (one := self.shares_of(name)) is None:
                continue
            new = (
                dict.fromkeys(one.others)
                if numbers is None
                else {model: of.get(name) for model, of in numbers.items() if model in table.names}
            )
            if one.take(new, table):
                self.tables.note_known(one.known_models)
                self.journal.pieces.add(PIECE)
                self.journal.jumped = True

    def keep_shared(self) -> None:
        """Forget the shared evidence on verifiers that are gone, or whose tables start anew."""
        tables = self.tables.tables
        self.shared = {
            name: one
            for name, one in self.shared.items()
            if name in tables and (tables[name].J, tables[name].exact) == (one.bins, False)
        }

    def _note(self, name: str, j: int, answer: Answer, label: float, arms: Arms) -> None:
        """Note a label of a verdict's answer, for other routers."""
        if arms.sharing and (one := self.shares_of(name)) is not None:
            reward, variance = answer.mean - answer.less, answer.variance
            table = self.tables.tables[name]
            one.note(table, answer.k, j, reward=reward, variance=variance, label=label)

    def bill(self, billing: Billing) -> None:
        """Count an answer that waits for a verdict, and the dollars of a call that followed one."""
        plan, attempt = billing.record.plan, billing.event.attempt
        if plan is None or billing.answered or billing.unanswered:
            return
        step = plan.steps[attempt]
        verifier = step.verify or ""
        if verifier in self.tables.verifiers and step.accept_at is not None:
            waited = self.pairs.setdefault(verifier, Pairs(billing.record.decided_at))
            waited.wait(step.model)
            self.tables.coming(verifier, waited, step.model)
            self.journal.pieces.add(PIECE)
        pairs = self.pairs.get(plan.steps[attempt - 1].verify or "") if attempt else None
        if pairs is not None:
            pairs.further_usd += billing.cost_usd
            self.journal.pieces.add(PIECE)

    def alert(self, record: RequestRecord, now: float) -> None:
        """Raise alerts for verifiers that are worthless, and for those that have changed."""
        plan = record.plan
        if plan is None or plan.labelled < 0:
            return
        for name in plan.made[plan.labelled].verdicts:
            pairs = self.pairs.get(name)
            if pairs is not None:
                verdict_alerts.raise_alerts(
                    self.journal, name, pairs, len(self.tables.verifiers), now
                )

    def _answer(
        self, record: RequestRecord, plan: Plan | None, attempt: int, x: Vector | None, arms: Arms
    ) -> Answer | None:
        """Return the knowledge of an answer; None: its model or its context is unknown."""
        model = record.called if plan is None else plan.steps[attempt].model
        arm = arms.find(model)
        if arm is None or x is None:
            return None
        mean, spread = arm.rewards.look(x)
        variance = arms.rewards.noise * spread / arm.rewards.decay
        before, gap = self._before(record, plan, attempt, mean)
        less = 0.0 if before is None else gap * before.alike
        return Answer(x, arms.row[model], mean, variance, before, gap, less)

    def _before(
        self, record: RequestRecord, plan: Plan | None, attempt: int, reward: float
    ) -> tuple[VerdictTable | None, float]:
        """Return the table of the verifier that found the failures before an answer, and the reward
        that the answer loses by them at ρ = 1; None: no answer before is known to have failed.
        """
        if plan is not None and plan.follows_failures(attempt):
            table = self.tables.tables.get(plan.steps[attempt - 1].verify or "")
            return table, plan.steps[attempt].gap
        chain = None if attempt else following.chain_of(record, NAME)
        found = None if chain is None else following.gap_of(chain, reward, self.tables)
        return found or (None, 0.0)
