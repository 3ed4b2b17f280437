"""The record of a request: its decision, its bill and its reward."""

from __future__ import annotations

from typing import TYPE_CHECKING

from router_state.kernel.choosing.candidates import Candidates
from router_state.kernel.numbers.words import Flag, Index, Real, cclass, cfunc, uncollected

if TYPE_CHECKING:
    from router_state.config import Price, Vector
    from router_state.record import Basis, Call


@uncollected
@cclass
class Settlement:
    """The bill of a call."""

    cost_usd: Real
    revision: int

    def __init__(self, cost_usd: Real, revision: int) -> None:
        self.cost_usd, self.revision = cost_usd, revision


@uncollected
@cclass
class Label:
    """The reward of an answer, and the arm's `forgotten` when it was learned (see Arms)."""

    reward: Real
    source: str
    rank: int
    revision: int
    forgotten: Real

    def __init__(
        self, reward: Real, source: str, rank: int, revision: int, forgotten: Real
    ) -> None:
        self.reward, self.source, self.rank, self.revision = reward, source, rank, revision
        self.forgotten = forgotten


@uncollected
@cclass
class RequestRecord:
    """One decided request. `offset` is where in `pb.requests` it was read; `x` is None where
    another store keeps the context.

    `expired` says that the bill did not come in time, so the commitment stands at its expectation.
    `answered_by` is the model that was called where that was another one than the decided one;
    `price` is that model's then. `input_tokens` is how many its prompt has, where that was said.
    `call` is what else is known of the call, None where there is nothing. `waits` are expected
    seconds of each arm and, where slow calls are counted, the probability of being one, for who
    publishes them, too.
    """

    seq: Index
    model: str
    reason: str
    propensity: Real
    expected_reward: Real
    expected_cost_usd: Real
    lambda_t: Real
    config_offset: Index
    decided_at: Real
    offset: Index
    price: Price
    x: Vector | None
    candidates: Candidates | None
    bill: Settlement | None
    label: Label | None
    expired: Flag
    applied: Basis | None
    answered_by: str | None
    input_tokens: int | None
    call: Call | None
    waits: tuple[list[float], list[float] | None] | None

    @property
    def called(self) -> str:
        """Return the model that answered, or the decided one."""
        # The first bill or reward that names a model tells it.
        return self.answered_by or self.model

    @property
    def is_answered(self) -> bool:
        """Tell whether the bill of an answer has come."""
        return self.answered()

    @cfunc
    def answered(self) -> bool:
        """See `is_answered`."""
        return self.bill is not None and not (self.call is not None and self.call.unanswered)


def record_of(
    seq: Index,
    model: str,
    reason: str,
    propensity: Real,
    expected_reward: Real,
    expected_cost_usd: Real,
    lambda_t: Real,
    config_offset: Index,
    decided_at: Real,
    offset: Index,
    price: Price,
    x: Vector | None,
    candidates: Candidates | None,
    applied: Basis | None,
    input_tokens: int | None,
) -> RequestRecord:
    """Return the record of a request that was just decided."""
    found: RequestRecord = RequestRecord.__new__(RequestRecord)
    found.seq, found.model, found.reason, found.propensity = seq, model, reason, propensity
    found.expected_reward, found.expected_cost_usd = expected_reward, expected_cost_usd
    found.lambda_t, found.config_offset, found.decided_at = lambda_t, config_offset, decided_at
    found.offset, found.price, found.x, found.candidates = offset, price, x, candidates
    found.bill, found.label, found.expired, found.applied = None, None, False, applied
    found.answered_by, found.input_tokens, found.call = None, input_tokens, None
    found.waits = None
    return found
