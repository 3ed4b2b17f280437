"""The numbers of a Gaussian linear regression: the inverse of its design matrix, its coefficients.

V = A⁻¹ is all that predictions need of the design matrix. Statistics decay geometrically. Instead
of multiplying a matrix at every observation, a regression carries one scalar `decay`: the product
of its decays since its prior was last whole. A⁻¹ = V/decay, and θ = A⁻¹b does not depend on
`decay`. The remaining prior is prior·decay.
"""

from functools import lru_cache
import numpy as np

from ground.refusing import DamagedState
from router_state.kernel.numbers.linear cimport (
    dot, factor, invert, product, take_off_rows, times,
)
from router_state.kernel.numbers.words cimport (
    Flag, Floats, Index, Real, behind, known, of_block, scratch, view,
)

cdef class Gaussian:
    """The numbers of one regression.

    Attributes:
        piece: name of the piece of state that holds the regression; the journal's `pieces` names
            the changed pieces.
        d: dimensions.
        decay: product of decays in (0, 1], see the module.
        forgotten: −Σ ln of all decays so far: what is left of an observation is exp(forgotten then
            − forgotten now).
        moved: sum of all shifts so far of what every context is expected to give; not kept.
        last_update: the router's clock at the last observation.
        pending: rows v of which vvᵀ is still to be taken off V.
        array: the lower triangle of V, row by row; θ; and room for 16 pending rows where d is
            large. `values` is the kernel's view of it.
        at: position in `array` at which θ begins.
        shared: whether other regressions use the same array, which must not be written then.
    """

    def __init__(self, str piece, d, journal, *, now_t=0):
        if d < 1:
            raise ValueError(f"a regression has no {d} dimensions")
        self.piece, self.d, self.journal, self.pieces = piece, d, journal, journal.pieces
        self.decay, self.forgotten, self.pending, self.last_update = 1.0, 0.0, 0, now_t
        self.moved = 0.0
        self.at = d * (d + 1) // 2
        self.array = np.zeros(self.at + d + (TAILS if d >= WIDE else 0) * d)
        self.values, self.shared = view(self.array), False

    @property
    def theta(self):
        """The coefficients θ, shape (d,), a view."""
        return self.array[self.at : self.at + self.d]

    @property
    def kept(self):
        """The part of the array that a snapshot keeps, a view."""
        return self.array[: self.at + (1 + self.pending) * self.d]

    def start(self, A, b, *, Flag alone=False):
        """Start from statistics A (d, d), a prior in it, and b (d,).

        Args:
            alone: whether no other regression starts from these.
        """
        self.own()
        d: Index = self.d
        A, b = np.asarray(A, np.float64), np.asarray(b, np.float64)
        if A.shape != (d, d) or b.shape != (d,):
            raise ValueError(f"statistics of {A.shape} and {b.shape} are not of {d} dimensions")
        held = scratch(2 * d)
        space: Floats = of_block(held)
        triangle = A[_lower(d)]
        self.array[: self.at] = triangle
        response: Floats = known(np.ascontiguousarray(b), d)
        for i in range(d):
            space[d + i] = response[i]
        invert(self.values, 0, d, space)
        times(self.values, 0, space, d, self.values, self.at, d)
        self.decay, self.pending = 1.0, 0
        if not alone:
            self.share()
        self.changed()

    def know_only(self, Real ridge, Real bias_ridge, mean):
        """Take over the shared prior: V is the inverse of its ridges, and θ its mean (d,)."""
        self.own()
        V, d, place = self.values, self.d, 0
        shared: Floats = known(mean, d)
        for i in range(d):
            for j in range(i):
                V[place + j] = 0.0
            V[place + i] = 1.0 / (bias_ridge if i == d - 1 else ridge)
            V[self.at + i] = shared[i]
            place += i + 1
        self.decay, self.pending = 1.0, 0
        self.share()
        self.changed()

    cpdef void own(self):
        """Copy a shared array before writing."""
        if self.shared:
            self.array = self.array.copy()
            self.values, self.shared = view(self.array), False

    cdef void share(self):
        """Share one array with all regressions of equal numbers: most regressions of many routers
        have learned nothing yet."""
        if self.d < WIDE:
            self.array = alike(self.kept.tobytes(), len(self.array))
            self.values, self.shared = view(self.array), True

    cpdef void changed(self):
        """Report that the regression's piece must be written."""
        self.pieces.add(self.piece)

    def predict(self, x):
        """Return θᵀx."""
        return dot(self.values, self.at, known(x, self.d), 0, self.d)

    cdef void _repair(self):
        """Make V positive definite again."""
        self.own()
        self.flush()
        factor(self.values, 0, self.d)
        product(self.values, 0, self.d)

    cpdef void flush(self):
        """Subtract the pending rows from V."""
        if not self.pending:
            return
        V, d = self.values, self.d
        take_off_rows(behind(V, self.at + d), self.pending, V, d)
        self.pending = 0
        self.changed()

    def V(self):
        """Return V with the pending rows subtracted, shape (d, d)."""
        d: Index = self.d
        full, lower = np.empty((d, d)), _lower(d)
        full[lower] = full.T[lower] = self.array[: self.at]
        rows = self.array[self.at + d : self.at + (1 + self.pending) * d].reshape(-1, d)
        return full - rows.T @ rows

    def A_inv(self):
        """Return the inverse of the decayed design matrix, shape (d, d)."""
        return self.V() / self.decay

    def A(self):
        """Return the decayed design matrix, shape (d, d)."""
        A = np.linalg.inv(self.A_inv())
        return (A + A.T) / 2.0

    def b(self):
        """Return the decayed response, shape (d,)."""
        return self.A() @ self.theta

    def restore(self, kept):
        """Restore from `kept`. Raises DamagedState."""
        size, d = self.at + self.d, self.d
        rows, rest = divmod(len(kept) - size, d)
        if rest or not 0 <= rows <= (TAILS - 1 if d >= WIDE else 0):
            raise DamagedState(f"{len(kept)} numbers are not a regression of {d} dimensions")
        self.own()
        self.array[: len(kept)] = kept
        self.pending = rows
        self.share()


@lru_cache(maxsize=8)
def _lower(Index d):
    """Return the rows and columns of a lower triangle: to compute them takes longer than their
    use."""
    return np.tril_indices(d)


@lru_cache
def alike(bytes kept, size):
    """Return an array that begins with these numbers: the same array for the same numbers."""
    found = np.zeros(size)
    found[: len(kept) // 8] = np.frombuffer(kept)
    return found


# For Python, which does not see numbers of C.
globals().update(WIDE=WIDE, TAILS=TAILS)
