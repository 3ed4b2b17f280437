from collections.abc import Sequence

from router_state.kernel.costs.cost_model import CostModel
from router_state.kernel.given import Vector
from router_state.kernel.learning.detector import Shift
from router_state.kernel.learning.regression import Regression

def learn_bill(
    costs: CostModel,
    priced: Sequence[Regression],
    ratio: float,
    x: Vector | None,
    known: float,
    now: float,
) -> tuple[Shift, float, float] | None: ...
