"""Predict what a call will cost: a zero-inflated lognormal around its list price, learned from
bills.

The logarithm of a bill ÷ list price is a linear regression on the context. Input tokens whose
number is known before the call are priced separately.
"""
