"""Show what people are asked to label, and write their labels."""

from __future__ import annotations

import logging
import time

from aiokafka.errors import KafkaError

from doors.console.bus import open_bus
from doors.console.failures import Failure
from doors.console.wanted_labels import NAME, Labelling, Wanted
from doors.gateway.api_keys import ANYONE, Key
from doors.gateway.problems import Problem
from ground.json_values import Document
from schemas import RewardObserved
from streams.settings import Settings
from watching.dashboard.fleet import Fleet
from watching.dashboard.router_view import RouterView

log = logging.getLogger(__name__)
SHOWN = 100
"""Most requests that a page lists."""
LOOK_EVERY = 1.0
"""Seconds after which declarations are looked at again, where no label has come."""


class Inbox:
    """The requests that people are asked to label, the newest first: those of the routers that a
    visitor may see.

    Args:
        key: the visitor's, whose name stands in the source of each label.
        router_id: the only router that is shown; None: all.
        takes: whether labels may be given here.
        remembered: seconds for which workers remember a request.
    """

    def __init__(
        self, fleet: Fleet, key: Key, router_id: str | None, *, takes: bool, remembered: float
    ) -> None:
        self._fleet, self._key, self._router_id = fleet, key, router_id
        self._takes, self._remembered = takes, remembered
        self._shown: Document | None = None
        self._version, self._looked_at = -1, float("-inf")

    def changes(self, *, now: float) -> Document | None:
        """Return the inbox if it has changed."""
        version = self._fleet.inbox_version
        if version == self._version and now - self._looked_at < LOOK_EVERY:
            return None
        self._version, self._looked_at = version, now
        routers = [
            one
            for one in self._fleet.routers.values()
            if self._key.allows(one.router_id) and self._router_id in (None, one.router_id)
        ]
        found = [
            (one, router.labelling)
            for router in routers
            for one in _open(router, now - self._remembered)
        ]
        found.sort(key=lambda pair: pair[0].at, reverse=True)
        shown = {
            "count": len(found),
            "asks": any(router.labelling.asks for router in routers),
            "takes": self._takes,
            "name": own_name(self._key),
            "wanted": [_shown(one, labelling) for one, labelling in found[:SHOWN]],
        }
        if shown == self._shown:
            return None
        self._shown = shown
        return {"inbox": shown}


def _open(router: RouterView, since: float) -> list[Wanted]:
    return router.wanted.open(router.labelling, since=since)


def _shown(one: Wanted, labelling: Labelling) -> Document:
    # Not the model: who knows it may favour it.
    return {
        "router_id": one.router_id,
        "request_id": one.request_id,
        "at": one.at,
        "link": labelling.link(one.request_id),
        "rewards": labelling.rewards,
    }


def own_name(key: Key) -> str | None:
    """Return the name of a key; None where no key is needed."""
    return None if key is ANYONE else key.name


class Labels:
    """Write the labels of visitors."""

    def __init__(self, settings: Settings, fleet: Fleet) -> None:
        self._settings, self._fleet = settings, fleet

    async def give(self, router_id: str, key: Key, asked: Document) -> Document:
        """Write a person's label of an answer, and return once Kafka has it. Raises Problem.

        Args:
            asked: `request_id`, and one of `reward`, `cant_tell` and `undo`, which withdraws the
                person's last label. A visitor whose key names no person also gives a `name`.
        """
        router = self._fleet.routers.get(router_id)
        found = None if router is None else router.wanted.get(str(asked.get("request_id")))
        if router is None or found is None:
            raise Problem("not_found", "nobody is asked to label this request, or no longer")
        source = router.labelling.source(own_name(key) or _name(asked))
        event = _label(found, source, asked)
        try:
            async with open_bus(self._settings, "rewards") as bus:
                await bus.send("rewards", event)
        except (Failure, KafkaError) as error:
            message = error.message if isinstance(error, Failure) else str(error)
            raise Problem("undelivered", message) from error
        now = time.time()
        # At once, so that the page does not show it until the topic is read.
        self._fleet.version += 1
        self._fleet.take("rewards", event, at=now, now=now)
        log.info("%s labelled request %s of router %s", source, found.request_id, router_id)
        return {"source": source, "revision": event.revision}


def _name(asked: Document) -> str | None:
    name = asked.get("name")
    if name in (None, ""):
        return None
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise Problem("invalid_field", "a name is up to 64 of A-Z a-z 0-9 . _ @ -")
    return name


def _label(found: Wanted, source: str, asked: Document) -> RewardObserved:
    """Return the label that a page asks for. Raises Problem."""
    reward, said = asked.get("reward"), [name for name in ("cant_tell", "undo") if asked.get(name)]
    is_number = isinstance(reward, int | float) and not isinstance(reward, bool)
    if len(said) + is_number != 1 or not (reward is None or is_number):
        raise Problem("invalid_field", "say one of reward, cant_tell and undo")
    if "undo" in said and source not in found.given:
        raise Problem("invalid_field", f"{source} has said nothing of this request")
    if reward is not None and not 0.0 <= float(reward) <= 1.0:
        raise Problem("reward_out_of_range")
    return found.label(
        source, None if reward is None else float(reward), cant_tell="cant_tell" in said
    )
