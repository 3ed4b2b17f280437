"""The command `pbstream`: its groups, and the sentence that every failure ends in."""

from __future__ import annotations

from typing import Any

import click

from streams.cli.audit import audit
from streams.cli.budget import budget
from streams.cli.demo import demo
from streams.cli.encoder import encoder
from streams.cli.explain import explain
from streams.cli.feedback import cost, reward
from streams.cli.fit import fit
from streams.cli.gateway import gateway
from streams.cli.models import models
from streams.cli.replay import replay
from streams.cli.request import request
from streams.cli.routers import routers
from streams.cli.service import broker, worker
from streams.cli.snapshot import snapshot
from streams.cli.topics import topics
from streams.cli.tune import tune
from streams.cli.watch import watch
from streams.console.failures import in_a_sentence
from streams.console.session import Session, take_everywhere


class Commands(click.Group):
    """Commands in the order of a first use; known failures leave as one sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            sentence = in_a_sentence(error)
            if sentence is None:
                raise
            raise sentence from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
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
      pbstream models add small --input-price 0.1 --output-price 0.1
      pbstream models add large --input-price 1.25 --output-price 10
      pbstream budget set 0.001
      pbstream request "Why is the sky blue?"

    Settings are environment variables with the prefix PB_. Exit codes: 0 done; 1 it failed, the last line says why and what to
    do; 2 the command or a setting is wrong.
    """
    ctx.ensure_object(Session)


for command in (
    demo, broker, topics, worker, gateway, models, budget, routers, request, cost, reward, explain, watch, replay, tune, audit,
    snapshot, fit, encoder,
):  # fmt: skip
    main.add_command(command)

take_everywhere(main)
