"""Explain which variables of the environment are wrong or unknown."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pydantic.fields import FieldInfo

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

PREFIX = "PB_"
"""Prefix of every variable of this service."""
OTHERS = ("PB_ROUTER", "PB_BROKER")
"""Variables that other programs read: the command line's router, the tests' broker."""
LINK = re.compile(
    r"PB_(.+_)?(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
"""Variables that Kubernetes puts into every container for a service whose name begins with `pb-`.
"""
LINKED = re.compile(r"(tcp|udp|sctp)://")
"""Beginning of values that Docker and Kubernetes put into a container's environment for other
services, such as `PB_REDIS_PORT=tcp://…`; they are no settings."""


class BadSettings(Exception):
    """Settings cannot be used; the message has one line a problem: variable, problem, example."""

    reason = "bad_settings"
    retriable = False


def sentence(problem: ErrorDetails, fields: Mapping[str, FieldInfo]) -> str:
    """Return the line about a setting whose value is wrong, with an example of a right one."""
    message = problem["msg"].removeprefix("Value error, ")
    if not problem["loc"]:
        return str(message)
    name = str(problem["loc"][0]).removeprefix(PREFIX).lower()
    variable = (
        "KAFKA_BOOTSTRAP"
        if name == "bootstrap" and "PB_BOOTSTRAP" not in os.environ
        else PREFIX + name.upper()
    )
    field = fields.get(name)
    example = f"; for example {variable}={field.examples[0]}" if field and field.examples else ""
    return f"{variable}: {message}{example}"


def misspelt(names: Iterable[str]) -> list[str]:
    """Return a line for each variable of the environment that is none of these settings."""
    known = {f"{PREFIX}{name.upper()}{end}" for name in names for end in ("", "_FILE")} | {*OTHERS}
    lines = []
    for name in sorted(name for name in set(os.environ) - known if name.startswith(PREFIX)):
        if LINK.fullmatch(name) or (name.endswith("_PORT") and LINKED.match(os.environ[name])):
            continue
        near = [
            other
            for other in difflib.get_close_matches(name, known, n=4, cutoff=0.6)
            if not other.endswith("_FILE")
        ][:2]
        hint = (
            f"did you mean {' or '.join(near)}?"
            if near
            else "docs/reference/settings.md lists all of them"
        )
        lines.append(f"{name}: no such setting; {hint}")
    return lines
