"""Any sequence of events: the engine against a model of dictionaries and lists, every invariant
after every step.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from router_state import errors
from router_state.asking.label_budget import LabelBudget
from router_state.cache_price import CachePrice
from router_state.changes import Changes, Outcome
from router_state.config import Price, Tier
from router_state.endings.ending import Ending
from router_state.engine import Engine
from router_state.events import Asked, Charged, Event, Judged, Needs, Redeclared, Waited
from router_state.families.family_declared import FamilyDeclared
from router_state.families.family_member import Family
from router_state.families.family_reports import MemberPrior, Model
from router_state.families.family_sums import Sums, bytes_of
from router_state.incumbents.assigning import Incumbent
from router_state.latency.goal import LatencyGoal
from router_state.latency.latency_target import Latency
from router_state.needs.offers import Offers, lacking
from router_state.record import RequestRecord
from router_state.runs.run_budget import RULED_OUT
from router_state.state import invariants, portable, record_bytes, state_pieces
from router_state.variants.variants import Variant
from tests.router_state.core_reference import (
    CHEAP,
    DEAR,
    MIDDLE,
    Array,
    DenseArm,
    Observation,
    context,
    declaration,
    freeze,
    named,
    same,
    thaw,
)

NAMES = ("a", "b", "c", "d")
TTL = 50.0
ids = st.integers(0, 15).map(str)
places = st.integers(0, 9)
entries = st.integers(-20, 20).map(lambda n: n / 10.0)
prices = st.sampled_from([CHEAP, MIDDLE, DEAR, Price(0.0, 0.0)])
portfolios = st.dictionaries(st.sampled_from(NAMES), prices, min_size=1)
# Below all models, among them, above all.
budgets = st.sampled_from([None, 1e-9, 1e-4, 1e-3, 1e-2, 10.0])
OFFERS = {"a": Offers(vision=True, context_window=1000), "b": Offers(tools=True)}
NEEDS = (None, None, Needs(), Needs(vision=True), Needs(tools=True), Needs(json_output=True))
CACHES = {
    "a": CachePrice(read_per_m=0.01, ttl_seconds=30.0, min_tokens=1),
    "b": CachePrice(read_per_m=0.1, write_per_m=0.9, ttl_seconds=5.0),
}
GOALS = (
    None,
    None,
    LatencyGoal(p95_seconds=2.0),
    LatencyGoal(mean_seconds=0.5),
    LatencyGoal(of="first_token", mean_seconds=1e-3),
    LatencyGoal(usd_per_second=0.01),
)
KEEPS: tuple[dict[str, Any] | None, ...] = (
    None,
    None,
    {"observes": True, "holdout": 0.1},
    {"share": 0.5},
    {"ramp": (0.3, 0.6), "margin": 0.1},
    {"ramp": (0.3, 0.6), "margin": 0.9, "by_session": True},
    {"share": 0.9, "holdout": 0.3, "by_session": True},
)
OTHERS: dict[str, Any] = {
    "price_above": 1000,
    "variants": {NAMES[0]: Variant("base", {"effort": "high"}), NAMES[1]: Variant("base")},
    "endings": {
        NAMES[0]: Ending(retires_at=700_000.0, answers_as=("x*",), variant_of="base"),
        NAMES[1]: Ending(retires_at=30.0),
    },
}
ABOVE = (Tier(1000, 3.0, 9.0), Tier(5000, 4.0, 4.0))
LABELS = (None, None, LabelBudget(2, "hour", "r", "human"))
STATUSES = (None, None, None, "ok", "error", "error", "timeout", "rate_limited", "cancelled")
KINDS = ("drawn", "constant contexts", "bills of nothing", "rewards of nothing", "equal rewards")


class Books(RuleBasedStateMachine):
    """What holds in every profile: one decision per request, every bill and reward once, refusals
    without a trace.
    """

    profile = "live"
    knobs: ClassVar[dict[str, Any]] = {"commitment_ttl_seconds": TTL}

    crowd: ClassVar[dict[str, Price]] = {}

    @initialize(
        portfolio=portfolios,
        budget=budgets,
        pulls=st.sampled_from([0, 2]),
        kind=st.sampled_from(KINDS),
        offers=st.sampled_from([{}, OFFERS]),
        caches=st.sampled_from([{}, CACHES]),
        latency=st.sampled_from(GOALS),
        keeps=st.sampled_from(KEEPS),
        family=st.sampled_from([None, FamilyDeclared("kin")]),
        others=st.booleans(),
        labels=st.sampled_from(LABELS),
    )
    def start(
        self,
        portfolio: dict[str, Price],
        budget: float | None,
        pulls: int,
        kind: str,
        offers: dict[str, Offers],
        caches: dict[str, CachePrice],
        latency: LatencyGoal | None,
        keeps: dict[str, Any] | None,
        family: FamilyDeclared | None,
        others: bool,
        labels: LabelBudget | None,
    ) -> None:
        self.offers, self.caches, self.latency = offers, caches, latency
        # What is recomputed of `paper` knows nothing of these.
        self.keeps, self.others = keeps, others and self.profile == "live"
        self.labels = labels
        self.family, self.told = family, 0
        self.now = 0.0
        self.session: str | None = None
        self.fields: dict[str, Any] = {}  # of capabilities, in a request
        self.kind = kind
        portfolio = {**portfolio, **self.crowd}
        self.pulls = pulls
        self.active: dict[str, Price] = {}
        self.requests: dict[str, dict[str, Any]] = {}
        self.contexts: dict[str, Array] = {}
        self.arms: dict[str, DenseArm] = {}
        self.t = 0
        self.written: dict[str, bytes] = {}
        self.engine = Engine.start(self._declaration(portfolio, budget))
        if (timed := self.engine.state.having(Latency)) is not None:
            timed.timing.count = 20.0  # a few requests are all that a machine has
        self.write(self.engine.started())
        self._declared(portfolio)

    def _declaration(self, portfolio: dict[str, Price], budget: float | None) -> Any:
        latency = self.latency if self.profile == "live" else None
        if latency is not None and latency.usd_per_second is not None and budget is None:
            latency = None  # refused
        if self.others:
            portfolio = {
                name: Price(one.input_price_per_m, one.output_price_per_m, ABOVE)
                for name, one in portfolio.items()
            }
        return declaration(
            portfolio,
            others=OTHERS if self.others else None,
            budget=budget,
            profile=self.profile,
            pulls=self.pulls,
            offers=self.offers,
            caches=self.caches,
            latency=latency,
            incumbent=self._incumbent(portfolio),
            family=self.family if self.profile == "live" else None,
            labels=self.labels,
            **self.knobs,
        )

    def _incumbent(self, portfolio: dict[str, Price]) -> Incumbent | None:
        # What is recomputed of `paper` is every choice of the router's.
        if self.keeps is None or self.profile != "live":
            return None
        first, *others = sorted(portfolio)
        mix = {first: 0.4, others[0]: 0.6} if others else {first: 1.0}
        return Incumbent(mix, "r", **self.keeps)

    def _declared(self, portfolio: dict[str, Price]) -> None:
        self.active = dict(portfolio)
        for name in portfolio:
            self.arms.setdefault(name, DenseArm(born=self.t))

    def apply(self, event: Event) -> Changes:
        """Apply an event, and write what it says that it has changed, and nothing else."""
        changes = self.engine.apply(event, self.now)
        self.write(changes)
        if changes.refusal is not None:
            raise changes.refusal
        return changes

    def write(self, changes: Changes) -> None:
        state = self.engine.state
        found = {named(piece): state_pieces.pack_piece(state, piece) for piece in changes.pieces}
        found |= {
            f"request {request_id}": None if record is None else record_bytes.pack_record(record)
            for request_id, record in changes.records.items()
        }
        for name, packed in found.items():
            if packed is None:
                self.written.pop(name, None)
            else:
                self.written[name] = packed

    def decided(
        self,
        request_id: str,
        x: Array,
        allowed: set[str] | None = None,
        tokens: int | None = None,
        needs: Needs | None = None,
    ) -> RequestRecord:
        asked = Asked(
            request_id,
            x,
            allowed_models=allowed,
            input_tokens=tokens,
            needs=needs,
            session_id=self.session,
            fields=self.fields or None,
        )
        decision = self.apply(asked).decision
        assert decision is not None
        return decision

    @rule(seconds=st.floats(0.0, 20.0))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(
        request_id=ids,
        features=st.tuples(entries, entries, entries),
        allowed=st.none() | st.sets(st.sampled_from(NAMES), max_size=3),
        tokens=st.none() | st.integers(0, 10**9),
        needs=st.sampled_from(NEEDS),
        session=st.none() | st.sampled_from(["s", "t", "𝔸"]),
        run=st.none() | st.sampled_from([1e-6, 1e-3, 1.0]),
    )
    def decide(
        self,
        request_id: str,
        features: tuple[float, float, float],
        allowed: set[str] | None,
        tokens: int | None,
        needs: Needs | None,
        session: str | None,
        run: float | None,
    ) -> None:
        # What is recomputed of `paper` knows of no such budget.
        self.session = session
        self.fields = {"runs": run} if session and run and self.profile == "live" else {}
        if self.kind == "constant contexts":
            features = (0.5, -1.0, 2.0)
        eligible = self.active.keys() if allowed is None else self.active.keys() & allowed
        if request_id in self.requests:
            before = freeze(self.engine)
            record = self.decided(request_id, context(*features), allowed)
            assert record.model == self.requests[request_id]["model"]
            assert freeze(self.engine) == before
            return
        x = context(*features)
        if not eligible:
            self.refused(errors.NoAllowedModel, lambda: self.decided(request_id, x, allowed))
            return
        eligible = {
            name
            for name in eligible
            if name not in self.offers or not lacking(self.offers[name], needs or Needs(), tokens)
        }
        if not eligible:
            self.refused(
                errors.NoCapableModel, lambda: self.decided(request_id, x, allowed, tokens, needs)
            )
            return
        self.check_decision(request_id, x, eligible, allowed, tokens, needs)

    def check_decision(
        self,
        request_id: str,
        x: Array,
        eligible: Any,
        allowed: set[str] | None,
        tokens: int | None = None,
        needs: Needs | None = None,
    ) -> None:
        record = self.decided(request_id, x, allowed, tokens, needs)
        assert record.model in eligible
        assert 0.0 < record.propensity <= 1.0
        self.contexts[request_id] = x
        self.requests[request_id] = {
            "model": record.model,
            "x": x,
            "at": self.now,
            "expected": record.expected_cost_usd,
            "cost": None,
            "bill": -1,
            "label": None,
            "kept": None,
            "seen": None,
            "expired": False,
        }
        self.t = self.engine.state.t

    def request_at(self, place: int) -> str:
        """Return one of the latest requests, mostly: drawn ids seldom meet again."""
        known = list(self.requests)
        return known[-1 - place % len(known)] if known and place < 9 else "nobody's"

    @rule(
        place=places,
        cost=st.floats(0.0, 0.05),
        revision=st.integers(0, 3),
        status=st.sampled_from(STATUSES),
        retry_after=st.none() | st.floats(0.0, 1e4),
        cached=st.none() | st.integers(0, 10**9),
        latency=st.none() | st.sampled_from([0.0, 0.1, 1.0, 3.0, 86_400.0]),
        answered=st.sampled_from([None, None, NAMES[0], "base-2026-01-01", "xy", "another"]),
        gone=st.sampled_from([False] * 9 + [True]),
    )
    def bill(
        self,
        place: int,
        cost: float,
        revision: int,
        status: str | None,
        retry_after: float | None,
        cached: int | None,
        latency: float | None,
        answered: str | None,
        gone: bool,
    ) -> None:
        if self.profile == "paper":
            answered, gone = None, False
        status = "gone" if gone else status
        request_id = self.request_at(place)
        cost = 0.0 if self.kind == "bills of nothing" else cost
        request = self.requests.get(request_id)
        if request is None:
            self.refused(errors.UnknownRequest, lambda: self.apply(Charged(request_id, cost)))
            return
        known = revision <= request["bill"]
        before = freeze(self.engine) if known else None
        charged = Charged(
            request_id,
            cost,
            revision=revision,
            status=status,
            retry_after=retry_after,
            cached=cached,
            latency=latency,
            first_token=latency,
            answered_by=answered,
        )
        outcome = self.apply(charged).outcome
        if known:
            assert outcome is Outcome.DUPLICATE
            assert freeze(self.engine) == before
            return
        assert outcome is (Outcome.APPLIED if request["bill"] < 0 else Outcome.REVISED)
        if request["bill"] < 0:
            self.paid(cost)
        request["bill"], request["cost"] = revision, cost

    def paid(self, cost: float) -> None:
        """Follow the first bill of a request."""

    @rule(
        place=places,
        reward=st.none() | st.integers(0, 20).map(lambda n: n / 20),
        rank=st.integers(0, 1),
        revision=st.integers(0, 3),
    )
    def reward(self, place: int, reward: float | None, rank: int, revision: int) -> None:
        request_id = self.request_at(place)
        request = self.requests.get(request_id)
        if reward is not None:
            reward = {"rewards of nothing": 0.0, "equal rewards": 0.5}.get(self.kind, reward)
        source = ("judge", "human")[rank]
        if request is None:
            self.refused(errors.UnknownRequest, lambda: self.apply(Judged(request_id, reward)))
            return
        label, kept = request["label"], request["kept"]
        if kept is None and reward is None:
            kept = {} if label is None else {label[0]: (label[1], request["seen"].reward)}
        if kept is not None:
            known = rank in kept and revision <= kept[rank][0]
        else:
            known = label is not None and not (
                rank > label[0] or (rank == label[0] and revision > label[1])
            )
        before = freeze(self.engine) if known else None
        outcome = self.apply(Judged(request_id, reward, source, rank, revision=revision)).outcome
        if known:
            assert outcome is Outcome.DUPLICATE
            assert freeze(self.engine) == before
            return
        request["kept"] = kept
        counts: tuple[int, int, float] | None
        if kept is None:
            assert reward is not None
            counts = rank, revision, reward
        else:
            kept[rank] = revision, reward
            left = [(r, n, value) for r, (n, value) in kept.items() if value is not None]
            counts = max(left) if left else None
        is_new = label is None and counts is not None
        assert outcome is (Outcome.APPLIED if is_new else Outcome.REVISED)
        request["label"] = None if counts is None else counts[:2]
        self.t = self.engine.state.t
        if is_new:
            assert counts is not None
            seen = Observation(self.t, request["x"], counts[2])
            request["seen"] = seen
            self.arms[request["model"]].observations.append(seen)
        elif counts is not None:
            request["seen"].reward = counts[2]
        elif label is not None:
            request["seen"].withdrawn = True

    @rule()
    def expire(self) -> None:
        due = [
            r
            for r in self.requests.values()
            if r["bill"] < 0 and not r["expired"] and r["at"] <= self.now - TTL
        ]
        assert len(self.apply(Waited()).records) == len(due)
        for request in due:
            request["expired"] = True

    @rule(
        portfolio=portfolios,
        budget=budgets,
        caches=st.sampled_from([{}, CACHES, CACHES]),
        latency=st.sampled_from(GOALS),
        keeps=st.sampled_from(KEEPS),
    )
    def declare(
        self,
        portfolio: dict[str, Price],
        budget: float | None,
        caches: dict[str, CachePrice],
        latency: LatencyGoal | None,
        keeps: dict[str, Any] | None,
    ) -> None:
        self.caches, self.latency, self.keeps = caches, latency, keeps
        self.apply(Redeclared(self._declaration(portfolio, budget)))
        self._declared(portfolio)

    @rule(name=st.sampled_from(NAMES), y=entries, bills=st.booleans(), nothing=st.booleans())
    def hear_of_the_family(self, name: str, y: float, bills: bool, nothing: bool) -> None:
        member = self.engine.state.having(Family)
        if member is None:
            return
        self.told += 1
        sums = bytes_of(Sums(20.0 * np.eye(4), np.array([0.0, y, 0.0, 20.0 * y])))
        said = b"" if nothing else sums
        models = {name: Model(said, said if bills else b"")}
        born, n = member.place.born, member.place.n + 1
        outcome = self.apply(MemberPrior("kin", born, n, models, offset=self.told)).outcome
        assert outcome is Outcome.APPLIED

    @rule()
    def stop_and_start(self) -> None:
        before = freeze(self.engine)
        self.engine = thaw(self.written, self.contexts)
        assert freeze(self.engine) == before

    @rule()
    def export_and_import(self) -> None:
        before = freeze(self.engine)
        data = portable.pack(self.engine.state, {})
        assert portable.pack(portable.unpack(data).state, {}) == data
        assert freeze(self.engine) == before
        other = Engine.start(replace(self.engine.state.config, snapshot=data))
        invariants.check(other.state, other.records)

    @rule(
        bad=st.sampled_from(["context", "cost", "reward", "dimensions"]),
        number=st.sampled_from([math.nan, math.inf, -math.inf]),
    )
    def poison(self, bad: str, number: float) -> None:
        known = next(iter(self.requests), None)
        if bad == "context" and self.active:
            self.refused(
                errors.NonFiniteInput, lambda: self.decided("poison", context(0, number, 0))
            )
        elif bad == "cost" and known is not None:
            self.refused(
                errors.NonFiniteInput, lambda: self.apply(Charged(known, number, revision=9))
            )
        elif bad == "reward" and known is not None:
            self.refused(errors.NonFiniteInput, lambda: self.apply(Judged(known, number, rank=9)))
        elif bad == "dimensions":
            self.refused(
                errors.InvalidConfig, lambda: self.apply(Redeclared(declaration(dimensions=7)))
            )

    def refused(self, error: type[errors.RouterStateError], attempt: Any) -> None:
        before = freeze(self.engine)
        with pytest.raises(error):
            attempt()
        assert freeze(self.engine) == before

    @invariant()
    def everything_that_changed_was_written(self) -> None:
        if hasattr(self, "engine"):
            assert self.written == freeze(self.engine)

    @invariant()
    def books_agree(self) -> None:
        if not hasattr(self, "engine"):
            return
        state = self.engine.state
        invariants.check(state, self.engine.records)
        assert state.seq == len(self.requests)
        assert math.isfinite(state.lambda_t)
        assert same(
            state.spend_usd,
            math.fsum(r["cost"] for r in self.requests.values() if r["cost"] is not None),
        )
        awaited = [r for r in self.requests.values() if r["bill"] < 0 and not r["expired"]]
        assert state.in_flight == len(awaited)
        assert same(state.committed_usd, math.fsum(r["expected"] for r in awaited))
        assert state.expired == sum(r["expired"] for r in self.requests.values())
        assert state.rewards_applied == sum(r["label"] is not None for r in self.requests.values())
        assert {arm.name for arm in state.arms if arm.retired_at is None} == self.active.keys()


class Crowd(Books):
    """The same with 64 models more."""

    crowd: ClassVar[dict[str, Price]] = {f"model-{k}": Price(0.1 * k, 0.2 * k) for k in range(64)}


class Paper(Books):
    """The paper's policy besides: what the arms know, every score, the pacer and the choice,
    recomputed from the lists.
    """

    profile = "paper"
    knobs: ClassVar[dict[str, Any]] = {
        "commitment_ttl_seconds": TTL,
        "gamma": 0.95,
        "alpha": 0.3,
        "lambda_c": 0.1,
    }

    def _declared(self, portfolio: dict[str, Price]) -> None:
        super()._declared(portfolio)
        budget = self.engine.state.config.budget_usd_per_request
        if budget is None:
            self.pacer = None
        elif self.pacer is None:
            self.pacer = (0.0, budget)

    def __init__(self) -> None:
        super().__init__()
        self.last_played: dict[str, int] = {}
        self.pacer = None

    def paid(self, cost: float) -> None:
        budget = self.engine.state.config.budget_usd_per_request
        if self.pacer is not None and budget is not None:
            mean = 0.95 * self.pacer[1] + 0.05 * cost
            self.pacer = (min(5.0, max(0.0, self.pacer[0] + 0.05 * (mean / budget - 1.0))), mean)

    def check_decision(
        self,
        request_id: str,
        x: Array,
        eligible: Any,
        allowed: set[str] | None,
        tokens: int | None = None,
        needs: Needs | None = None,
    ) -> None:
        arms, lambda_t, t = self.engine.state.arms, self.engine.state.lambda_t, self.t
        pulls = {arm.name: arm.pulls_left for arm in arms}
        per_1k = {
            name: (p.input_price_per_m + p.output_price_per_m) / 2000
            for name, p in self.active.items()
        }
        super().check_decision(request_id, x, eligible, allowed, tokens, needs)
        record = self.engine.records[request_id]
        assert record.candidates is not None
        assert self.t == t + 1
        seen = zip(record.candidates.models, record.candidates.excluded, strict=True)
        ruled_out = ("down", "rate_limited", RULED_OUT)
        eligible = set(eligible) - {name for name, why in seen if why in ruled_out}
        scores = {}
        for name in eligible:
            arm = self.arms[name]
            A, b = arm.statistics(gamma=0.95, ridge=1.0, d=4)
            last = max(
                arm.observations[-1].t if arm.observations else arm.born,
                self.last_played.get(name, arm.born),
            )
            variance = x @ np.linalg.solve(A, x) / max(0.95 ** min(t - last, 1000), 1 / 200)
            position = math.log(max(per_1k[name], 1e-4) / 1e-4) / math.log(0.1 / 1e-4)
            scores[name] = float(
                np.linalg.solve(A, b) @ x
                + 0.3 * math.sqrt(variance)
                - (0.1 + lambda_t) * min(1.0, position)
            )
            assert same(
                record.candidates.score(record.candidates.models.index(name)),
                scores[name],
                tolerance=1e-7,
            )
        self.last_played[record.model] = self.t
        if record.reason == "onboarding":
            assert pulls[record.model] > 0
            return
        assert not any(pulls[name] for name in eligible)
        if lambda_t > 0.0:
            under = {
                name for name in eligible if per_1k[name] <= max(per_1k.values()) / (1.0 + lambda_t)
            }
            # What is left of a run says more about a decision than a ceiling.
            assert record.reason == RULED_OUT or (record.reason == "ceiling_relaxed") is (not under)
            scores = {name: score for name, score in scores.items() if name in under} or scores
        assert scores[record.model] >= max(scores.values()) - 1e-7

    @invariant()
    def pace_agrees(self) -> None:
        if hasattr(self, "engine"):
            assert same(self.engine.state.lambda_t, 0.0 if self.pacer is None else self.pacer[0])

    @rule()
    def arms_agree(self) -> None:
        state = self.engine.state
        for k, name in enumerate(state.arms.names):
            A, b = self.arms[name].statistics(gamma=0.95, ridge=1.0, d=4)
            np.testing.assert_allclose(state.arms[k].rewards.A(), A, rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(
                state.arms[k].rewards.theta, np.linalg.solve(A, b), rtol=1e-7, atol=1e-9
            )


TestBooks = Books.TestCase
TestCrowd = Crowd.TestCase
TestCrowd.settings = settings(max_examples=settings().max_examples // 8)  # each is that much dearer
TestPaper = Paper.TestCase
