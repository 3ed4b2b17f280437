"""`pbstream doctor`: check all that a service needs, and say what to mend."""

from __future__ import annotations

import click
from rich.text import Text

from doors.console.output import console, print_json, table
from doors.console.session import Session, json_option, pass_session, run

STYLES = {"fine": "green", "look": "yellow", "wrong": "bold red"}
"""Colours of verdicts."""


@click.command()
@json_option
@pass_session
def doctor(session: Session, as_json: bool) -> None:
    """Check broker, topics, rights, codecs, encoder, Redis, group, workers, clocks and routers;
    exit code 1 if anything is wrong.

    Run it with the settings of the workers, on a machine where one runs or is to run. It changes
    nothing.

    \b
      pbstream doctor
      pbstream doctor --json | jq '.[] | select(.verdict != "fine")'
    """
    from commands.doctor import examine
    from commands.finding import Finding

    async def all_of_it() -> list[Finding]:
        return [finding async for finding in examine(session.settings)]

    found = run(all_of_it())
    if as_json:
        print_json([finding.as_json() for finding in found])
    else:
        shown = table("what", "", "found", "what to do")
        for column in shown.columns:
            # Folded and not cut: what to do about it is the end of a line.
            column.justify, column.overflow = "left", "fold"
        for one in found:
            shown.add_row(
                one.what, Text(one.verdict, style=STYLES[one.verdict]), one.found, one.remedy
            )
        console().print(shown)
    if any(finding.verdict == "wrong" for finding in found):
        raise click.exceptions.Exit(1)
