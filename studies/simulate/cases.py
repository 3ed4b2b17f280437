"""Join each request's decision, bill and reward, with their delays."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, final

from msgspec import Struct, structs, to_builtins

from agents.declaring.configuration import projection_ref
from agents.requests.request_contexts import mean_context
from agents.taking.core_events import follows_of, needs_of, seconds
from ground.json_values import Json
from router_state import registered
from router_state.cache_price import CachePrice, usd_of
from router_state.config import Price, ProjectionRef, Vector
from router_state.endings import ending
from router_state.events import UNANSWERED, Follows, Needs
from router_state.long_inputs.declared_prices import price_of
from router_state.sessions.cache_prices import cache_of
from schemas.quick import Request
from schemas.requests import RequestSubmitted
from studies.history.encoded import Contexts
from studies.history.happened import Billed, Decided, Declared, Happened, Rewarded
from studies.history.reading import Decision
from studies.history.skipped import Skipped

HORIZON = 20_000
"""Number of later decisions for which a case waits for its bill and label."""
UNDECLARED = 26
"""Dimensions of a router whose declaration the history does not hold: the wire's default."""
SAID = RequestSubmitted.model_fields.keys() - {
    *("router_id", "request_id", "session_id", "prompt", "context", "metadata", "input_tokens"),
    *("allowed_models", "max_price_per_1k", "needs"),
    *("verifiers", "follows", "verdicts", "signals"),
}
"""Fields of a request that capabilities read, but those about verifiers."""
NUMBER = {int, float}
"""Types of a JSON number; a bool is an int to Python and none here."""


@final
class Case(Struct, gc=False):
    """One decided request.

    Attributes:
        index: position of the request among the decided ones, from 0.
        outcomes: {model: (reward, cost_usd)} if the data hold the outcomes of other models, else
            empty.
        model, propensity: the model that history chose, and the probability of that choice.
        cost_usd, reward: observed bill and reward, or None; their lags count decisions since the
            request's own.
        latency, first_token: seconds of the call, from its bill.
        input_tokens, needs: input tokens and needs that the request stated;
        session_id: its session.
        redirected: whether another model than the called one answered.
        follows: the request that it follows, and what was seen of the answer of model `followed`;
            `followed` None: whose answer that was is not known.
        went_on: whether a second call of a plan followed: the request's reward is then of that.
        fields: what the request says of capabilities, see `Asked`; said: the same fields on the
            wire. No verifier looks at answers of a simulation.
        eligible: models that history could have called; None: not known.
        own: what the router chose; routed: whether it answered; routed_share: probability that it
            did, None: it has no incumbent.
    """

    index: int
    request_id: str
    x: Vector
    at: float
    allowed_models: Collection[str] | None
    max_price_per_1k: float | None
    outcomes: Mapping[str, tuple[float, float]]
    model: str
    propensity: float
    cost_usd: float | None = None
    cost_lag: int = 0
    reward: float | None = None
    reward_lag: int = 0
    eligible: tuple[str, ...] | None = None
    own: str = ""
    routed: bool = True
    routed_share: float | None = None
    input_tokens: int | None = None
    needs: Needs | None = None
    session_id: str | None = None
    latency: float | None = None
    first_token: float | None = None
    follows: Follows | None = None
    followed: str | None = None
    fields: Mapping[str, Json] | None = None
    said: Mapping[str, Json] | None = None
    went_on: bool = False
    redirected: bool = False


class Cases:
    """Iterate over a router's cases and declarations, in order of its decisions.

    A case is emitted once its bill and reward have come, or `horizon` decisions later without them.

    Args:
        since, until: seconds since the epoch; cases decided outside are left out.
        offsets: of `pb.routes`, first and last; cases outside are left out.

    Attributes:
        decided: how many requests were decided.
        projection: of the last declaration.
    """

    def __init__(
        self,
        happened: Iterable[Happened],
        *,
        contexts: Contexts,
        skipped: Skipped,
        horizon: int = HORIZON,
        since: float = float("-inf"),
        until: float = float("inf"),
        offsets: tuple[int, int] | None = None,
    ) -> None:
        self._happened = happened
        self._contexts = contexts
        self._skipped = skipped
        self._horizon = horizon
        self._since, self._until = since, until
        self._first, self._last = offsets or (0, 2**63)
        self._open: deque[Case | Declared] = deque()
        self._by_id: dict[str, Case] = {}
        self._answered: dict[str, str] = {}
        self._unseen: tuple[()] | None = None
        self._prices: dict[str, tuple[Price, CachePrice | None]] = {}
        self._endings: dict[str, ending.Ending | None] = {}
        self.projection: ProjectionRef | None = None
        self._dimensions = UNDECLARED
        self.decided = 0
        self._clock = float("-inf")
        self._incumbent: frozenset[str] = frozenset()

    def __iter__(self) -> Iterator[Case | Declared]:
        waiting = self._open
        for event in self._happened:
            # Compared by type: this loop runs millions of times, and none of these classes has
            # subclasses.
            if type(event) is Decided:
                if event.at >= self._until or event.offset > self._last:
                    break
                if event.at >= self._since and event.offset >= self._first:
                    self._add(event)
            elif type(event) is Declared:
                self._declare(event)
            elif type(event) is Billed or type(event) is Rewarded:
                self._feed(event)
            # Yielded in the order of decisions: an open case delays the later ones, by `horizon` at
            # most.
            while waiting:
                first = waiting[0]
                if type(first) is Case:
                    judged = first.reward is not None or first.went_on
                    complete = judged and first.cost_usd is not None
                    if not complete and self.decided - first.index <= self._horizon:
                        break
                    del self._by_id[first.request_id]
                yield waiting.popleft()
        yield from waiting

    def _declare(self, event: Declared) -> None:
        if event.router is not None:
            self.projection = projection_ref(event.router)
            self._dimensions = event.router.dimensions
            mix = event.router.incumbent or ()
            self._incumbent = frozenset((mix,) if isinstance(mix, str) else mix)
            self._unseen = () if event.router.verifiers else None
            self._prices = {n: (price_of(m), cache_of(m)) for n, m in event.router.models.items()}
            self._endings = {n: ending.read(m) for n, m in event.router.models.items()}
        self._open.append(event)

    def _is_redirected(self, case: Case, event: Any) -> bool:
        """Tell whether another model has answered for the called one, as some bill says; neither
        money nor label are then of the decided model."""
        answered = event.bill.answered_by if type(event) is Billed else None
        one = self._endings.get(case.model) or ending.NOTHING
        if answered is not None and not one.is_answer(case.model, answered):
            case.redirected, case.cost_usd, case.reward = True, None, None
        return case.redirected

    def _add(self, event: Decided) -> None:
        request, decision = event.request, event.decision
        at = event.at
        # Clocks of workers differ; forgetting goes by time, which must not go back.
        if at < self._clock:
            self._skipped.skip(
                "clock jumps back; taken as standing still", f"decision {decision.seq}"
            )
            at = self._clock
        self._clock = at
        follows = follows_of(request)
        case = Case(
            self.decided,
            decision.request_id,
            mean_context(self._dimensions)
            if request.is_wordless
            else self._contexts.of(request, self.projection or self._dimensions),
            at,
            request.allowed_models,
            request.max_price_per_1k,
            {} if request.metadata is None else _outcomes(request.metadata.get("outcomes")),
            decision.model,
            decision.propensity,
            eligible=_eligible(decision, self._incumbent),
            own=decision.model if decision.would_route is None else decision.would_route.model,
            routed=decision.would_route is None,
            routed_share=decision.routed_share,
            input_tokens=request.tokens_before,
            needs=needs_of(request),
            session_id=request.session_id,
            follows=follows,
            followed=None if follows is None else self._answered.get(follows.request_id),
            fields=self._fields(request),
            said=_said(request),
        )
        self.decided += 1
        self._answered[case.request_id] = case.model
        if len(self._answered) > self._horizon:
            del self._answered[next(iter(self._answered))]
        self._open.append(case)
        self._by_id[case.request_id] = case

    def _fields(self, request: Request) -> Mapping[str, Json] | None:
        """Return what a request says of capabilities; it has no verifiers, if the router declares
        any.
        """
        if request.verifiers != self._unseen:
            request = structs.replace(request, verifiers=self._unseen)  # type: ignore[type-var]
        return registered.request_fields(request)

    def _credit(self, event: Rewarded) -> None:
        """Give a session's reward to its open cases that have none."""
        for case in self._open:
            if (
                type(case) is Case
                and case.session_id == event.reward.session_id
                and case.reward is None
                and event.reward.reward is not None
            ):
                case.reward, case.reward_lag = event.reward.reward, self.decided - 1 - case.index

    def _feed(self, event: Any) -> None:
        is_bill = type(event) is Billed
        feedback = event.bill if is_bill else event.reward
        if feedback.request_id is None:
            self._credit(event)
            return
        case = self._by_id.get(feedback.request_id)
        if is_bill and event.bill.status in UNANSWERED:
            return
        # Verdicts are no rewards, and what is of a plan's second call is not of the decided one.
        if not is_bill and event.reward.verifier is not None:
            return
        if case is not None and feedback.attempt:
            case.went_on = True
            # What is then seen of its answer is not of the decided model.
            self._answered.pop(case.request_id, None)
            return
        if case is not None and case.went_on and not is_bill and feedback.attempt is None:
            return
        # Feedback that names another model belongs to a fallback, not to the decision.
        is_other = case is None or feedback.model not in (None, case.model)
        if case is None or is_other or self._is_redirected(case, event):
            return
        lag = self.decided - 1 - case.index
        if is_bill:
            if case.cost_usd is None:
                case.cost_lag = lag
            case.latency = seconds(event.bill.latency_ms)
            case.first_token = seconds(event.bill.first_token_ms)
            case.cost_usd = event.bill.cost_usd
            if case.cost_usd is None and case.model in self._prices:
                # Priced by the declaration in force when it is read, nearly always that of the
                # decision.
                into, out = event.bill.tokens or (0, 0)
                price, cache = self._prices[case.model]
                case.cost_usd = usd_of(
                    price,
                    input_tokens=into,
                    output_tokens=out,
                    cached=event.bill.cached_input_tokens,
                    cache=cache,
                    writes=case.session_id is not None,
                )
        else:
            if case.reward is None:
                case.reward_lag = lag
            case.reward = event.reward.reward


def _eligible(decision: Decision, incumbent: frozenset[str]) -> tuple[str, ...] | None:
    if decision.candidates is None:
        return None
    open_to = [one.model for one in decision.candidates if one.excluded is None]
    if decision.routed_share == 0.0:
        # The router could not answer, so only the incumbent's models had a chance.
        open_to = [model for model in open_to if model in incumbent]
    # The incumbent may call a model that the router's budget had no place for.
    return tuple(open_to if decision.model in open_to else [*open_to, decision.model])


def _said(request: Request) -> Mapping[str, Json] | None:
    """Return the fields on the wire that capabilities read; None: none."""
    found = {name: value for name in SAID if (value := getattr(request, name)) is not None}
    return to_builtins(found) if found else None


def _outcomes(found: Json) -> dict[str, tuple[float, float]]:
    """Return the outcomes of each model in `metadata.outcomes`; an outcome that is not two numbers
    is left out.
    """
    if not isinstance(found, dict):
        return {}
    outcomes = {}
    for model, outcome in found.items():
        if type(outcome) is dict:
            reward: Json = outcome.get("reward")
            cost: Json = outcome.get("cost_usd")
            if type(reward) in NUMBER and type(cost) in NUMBER and 0 <= reward <= 1 and cost >= 0:
                outcomes[model] = float(reward), float(cost)
    return outcomes
