"""`pbstream topics`: create what a worker needs, or say what is wrong with it."""

from __future__ import annotations

import click

from streams.cli.output import print_json
from streams.cli.session import Session, json_option, pass_session, run


@click.group()
def topics() -> None:
    """Create the service's topics, or check them.

    \b
      pbstream topics create
      PB_PARTITIONS=32 PB_REPLICATION=3 pbstream topics create
    """


@topics.command()
@json_option
@pass_session
def create(session: Session, as_json: bool) -> None:
    """Create the topics that are missing; those that exist stay as they are.

    PB_PARTITIONS (8) bounds how many workers can share the load; PB_REPLICATION follows the cluster (3 where it has three brokers).
    """
    from streams.topics import create_topics, topic_specs

    settings = session.settings
    created = run(create_topics(settings))
    names = [spec.name for spec in topic_specs(settings)]
    if as_json:
        print_json({"created": created, "existing": [name for name in names if name not in created]})
        return
    for name in names:
        click.echo(f"{'created' if name in created else 'exists '}  {name}")


@topics.command()
@json_option
@pass_session
def check(session: Session, as_json: bool) -> None:
    """Check that a worker can run on the topics; exit code 1 if not, with what to run."""
    from streams.topics import TopicsNotReady, check_topics

    problems = run(check_topics(session.settings))
    if as_json:
        print_json({"ready": not problems, "problems": problems})
        if problems:
            raise SystemExit(1)
    elif problems:
        raise TopicsNotReady("\n".join(problems))
    else:
        click.echo(f"All topics on {session.settings.bootstrap} are as a worker needs them.")
