"""`pbstream audit`: prove from the topics that nothing was lost and nothing counted twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from doors.console.failures import Failure
from doors.console.output import console, print_json
from doors.console.session import Session, json_option, pass_session, run

if TYPE_CHECKING:
    from streams.settings import Settings
    from studies.audit.findings import Findings
    from studies.audit.topic_reading import KafkaTopics


@click.command()
@click.option(
    "--chain",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Chain the decisions by their digests in this file, instead of checking the promises.",
)
@json_option
@pass_session
def audit(session: Session, as_json: bool, chain: Path | None) -> None:
    """Check every promise of a service on its topics, whether the service runs or not.

    The audit reads requests, decisions, bills, rewards, declarations, dead letters and the
    changelog. It asks no worker, joins no group and writes nothing. These are the promises:

    \b
      every request has one decision or one dead letter.
      each decision follows from its own record, and is the same when decided anew.
      spend is the sum of the bills.
      every reward is learned once or accounted for.
      what each model has learned, and λ_t, are what a new engine learns from the events.
      workers answer: no event waits for half a minute while none is taken in.

    A promise that needs deleted records can't be proved, and is listed with the reason. For
    example, pb.routers is compacted, so an earlier declaration may be gone.

    Run it with the settings of the workers: PB_PREFIX, PB_APP_ID, PB_PARTITIONS, PB_SOURCE_RANKS
    and PB_PRIORS_PATH. Exit code 1: a promise is broken.

    With --chain the audit reads pb.routes alone. It compares the decisions with the digests in
    FILE, which shows whether a decision was removed or changed. Then it appends the digests of new
    decisions. Run it by the clock, and keep FILE where nobody who may write to Kafka's disks can
    change it.

    \b
      pbstream audit
      pbstream audit --json | jq .violations
      pbstream audit --chain decisions.chain
    """
    from streams.log.service_topics import TopicsNotReady, check_topics
    from studies.audit.topic_reading import KafkaTopics

    started = time.monotonic()
    if problems := run(check_topics(session.settings)):
        raise TopicsNotReady("\n".join(problems))
    with KafkaTopics(session.settings) as topics, _progress() as progress:
        task = progress.add_task("reading", total=None)

        def tell(read: int, total: int | None = None) -> None:
            progress.update(task, completed=read, total=total)

        if chain is None:
            findings = _promises(topics, session.settings, tell)
        else:
            findings = _chained(chain, topics, session.settings, tell)
    if as_json:
        print_json(findings.as_json() | {"seconds": round(time.monotonic() - started, 1)})
    else:
        _print(findings, time.monotonic() - started)
    # The exit code lets a scheduled audit fail.
    if not findings.clean:
        raise click.exceptions.Exit(1)


def _promises(topics: KafkaTopics, settings: Settings, tell: Callable[..., None]) -> Findings:
    from studies.audit.run import audit as run_audit

    # Sources and answers are read twice: to be compared, and to be decided again.
    tell(0, 2 * topics.size())
    return run_audit(topics, settings, now=time.time(), tell=tell)


def _chained(
    path: Path, topics: KafkaTopics, settings: Settings, tell: Callable[..., None]
) -> Findings:
    from studies.audit.chain import BrokenChain, ChainFile, follow
    from studies.audit.findings import Findings
    from studies.audit.topic_reading import Progress as Reading

    findings = Findings()
    tell(
        0,
        sum(
            topics.end("routes", n) - topics.begin("routes", n) for n in topics.partitions("routes")
        ),
    )
    try:
        file = ChainFile(path, settings.topic("routes"))
    except BrokenChain as error:
        raise Failure(str(error)) from None
    file.append(follow(file, topics, Reading(topics, tell), findings))
    return findings


def _progress() -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    # On stderr, and gone afterwards: stdout is for what was found.
    return Progress(*columns, console=console(stderr=True), transient=True)


def _print(findings: Findings, seconds: float) -> None:
    out = console()
    checked = ", ".join(
        f"{count:,} {name.replace('_', ' ')}" for name, count in sorted(findings.checked.items())
    )
    out.print(f"Checked in {seconds:.0f} s: {checked or 'nothing: the topics are empty'}.")
    for title, counts in (("Broken", findings.violations), ("Not provable", findings.notes)):
        for kind, count in counts.most_common():
            out.print(
                f"{title}: {kind} × {count:,}", style="bold red" if title == "Broken" else "yellow"
            )
            for example in findings.examples:
                if example.kind == kind:
                    out.print(f"  {example.where}: {example.what}")
            # Examples are cut at some twenty of a kind; the count is of all.
            shown = sum(example.kind == kind for example in findings.examples)
            if count > shown:
                out.print(f"  and {count - shown:,} more")
    if findings.clean:
        unproven = sum(findings.notes.values())
        things = "thing" if unproven == 1 else "things"
        rest = f" {unproven:,} {things} could not be proved: see above." if unproven else ""
        out.print(f"No promise is broken.{rest}", style="bold green")
