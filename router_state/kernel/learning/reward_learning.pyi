from router_state.kernel.given import Vector
from router_state.kernel.learning.detector import Detector, Shift
from router_state.kernel.learning.regression import Regression
from router_state.kernel.learning.shared_prior import SharedPrior

def learn_alone(
    one: Regression, x: Vector, reward: float, t: int, gamma: float, ridge: float
) -> float: ...
def learn_reward(
    one: Regression,
    prior: SharedPrior,
    detector: Detector,
    x: Vector,
    reward: float,
    t: int,
    gamma: float,
    now: float,
) -> Shift | None: ...
