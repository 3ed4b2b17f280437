"""A real worker with a hundred requests in flight: it decides as the simulation does, and ends on
budget.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchmarks.inflight_kafka import differences, drive, feed, outcome, serve
from benchmarks.inflight_sides import Simulation
from benchmarks.protocol import TIGHT


def test_with_a_hundred_in_flight_a_worker_decides_as_the_simulation_does_and_ends_on_budget(
    kafka: str, tmp_path: Path
) -> None:
    told = feed(600, budget=TIGHT)
    simulated = asyncio.run(drive(told, Simulation()))
    served = serve(told, kafka, log=tmp_path / "worker.log")
    assert len(served) == 600
    assert differences(simulated, served) == []
    assert outcome(told, served)[0] == pytest.approx(1.0, abs=0.05)
