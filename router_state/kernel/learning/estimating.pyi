from collections.abc import Sequence

from router_state.kernel.given import Vector
from router_state.kernel.learning.regression import Regression
from router_state.kernel.learning.shared_prior import SharedPrior

def estimate(
    prior: SharedPrior,
    regressions: Sequence[Regression],
    *,
    left: Sequence[float] | None = None,
    rescaled: bool = True,
) -> None: ...
def conclude_shifted(
    prior: SharedPrior, regressions: Sequence[Regression], shifts: Sequence[float]
) -> None: ...
def conclude_with(
    prior: SharedPrior, regressions: Sequence[Regression], sums: Sequence[Vector | None]
) -> None: ...
