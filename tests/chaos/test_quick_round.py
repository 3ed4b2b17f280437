"""A short round of everything that can break, all on one service under load."""

from pathlib import Path

from streams.kafka.local import LocalKafka
from tests.chaos.session import play

FAULTS = [
    "worker_killed",
    "worker_killed",
    "worker_killed",
    "redis_killed",
    "worker_frozen",
    "broker_killed",
    "workers_scaled",
]


async def test_nothing_is_lost_and_nothing_counted_twice_whatever_dies(tmp_path: Path) -> None:
    with LocalKafka(brokers=3) as kafka:
        outcome = await play(kafka, tmp_path, FAULTS, per_second=40.0, routers=16, partitions=4)
    assert outcome.lost == {"decisions": 0, "bills": 0, "rewards": 0, "dead_letters": 0}
    assert outcome.violations == {}, outcome.examples
    assert outcome.differences == []
    assert outcome.requests > 500
