"""The command `pbstream`."""

from __future__ import annotations

import click

from commands.cli.loading import Commands
from doors.console.session import Session, take_everywhere


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(package_name="paretobandit-streams")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Route every prompt to the model that gives the most quality for the money, live on Kafka.

    See it work, without any setting:

    \b
      pbstream demo

    Run it yourself, in three terminals:

    \b
      pbstream broker                       # or any Kafka: export PB_BOOTSTRAP=host:9092
      pbstream topics create && pbstream worker
      pbstream watch

    \b
      pbstream models add small --input-price 0.1 --output-price 0.4
      pbstream models add large --input-price 1.25 --output-price 10
      pbstream budget set 0.001
      pbstream request "Why is the sky blue?"

    Settings are environment variables with the prefix PB_. Exit codes: 0 done; 1 it failed, the
    last line says why and what to do; 2 the command or a setting is wrong.
    """
    ctx.ensure_object(Session)


# The groups below take them when they are loaded, see `loading`.
take_everywhere(main)
