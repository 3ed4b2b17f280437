"""Print tables for people, or JSON and YAML for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from doors.console.session import OUTPUT

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PIPE_WIDTH = 160
"""Width of a table, in columns, when the output is no terminal."""


def console(*, stderr: bool = False) -> Console:
    """Return the console for tables; a pipe, which has no width, gets `PIPE_WIDTH`."""
    from rich.console import Console

    out = Console(highlight=False, stderr=stderr)
    return out if out.is_terminal else Console(highlight=False, stderr=stderr, width=PIPE_WIDTH)


def table(*columns: str, title: str | None = None) -> Table:
    """Return an empty table: the first column is left-aligned, the others right-aligned."""
    from rich.table import Table

    made = Table(title=title, title_justify="left", title_style="bold")
    for at, column in enumerate(columns):
        made.add_column(column, justify="left" if at == 0 else "right")
    return made


def print_json(value: object) -> None:
    """Print one document for programs: JSON, or YAML if asked for."""
    from pydantic import BaseModel

    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    context = click.get_current_context(silent=True)
    if context is not None and context.meta.get(OUTPUT) == "yaml":
        import yaml

        # Through JSON first: the safe dumper of YAML knows no enums.
        plain = json.loads(json.dumps(plain))
        click.echo(
            yaml.safe_dump(
                plain, sort_keys=False, allow_unicode=True, explicit_start=True, width=120
            ),
            nl=False,
        )
        return
    # An infinite number, such as a ratio to almost nothing, becomes null: JSON has no infinity.
    text = json.dumps(plain, indent=2, ensure_ascii=False)
    if "Infinity" in text or "NaN" in text:
        finite = json.loads(text, parse_constant=lambda _: None)
        text = json.dumps(finite, indent=2, ensure_ascii=False)
    click.echo(text)
