"""`pbstream sources`: who labels, and how far judges are from gold."""

from __future__ import annotations

import click

from doors.console.failures import Failure
from doors.console.output import console, print_json, table
from doors.console.session import Session, json_option, pass_session, router_option, run
from doors.console.taken_up import published_state
from drawing.source_lines import asked_lines, source_lines, text_of
from schemas.label_sources import Estimate, SourceStanding

NOTHING = "–"
"""Stands where too little is known."""


@click.command()
@router_option
@json_option
@pass_session
def sources(session: Session, router_id: str, as_json: bool) -> None:
    """Show which source of labels is gold, and what is known of each judge: how far it agrees with
    gold, and which models it favours.

    \b
      pbstream sources --router acme.chat
    """
    state = run(published_state(session.settings, router_id))
    found = state.sources
    if found is None:
        raise Failure(
            f"router {router_id!r} declares no sources: its labels rank as the workers are set. "
            f"`pbstream routers set {router_id} sources.gold=human "
            "'sources.judges=[\"judge-v2\"]'` declares some."
        )
    if as_json:
        print_json([one.model_dump(mode="json", exclude_none=True) for one in found])
        return
    for one in found:
        if not one.gold:
            console().print(_table(one))
    asked = () if state.labels is None else asked_lines(state.labels)
    for line in (*source_lines(found), *asked):
        click.echo(f"{line}.")


def _table(one: SourceStanding) -> object:
    shown = table("model", "pairs", "offset", "favour", "lately", title=one.source)
    for model in one.models or ():
        shown.add_row(
            model.model,
            str(model.pairs),
            _said(model.offset),
            _said(model.favour),
            _said(model.lately),
        )
    shown.add_row("all", str(one.pairs or 0), f"agreement {_said(one.agreement)}", "", "")
    return shown


def _said(one: Estimate | None) -> str:
    return NOTHING if one is None else text_of(one)
