from router_state.kernel.given import Vector

MAX_NORM: float

def check(x: Vector, d: int) -> None: ...
