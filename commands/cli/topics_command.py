"""`pbstream topics`: create or check the topics, and print the rights that users need."""

from __future__ import annotations

import click

from commands.cli.suggesting import Suggesting
from doors.console.output import print_json
from doors.console.session import Session, json_option, option, pass_session, run
from streams.log.rights import INGEST_GROUP, ROLES, Role, command, reading, rights


@click.group(cls=Suggesting)
def topics() -> None:
    """Create the service's topics, or check them.

    \b
      pbstream topics create
      PB_PARTITIONS=32 PB_REPLICATION=3 pbstream topics create
      pbstream topics acls --principal User:pb-worker
    """


@topics.command()
@json_option
@pass_session
def create(session: Session, as_json: bool) -> None:
    """Create the missing topics; existing ones stay as they are.

    PB_PARTITIONS (8) bounds how many workers can share the load; PB_REPLICATION follows the cluster
    (3 where it has three brokers).
    """
    from streams.log.service_topics import create_topics, topic_specs

    settings = session.settings
    created = run(create_topics(settings))
    names = [spec.name for spec in topic_specs(settings)]
    if as_json:
        print_json(
            {"created": created, "existing": [name for name in names if name not in created]}
        )
        return
    for name in names:
        click.echo(f"{'created' if name in created else 'exists '}  {name}")


@topics.command()
@json_option
@pass_session
def check(session: Session, as_json: bool) -> None:
    """Check that workers can run on the topics; if not, say what to run, with exit code 1."""
    from streams.log.service_topics import TopicsNotReady, check_topics

    problems = run(check_topics(session.settings))
    if as_json:
        print_json({"ready": not problems, "problems": problems})
        if problems:
            raise SystemExit(1)
    elif problems:
        raise TopicsNotReady("\n".join(problems))
    else:
        click.echo(f"All topics on {session.settings.bootstrap} are as a worker needs them.")


@topics.command()
@option("--role", click.Choice(ROLES), "worker", "Role of the user.")
@click.option(
    "--principal", metavar="User:NAME", help="The user; default: that in PB_SASL_USERNAME."
)
@click.option(
    "--topic", metavar="NAME", help="With --role ingest: the topic that `pbstream ingest` reads."
)
@click.option(
    "--group", default=INGEST_GROUP, show_default=True, help="With --topic: its consumer group."
)
@click.option(
    "--check",
    is_flag=True,
    help="Ask Kafka which of the rights this user lacks; exit code 1 if any.",
)
@json_option
@pass_session
def acls(
    session: Session,
    role: Role,
    principal: str | None,
    topic: str | None,
    group: str,
    check: bool,
    as_json: bool,
) -> None:
    """Print exactly the rights that a user needs in Kafka, as commands that grant them.

    \b
      worker     pbstream worker
      client     applications and judges: requests, bills and rewards in, decisions and λ_t out
      ingest     pbstream gateway and pbstream ingest: as a client, and dead letters in
      operator   every other command of pbstream
      admin      pbstream topics create, beside the rights of an operator

    \b
      pbstream topics acls --principal User:pb-worker > grant.sh
      pbstream topics acls --role client --json
      pbstream topics acls --role ingest --topic otlp_spans
      pbstream topics acls --role operator --check
    """
    from streams.log.rights_check import missing_rights

    if topic is not None and role != "ingest":
        raise click.UsageError(
            "--topic goes with --role ingest: no other role reads others' topics."
        )
    beside = [] if topic is None else reading(topic, group=group)
    settings = session.settings
    who = principal or f"User:{settings.sasl_username or 'pb-' + role}"
    # Kafka's principals have a type, which people omit.
    who = who if ":" in who else f"User:{who}"
    login = settings.logs_in
    shown = (
        run(missing_rights(settings, role, beside=beside))
        if check
        else [*rights(settings, role), *beside]
    )
    if as_json:
        fields = [
            {"resource": right.resource, "name": right.name, "operation": right.operation.title}
            for right in shown
        ]
        print_json(
            {"principal": who, "role": role, "missing" if check else "rights": fields}
            | ({"login": login} if check else {})
        )
    else:
        for right in shown:
            click.echo(command(right, principal=who, bootstrap=settings.bootstrap))
        # Without a login Kafka would report all rights for any principal.
        if check and not shown and not login:
            click.echo(
                f"Kafka at {settings.bootstrap} was asked without a login "
                f"(PB_SECURITY_PROTOCOL={settings.security_protocol}; PB_SASL_USERNAME, "
                "PB_SSL_CERTFILE): whoever reaches it "
                f"may do what a {role} does. Of {who} that says nothing."
            )
        elif check and not shown:
            click.echo(f"{who} has every right of a {role}.")
    if check and shown:
        raise SystemExit(1)
