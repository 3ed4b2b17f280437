"""Choose a model: the policies `paper` and `live`, and the eligibility of arms for both."""
