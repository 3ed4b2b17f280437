from typing import Any

from router_state.kernel.choosing.portfolio import Portfolio
from router_state.kernel.given import Journal, Matrix, Vector
from router_state.kernel.pacing.dual import Options

WINDOW: int
BLOCK: int
CLOSED: float
PRICE_SPREAD: float
PRICES: Vector
PRICE_OF: tuple[float, ...]
WAIT_PRICES: Vector
PIECES: tuple[str, ...]

def lots(K: int) -> Vector: ...

class Window:
    journal: Journal
    d: int
    contexts: Any
    limited: dict[int, frozenset[str]]
    size: int
    next: int
    def __init__(self, d: int, journal: Journal) -> None: ...
    @property
    def pieces(self) -> tuple[str, ...]: ...
    def rows(self) -> Any: ...
    def push(self, x: Vector, limited_to: frozenset[str] | None) -> int: ...
    def reserve(self, slots: int) -> None: ...
    def options(self, arms: Portfolio, tokens: Vector, *, drawn: bool = True) -> Options: ...
    def close(self, arms: Portfolio, scores: Matrix, costs: Matrix) -> None: ...
    def pack(self, block: int) -> bytes: ...
    def unpack(self, block: int, data: bytes) -> None: ...
