MOST_FACTOR: float
REMEMBERED: float

class PlannedSpend:
    charged: float
    expected: float
    mean: float
    debt: float
    slot: int
    def __init__(
        self,
        charged: float = 0.0,
        expected: float = 0.0,
        mean: float = 0.0,
        debt: float = 0.0,
        slot: int = 0,
    ) -> None: ...
    @property
    def numbers(self) -> tuple[float, float, float, float, int]: ...
    def share(self) -> float: ...
    def count(self, debt: float, slot: int) -> None: ...
    def solved(self, mean: float, debt: float, slot: int) -> None: ...
    @property
    def is_sound(self) -> bool: ...
