"""Change a router for an operator: preview the differences, then write them unless somebody else
wrote meanwhile.
"""

from __future__ import annotations

import copy
import logging

from aiokafka.errors import KafkaError

from doors.console.bus import open_bus
from doors.console.changing_declarations import TOPICS, put_in_force, read_router
from doors.console.document import faults
from doors.console.failures import Failure, Refused
from doors.console.router_file import changes, put, shown
from doors.console.router_status import Declared
from doors.gateway.problems import Problem
from ground.json_values import Document
from streams.settings import Settings

log = logging.getLogger(__name__)
SECONDS = 15.0
"""Seconds to wait for a worker to put a change in force."""
PRICES = ("input_price_per_m", "output_price_per_m")
"""Fields of a model that may be changed from the page: dollars per million tokens."""


class Changing:
    """Write declarations through the same conditional writes as the commands."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def preview(self, router_id: str, asked: Document) -> Document:
        """Return the fields of the declaration that a change would change, the faults of the new
        declaration, and the offset of the present one. Raises Problem.
        """
        try:
            async with open_bus(self._settings, *TOPICS) as bus:
                before = await read_router(bus, router_id)
        except (Failure, KafkaError) as error:
            raise _problem(error) from error
        if before is None:
            raise Problem("unknown_router")
        after = edited(before, asked)
        return {
            "based_on": before.offset,
            "changes": [
                {**one, "before": shown(one["before"]), "after": shown(one["after"])}
                for one in changes(before.document, after)
            ],
            "faults": faults(after),
        }

    async def put_in_force(self, router_id: str, asked: Document, *, operator: str) -> Document:
        """Write a previewed change, and return once a worker has put it in force. Raises Problem,
        also if somebody else has changed the router meanwhile.
        """
        based_on = asked.get("based_on")
        if type(based_on) is not int:
            raise Problem("invalid_field", "based_on is the offset that the preview named")
        try:
            async with open_bus(self._settings, *TOPICS) as bus:
                before = await read_router(bus, router_id)
                # The operator confirmed differences to this declaration; to another one they would
                # differ.
                if before is None or before.offset != based_on:
                    raise Problem("stale_config", "somebody else has changed the router meanwhile")
                after = edited(before, asked)
                state = await put_in_force(
                    bus, router_id, after, based_on=based_on, seconds=SECONDS
                )
        except (Failure, KafkaError) as error:
            raise _problem(error) from error
        what = ", ".join(one["what"] for one in changes(before.document, after))
        # Logged because the topic does not hold who made the change.
        log.info("operator %s changed router %s: %s", operator, router_id, what)
        return {"config_offset": state.config_offset}


def edited(before: Declared, asked: Document) -> Document:
    """Return the declaration with the changes: budget, prices, models that join or leave. Raises
    Problem for a path that can't be changed here.
    """
    document = copy.deepcopy(before.document)
    given = asked.get("changes")
    if not isinstance(given, list) or not given:
        raise Problem("invalid_field", "changes is a list of some {path, value}")
    for one in given:
        path = one.get("path") if isinstance(one, dict) else None
        if not isinstance(path, list) or not _may_change(path):
            raise Problem("invalid_field", "a path leads to the budget, to a model or its prices")
        try:
            put(document, path, one.get("value"))
        except Failure as error:  # an earlier change put no model there
            raise Problem("invalid_field", error.message) from error
    document.setdefault("models", {})
    return document


def _may_change(path: list[object]) -> bool:
    match path:
        case ["budget_usd_per_request"] | ["models", str()]:
            return True
        case ["models", str(), str(field)]:
            return field in PRICES
        case _:
            return False


def _problem(error: Failure | KafkaError) -> Problem:
    if isinstance(error, Refused):
        return Problem(error.reason, error.message)
    return Problem("undelivered", error.message if isinstance(error, Failure) else str(error))
