from collections.abc import Sequence
from typing import Any

from router_state.kernel.given import Journal, Vector
from router_state.kernel.learning.regression import Regression

LEVEL: float
FEATURES: float
LATELY: float
EVERY: int
SAMPLE_PIECE: str

class PosteriorSample:
    journal: Journal
    d: int
    K: int
    decided: int
    left: int
    array: Any
    def __init__(self, d: int, journal: Journal) -> None: ...
    def resize(self, K: int) -> None: ...
    def serve(self, x: Vector) -> bool: ...
    def measure(self, regressions: Sequence[Regression], *, noise: float, free: bool) -> None: ...
    def deviations(self) -> list[float]: ...
    def pack(self) -> bytes: ...
    def unpack(self, data: bytes, K: int) -> None: ...
