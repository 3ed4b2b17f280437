from typing import Any

from router_state.kernel.learning.regression import Regression
from router_state.kernel.learning.shared_prior import SharedPrior

class Evidence:
    prior: SharedPrior
    regressions: list[Regression]
    arrays: list[Any]
    square: float
    N: int
    d: int
    T: int
    def __init__(self, prior: SharedPrior, regressions: list[Regression]) -> None: ...
    def gather(self, left: list[float]) -> None: ...
    def shift(self, shifts: list[float]) -> None: ...
    def rescale(self) -> None: ...
    def conclude(self) -> None: ...
