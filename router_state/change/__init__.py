"""Find changes: a detector on standardised residuals, and what an alarm does to rewards and bills.

`detector` is a CUSUM (Page 1954), `novelty` tells prompts of a new kind from a model that changed,
`rewards` and `bills` apply them.
"""
