"""`pbstream replay`: history decided again, under other conditions, or played into other topics."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from streams.cli.failures import Failure
from streams.cli.output import console, print_json, table
from streams.cli.session import Session, json_option, pass_session, router_option


def _time(ctx: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is no time, as 2026-11-21T09:30:00Z") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _range(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, int] | None:
    if value is None:
        return None
    first, _, last = value.partition(":")
    if not first.isdigit() or (last and not last.isdigit()):
        raise click.BadParameter(f"{value!r} is no range of offsets, as 1000:2000")
    return int(first), int(last) if last else 2**63


EXISTING_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--from", "folder", type=EXISTING_FOLDER, help="A JSONL export instead of Kafka.")
@click.option("--verify", "verifying", is_flag=True, help="Decide everything again and compare with history.")
@click.option("--scenario", type=EXISTING_FILE, help="YAML: what is to be otherwise.")
@click.option("--policy", "policies", multiple=True, metavar="NAME", help="paper, live, declared, recorded, random, or a model.")
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="Write HTML, and JSON and CSV beside it.")
@click.option("--export", "exported", type=click.Path(file_okay=False, path_type=Path), help="Write the history as JSONL.")
@click.option("--into", metavar="PREFIX", help="Play the history into topics of another prefix, where workers decide it.")
@click.option("--speed", type=click.FloatRange(min=0), default=1.0, show_default=True, help="With --into; 0: full speed.")
@click.option("--since", callback=_time, metavar="TIME", help="Only requests decided from then on.")
@click.option("--until", callback=_time, metavar="TIME", help="Only requests decided before.")
@click.option("--offsets", callback=_range, metavar="FIRST:LAST", help="Only decisions at these offsets of pb.routes.")
@click.option("--all-routers", is_flag=True, help="With --verify: every router.")
@router_option
@json_option
@pass_session
def replay(session: Session, /, as_json: bool, router_id: str, all_routers: bool, **options: Any) -> None:
    """Replay history: verify it, or ask what would have happened if.

    \b
      pbstream replay --verify                       # the same settings: every decision the same?
      pbstream replay --policy paper --policy live   # who would have done better?
      pbstream replay --scenario price-cut.yaml --report cut.html
      pbstream replay --export history/              # keep it; later: --from history/
      pbstream replay --scenario price-cut.yaml --into test. --speed 10

    History is only ever read. Exit code 1 with --verify: a decision came out otherwise, or can't be verified.
    """
    gc.set_threshold(50_000, 20, 100)
    chosen = [options["verifying"], options["exported"] is not None, options["into"] is not None]
    if sum(chosen) > 1:
        raise click.UsageError("choose one of --verify, --export and --into")
    with ExitStack() as stack:
        history = history_of(session, options["folder"], stack)
        if options["exported"] is not None:
            _export(history, options["exported"])
        elif options["verifying"]:
            _verify(session, history, None if all_routers else router_id, as_json, stack)
        elif options["into"] is not None:
            _play(session, history, router_id, options, stack)
        else:
            _study(session, history, router_id, options, as_json, stack)


def history_of(session: Session, folder: Path | None, stack: ExitStack) -> Any:
    from streams.replay.kafka_history import KafkaHistory, MissingTopics
    from streams.replay.records import JsonlHistory

    if folder is not None:
        return JsonlHistory(folder)
    try:
        return stack.enter_context(KafkaHistory(session.settings))
    except MissingTopics as error:
        raise Failure(str(error)) from error


def _export(history: Any, folder: Path) -> None:
    from streams.replay.records import export

    click.echo(f"{export(history, folder):,} records written to {folder}; replay them with: pbstream replay --from {folder}")


def happened(history: Any, router_id: str | None, account: Any) -> Iterator[Any]:
    from streams.replay.merge import Merge
    from streams.replay.records import refused_offsets

    refused = refused_offsets(history)
    for partition in history.partitions():
        yield from Merge(history, partition, refused=refused, account=account, router_id=router_id)


def contexts_of(session: Session, stack: ExitStack) -> Any:
    from streams.encoder import load_encoder
    from streams.replay.contexts import Contexts

    settings = session.settings

    def open_encoder() -> tuple[str, Any]:
        encoder = load_encoder(
            backend="reference" if settings.encoder_backend == "reference" else "onnx",
            path=settings.encoder_path,
            weights=settings.encoder_weights,
            projection=settings.projection_path,
            threads=settings.encoder_threads,
        )
        return encoder.identity, encoder.encode

    def progress(done: int) -> None:
        click.echo(f"\rEncoding prompts: {done:,}", err=True, nl=False)

    return stack.enter_context(closing(Contexts(open_encoder, progress=progress if sys.stderr.isatty() else None)))


def prior_reader_of(session: Session) -> Any:
    from streams.worker import prior_reader

    read = prior_reader(session.settings.priors_path)

    async def awaited(reference: Any) -> Any:
        return await read(reference)

    return lambda reference: asyncio.run(awaited(reference))


def _verify(session: Session, history: Any, router_id: str | None, as_json: bool, stack: ExitStack) -> None:
    from streams.replay.account import Account
    from streams.replay.explain import as_json as verdict_json
    from streams.replay.explain import summary, tables
    from streams.replay.rerun import Rerun
    from streams.replay.verify import verify

    account = Account()
    rerun = Rerun(
        contexts=contexts_of(session, stack),
        rank_of=session.settings.source_rank,
        read_prior=prior_reader_of(session),
        account=account,
    )
    verdict = verify(happened(history, router_id, account), rerun)
    if as_json:
        print_json({**verdict_json(verdict), "skipped": account.counts})
    else:
        for line in [*summary(verdict), *account.lines()]:
            click.echo(line)
        for difference in list(verdict.differences.values())[:1]:
            for shown in tables(difference):
                console().print(shown)
    if not verdict.holds:
        raise Failure("history was not reproduced." if verdict.compared else "no decision to verify; --router names another.")


def _scenario(options: Any) -> Any:
    from streams.replay.scenario import BadScenario, Scenario, load_scenario

    try:
        scenario = Scenario() if options["scenario"] is None else load_scenario(options["scenario"])
        if options["policies"]:
            body = scenario.model_dump()
            scenario = Scenario.model_validate({**body, "policies": list(options["policies"])})
    except BadScenario as error:
        raise Failure(str(error)) from error
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--policy") from error
    return scenario


def _study(session: Session, history: Any, router_id: str, options: Any, as_json: bool, stack: ExitStack) -> None:
    from streams.replay.account import Account
    from streams.replay.figures import figures
    from streams.replay.scenario import BadScenario
    from streams.replay.study import study

    skipped = Account()
    try:
        found = study(
            lambda: happened(history, router_id, skipped),
            _scenario(options),
            contexts=contexts_of(session, stack),
            read_prior=prior_reader_of(session),
            since=float("-inf") if options["since"] is None else options["since"],
            until=float("inf") if options["until"] is None else options["until"],
            offsets=options["offsets"],
        )
    except BadScenario as error:
        raise Failure(str(error)) from error
    for reason, count in skipped.counts.items():  # the history was read twice
        found.account.counts[reason] = found.account.counts.get(reason, 0) + count // 2
        found.account.first.setdefault(reason, skipped.first[reason])
    if options["report"] is not None:
        _write(found, options["report"])
    if as_json:
        print_json(figures(found))
    else:
        _show(found, options["report"])


def _write(found: Any, path: Path) -> None:
    import orjson

    from streams.replay.figures import figures, phases_csv, series_csv
    from streams.replay.report import render

    path.write_text(render(found), encoding="utf-8")
    path.with_suffix(".json").write_bytes(orjson.dumps(figures(found), option=orjson.OPT_INDENT_2) + b"\n")
    path.with_suffix(".phases.csv").write_text(phases_csv(found), encoding="utf-8")
    path.with_suffix(".series.csv").write_text(series_csv(found), encoding="utf-8")


def _show(found: Any, report: Path | None) -> None:
    from streams.replay.figures import models_of, phase_labels
    from streams.replay.world import short

    models = models_of(found)
    shown = table("phase", "policy", "requests", "reward", "$/request", "÷ budget", *map(short, models), title=found.scenario.name)
    for phase, label in enumerate(phase_labels(found)):
        for name, run in found.runs.items():
            bucket = run.track.phases[phase]
            if bucket.requests:
                numbers = (
                    f"{value:.4g}" if value is not None else "–"
                    for value in (bucket.mean_reward, bucket.mean_cost_usd, bucket.cost_over_budget)
                )
                shares = (f"{bucket.calls.get(model, 0) / bucket.requests:.0%}" for model in models)
                shown.add_row(label, name, f"{bucket.requests:,}", *numbers, *shares)
    console().print(shown)
    for name, run in found.runs.items():
        if run.reward.weight.n:
            values = "; ".join(f"{key} {value}" for key, value in run.reward.estimates().items())
            click.echo(f"{name}: reward by history's own evidence: {values}. {run.reward.verdict()}.")
    for line in found.account.lines():
        click.echo(f"Left out: {line}")
    rate = sum(run.track.requests for run in found.runs.values()) / max(found.seconds, 1e-9)
    click.echo(f"{found.survey.requests:,} requests, {rate:,.0f} decisions per second.")
    if report is not None:
        click.echo(f"Report: {report}")


def _play(session: Session, history: Any, router_id: str, options: Any, stack: ExitStack) -> None:
    from streams.replay.account import Account
    from streams.replay.cases import Cases
    from streams.replay.play import NoWorker, Player, Progress, SamePrefix
    from streams.replay.scenario import BadScenario
    from streams.replay.study import survey, world_of
    from streams.topics import create_topics

    source, scenario, contexts = session.settings, _scenario(options), contexts_of(session, stack)

    def cases() -> Cases:
        return Cases(happened(history, router_id, Account()), contexts=contexts, account=Account())

    def show(progress: Progress) -> None:
        if sys.stderr.isatty():
            click.echo(f"\r{progress.decided:,} of {found.requests:,} decided", err=True, nl=False)

    try:
        found = survey(cases(), scenario)
        target = source.model_copy(update={"prefix": options["into"]})
        player = Player(
            world_of(scenario, found),
            found.outcomes,
            router_id=router_id,
            source=None if options["folder"] is not None else source,
            target=target,
            speed=options["speed"],
            progress=show,
        )
        asyncio.run(create_topics(target))
        done = asyncio.run(player.play(iter(cases())))
    except (BadScenario, NoWorker, SamePrefix) as error:
        raise Failure(str(error)) from error
    click.echo(
        f"{done.requests:,} requests sent, {done.already:,} were there before; {done.decided:,} decided, {done.refused:,} refused; "
        f"{done.bills:,} bills and {done.rewards:,} rewards sent."
    )
