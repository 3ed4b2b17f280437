"""Check the context of a request."""

from libc.math cimport isfinite, sqrt

from ground.refusing import NonFiniteInput, WrongContext
from router_state.kernel.learning.regression cimport Regression, room_of_products
from router_state.kernel.numbers.linear cimport dot
from router_state.kernel.numbers.words cimport Floats, Index, Real, known, of_block

cdef Real MAX_NORM = 1e4
"""Largest norm of a context: an embedding has norm 1, a whitened entry is about 1. In contexts of
a larger norm, single precision can't tell prompts apart.
"""


cdef void require_dimensions(Regression one, Index d):
    """Raise ValueError where a regression has other dimensions."""
    if one.d != d:
        raise ValueError(f"a regression of {one.d} dimensions is not of {d}")


def check(x, d):
    """Check a context, shape (d,), last entry the bias 1.0.

    Raises:
        WrongContext: another shape or bias, or features out of all proportion.
        NonFiniteInput: a NaN or an infinity.
    """
    checked(x, d)


cdef checked(x, Index d):
    """Return a copy of a context, with room for its products, see `check`."""
    context: Floats
    try:
        context = known(x, d)
    except ValueError:
        if x.shape == (d,):
            raise
        raise WrongContext(
            f"the context has {x.shape[0] if x.ndim == 1 else x.shape} entries; the router has "
            f"{d} dimensions"
        ) from None
    if context[d - 1] != 1.0:
        raise WrongContext("the last entry of a context is the bias, 1.0")
    held = room_of_products(d)
    space: Floats = of_block(held)
    for i in range(d):
        space[i] = context[i]
    norm: Real = sqrt(dot(space, 0, space, 0, d))
    if not norm <= MAX_NORM:
        for i in range(d):
            if not isfinite(space[i]):
                raise NonFiniteInput("the context holds a NaN or an infinity")
        raise WrongContext(
            f"the features of the context have a norm of {norm:.3g}; {MAX_NORM:,.0f} is the "
            "limit"
        )
    return held


# For Python, which does not see numbers of C.
globals().update(MAX_NORM=MAX_NORM)
