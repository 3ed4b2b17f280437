from collections.abc import Sequence
from typing import Any

from router_state.kernel.costs.cost_model import CostModel
from router_state.kernel.given import Vector
from router_state.kernel.learning.regression import Regression
from router_state.kernel.pacing.dual import Options

def options(
    contexts: Any,
    n: int,
    d: int,
    *,
    rewards: Sequence[Regression],
    deviations: Sequence[float],
    lots: Vector,
    shifts: Sequence[float] | None,
    models: Sequence[CostModel],
    tokens: Vector,
    prices: Any,
) -> Options: ...
