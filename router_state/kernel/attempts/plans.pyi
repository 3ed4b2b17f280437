from collections.abc import Collection, Mapping, Sequence
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

def best_plan(
    seen: Candidates,
    b: int,
    looks: Looks,
    models: Sequence[CostModel],
    *,
    shut: Collection[int],
    per_dollar: float,
    left_usd: float,
    most_usd: float,
) -> tuple[int, int, int, float] | None: ...
def expected_of(
    seen: Candidates, looks: Looks, first: int, look: int, second: int
) -> tuple[float, float, float]: ...
