from collections.abc import Collection

from router_state.kernel.attempts.verdict_table import Views
from router_state.kernel.choosing.candidates import Candidates
from router_state.kernel.choosing.portfolio import Portfolio
from router_state.kernel.given import Step
from router_state.kernel.numbers.randomness import Chance

def begin_plan(
    views: Views,
    stops: list[tuple[str, float, float]],
    arms: Portfolio,
    seen: Candidates,
    shut: Collection[int],
    b: int,
    propensity: float,
    per_dollar: float,
    left_usd: float,
    most_usd: float,
    most_calls: int,
    tried: float,
    looked_usd: float,
    chance: Chance,
) -> tuple[int, float, float, tuple[float, float], tuple[Step, ...]]: ...
