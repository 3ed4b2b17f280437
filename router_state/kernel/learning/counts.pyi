MEMORY: float
GUESSED: float
BELIEVED: float
