from collections.abc import Collection, Mapping
from typing import Any

from router_state.kernel.choosing.candidates import Candidates
from router_state.kernel.costs.cost_model import CostModel
from router_state.kernel.pacing.dual import Options

class Looks:
    K: int
    L: int
    array: Any
    def __init__(self, L: int, K: int) -> None: ...
    def put(self, look: int, k: int, right: float, wrong: float) -> None: ...
    def charge(self, look: int, usd: float, alike: float) -> None: ...

class PlannedOptions(Options):
    looks: Looks
    def __init__(
        self, single: Options, looks: Looks, shut: Mapping[int, Collection[int]]
    ) -> None: ...
    def spend(self, price: float) -> float: ...

class Planning:
    def __init__(
        self,
        seen: Candidates,
        models: list[CostModel],
        shut: Collection[int],
        *,
        per_dollar: float,
        left_usd: float,
        most_usd: float,
    ) -> None: ...
    def best(self, b: int, looks: Looks) -> tuple[int, int, int, float] | None: ...
    def chances(
        self, b: int, first: int, sure: Looks, hopeful: Looks, tried: float
    ) -> tuple[float, float, float]: ...
    def chance_of_first(self, first: int, sure: Looks, hopeful: Looks, tried: float) -> float: ...

def expected_of(
    seen: Candidates, looks: Looks, first: int, look: int, second: int
) -> tuple[float, float, float]: ...
