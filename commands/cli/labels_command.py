"""`pbstream labels`: what people are asked to label, and their labels."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from commands.cli.labels_exchange import export_labels, import_labels
from commands.cli.labels_read import asked, by_option, name_of, still_open
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

if TYPE_CHECKING:
    from doors.console.asked_labels import AskedLabels
    from doors.console.wanted_labels import Wanted


@click.group(cls=Suggesting, context_settings={"max_content_width": 110})
def labels() -> None:
    """Show what people are asked to label, give labels, and exchange them with labelling tools.

    A router that declares how many labels people can give says with each decision whether a person
    is asked about it:

    \b
      "labels": {"want": 50, "per": "day"},
      "label_url": "https://traces.example.com/{request_id}"

    Then people label in the dashboard's inbox (pbstream dashboard --labels), here, or in a tool:

    \b
      pbstream labels list
      pbstream labels give 4f1c22a90b13 0.75 --by anna
      pbstream labels export label-studio tasks.json
      pbstream labels import label-studio done.json
    """


@labels.command("list")
@click.option("--all", "everything", is_flag=True, help="Show labelled requests as well.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, metavar="N")
@router_option
@json_option
@pass_session
def list_(session: Session, everything: bool, limit: int, router_id: str, as_json: bool) -> None:
    """List what people are asked about and have not labelled yet, the newest first.

    It looks among the last PB_GATEWAY_SEARCH records of the router's partition. The model is not
    shown: who knows it may favour it.

    \b
      pbstream labels list
      pbstream labels list --json | jq -r '.[].link'
    """
    found = asked(session, router_id)
    wanted = list(found.wanted) if everything else still_open(session, found)
    rows = [_row(one, found) for one in wanted]
    if as_json:
        print_json(rows[:limit])
        return
    if not found.labelling.asks:
        from doors.console.asked_labels import not_asking

        raise not_asking(router_id)
    if rows:
        shown = table("request", "decided", "link", *(["labels"] if everything else []))
        for row in rows[:limit]:
            label = [_labels_text(row["labels"])] if everything else []
            shown.add_row(str(row["request_id"]), str(row["at"]), str(row["link"] or ""), *label)
        console().print(shown)
    click.echo(f"{len(rows)} {'asked about' if everything else 'to label'}.")


def _row(one: Wanted, found: AskedLabels) -> dict[str, object]:
    return {
        "request_id": one.request_id,
        "at": f"{datetime.fromtimestamp(one.at, UTC):%Y-%m-%d %H:%M:%S}",
        "link": found.labelling.link(one.request_id),
        "labels": {
            source: "can't tell" if label.cant_tell else label.reward
            for source, label in one.given.items()
        },
    }


def _labels_text(labels: object) -> str:
    assert isinstance(labels, dict)
    words = {source: "withdrawn" if label is None else label for source, label in labels.items()}
    return ", ".join(f"{source} {label}" for source, label in words.items())


class Word(click.ParamType):
    """A reward from 0 to 1, or a word."""

    name = "label"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | str:
        if value in WITHDRAWN or value in CANNOT:
            return str(value)
        if value in THUMBS:
            return THUMBS[str(value)]
        try:
            return float(click.FloatRange(min=0, max=1).convert(value, param, ctx))
        except click.BadParameter:
            self.fail(f"{value!r} is not 0 to 1, up, down, cant-tell or none", param, ctx)


THUMBS = {"up": 1.0, "down": 0.0}
"""Rewards of thumbs."""
CANNOT = ("cant-tell",)
"""Stands for a person who can't tell."""
WITHDRAWN = ("none",)
"""Takes back what the person said."""


@labels.command("give")
@click.argument("request_id")
@click.argument("label", type=Word())
@by_option
@answered
def give(
    session: Session,
    request_id: str,
    label: float | str,
    by: str | None,
    router_id: str,
    timeout: float,
    as_json: bool,
) -> None:
    """Label an answer: 0 to 1, up, down, cant-tell, or none, which takes the label back. A later
    label of the same person replaces the earlier one.

    \b
      pbstream labels give 4f1c22a90b13 0.75 --by anna
      pbstream labels give 4f1c22a90b13 up
      pbstream labels give 4f1c22a90b13 cant-tell --by ben
    """
    from commands.cli.cost_and_reward import tell
    from commands.reports import report

    found = asked(session, router_id)
    event = found.request(request_id).label(
        found.labelling.source(name_of(by)),
        label if isinstance(label, float) else None,
        cant_tell=label in CANNOT,
    )
    tell(run(report(session.settings, "rewards", event, seconds=timeout)), "reward", as_json)


labels.add_command(export_labels)
labels.add_command(import_labels)
