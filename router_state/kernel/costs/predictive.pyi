from typing import NamedTuple

MOST_LOG_VARIANCE: float
Z90: float

def lognormal_mean(variance: float) -> float: ...
def relative_variance(variance: float) -> float: ...

class Predictive(NamedTuple):
    mean: float
    level: float
    calibration: float
    noise: float
    paid: float
    @property
    def deviation(self) -> float: ...
    def chance_below(self, usd: float) -> float: ...
