"""Choose a model: the two policies `paper` and `live`, and what both may choose from."""
