from router_state.kernel.costs.cost_model import CostModel
from router_state.kernel.given import Journal, Price
from router_state.kernel.learning.detector import Detector
from router_state.kernel.learning.regression import Regression
from router_state.kernel.learning.shared_prior import SharedPrior
from router_state.kernel.learning.suspicion import Suspicion

def log_price(per_1k: float) -> float: ...

class Arm:
    name: str
    price: Price
    per_1k: float
    log_price: float
    rewards: Regression
    costs: CostModel
    detector: Detector
    suspicion: Suspicion | None
    last_played: int
    pulls_left: int
    retired_at: float | None
    def __init__(
        self,
        name: str,
        bills: SharedPrior,
        price: Price,
        journal: Journal,
        *,
        now_t: int = 0,
        pulls: int = 0,
    ) -> None: ...
    def set_price(self, price: Price) -> None: ...
    @property
    def offset(self) -> float: ...
