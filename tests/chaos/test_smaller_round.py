"""What breaks most often, on one service under load."""

from pathlib import Path

import pytest

from streams.kafka.local import LocalKafka
from tests.chaos.session import assert_clean, play

FAULTS = ["redis_killed", "broker_killed", "worker_killed", "worker_killed", "worker_killed", "worker_frozen"]


@pytest.mark.timeout(600)
async def test_nothing_is_lost_and_nothing_counted_twice_whatever_dies(tmp_path: Path) -> None:
    with LocalKafka(brokers=3) as kafka:
        outcome = await play(kafka, tmp_path, FAULTS, per_second=30.0, routers=16, partitions=4)
    assert_clean(outcome, requests=300)
