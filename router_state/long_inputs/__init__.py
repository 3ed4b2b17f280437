"""Long inputs: calls whose input is so long that the provider has other prices for all of it."""
