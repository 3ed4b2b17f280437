"""Detect changes of models: a detector on standardised residuals, and the response of rewards and
bills.

The detector is a CUSUM (Page 1954) that tells prompts of a new kind from a model that changed
(`kernel/learning/detector.pyx`). `reward_change` and `bill_change` apply it.
"""
