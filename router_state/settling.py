"""One bill: what it corrects on the books, and what it teaches the pacer and the cost model."""

from __future__ import annotations

from router_state.alert import Alert
from router_state.arm import Arm
from router_state.config import Price, Vector
from router_state.costs.cost_model import Rescaled
from router_state.costs.ratio import list_price_of
from router_state.errors import CostOutOfRange, UnpricedModel
from router_state.record import RequestRecord, Settlement
from router_state.state.books import checked_cost
from router_state.state.router import RouterState


def price_of(state: RouterState, record: RequestRecord, called: str) -> Price | None:
    """Return what a bill's tokens are priced at: as at the decision, or what another model that was
    called costs now.

    None if that is not in the portfolio. Of a request that has its bill, what that was priced at.
    """
    if called == record.model or record.bill is not None:
        return record.price
    arm = state.arms.find(called)
    return None if arm is None else arm.price


def cost_of(
    price: Price | None, *, cost_usd: float | None, tokens: tuple[int, int] | None
) -> float:
    """Return a bill in dollars.

    Raises:
        NonFiniteInput, CostOutOfRange: not a cost.
        UnpricedModel: tokens without a price.
    """
    if cost_usd is None:
        if tokens is None:
            raise CostOutOfRange("a bill needs cost_usd or token counts")
        if price is None:
            raise UnpricedModel(
                "tokens of a model that is not in the portfolio have no price: report dollars"
            )
        cost_usd = price.cost_usd(input_tokens=tokens[0], output_tokens=tokens[1])
    return checked_cost(cost_usd)


def settle(
    state: RouterState,
    request_id: str,
    record: RequestRecord,
    *,
    bill: Settlement,
    called: str,
    price: Price | None,
    x: Vector | None,
) -> None:
    """Book a request's bill, or a later revision of it, in place of what was charged for the
    request so far.

    Args:
        called: the model that was called; price: see `price_of`.
        x: the context, shape (d,); without one only the mean cost learns.
    """
    first, cost_usd = record.bill is None, bill.cost_usd
    charged_usd = record.expected_cost_usd if record.bill is None else record.bill.cost_usd
    # A cap was charged what was expected: only the difference is still to be taken.
    for bucket in state.buckets:
        bucket.spend(cost_usd - charged_usd)
    state.pacer.settle(
        cost_usd,
        charged_usd=charged_usd,
        first=first,
        committed=state.config.knobs.commit_and_settle,
        age=state.seq - record.seq,
    )
    state.bill(request_id, record, cost_usd)
    # A revision is of the same call: it moves the books, and teaches nothing that the first bill
    # has not taught.
    if first:
        if price is not None:
            tokens = state.arms.tokens.of(record.input_tokens)
            _learn(state, called, price, cost_usd=cost_usd, tokens=tokens, x=x)
            record.price = price
        if record.label is None:
            record.answered_by = None if called == record.model else called
    record.bill = bill
    # They have been published and are of no use to what may still come; with 64 models they are
    # most of a record.
    record.candidates = record.unsure = None


def _learn(
    state: RouterState,
    model: str,
    price: Price,
    *,
    cost_usd: float,
    tokens: float,
    x: Vector | None,
) -> None:
    """Teach a model's arm a request's first bill; `tokens` of input are counted apart."""
    arm, knobs = state.arms.find(model), state.config.knobs
    if arm is None:  # it was dropped
        return
    list_price = arm.costs.list_price
    if price is not arm.price:
        # It was free and has a price now, or the reverse: the ratio is another quantity.
        if (price.per_1k == 0.0) != (arm.per_1k == 0.0):
            return
        list_price = list_price_of(price)
    ratio = cost_usd / list_price
    if not knobs.prices_prompts:
        arm.costs.follow(ratio)
        return
    budget = state.pacer.budget_usd
    budgets = 0.0 if budget is None else cost_usd / budget
    rescaled = state.arms.learn_bill(
        arm,
        ratio,
        x,
        known=tokens * price.input_price_per_m / 1e6 / list_price
        if state.arms.tokens.in_use
        else None,
        budgets=budgets,
        now=state.latest,
        watched=knobs.drift_alarms,
    )
    if rescaled is not None:
        state.journal.alerts.append(_alert(arm, rescaled, now=state.latest))


def _alert(arm: Arm, rescaled: Rescaled, *, now: float) -> Alert:
    shift, factor = rescaled.shift, rescaled.factor
    return Alert(
        kind="drift",
        model=arm.name,
        signal="cost",
        direction="up" if factor > 1.0 else "down",
        size=rescaled.size,
        since=shift.since,
        observed_at=now,
        evidence={
            "factor": factor,
            "cusum": shift.evidence,
            "limit": shift.limit,
            "bills": shift.count,
        },
    )
