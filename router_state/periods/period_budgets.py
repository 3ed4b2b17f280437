"""The capability of spending by the calendar: budgets of a period, floors of rewards, limits of
one call's cost, and grants of a pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import orjson

from router_state.arms import Arms
from router_state.billing import Billing
from router_state.capability import Capability
from router_state.changes import Journal
from router_state.choice import Choice
from router_state.events import OfCapability
from router_state.pacing.pacer import Pacer
from router_state.packing.framing import Json, floats, packed
from router_state.periods import budget_fields, guarding, published, reporting
from router_state.periods.holdings import Granted, Lapsed
from router_state.periods.hourly_traffic import SHAPE
from router_state.periods.ledger import PIECE, Ledger
from router_state.periods.period_dual import PeriodDual
from router_state.periods.spending import HOURS, Spending
from router_state.record import RequestRecord
from router_state.since import Since


class Periods(Capability):
    """The budgets of a period of a router, its floor, and the grants of its pool.

    Attributes:
        ledger: the money that is left.
        dual: the pacer that spends the money; None: only the cost of single calls is limited.
    """

    __slots__ = ("dual", "ledger")
    name = "spending"
    dual: PeriodDual | None

    def __init__(self, arms: Arms, journal: Journal) -> None:
        super().__init__(arms, journal)
        self.ledger, self.dual = Ledger(Spending(), journal), None
        journal.pieces.update(self.pieces)

    @classmethod
    def read(cls, declaration: budget_fields.OnWire) -> Spending | None:
        """See Capability."""
        return budget_fields.spending_of(declaration)

    @classmethod
    def document(cls, declared: Spending) -> dict[str, object]:
        """See Capability."""
        return budget_fields.document_of(declared)

    @classmethod
    def pack_declared(cls, declared: Spending | None) -> Json | None:
        """See Capability."""
        return None if declared is None else declared.pack()

    @classmethod
    def unpack_declared(cls, kept: Json | None) -> Spending | None:
        """See Capability."""
        return None if kept is None else Spending.unpack(kept)

    def declare(self, declared: Spending, *, now: float) -> None:
        """See Capability; charges stay."""
        self.ledger.declare(declared, born=self.offset)

    def pacer(self, before: Pacer, budget_usd: float | None) -> Pacer | None:
        """See Capability."""
        self.dual = (
            PeriodDual.after(before, self.ledger, budget_usd, self.journal)
            if self.ledger.spending.paces
            else None
        )
        return self.dual

    def afford(self, choice: Choice) -> None:
        """See Capability."""
        guarding.apply(self.ledger, self.journal, choice)

    def decided(self, choice: Choice, record: RequestRecord) -> None:
        """See Capability."""
        self.ledger.commit(record)

    def billed(self, billing: Billing) -> None:
        """See Capability. The periods were charged the expected cost before."""
        record = billing.record
        self.ledger.settle(
            billing.difference_usd,
            at=record.decided_at,
            seq=record.seq,
            awaited=billing.first and not record.expired,
        )

    def moved(self, record: RequestRecord, usd: float) -> None:
        """See Capability."""
        self.ledger.settle(usd, at=record.decided_at, seq=record.seq, awaited=False)

    def expired(self, record: RequestRecord) -> None:
        """See Capability."""
        self.ledger.expire(at=record.decided_at, seq=record.seq)

    def forgotten(self, record: RequestRecord) -> None:
        """See Capability."""
        self.ledger.forget(record)

    def applied(self, event: OfCapability, since: Since, *, now: float) -> bool:
        """See Capability. The events are grants of the pool, and the end of grants."""
        match event:
            case Granted() if self.ledger.take(event):
                since.granted(event.offset)
            case Lapsed() if self.ledger.give_back(now):
                since.given_back(now)
            case _:
                return False
        return True

    def start_over(self) -> None:
        """See Capability."""
        self.ledger.start_over()

    @property
    def pieces(self) -> tuple[str, ...]:
        """See Capability."""
        return PIECE, SHAPE

    def pack(self, piece: str) -> bytes | None:
        """See Capability."""
        if piece == PIECE:
            return orjson.dumps(self.ledger.pack())
        return packed(self.ledger.traffic.week()) if piece == SHAPE else None

    def restore(self, head: Mapping[str, Json], piece: Callable[[str], bytes]) -> None:
        """See Capability."""
        week = floats(piece(SHAPE), "hours", least=2 * HOURS, most=2 * HOURS)
        self.ledger.restore(piece(PIECE), week)

    def faults(self) -> Iterator[str]:
        """See Capability."""
        if not self.ledger.is_sound():
            yield "budgets of a period"

    def lambda_fields(self, now: float) -> dict[str, object]:
        """See Capability."""
        return {} if self.dual is None else published.lambda_fields(self.ledger, self.dual, now)

    def reported(
        self, router_id: str, *, now: float, left: bool = False
    ) -> reporting.Reported | None:
        """Return the router's report to its pool; None without a pool.

        Args:
            left: whether the router has left the pool, so that this report is its last.
        """
        return reporting.reported(self.ledger, self.dual, self.arms, router_id, now=now, left=left)
