"""The cost of a call, as its predictive distribution: often free, else lognormal."""
