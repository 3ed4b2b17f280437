from collections.abc import Sequence
from typing import Any

from router_state.kernel.attempts.planned_calls import Planning
from router_state.kernel.attempts.plans import Looks
from router_state.kernel.choosing.arm import Arm
from router_state.kernel.numbers.randomness import Chance

def begin_plan(
    plans: Planning,
    likely: Looks,
    arms: list[Arm],
    stops: list[tuple[str, float, float]],
    b: int,
    propensity: float,
    most_calls: int,
    tried: float,
    looked_usd: float,
    chance: Chance,
) -> tuple[int, float, float, tuple[float, float], Sequence[tuple[Any, ...]]]: ...
