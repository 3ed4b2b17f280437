"""What a client sees while things break: when decisions come, which come twice, what is
still owed.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tests.integration.service import RunningService

if TYPE_CHECKING:
    from tests.chaos.load import Load


class WatchedService(RunningService):
    """A service that keeps count of its answers instead of the answers.

    Attributes:
        decided: {(router_id, seq): request_id}; arrivals: when decisions came, by partition.
        waited: (when it was asked, when it was answered, None while it is not) of every request, by
            partition.
        duplicates: decisions that were given again without having been asked for.
        shown: the last `pb.lambda` of each router.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.decided: dict[tuple[str, int], str] = {}
        self.arrivals: defaultdict[int, list[float]] = defaultdict(list)
        self.waited: defaultdict[int, dict[str, tuple[float, float | None]]] = defaultdict(dict)
        self._open: dict[str, float] = {}
        self._waits: list[float] = []
        self.duplicates = 0
        self.shown: dict[str, dict[str, Any]] = {}
        self.letters = 0

    def asks(self, router_id: str, request_id: str) -> None:
        """Note that a request is about to be sent."""
        now = self._open[request_id] = time.monotonic()
        self.waited[self.partition_of(router_id)][request_id] = now, None

    async def poll(self) -> None:
        """Count what the workers have said since the last time."""
        for tp, batch in (await self.consumer.getmany(timeout_ms=20)).items():
            topic = self._short[tp.topic]
            if topic == "dlq":
                self.letters += len(batch)
            for record in batch if topic in ("routes", "lambda") else ():
                if record.value is None:
                    continue
                value = json.loads(record.value)
                if topic == "lambda":
                    self.shown[value["router_id"]] = value
                elif not value["repeat"]:
                    self._decision(tp.partition, value)

    def _decision(self, partition: int, route: Mapping[str, Any]) -> None:
        at = route["router_id"], route["seq"]
        if at in self.decided:
            self.duplicates += 1
            return
        self.decided[at] = route["request_id"]
        now = time.monotonic()
        self._open.pop(route["request_id"], None)
        self.arrivals[partition].append(now)
        if (waited := self.waited[partition].get(route["request_id"])) is not None:
            self.waited[partition][route["request_id"]] = waited[0], now
            self._waits.append(now - waited[0])

    def take_waits(self) -> list[float]:
        """Return how long each request waited whose decision came since the last call, in
        seconds.
        """
        taken, self._waits = self._waits, []
        return taken

    def longest_wait(self, partitions: Iterable[int], since: float, until: float) -> float:
        """Return how long a request of these partitions waited at most for its decision, asked in a
        span of time; in seconds.
        """
        now = time.monotonic()
        asked = (
            waited
            for number in partitions
            for waited in self.waited[number].values()
            if since <= waited[0] < until
        )
        return max(((answered or now) - at for at, answered in asked), default=0.0)

    def decides_everywhere(self, since: float) -> bool:
        """Tell whether every partition has decided something since then."""
        return all(arrivals[-1] > since for arrivals in self.arrivals.values())

    @property
    def caught_up(self) -> bool:
        """Tell whether no request has waited for longer than a calm but busy machine explains."""
        return min(self._open.values(), default=float("inf")) > time.monotonic() - 2.0

    def holds(self, home: str) -> bool:
        """Tell whether a member of a pool holds dollars of it."""
        return any(budget["usd"] > 0.0 for budget in self.shown.get(home, {}).get("budgets", ()))

    def owed(self, load: Load) -> dict[str, int]:
        """Return how much is still missing of what the load must lead to."""
        shown = [self.shown.get(home, {}) for home in load.homes]
        homes = set(load.homes)
        asked, paid, judged = (
            sum(map(len, kind.values())) for kind in (load.asked, load.paid, load.judged)
        )
        return {
            "decisions": asked - sum(router_id in homes for router_id, _ in self.decided),
            "bills": paid - sum(router.get("settled", 0) for router in shown),
            "rewards": judged - sum(router.get("rewards_applied", 0) for router in shown),
            "leases": sum(not self.holds(home) for home in load.members),
        }
