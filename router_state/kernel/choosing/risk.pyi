from collections.abc import Sequence

from router_state.kernel.choosing.candidates import Candidates
from router_state.kernel.costs.cost_model import CostModel

def within_risk(
    models: Sequence[CostModel],
    excluded: list[str | None],
    seen: Candidates,
    most: float,
    each: float,
) -> list[str | None]: ...
