"""Check the context of a request."""

from __future__ import annotations

from math import isfinite, sqrt
from typing import TYPE_CHECKING

from router_state.config import MAX_NORM
from router_state.errors import NonFiniteInput, WrongContext
from router_state.kernel.learning.regression import Regression, room_of_products
from router_state.kernel.numbers.linear import dot
from router_state.kernel.numbers.words import Floats, Index, Real, cfunc, known

if TYPE_CHECKING:
    from router_state.config import Vector

LARGEST_NORM: Real = MAX_NORM


@cfunc
def require_dimensions(one: Regression, d: Index) -> None:
    """Raise ValueError where a regression has other dimensions."""
    if one.d != d:
        raise ValueError(f"a regression of {one.d} dimensions is not of {d}")


def check(x: Vector, d: int) -> None:
    """Check a context, shape (d,), last entry the bias 1.0.

    Raises:
        WrongContext: another shape or bias, or features out of all proportion.
        NonFiniteInput: a NaN or an infinity.
    """
    checked(x, d)


@cfunc
def checked(x: Vector, d: Index) -> Floats:
    """Copy a context into the kernel's room, see `check`."""
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
    space: Floats = room_of_products(d)
    for i in range(d):
        space[i] = context[i]
    norm: Real = sqrt(dot(space, 0, space, 0, d))
    if not norm <= LARGEST_NORM:
        for i in range(d):
            if not isfinite(space[i]):
                raise NonFiniteInput("the context holds a NaN or an infinity")
        raise WrongContext(
            f"the features of the context have a norm of {norm:.3g}; {LARGEST_NORM:,.0f} is the "
            "limit"
        )
    return space
