"""`pbstream verifiers`: what the verdicts of a router's verifiers mean."""

from __future__ import annotations

import click

from doors.console.bus import open_bus
from doors.console.failures import Failure
from doors.console.output import console, print_json, table
from doors.console.session import Session, json_option, pass_session, router_option, run
from doors.console.taken_up import TOPICS, absence_of, status_of
from drawing.numbers import usd
from schemas import LambdaUpdated
from schemas.label_sources import Estimate
from schemas.verifiers import VerifierStanding


@click.command()
@router_option
@json_option
@pass_session
def verifiers(session: Session, router_id: str, as_json: bool) -> None:
    """Show for each verifier and model the share of right answers that the verifier passes, and of
    wrong answers that it stops, as labels show. Of a member of a family, `family_labels` is the
    number of labels that the others' evidence counts for.

    \b
      pbstream verifiers --router coder
      pbstream routers set coder --verifiers tests=0:exact,judge=0.00004:3
    """

    async def read() -> LambdaUpdated:
        async with open_bus(session.settings, *TOPICS) as bus:
            state = (await status_of(bus, router_id)).state
            if state is None:
                raise await absence_of(bus, router_id)
        return state

    found = run(read()).verifiers
    if found is None:
        raise Failure(
            f"router {router_id!r} declares no verifiers: "
            f"`pbstream routers set {router_id} --verifiers tests=0:exact` declares one."
        )
    if as_json:
        print_json([one.model_dump(mode="json") for one in found])
        return
    for one in found:
        console().print(_table(one))
    click.echo("Between brackets: 95% intervals. What plans came to: pbstream dashboard")


def _table(one: VerifierStanding) -> object:
    fee = "the truth" if one.exact else f"{usd(one.usd)} a verdict"
    title = f"{one.verifier} ({fee}), passed from {one.accept_at:.2g} on"
    columns = ["model", "passes right", "stops wrong", "labels", "verdicts"]
    in_family = any(model.family_labels is not None for model in one.models)
    shown = table(*columns, *(("family_labels",) if in_family else ()), title=title)
    for model in one.models:
        shown.add_row(
            model.model,
            _said(model.passes_right),
            _said(model.stops_wrong),
            f"{model.labels:,}",
            f"{model.verdicts:,}",
            *((f"{model.family_labels or 0:,}",) if in_family else ()),
        )
    return shown


def _said(one: Estimate) -> str:
    return f"{one.value:.0%} ({one.low:.0%} to {one.high:.0%})"
