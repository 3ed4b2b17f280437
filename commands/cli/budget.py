"""`pbstream budget`: what a request may cost on average."""

from __future__ import annotations

import click

from commands.cli.router_change import change
from doors.console.bus import open_bus
from doors.console.failures import NoRouter
from doors.console.output import console, print_json, table
from doors.console.session import (
    Session,
    json_option,
    pass_session,
    router_option,
    run,
    timeout_option,
)
from drawing.numbers import dual, dual_in_words, usd
from ground.json_values import Document
from schemas import LambdaUpdated, decode


class Budget(click.ParamType):
    """Dollars per request, or `none`."""

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
        if not 0.0 < budget <= 1000.0:
            self.fail(
                f"{value!r} is no budget: dollars per request, above 0 and up to 1000, for "
                "example 6.62e-4; or none"
            )
        return budget


@click.group()
def budget() -> None:
    """Set what a request may cost on average, and see how that goes.

    \b
      pbstream budget set 6.62e-4
      pbstream budget show
    """


# So that a negative number is read as a value and refused as one, not as an unknown option.
@budget.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("usd_per_request", type=Budget())
@router_option
@timeout_option
@json_option
@pass_session
def set_budget(
    session: Session, usd_per_request: float | None, router_id: str, timeout: float, as_json: bool
) -> None:
    """Set the mean dollars per request; `none` only counts spend.

    \b
      pbstream budget set 0.001
      pbstream budget set none
    """

    def edit(document: Document) -> Document:
        # Left out and not null: a document without the field is how no budget is declared.
        kept = {key: value for key, value in document.items() if key != "budget_usd_per_request"}
        return (
            kept if usd_per_request is None else {**kept, "budget_usd_per_request": usd_per_request}
        )

    state = change(session, router_id, edit, timeout=timeout)
    if as_json:
        print_json(state)
    elif usd_per_request is None:
        click.echo(
            f"Router {router_id} has no budget: spend is only counted. In force at offset "
            f"{state.config_offset}."
        )
    else:
        click.echo(
            f"Router {router_id} may spend {usd(usd_per_request)} per request. In force at "
            f"offset {state.config_offset}."
        )


@budget.command("show")
@router_option
@json_option
@pass_session
def show_budget(session: Session, router_id: str, as_json: bool) -> None:
    """Show budget, spend and λ_t as the worker last published them.

    \b
      pbstream budget show --json
    """

    async def read() -> LambdaUpdated:
        async with open_bus(session.settings, "lambda") as bus:
            record = await bus.latest("lambda", router_id)
        if record is None or record.value is None:
            raise NoRouter(router_id)
        return decode(LambdaUpdated, record.value)

    state = run(read())
    if as_json:
        print_json(state)
        return
    shown = table("", router_id)
    mean = state.spend_usd / state.settled if state.settled else None
    limit = state.budget_usd_per_request
    shown.add_row("budget per request", usd(limit) if limit else "none")
    shown.add_row("mean bill", usd(mean))
    shown.add_row("cost ÷ budget", f"{mean / limit:.3f}" if mean is not None and limit else "–")
    shown.add_row("spend", usd(state.spend_usd))
    shown.add_row("committed", f"{usd(state.committed_usd)} for {state.in_flight} in flight")
    shown.add_row("decided, settled, expired", f"{state.decided}, {state.settled}, {state.expired}")
    shown.add_row("rewards applied", str(state.rewards_applied))
    shown.add_row("bills of unknown requests", usd(state.unmatched_cost_usd))
    shown.add_row("λ_t", dual(state.lambda_t))
    shown.add_row("configuration offset", str(state.config_offset))
    console().print(shown)
    if why := dual_in_words(state.lambda_t):
        click.echo(why)
