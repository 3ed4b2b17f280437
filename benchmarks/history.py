"""A history made of the benchmark: the shipping engine decides, its topics are written as a JSONL
export.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from agents.declaring.configuration import config_of
from agents.publishing.published_values import route_value
from benchmarks.played import Played
from schemas.event import decode_keyed
from schemas.routers import RouterDeclared
from studies.simulate.policies import Finished

ROUTER = "benchmark"
START = 1_767_225_600.0
SPACING = 0.05


class Recorder:
    """Write a history of one router, one event after the other, as a worker with one request at a
    time would.
    """

    def __init__(self, folder: Path, declared: Mapping[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        topics = ("routers", "requests", "routes", "costs", "rewards")
        self._files = {topic: (folder / f"{topic}-0.jsonl").open("wb") for topic in topics}
        self._next = dict.fromkeys(topics, 0)
        value = orjson.dumps({"router_id": ROUTER, **declared})
        self._at = START
        offset = self._write("routers", value)
        router = decode_keyed(RouterDeclared, key=None, value=value)
        self._records = Finished(2000)
        self._engine = Played.start(config_of(router, offset=offset, references={}), self._records)

    def close(self) -> None:
        """Finish the files."""
        for file in self._files.values():
            file.close()

    def request(
        self,
        request_id: str,
        x: np.ndarray,
        outcomes: Mapping[str, tuple[float, float]] | None,
        *,
        recorded: np.ndarray | None = None,
    ) -> str:
        """Decide a request, write it and its decision, and return the model.

        Args:
            recorded: the context that is written; None: the one that is decided by.
        """
        self._at = round(self._at + SPACING, 6)
        body: dict[str, Any] = {
            "router_id": ROUTER,
            "request_id": request_id,
            "context": (x if recorded is None else recorded).tolist(),
        }
        if outcomes is not None:
            body["metadata"] = {
                "outcomes": {m: {"reward": r, "cost_usd": c} for m, (r, c) in outcomes.items()}
            }
        offset = self._write("requests", orjson.dumps(body))
        contained = self._next["costs"] - 1, self._next["rewards"] - 1
        record = self._engine.decide(
            request_id, x, now=self._at, offset=offset, contained=contained
        )
        self._write("routes", route_value(ROUTER, request_id, record, repeat=False))
        self._records.trim(self._engine)
        return record.model

    def bill(self, request_id: str, cost_usd: float) -> None:
        """Write and book a bill."""
        self._write(
            "costs",
            orjson.dumps({"router_id": ROUTER, "request_id": request_id, "cost_usd": cost_usd}),
        )
        self._engine.settle(request_id, cost_usd=cost_usd)

    def reward(self, request_id: str, reward: float) -> None:
        """Write and learn a reward."""
        body = {"router_id": ROUTER, "request_id": request_id, "reward": reward, "source": "judge"}
        self._write("rewards", orjson.dumps(body))
        self._engine.learn(request_id, reward=reward, source="judge")

    def _write(self, topic: str, value: bytes) -> int:
        offset = self._next[topic]
        self._next[topic] += 1
        line = {
            "offset": offset,
            "timestamp": self._at,
            "key": ROUTER,
            "value": orjson.Fragment(value),
        }
        self._files[topic].write(orjson.dumps(line) + b"\n")
        return offset


def write_history(
    folder: Path,
    *,
    declared: Mapping[str, Any],
    models: Sequence[str],
    contexts: np.ndarray,
    rewards: np.ndarray,
    costs: np.ndarray,
    recorded: np.ndarray | None = None,
    outcomes: bool = True,
    bill_after: int = 30,
    reward_after: int = 100,
) -> None:
    """Play judged prompts through a router and write the history as an export.

    Args:
        declared: value of `pb.routers`, without the router_id.
        contexts: shape (n, d); rewards, costs: shape (n, K), columns in the order of `models`.
        recorded: contexts that the requests show, where history chose by others; shape (n, d).
        outcomes: put what every model would have earned into the requests' metadata.
        bill_after, reward_after: decisions between a request and its feedback.
    """
    recorder = Recorder(folder, declared)
    due: list[tuple[int, int, str, float]] = []
    for i, x in enumerate(contexts):
        _deliver(recorder, due, until=i)
        request_id = f"r-{i + 1}"
        known = (
            {m: (float(rewards[i, k]), float(costs[i, k])) for k, m in enumerate(models)}
            if outcomes
            else None
        )
        shown = None if recorded is None else recorded[i]
        k = models.index(recorder.request(request_id, x, known, recorded=shown))
        heapq.heappush(due, (i + bill_after, 2 * i, request_id, float(costs[i, k])))
        heapq.heappush(due, (i + reward_after, 2 * i + 1, request_id, float(rewards[i, k])))
    _deliver(recorder, due, until=len(contexts) + max(bill_after, reward_after))
    recorder.close()


def _deliver(recorder: Recorder, due: list[tuple[int, int, str, float]], *, until: int) -> None:
    while due and due[0][0] <= until:
        _, order, request_id, value = heapq.heappop(due)
        if order % 2 == 0:
            recorder.bill(request_id, value)
        else:
            recorder.reward(request_id, value)
