"""Drive the product's engine by a history instead of by agents."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable

from agents.declaring.configuration import config_of
from agents.requests.request_contexts import mean_context
from agents.taking.core_events import asked, charged, judged
from router_state.config import Prior, RouterConfig
from router_state.engine import Engine
from router_state.errors import RouterStateError
from router_state.events import Redeclared, Waited
from router_state.periods.holdings import Lapsed
from router_state.record import RequestRecord
from router_state.since import Step
from router_state.state import redeclaring, sweeping
from schemas.priors import ReferencedPrior
from schemas.routers import RouterDeclared
from studies.history.encoded import Contexts
from studies.history.happened import Billed, Decided, Declared, Feedback, Happened, Rewarded, Swept
from studies.history.skipped import Skipped

REMEMBERED = 100_000
"""Latest requests of a router that a rerun remembers."""

ReadPrior = Callable[[ReferencedPrior], Prior]


class NoEngine(Exception):
    """A decision belongs to a router whose declaration is not in the history."""


class Remembered(OrderedDict[str, RequestRecord]):
    """A router's requests, bounded by forgetting the oldest, so that a long history fits into
    memory.
    """

    def __init__(self, keep: int = REMEMBERED) -> None:
        super().__init__()
        self._keep = keep

    def trim(self, engine: Engine) -> None:
        """Forget the oldest requests that nothing needs or waits for."""
        while len(self) > self._keep and next(iter(self)) not in engine.state.open_commitments:
            self.popitem(last=False)


def configuration(router: RouterDeclared, *, offset: int, read_prior: ReadPrior) -> RouterConfig:
    """Return a declaration as the core's configuration, with its referenced priors."""
    references = {
        name: read_prior(model.prior)
        for name, model in router.models.items()
        if isinstance(model.prior, ReferencedPrior)
    }
    return config_of(router, offset=offset, references=references)


class Rerun:
    """Apply a history's events to an engine for each router.

    Args:
        rank_of: rank of a reward's source, as the worker ranks them.
        read_prior: reads the priors that declarations refer to.
    """

    def __init__(
        self,
        *,
        contexts: Contexts,
        rank_of: Callable[[str], int],
        read_prior: ReadPrior,
        skipped: Skipped,
    ) -> None:
        self.engines: dict[str, Engine] = {}
        self._contexts = contexts
        self._rank_of = rank_of
        self._read_prior = read_prior
        self._skipped = skipped

    def apply(self, event: Happened) -> RequestRecord | None:
        """Apply one event; return the decision that the engine makes of a request.

        Raises:
            NoEngine: a decision of a router that was not declared.
            RouterStateError: the engine refuses a request that was decided in history.
        """
        engine = self.engines.get(event.router_id)
        if type(event) is Decided:
            if engine is None:
                raise NoEngine(
                    "its declaration is not in the history: pb.routers keeps only the last one "
                    "of a router for long"
                )
            return self._decide(event, engine)
        if type(event) is Billed or type(event) is Rewarded:
            if engine is not None:
                self._feed(event, engine)
        elif type(event) is Declared:
            self._declare(event, engine)
        elif type(event) is Swept and engine is not None:
            sweep(engine, event.step)
        return None

    def _declare(self, event: Declared, engine: Engine | None) -> None:
        if event.router is None:
            self.engines.pop(event.router_id, None)
            return
        config = configuration(event.router, offset=event.offset, read_prior=self._read_prior)
        try:
            if engine is None:
                # If the first declaration was compacted away, the events may name models that this
                # one lacks.
                self.engines[event.router_id] = Engine.start(config, Remembered())
            else:
                engine.apply(Redeclared(config), event.at).accepted()
        except RouterStateError as error:
            self._skipped.skip(
                f"refused by the engine ({error.reason})", f"routers offset {event.offset}"
            )

    def _decide(self, event: Decided, engine: Engine) -> RequestRecord:
        applied = event.decision.applied
        # The record tells how many commitments the worker's clock had expired; a rerun has no
        # clock.
        if applied is not None and applied.expired > engine.state.expired:
            expire_oldest(engine, applied.expired - engine.state.expired)
        request, known = event.request, engine.records.get(event.decision.request_id)
        if known is not None and known.seq != event.decision.seq:
            # The worker must have forgotten the request, as it decided again.
            sweeping.drop(engine.state, engine.records, {event.decision.request_id: known})
        d = engine.state.arms.d
        x = (
            mean_context(d)
            if request.is_wordless
            else self._contexts.of(request, engine.state.config.projection or d)
        )
        record = engine.apply(asked(request, x), event.at).accepted().decision
        assert record is not None
        assert isinstance(engine.records, Remembered)
        engine.records.trim(engine)
        return record

    def _rank(self, source: str | None) -> int:
        """Return the rank of a source of rewards; a verdict has none."""
        return 0 if source is None else self._rank_of(source)

    def _feed(self, event: Feedback, engine: Engine) -> None:
        # Without offsets: nobody publishes the steps of a rerun.
        moved = (
            charged(event.bill, offset=-1)
            if type(event) is Billed
            else judged(event.reward, self._rank(event.reward.source))
        )
        refusal = engine.apply(moved, event.at).refusal
        if refusal is not None:
            self._skipped.skip(
                f"refused by the engine ({refusal.reason})", f"offset {event.offset}"
            )


def expire_oldest(engine: Engine, count: int) -> None:
    """Expire the number of oldest commitments that the worker had expired by then."""
    # The oldest first, as in the worker's sweep; its clock decided only the number.
    engine.apply(Waited(limit=count), math.inf)


def sweep(engine: Engine, step: Step) -> None:
    """Repeat a recorded sweep: expire and forget what the worker did."""
    match step.kind:
        case "x":
            expire_oldest(engine, step.number)
        case "f":
            _forget(engine, ((0, step.number),))
        case "g":
            _forget(engine, step.seqs)
        case "l" | "p" if step.grant is not None:
            engine.apply(step.grant, 0.0)
        case "e":
            engine.apply(Lapsed(), step.time or 0.0)
        case "t":
            redeclaring.drop_retired(engine.state, before=step.time or 0.0)


def _forget(engine: Engine, ranges: Iterable[tuple[int, int]]) -> None:
    """Forget requests by the numbers of their decisions; the first decided come first."""
    ranges = list(ranges)
    most, due = max(last for _, last in ranges), {}
    for request_id, record in engine.records.items():
        if record.seq > most:
            break
        if any(first <= record.seq <= last for first, last in ranges):
            due[request_id] = record
    sweeping.drop(engine.state, engine.records, due)
