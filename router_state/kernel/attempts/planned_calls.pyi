from collections.abc import Collection

from router_state.kernel.attempts.plans import Looks
from router_state.kernel.choosing.candidates import Candidates
from router_state.kernel.costs.cost_model import CostModel

class Planning:
    def __init__(
        self,
        seen: Candidates,
        models: list[CostModel],
        sure: Looks,
        hopeful: Looks,
        per_dollar: float,
        left_usd: float,
        most_usd: float,
        shut: Collection[int] = (),
    ) -> None: ...
    def best(self, b: int, hopeful: bool = False) -> tuple[int, int, int, float] | None: ...
    def chances(self, b: int, first: int, tried: float) -> tuple[float, float, float]: ...
    def chance_of_first(self, first: int, tried: float) -> float: ...
