"""How a model is chosen: the two policies `paper` and `live`, and what both may choose from."""
