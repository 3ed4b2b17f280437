"""`pbstream models import`: import prices from LiteLLM's list."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click

from doors.console.bus import Bus, open_bus
from doors.console.changing_declarations import TOPICS, read_router, write_router
from doors.console.failures import Failure
from doors.console.output import console, print_json, table
from doors.console.router_file import ABSENT
from doors.console.session import (
    Session,
    answered,
    run,
)
from doors.console.taken_up import absence_of
from doors.integrations.litellm_prices import (
    IMPORTED,
    IMPORTED_CACHE,
    IMPORTED_OFFERS,
    IMPORTED_OTHERS,
    Change,
    NoPriceList,
    PriceList,
    plan,
    read_list,
)
from ground.json_values import Document, Json
from schemas import CostReported, LambdaUpdated, MalformedEvent, decode

BILLS = 5000
"""Number of newest bills from which the tokens of a request are averaged."""


@click.command("import")
@click.option(
    "--litellm", is_flag=True, required=True, help="Use the list of prices in LiteLLM's wheel."
)
@click.option(
    "--only",
    metavar="PATTERN",
    help="Only these models of the list, such as 'gpt-4o*', new ones included; "
    "default: the portfolio's.",
)
@click.option(
    "--accept",
    multiple=True,
    metavar="MODEL",
    help="Accept this model's prices, even if they are doubtful.",
)
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@answered
def import_models(
    session: Session,
    litellm: bool,
    only: str | None,
    accept: tuple[str, ...],
    dry_run: bool,
    router_id: str,
    timeout: float,
    as_json: bool,
) -> None:
    """Import list prices, those of long inputs, windows, capabilities and ends of models from
    LiteLLM, where they can be trusted.

    The command asks before it takes a price that jumps by more than a factor of ten, a price of 0,
    or a deprecated or unlisted model. Where nobody can be asked, these stay as they are. Prices and
    capabilities that were declared by hand stay as well. New models get an expected cost from the
    tokens that bills have reported so far.

    \b
      pbstream models import --litellm --dry-run
      pbstream models import --litellm --only "gpt-4o*"
      pbstream models import --litellm --accept gpt-4o
    """
    try:
        prices = read_list()
    except NoPriceList as error:
        raise Failure(str(error)) from error
    run(
        _import(
            session,
            prices,
            only=only,
            accept=accept,
            dry_run=dry_run,
            router_id=router_id,
            seconds=timeout,
            as_json=as_json,
        )
    )


async def _import(
    session: Session,
    prices: PriceList,
    *,
    only: str | None,
    accept: Any,
    dry_run: bool,
    router_id: str,
    seconds: float,
    as_json: bool,
) -> None:
    async with open_bus(session.settings, *TOPICS, "costs") as bus:
        declared = await read_router(bus, router_id)
        if declared is None:
            raise await absence_of(bus, router_id)
        changes = plan(
            prices, declared.document["models"], only=only, today=datetime.now(UTC).date()
        )
        if not changes:
            raise Failure("no model to import: name some with --only PATTERN.")
        taken = [
            change
            for change in changes
            if _is_taken(change, accept, ask=not (dry_run or as_json) and sys.stdin.isatty())
        ]
        if not as_json:
            show(changes, taken)
        if dry_run or not taken:
            if as_json:
                print_json({"models": _listed(changes, taken), "config_offset": None})
            else:
                click.echo("Nothing was changed.")
            return
        tokens = await _tokens(bus, router_id)
        state: LambdaUpdated = await write_router(
            bus, router_id, lambda found: _edited(found, taken, tokens), seconds=seconds
        )
        if as_json:
            print_json({"models": _listed(changes, taken), "config_offset": state.config_offset})
            return
        click.echo(
            f"Priced by LiteLLM's list now: {', '.join(one.name for one in taken)} (configuration "
            f"{state.config_offset})."
        )


def _is_taken(change: Change, accept: tuple[str, ...], *, ask: bool) -> bool:
    # A second import in a row changes nothing and asks nothing.
    if change.listed is None or not change.changes:
        return False
    if change.name in accept or (change.doubt is None and not change.kept):
        return True
    why = change.doubt or "was priced by hand"
    # Without a terminal a doubtful price is not taken: a wrong price can attract all traffic.
    return ask and click.confirm(f"{change.name} {why}. Take the list's prices?", default=False)


def _listed(changes: list[Change], taken: list[Change]) -> list[Document]:
    """Return each model, its prices before and on the list, and whether the list's are taken."""
    return [
        {
            "model": change.name,
            "before": change.before and dict(change.before),
            "listed": change.listed and dict(change.listed.prices),
            "doubt": change.doubt,
            "priced_by_hand": change.kept,
            "offers": change.offers and dict(change.offers),
            "cache": change.cache and dict(change.cache),
            "others": change.others and dict(change.others),
            "note": change.note,
            "taken": change in taken,
        }
        for change in changes
    ]


def show(changes: list[Change], taken: list[Change]) -> None:
    """Print what an import finds, a model a line."""
    shown = table("model", "in, $/M", "out, $/M", "")
    for change in changes:
        cells = []
        for field in ("input_price_per_m", "output_price_per_m"):
            was = None if change.before is None else change.before[field]
            now = was if change.listed is None else change.listed.prices[field]
            told = ABSENT if now is None else f"{now:g}"
            cells.append(told if was in (None, now) else f"{was:g} → {told}")
        remark = change.doubt or (
            "priced by hand" if change.kept else "" if change.changes else "as it is"
        )
        if change.changes and change not in taken:
            remark += ": not taken (--accept)"
        else:
            offers = None if change.offers is None else f"offers {_said(change.offers)}"
            cache = change.cache and change.cache.get("cached_input_price_per_m")
            cached = None if cache is None else f"cached input ${cache:g} per million"
            remark = "; ".join(filter(None, (remark, offers, cached, *_told(change.others))))
        remark = "; ".join(filter(None, (remark, change.note)))
        shown.add_row(change.name, *cells, remark)
    console().print(shown)


def _edited(
    document: Document, taken: list[Change], tokens: tuple[float, float] | None
) -> Document:
    models = dict(document["models"])
    for change in taken:
        assert change.listed is not None
        prices = change.listed.prices
        model = {
            # An existing model keeps all other fields of its declaration.
            **models.get(change.name, _new(prices, tokens)),
            **prices,
            IMPORTED: prices,
            **_offers(change),
        }
        if change.others is not None:
            # What the list has no more is no longer declared.
            known = {**(model.get(IMPORTED_OTHERS) or {}), **change.others}
            kept = {name: value for name, value in known.items() if value is not None}
            model |= {**change.others, IMPORTED_OTHERS: kept}
        models[change.name] = {name: one for name, one in model.items() if one is not None}
    return {**document, "models": models}


def _offers(change: Change) -> Document:
    """Return a model's capabilities and cache prices from the list, with the marks of an import."""
    found: Document = {}
    if change.offers is not None:
        found |= {"offers": dict(change.offers), IMPORTED_OFFERS: dict(change.offers)}
    if change.cache is not None:
        found |= {**change.cache, IMPORTED_CACHE: dict(change.cache)}
    return found


def _told(others: Mapping[str, Json] | None) -> list[str]:
    """Return prices of long inputs and the end of a model in words."""
    said = others or {}
    found = [
        f"${tier['input_price_per_m']:g} in, ${tier['output_price_per_m']:g} out above "
        f"{tier['input_tokens']:,} tokens"
        for tier in said.get("price_above") or ()
    ]
    if "price_above" in said and not found:
        found.append("no other prices of long inputs any more")
    if "retires_at" in said:
        at = said["retires_at"]
        found.append("no end any more" if at is None else f"retires on {at}")
    return found


def _said(offers: Mapping[str, Json]) -> str:
    """Return a model's capabilities in words."""
    return ", ".join(
        name if value is True else f"{name} {value:,}" if isinstance(value, int) else name
        for name, value in offers.items()
    )


def _new(prices: dict[str, float], tokens: tuple[float, float] | None) -> Document:
    # No bill tells the length of answers here; the core then guesses.
    if tokens is None:
        return {}
    cost = (
        tokens[0] * prices["input_price_per_m"] + tokens[1] * prices["output_price_per_m"]
    ) / 1e6
    return {"expected_cost_usd": cost}


async def _tokens(bus: Bus, router_id: str) -> tuple[float, float] | None:
    """Return the mean input and output tokens of requests, from bills that report them."""
    count, into, out = 0, 0, 0
    async for record in bus.backwards("costs", router_id, limit=BILLS):
        try:
            bill = decode(CostReported, record.value)
        except MalformedEvent:
            continue
        if (
            bill.router_id == router_id
            and bill.input_tokens is not None
            and bill.output_tokens is not None
        ):
            count, into, out = count + 1, into + bill.input_tokens, out + bill.output_tokens
    return (into / count, out / count) if count else None
