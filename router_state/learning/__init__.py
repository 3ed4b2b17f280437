"""Learn: a linear regression with forgetting per model, and one prior for all models.

Rewards and the logarithms of bills are learned by the same class, `regression.Regression`. The
prior's means and ridges are estimated from all models' evidence (empirical Bayes: Lindley and Smith
1972, MacKay 1992). `sample` draws from the posterior for the choice (Thompson 1933).
"""
