from typing import Any

from router_state.kernel.attempts.planned_calls import Planning
from router_state.kernel.attempts.plans import Looks
from router_state.kernel.choosing.arm import Arm
from router_state.kernel.choosing.candidates import Candidates

class Failures:
    count: int
    sum: float
    def __init__(self, count: int = 0, sum: float = 0.0) -> None: ...
    def gap(self, reward: float, alike: float) -> float: ...
    def and_one(self, reward: float, given: float) -> Failures: ...

def begin_plan(
    seen: Candidates,
    looks: Looks,
    arms: list[Arm],
    calls: list[tuple[int, int]],
    stops: list[tuple[str, float, float]],
    looked: bool,
) -> tuple[float, float, list[tuple[Any, ...]]]: ...
def further(plans: Planning, first: int, look: int, second: int) -> tuple[int, int, int] | None: ...
