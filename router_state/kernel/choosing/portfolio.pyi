from router_state.kernel.choosing.arm import Arm
from router_state.kernel.choosing.candidates import Candidates
from router_state.kernel.choosing.sample import PosteriorSample
from router_state.kernel.costs.cost_model import CostModel
from router_state.kernel.given import Journal, Vector
from router_state.kernel.learning.detector import Shift
from router_state.kernel.learning.regression import Regression
from router_state.kernel.learning.shared_prior import SharedPrior
from router_state.kernel.numbers.randomness import Chance

class Portfolio:
    d: int
    all: list[Arm]
    names: tuple[str, ...]
    row: dict[str, int]
    rewards: SharedPrior
    bills: SharedPrior
    sample: PosteriorSample
    regressions: list[Regression]
    billed: list[Regression]
    priced: list[Regression]
    costs: list[CostModel]
    open: list[str | None] | None
    highest_per_1k: float
    onboarding: bool
    suspect: bool
    unproven: bool
    def __init__(self, journal: Journal, rewards: SharedPrior, bills: SharedPrior) -> None: ...
    def find(self, name: str) -> Arm | None: ...
    def derive(self) -> None: ...
    def played(self, k: int, t: int, pulled: bool) -> None: ...
    def due(self) -> bool: ...
    def serve(self, x: Vector, free: bool) -> None: ...
    def estimate_rewards(self, t: int, gamma: float) -> None: ...
    def learn(
        self, arm: Arm, x: Vector, reward: float, t: int, gamma: float, now: float
    ) -> Shift | None: ...
    def look(self, x: Vector, tokens: float) -> Candidates: ...
    def look_at_means(self, x: Vector) -> Candidates: ...
    def draw(self, seen: Candidates, per_dollar: float, chance: Chance) -> None: ...
    def hope(
        self,
        seen: Candidates,
        per_log_price: float,
        t: int,
        alpha: float,
        gamma: float,
        least: float,
    ) -> None: ...
    def hopeless(self, seen: Candidates, k: int, budget: float, bills: float) -> list[int]: ...
