"""`pbstream budget`: the budget of a request on average, and of a period."""

from __future__ import annotations

import click

from commands.cli.router_change import change
from commands.cli.suggesting import Suggesting
from doors.console.output import console, print_json, table
from doors.console.session import (
    Session,
    answered,
    json_option,
    pass_session,
    router_option,
    run,
)
from doors.console.taken_up import published_state
from drawing.budget_lines import per_request, standing_lines
from drawing.numbers import dual, dual_in_words, number, usd
from ground.json_values import Document
from schemas.budgets import PERIODS

MOST_PER_REQUEST, MOST_PER_PERIOD = 1000.0, 1e9
"""Largest budgets in dollars, as the schemas bound them."""
TIMEZONE = click.option(
    "--timezone",
    metavar="ZONE",
    help="Time zone in which the period begins, such as Europe/Berlin.",
)
CARRY = click.option(
    "--carry",
    metavar="USD",
    help="Unspent money that the next period gets: none, all or an amount in dollars.",
)


class Budget(click.ParamType):
    """Dollars, or `none`."""

    name = "usd"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | None:
        if value == "none":
            return None
        try:
            budget = float(str(value))
        except ValueError:
            budget = -1.0
        if not 0.0 < budget <= MOST_PER_PERIOD:
            self.fail(
                f"{value!r} is not a budget: dollars, above 0, for example 6.62e-4 per request or "
                "20000 --per month; or none"
            )
        return budget


@click.group(cls=Suggesting)
def budget() -> None:
    """Set the budget of a request or of a period, and see how it is spent.

    \b
      pbstream budget set 6.62e-4
      pbstream budget set 20000 --per month
      pbstream budget show
    """


# So that a negative number is read as a value and refused as one, not as an unknown option.
@budget.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("usd_limit", type=Budget(), metavar="USD")
@click.option(
    "--per",
    type=click.Choice(PERIODS),
    help="Period that the dollars are for; default: each request.",
)
@TIMEZONE
@CARRY
@answered
def set_budget(
    session: Session,
    usd_limit: float | None,
    per: str | None,
    timezone: str | None,
    carry: str | None,
    router_id: str,
    timeout: float,
    as_json: bool,
) -> None:
    """Set the mean dollars per request, or the dollars of a period; `none` removes that budget.

    \b
      pbstream budget set 0.001
      pbstream budget set 20000 --per month --timezone Europe/Berlin
      pbstream budget set 1200 --per day
      pbstream budget set none
    """
    if per is None and (timezone or carry):
        raise click.UsageError("--timezone and --carry are of a period: name it with --per")
    if per is None and usd_limit is not None and usd_limit > MOST_PER_REQUEST:
        raise click.UsageError(
            f"{usd(usd_limit)} per request is more than any bill may be; a period is named with "
            "--per month"
        )

    def edit(document: Document) -> Document:
        if per is not None:
            return with_period(document, per, usd_limit, timezone, carry)
        # The field is removed, not null: a document without it declares no budget.
        kept = {key: value for key, value in document.items() if key != "budget_usd_per_request"}
        return kept if usd_limit is None else {**kept, "budget_usd_per_request": usd_limit}

    state = change(session, router_id, edit, timeout=timeout)
    if as_json:
        print_json(state)
        return
    of = f"per {per}" if per is not None else "per request"
    what = "has no budget" if usd_limit is None else f"may spend {usd(usd_limit)}"
    counted = ": spend is only counted" if state.budget_usd_per_request is None else ""
    click.echo(
        f"Router {router_id} {what} {of}{counted}. In force at offset {state.config_offset}."
    )


def with_period(
    document: Document, per: str, limit: float | None, timezone: str | None, carry: str | None
) -> Document:
    """Return a declaration with a changed budget of a period; a `limit` of None removes it.
    Arguments that are None keep the declared values."""
    given = document.get("budget") or []
    budgets = list(given) if isinstance(given, list) else [given]
    before = next((one for one in budgets if one.get("per") == per), None)
    others = [one for one in budgets if one is not before]
    # A second budget uses the time zone of the first.
    zone = timezone or (budgets[0].get("timezone") if budgets and before is None else None)
    if limit is not None:
        named: Document = {"usd": limit, "per": per}
        named |= {"timezone": zone} if zone else {}
        named |= {"carry": _carried(carry)} if carry else {}
        others.append({**(before or {}), **named})
    kept = {key: value for key, value in document.items() if key != "budget"}
    return {**kept, "budget": others} if others else kept


def _carried(carry: str) -> str | float:
    if carry in ("none", "all"):
        return carry
    try:
        return float(carry)
    except ValueError:
        raise click.UsageError(f"--carry {carry!r} is none of: none, all, dollars") from None


@budget.command("show")
@router_option
@json_option
@pass_session
def show_budget(session: Session, router_id: str, as_json: bool) -> None:
    """Show budget, spend and λ_t as the worker last published them.

    \b
      pbstream budget show --json
    """
    state = run(published_state(session.settings, router_id))
    if as_json:
        print_json(state)
        return
    shown = table("", router_id)
    mean = state.spend_usd / state.settled if state.settled else None
    limit, moves = state.budget_usd_per_request, bool(state.budgets or state.floor)
    shown.add_row("budget per request", per_request(state) if limit else "none")
    shown.add_row("mean bill", usd(mean))
    ratio = mean / limit if mean is not None and limit and not moves else None
    shown.add_row("cost ÷ budget", number(ratio))
    shown.add_row("spend", usd(state.spend_usd))
    shown.add_row("committed", f"{usd(state.committed_usd)} for {state.in_flight} in flight")
    shown.add_row("decided, settled, expired", f"{state.decided}, {state.settled}, {state.expired}")
    shown.add_row("rewards applied", str(state.rewards_applied))
    shown.add_row("bills of unknown requests", usd(state.unmatched_cost_usd))
    shown.add_row("λ_t", dual(state.lambda_t))
    shown.add_row("configuration offset", str(state.config_offset))
    console().print(shown)
    for line in standing_lines(state):
        click.echo(f"{line}.")
    if why := dual_in_words(state.lambda_t):
        click.echo(why)
