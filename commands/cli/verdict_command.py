"""`pbstream verdict`: report a verifier's verdict on an answer, and show the next step of the
plan."""

from __future__ import annotations

import click

from commands.cli.cost_and_reward import attempt_option, event_of, revision_option, tell
from commands.reports import report
from doors.console.bus import open_bus
from doors.console.found_records import decision_of
from doors.console.plan_lines import what_follows
from doors.console.session import Session, answered, run
from schemas import RewardObserved, RouteDecided

WORDS = {"pass": 1.0, "fail": 0.0}
"""Verdicts that may be words."""


class VerdictType(click.ParamType):
    """A verdict from 0 to 1, or a word for one of its ends."""

    name = "verdict"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, str) and value in WORDS:
            return WORDS[value]
        try:
            return float(click.FloatRange(min=0, max=1).convert(value, param, ctx))
        except click.BadParameter:
            self.fail(f"{value!r} is not pass, fail or 0 to 1", param, ctx)


@click.command()
@click.argument("request_id")
@click.argument("verifier")
@click.argument("verdict", type=VerdictType(), metavar="VERDICT")
@attempt_option
@revision_option
@answered
def verdict(
    session: Session,
    request_id: str,
    verifier: str,
    verdict: float,
    attempt: int | None,
    revision: int,
    router_id: str,
    timeout: float,
    as_json: bool,
) -> None:
    """Report what a verifier says of the answer to a request, and show what its plan says then:
    return the answer, or call the next model.

    VERDICT is pass, fail, or a number from 0 to 1. It is no reward.

    \b
      pbstream verdict 4f1c22a90b13 tests fail
      pbstream cost 4f1c22a90b13 0.004 --attempt 1
      pbstream verdict 4f1c22a90b13 judge 0.7 --attempt 1
    """
    event = event_of(
        RewardObserved,
        router_id=router_id,
        request_id=request_id,
        verifier=verifier,
        verdict=verdict,
        attempt=attempt,
        revision=revision,
    )
    tell(run(report(session.settings, "rewards", event, seconds=timeout)), "verdict", as_json)

    async def look() -> RouteDecided | None:
        async with open_bus(session.settings, "routes") as bus:
            return await decision_of(bus, router_id, request_id)

    if not as_json and (decision := run(look())) is not None:
        said = what_follows(decision, attempt=attempt or 0, verifier=verifier, verdict=verdict)
        click.echo(said)
