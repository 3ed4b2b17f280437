from collections.abc import Collection, Mapping
from typing import Any

from router_state.kernel.pacing.dual import Options

class Looks:
    K: int
    L: int
    array: Any
    def __init__(self, L: int, K: int) -> None: ...
    def put(self, look: int, k: int, right: float, wrong: float) -> None: ...
    def know(self, k: int, known: bool) -> None: ...
    def charge(self, look: int, usd: float, alike: float) -> None: ...

class PlannedOptions(Options):
    looks: Looks
    def __init__(
        self,
        single: Options,
        looks: Looks,
        shut: Mapping[int, Collection[int]],
        rewards: Options | None = None,
        per_dollar: float = 0.0,
    ) -> None: ...
