"""Share the options, the write and the closing sentence of the commands that change a router."""

from __future__ import annotations

import re
import sys

import click

from doors.console.bus import open_bus
from doors.console.changing_declarations import TOPICS, Edit, write_router
from doors.console.document import faults
from doors.console.failures import Failure
from doors.console.output import print_json
from doors.console.router_file import Whole, value_of
from doors.console.session import (
    F,
    Session,
    json_option,
    router_option,
    run,
    timeout_option,
)
from ground.json_values import Document
from schemas import LambdaUpdated

PRICE = click.FloatRange(min=0, max=1e6)
"""Dollars per million tokens, as `schemas.routers` bounds them."""
_LEVEL = re.compile(r'"([^"]+)"|([^".=]+)')
_FIELD = re.compile(r'(?P<path>("[^"]+"|[^".=]+)(\.("[^"]+"|[^".=]+))*)=(?P<value>.*)', re.DOTALL)
"""Patterns of one level of a path, and of a path with its value."""
input_price = click.option(
    "--input-price",
    type=PRICE,
    required=True,
    metavar="USD",
    help="List price per million input tokens.",
)
output_price = click.option(
    "--output-price",
    type=PRICE,
    required=True,
    metavar="USD",
    help="List price per million output tokens.",
)


sure = click.option(
    "--yes", is_flag=True, help="Take prices as they are, however low, and ask nothing."
)
LEAST = 1e-3
"""Dollars per million tokens below which a price is mostly one per token: the cheapest models cost
some cents."""


def per_million(price: float, *, option: str, is_sure: bool) -> float:
    """Return a list price per million tokens; one that looks as if it was per token is asked about.

    Raises:
        Failure: nobody can be asked.
    """
    if is_sure or not 0.0 < price < LEAST:
        return price
    # Rounded, since a price per token times a million seldom is the decimal number that was meant.
    meant = round(price * 1e6, 9)
    why = f"{option} {price:g} is dollars per million tokens, less than any model costs"
    if not sys.stdin.isatty():
        raise Failure(
            f"{why}: if it is per token, give {option} {meant:g}; --yes takes it as it is"
        )
    return meant if click.confirm(f"{why}. Is it per token: ${meant:g} per million?") else price


def price_checked(path: list[str], value: object, *, is_sure: bool) -> object:
    """Return a field's value; a price is checked as by `per_million`."""
    if not path[-1].endswith("_price_per_m") or type(value) not in (int, float):
        return value
    assert isinstance(value, int | float)
    return per_million(value, option=path[-1], is_sure=is_sure)


def changes(function: F) -> F:
    """Add the options of a change to a command."""
    # Applied from the inside out, in the order of decorators in a file.
    for option in (json_option, timeout_option, router_option):
        function = option(function)
    return function


def change(
    session: Session, router_id: str, edit: Edit, *, timeout: float, create: bool = False
) -> LambdaUpdated:
    """Change a router by one conditional write; return its state when that is in force."""

    async def write() -> LambdaUpdated:
        async with open_bus(session.settings, *TOPICS) as bus:
            return await write_router(bus, router_id, edit, seconds=timeout, create=create)

    return run(write())


def field_of(text: str) -> tuple[list[str], object]:
    """Read FIELD=VALUE: the path of a field, with dots between its levels, and its value. A level
    in quotes may hold dots and equals signs.

    Raises:
        BadParameter: the text has another form.
    """
    read = _FIELD.fullmatch(text)
    if read is None:
        raise click.BadParameter(
            f"{text!r} is not FIELD=VALUE, such as epsilon=0.02", param_hint="FIELD=VALUE"
        )
    path = [Whole(quoted) if quoted else plain for quoted, plain in _LEVEL.findall(read["path"])]
    return path, value_of(read["value"])


def require_router(document: Document) -> None:
    """Check an edited declaration before it is written.

    Raises:
        Failure: the declaration is not valid; the message lists every fault with its place.
    """
    if found := faults(document):
        raise Failure(
            "\n".join(["the result is not a router:", *(f"  {fault}" for fault in found)])
        )


def report(sentence: str, state: LambdaUpdated, as_json: bool) -> None:
    """Print what was changed, and the declaration that is in force."""
    if as_json:
        print_json(state)
    else:
        click.echo(f"{sentence} In force at offset {state.config_offset}.")
