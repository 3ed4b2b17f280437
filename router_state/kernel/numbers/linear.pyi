EPSILON: float
