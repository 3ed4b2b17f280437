"""The capability of latency: a target of calls' times, or a price of a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from router_state.billing import Billing
from router_state.capability import Capability
from router_state.choice import Choice
from router_state.config import Matrix
from router_state.kernel import WAIT_PRICES, Window
from router_state.latency import observing, pricing, target_fields, timing_pieces
from router_state.latency.expected_waits import Waits
from router_state.latency.goal import LatencyGoal
from router_state.latency.timing import Timing
from router_state.packing.framing import Json
from router_state.packing.prior_bytes import pack_prior, restore_prior
from router_state.record import RequestRecord


class Latency(Capability):
    """The times of a router's calls, and the dual of seconds: the price of a wait.

    Attributes:
        timing: the knowledge of times, and the target; None before the first declaration.
    """

    __slots__ = ("timing",)
    name = observing.NAME
    declaration = LatencyGoal
    timing: Timing

    @classmethod
    def read(cls, declared: target_fields.OnWire) -> LatencyGoal | None:
        """See Capability."""
        return target_fields.read(declared)

    @classmethod
    def document(cls, declared: LatencyGoal) -> dict[str, object]:
        """See Capability."""
        return target_fields.document(declared)

    def declare(self, declared: LatencyGoal, *, now: float) -> None:
        """See Capability. Learned times stay if the declaration times the same part of an
        answer.
        """
        before = getattr(self, "timing", None)
        if before is None or declared.of != before.goal.of:
            if before is not None:
                self.journal.pieces.update(before.pieces)
            self.timing = Timing(declared, self.arms.d, self.journal)
        elif declared != before.goal:
            before.declare(declared)
        self.timing.keep(self.arms.names)
        self.arms.beside = self

    def dropped(self) -> None:
        """See Capability."""
        super().dropped()
        self.arms.beside = None

    def without(self, model: str) -> None:
        """See Capability."""
        self.timing.keep([name for name in self.timing.speeds if name != model])

    @property
    def adds_up(self) -> bool:
        """See Beside: times add up, and probabilities of being slow do not."""
        return self.timing.goal.p95_seconds is None

    def solve(self, window: Window, *, per_dollar: float, target_usd: float, now: float) -> None:
        """See arms.Beside."""
        pricing.weigh(
            self.timing,
            self.arms,
            window,
            per_dollar=per_dollar,
            target_usd=target_usd,
            now=now,
        )

    def costs(self, window: Window) -> Matrix | None:
        """See arms.Beside."""
        if self.timing.per_unit <= 0.0:
            return None
        costs = self.timing.costs(window.rows(), window.size)
        return costs * WAIT_PRICES[: window.size, None]

    def weigh(self, choice: Choice) -> None:
        """See Capability."""
        waits = self.timing.look(choice)
        if waits is not None:
            choice.note(self.name, waits)

    @classmethod
    def candidate_fields(cls, noted: Waits) -> Mapping[str, Sequence[object]]:
        """See Capability."""
        return noted.candidate_fields()

    def decided(self, choice: Choice, record: RequestRecord) -> None:
        """See Capability."""
        waits: Waits | None = choice.noted_by(self.name)
        if waits is not None:
            observing.commit(self.timing, record, waits, choice.k)

    def billed(self, billing: Billing) -> None:
        """See Capability; only the first bill of an answer teaches the time of its call."""
        if not billing.answered:
            observing.billed(self.timing, billing)

    def moved(self, record: RequestRecord, usd: float) -> None:
        """See Capability: a verdict or the end of its wait may close a plan."""
        if record.plan is not None and len(record.plan.steps) > 1:
            observing.close(self.timing, record)

    def start_over(self) -> None:
        """See Capability."""
        self.timing.start_over()

    @property
    def pieces(self) -> tuple[str, ...]:
        """See Capability."""
        return tuple(self.timing.pieces)

    def pack(self, piece: str) -> bytes | None:
        """See Capability."""
        if piece == self.timing.prior.name:
            return pack_prior(self.timing.prior)
        return timing_pieces.pack(self.timing, piece)

    def restore(self, head: Mapping[str, Json], piece: Callable[[str], bytes]) -> None:
        """See Capability."""
        timing_pieces.restore(self.timing, piece)
        restore_prior(self.timing.prior, piece(self.timing.prior.name))

    def faults(self) -> Iterator[str]:
        """See Capability."""
        yield from timing_pieces.faults(self.timing)

    def lambda_fields(self, now: float) -> dict[str, object]:
        """See Capability; `schemas.latency` has its fields."""
        return {"latency": target_fields.lambda_fields(self.timing)}
