"""The context of a request without text."""

from __future__ import annotations

import numpy as np

from router_state.config import Vector


def mean_context(d: int) -> Vector:
    """Return the context that stands for every prompt, shape (d,): zeros, and the bias 1.0.

    The mean of features is 0 if they are centred principal components, over the prompts that they
    were fitted to. For other features this context is the origin: only the bias of the request is
    known.
    """
    x = np.zeros(d)
    x[-1] = 1.0
    return x
