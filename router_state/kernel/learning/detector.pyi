from typing import NamedTuple

CUT_AT: float
LIMIT: float

class Shift(NamedTuple):
    size: float
    evidence: float
    residuals: int
    since: float
    novel: bool

class Side:
    evidence: float
    count: int
    total: float
    since: float
    leverage: float
    def __init__(self) -> None: ...

class Detector:
    count: float
    sigma: float
    leverage: float
    spread: float
    up: Side
    down: Side
    def __init__(self) -> None: ...
    def observe(
        self, residual: float, deviation: float, leverage: float, now: float
    ) -> Shift | None: ...
