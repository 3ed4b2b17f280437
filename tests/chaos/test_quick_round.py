"""A round of everything that can break, on one service under load."""

from pathlib import Path

import pytest

from streams.broker.local import LocalKafka
from tests.chaos.session import assert_clean, play

FAULTS = [
    "redis_killed",
    "redis_frozen",
    "broker_killed",
    "broker_frozen",
    "brokers_restarted",
    "workers_scaled",
    "fresh_machine",
    "worker_killed",
    "rolling_restart",
    "worker_frozen",
]


@pytest.mark.timeout(900)
async def test_nothing_is_lost_and_nothing_counted_twice_whatever_breaks(tmp_path: Path) -> None:
    with LocalKafka(brokers=3) as kafka:
        outcome = await play(
            kafka, tmp_path, FAULTS, per_second=25.0, routers=16, partitions=4, calm=1.0
        )
    assert_clean(outcome, requests=500)
