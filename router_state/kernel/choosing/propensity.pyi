from collections.abc import Sequence

LEAST_PROPENSITY: float

def wins(k: int, means: Sequence[float], variances: Sequence[float]) -> float: ...
