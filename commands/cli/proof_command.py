"""`pbstream proof`: what a router saved against its incumbent, with its interval."""

from __future__ import annotations

import json
from contextlib import ExitStack, nullcontext
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from commands.cli.replay_history import contexts_of, from_option, history_of
from doors.console.failures import Failure
from doors.console.output import console, print_json
from doors.console.session import Session, json_option, pass_session, router_option

if TYPE_CHECKING:
    from ground.json_values import Document


@click.command()
@from_option
@click.option(
    "--file",
    "written",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the proof into this file, for an auditor.",
)
@click.option(
    "--verify",
    "verified",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Repeat the proof in this file, from the same records, and compare.",
)
@click.option(
    "--against",
    "mixes",
    multiple=True,
    help="Compare with this too, which nobody need have used: a model, a mix as "
    "small=0.8,large=0.2, or incumbent. Can be given several times.",
)
@router_option
@json_option
@pass_session
def proof(
    session: Session,
    /,
    router_id: str,
    folder: Path | None,
    written: Path | None,
    verified: Path | None,
    mixes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show what a router saved against its incumbent, and how much better it answered.

    It compares the requests that the router answered with those that were left to the incumbent,
    at random. With --against it also estimates, from the logged propensities, what a model or a
    mix would have cost and earned. The intervals may be looked at each day: all looks together
    miss the truth once in twenty.

    \b
      pbstream proof --router shop
      pbstream proof --router shop --against large --against small=0.8,large=0.2
      pbstream proof --router shop --file shop.json
      pbstream proof --router shop --verify shop.json
    """
    with ExitStack() as stack:
        before = None if verified is None else _read(verified)
        if before is not None:
            mixes = tuple(before["figures"].get("against", ()))
        made = _prove(session, folder, router_id, before, mixes, stack)
    if written is not None:
        written.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    if as_json:
        print_json(made)
    else:
        _print(made)
    if before is not None:
        _compare(before, made, quiet=as_json)


def _read(path: Path) -> Document:
    from studies.proof.proof_file import FORMAT

    try:
        found: Document = json.loads(path.read_text(encoding="utf-8"))
        known = found["format"] == FORMAT and found["figures"] and found["read"]
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(f"{path} is not the file of a proof: {error!r}") from None
    if not known:
        raise Failure(f"{path} has another format than {FORMAT}: use the version in `made_by`")
    return found


def _prove(
    session: Session,
    folder: Path | None,
    router_id: str,
    before: Document | None,
    mixes: tuple[str, ...],
    stack: ExitStack,
) -> Document:
    from studies.proof.proof import proof_of
    from studies.proof.proof_file import Noted

    if before is not None and before["router_id"] != router_id:
        raise Failure(f"the proof is of router {before['router_id']}: say --router")
    return proof_of(
        router_id,
        Noted(history_of(session, folder, stack), None if before is None else before["read"]),
        session.settings,
        mixes={text: _mix(text) for text in mixes},
        contexts=lambda: nullcontext(contexts_of(session, stack)),
    )


def _mix(text: str) -> dict[str, float] | None:
    """Return a mix as it is written; None: the incumbent's."""
    from studies.proof.against import INCUMBENT

    if text == INCUMBENT:
        return None
    if "=" not in text:
        return {text: 1.0}
    try:
        mix = {
            name: float(share) for name, share in (one.rsplit("=", 1) for one in text.split(","))
        }
    except ValueError:
        raise click.UsageError(f"--against {text}: write a mix as small=0.8,large=0.2") from None
    if not (min(mix.values()) > 0.0 and isclose(sum(mix.values()), 1.0, abs_tol=1e-6)):
        raise click.UsageError(f"--against {text}: the shares are above 0 and add up to 1")
    return mix


def _print(made: Document) -> None:
    figures = made["figures"]
    out = console()
    out.print(made["says"], style="bold")
    table = Table("", "routed", "saved a request", "in all", "reward", box=None, pad_edge=False)
    rows = {"all": figures["whole"], **figures["weeks"], **figures["kinds"]}
    for name, one in rows.items():
        table.add_row(
            name,
            f"{one['routed']:,}",
            _interval(one["saved_usd_per_request"], "${:.3g}"),
            _interval(one["saved_usd"], "${:,.2f}"),
            _interval(one["reward_gain"], "{:+.4f}"),
        )
    out.print(table)
    for name, one in figures.get("against", {}).items():
        out.print(f"Against {name}: {_estimated(one)}.")
    out.print(
        f"Each interval holds at every look with probability {1 - figures['missed_at_most']:.0%}. "
        f"{figures['not_compared']:,} requests compare nothing: all or none like them were routed."
    )


def _estimated(one: Document) -> str:
    if "not_supported" in one:
        return f"not supported, {one['not_supported']}"
    saved = _interval(one["saved_usd_per_request"], "${:.3g}")
    return f"saved a request {saved}, reward {_interval(one['reward_gain'], '{:+.4f}')}"


def _interval(found: Document, form: str) -> str:
    if found["value"] is None:
        return "–"
    value = form.format(found["value"])
    if found["low"] is None:
        return f"{value} (too early)"
    return f"{value} ({form.format(found['low'])} to {form.format(found['high'])})"


def _compare(before: Document, again: Document, *, quiet: bool) -> None:
    from studies.proof.proof_file import differences

    if found := differences(before, again):
        raise Failure("the proof was not repeated:\n" + "\n".join(found[:20]))
    if not quiet:
        console().print("The proof was repeated: the same records, the same figures.", style="bold")
