from router_state.kernel.costs.predictive import Predictive
from router_state.kernel.given import Journal, Price
from router_state.kernel.learning.detector import Detector
from router_state.kernel.learning.regression import Regression
from router_state.kernel.learning.shared_prior import SharedPrior

LEAST_PART: float
LEAST_CALIBRATION: float
LOGNORMAL_BILLS: float

def cost_piece(model: str) -> str: ...

class CostMeans:
    prior: SharedPrior
    regression: Regression
    detector: Detector
    awaited: int
    free: bool
    bills: float
    ratio: float
    calibration: float
    paid: float
    list_price: float
    input_usd: float
    input_share: float
    def __init__(self, model: str, prior: SharedPrior, price: Price, journal: Journal) -> None: ...
    def set_price(self, price: Price) -> None: ...
    @property
    def mean_usd(self) -> float: ...
    @property
    def per_input_token(self) -> float: ...
    @property
    def level(self) -> float: ...
    @property
    def factor(self) -> float: ...
    def predict(self, exponent: float) -> float: ...
    def expected(self, exponent: float, tokens: float) -> float: ...
    def beyond(self, expected_usd: float) -> float: ...
    def predictive(self, expected_usd: float) -> Predictive: ...
    def log_left(self, tokens: float) -> float: ...
