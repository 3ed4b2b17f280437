from typing import Any

from router_state.kernel.given import Guess, Journal, Vector

GROWTH: float

class SharedPrior:
    name: str
    d: int
    guess: Guess
    pieces: set[str]
    mean: Any
    center: Any
    ridge: float
    bias_ridge: float
    shared_ridge: float
    noise: float
    fourth: float
    noise_count: float
    seen: int
    due_at: int
    def __init__(self, name: str, d: int, guess: Guess, journal: Journal) -> None: ...
    @property
    def ridges(self) -> Vector: ...
    @property
    def deviation(self) -> float: ...
    @property
    def due(self) -> bool: ...
    @property
    def overdue(self) -> bool: ...
    def observe(self, residual: float, variance: float) -> None: ...
    def concluded(self) -> None: ...
