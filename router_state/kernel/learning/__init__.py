"""Learn from rewards and bills: regressions with forgetting, the prior that they share, and a
detector of changes."""
