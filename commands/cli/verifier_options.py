"""Read verifiers as options declare them: `tests=0:exact,judge=0.00004:3`."""

from __future__ import annotations

import re

import click

from ground.json_values import Document
from schemas.verifiers import MAX_BINS

_ONE = re.compile(r"(?P<name>[^=,]+)=(?P<usd>[^:,]+)(?P<exact>:exact)?(?::(?P<bins>\d+))?")
NOBODY = "none"
"""Stands in place of verifiers where a router shall have none."""
EXAMPLE = "tests=0:exact,judge=0.00004:3"


class VerifiersType(click.ParamType):
    """Verifiers with a comma between them, each NAME=USD[:exact][:BINS]; or `none`."""

    name = "verifiers"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Document | str:
        if not isinstance(value, str) or value == NOBODY:
            return NOBODY
        found: Document = {}
        for part in value.split(","):
            read = _ONE.fullmatch(part.strip())
            usd = None if read is None else _number(read["usd"])
            if read is None or usd is None:
                self.fail(f"{part!r} is not NAME=USD[:exact][:BINS], as in {EXAMPLE}", param, ctx)
            name = read["name"].strip()
            if name in found:
                self.fail(f"names {name} twice", param, ctx)
            bins = None if read["bins"] is None else int(read["bins"])
            if bins is not None and not 2 <= bins <= MAX_BINS:
                self.fail(f"{part!r}: verdicts count in 2 to {MAX_BINS} steps", param, ctx)
            found[name] = {
                "usd": usd,
                **({"exact": True} if read["exact"] else {}),
                **({} if bins is None else {"bins": bins}),
            }
        return found


def _number(text: str) -> float | None:
    try:
        usd = float(text)
    except ValueError:
        return None
    return usd if 0.0 <= usd <= 1000.0 else None


verifiers_option = click.option(
    "--verifiers",
    type=VerifiersType(),
    metavar="NAME=USD[:exact][:BINS],...",
    help=f"Who looks at answers, and dollars of a verdict, such as {EXAMPLE}; exact: verdicts are "
    f"the truth; BINS: steps of a graded verdict. {NOBODY}: nobody.",
)
max_attempts_option = click.option(
    "--max-attempts",
    type=click.IntRange(min=1),
    metavar="N",
    help="Most calls of one request; 1: no plans.",
)
