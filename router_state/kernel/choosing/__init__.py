"""The arms as decisions see them: predictions, posterior samples, scores, propensities."""
