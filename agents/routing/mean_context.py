"""The context of a request without text."""

from __future__ import annotations

import numpy as np

from router_state.config import Vector


def mean_context(d: int) -> Vector:
    """Return the context that stands for every prompt, shape (d,): zeros, and the bias 1.0.

    It assumes contexts whose features have mean 0 over the router's prompts, as centred principal
    components have over those that they were fitted to. Elsewhere it is the origin: only the bias
    is known of the request.
    """
    x = np.zeros(d)
    x[-1] = 1.0
    return x
