"""A round of everything that can break, on one service under load."""

from pathlib import Path

import pytest

from tests.chaos.faults import Pace
from tests.chaos.network import chaotic
from tests.chaos.session import assert_clean, play

# By the workers that they need, as each worker more or less costs a start or a session.
FAULTS = [
    "redis_killed",
    "redis_frozen",
    "broker_killed",
    "broker_frozen",
    "brokers_restarted",
    "workers_scaled",
    "fresh_machine",
    "worker_killed",
    "worker_frozen",
    "rolling_restart",
]
# Past what notices each: Redis's answer within 1 s, a broker's session of 3 s, the group's of 4 s.
PACE = Pace(
    redis_frozen=4.0,
    broker_frozen=8.0,
    broker_away=5.0,
    beyond_session=2.0,
    between_brokers=1.0,
    between_workers=0.5,
    with_more_workers=1.0,
    after_thaw=2.0,
    sessions=0.5,
)


@pytest.mark.timeout(900)
async def test_nothing_is_lost_and_nothing_counted_twice_whatever_breaks(tmp_path: Path) -> None:
    with chaotic() as kafka:
        outcome = await play(
            kafka,
            tmp_path,
            FAULTS,
            per_second=8.0,
            burst=4,
            routers=16,
            partitions=4,
            calm=0.5,
            pace=PACE,
        )
    assert_clean(outcome, requests=500)
