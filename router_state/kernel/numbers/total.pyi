class Total:
    usd: float
    rest: float
    def add(self, usd: float) -> None: ...
