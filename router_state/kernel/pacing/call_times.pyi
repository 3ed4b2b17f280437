from collections.abc import Sequence
from typing import Any

from router_state.kernel.costs.cost_model import CostModel
from router_state.kernel.given import Vector

def waits(
    contexts: Any, n: int, d: int, models: Sequence[CostModel], *, variances: Vector, limit: float
) -> tuple[Any, Any]: ...
