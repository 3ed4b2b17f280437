"""What a client sees while things break: when decisions come, which come twice, what is still owed."""

from __future__ import annotations

import itertools
import json
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from tests.chaos.load import Load
from tests.integration.service import RunningService


class WatchedService(RunningService):
    """A service that keeps count of its answers instead of the answers.

    Attributes:
        decided: {(router_id, seq): request_id}; arrivals: when decisions came, by partition.
        duplicates: decisions that were given again without having been asked for.
        shown: the last `pb.lambda` of each router.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.decided: dict[tuple[str, int], str] = {}
        self.arrivals: defaultdict[int, list[float]] = defaultdict(list)
        self.duplicates = 0
        self.shown: dict[str, dict[str, Any]] = {}
        self.letters = 0

    async def poll(self) -> None:
        """Count what the workers have said since the last time."""
        for tp, batch in (await self.consumer.getmany(timeout_ms=20)).items():
            topic = self._short[tp.topic]
            if topic == "dlq":
                self.letters += len(batch)
            for record in batch if topic in ("routes", "lambda") else ():
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
        self.arrivals[partition].append(time.monotonic())

    def silence(self, since: float, until: float) -> dict[int, float]:
        """Return the longest time without a decision on each partition, in seconds."""
        longest = {}
        for partition, arrivals in self.arrivals.items():
            times = [since, *[at for at in arrivals if since < at < until], until]
            longest[partition] = max(later - earlier for earlier, later in itertools.pairwise(times))
        return longest

    def decides_everywhere(self, since: float) -> bool:
        """Tell whether every partition has decided something since then."""
        return all(arrivals[-1] > since for arrivals in self.arrivals.values())

    def owed(self, load: Load) -> dict[str, int]:
        """Return how much is still missing of what the load must lead to."""
        asked = sum(map(len, load.asked.values()))
        settled = sum(shown.get("settled", 0) for shown in self.shown.values())
        learned = sum(shown.get("rewards_applied", 0) for shown in self.shown.values())
        return {
            "decisions": asked - len(self.decided),
            "bills": sum(map(len, load.paid.values())) - settled,
            "rewards": sum(map(len, load.judged.values())) - learned,
        }
