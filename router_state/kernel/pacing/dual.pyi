from typing import Any

from router_state.kernel.given import Matrix

FAR: float

class Options:
    array: Any
    n: int
    K: int
    total: float
    dollars: float
    def __init__(self, n: int, K: int) -> None: ...
    @classmethod
    def of(cls, scores: Matrix, costs: Matrix) -> Options: ...
    def arrays(self) -> tuple[Matrix, Matrix]: ...
    def cheapest(self) -> float: ...
    def price(self, *, target: float, start: float = 0.0) -> float | None: ...
