"""One Gaussian linear regression with forgetting, for rewards and for logarithms of bills."""

from libc.math cimport isfinite, sqrt

from ground.refusing import NonFiniteInput
from router_state.kernel.learning.gaussian cimport Gaussian, TAILS, WIDE
from router_state.kernel.numbers.elementary cimport log, power
from router_state.kernel.numbers.linear cimport (
    EPSILON, add, dot, invert, products, quadratic, take_off, times,
)
from router_state.kernel.numbers.words cimport Floats, Index, Real, known, of_block, scratch

RIDGE_FLOOR = 0.1
"""Remaining share of the prior below which it is restored (ParetoBandit Eq. 7–8)."""


cdef class Regression(Gaussian):
    """The regression of one model's rewards, or of the logarithms of its bills, on contexts."""

    cpdef void forget(self, Index t, Real gamma, ridge=None):
        """Decay by γ^(t − last_update), the exponent capped at 1,000 steps (ParetoBandit Eq. 7–8).

        With a `ridge`, the ridge is restored once less than a tenth of it is left: O(1), and O(d³)
        once in ln(10)/−ln(γ) observations. Without a `ridge`, the owner of the prior restores the
        prior.
        """
        left: Real = self.left_at(t, gamma)
        steps: Index = t - self.last_update
        self.last_update = t
        self.changed()
        if gamma >= 1.0 or steps <= 0:
            return
        self.forgotten -= min(steps, MAX_DECAY_STEPS) * log(gamma)
        if left >= RIDGE_FLOOR or ridge is None:
            self.decay = left
        else:
            self._restore_ridge(left, ridge)

    cpdef Real left_at(self, Index t, Real gamma):
        """Return the `decay` at clock t, as if no ridge was restored until then."""
        steps: Index = t - self.last_update
        if gamma >= 1.0 or steps <= 0:
            return self.decay
        return self.decay * power(gamma, min(steps, MAX_DECAY_STEPS))

    def fade(self, Real share):
        """Keep this share of everything learned."""
        self.forgotten -= log(share)
        self.decay *= share
        self.changed()

    cpdef void shift(self, Real offset):
        """Add an offset to the expectation of every context."""
        self.own()
        self.values[self.at + self.d - 1] += offset
        self.changed()

    cdef void _restore_ridge(self, Real decay, Real ridge):
        """Fold the decay into the statistics and restore the full ridge, which pulls towards 0."""
        self.own()
        self.flush()
        V, d, added = self.values, self.d, (1.0 - decay) * ridge
        held = scratch(2 * d)
        space: Floats = of_block(held)
        invert(V, 0, d, space)
        place: Index = 0
        for i in range(d):
            for j in range(i + 1):
                V[place + j] *= decay
            V[place + i] += added
            place += i + 1
        invert(V, 0, d, space)
        # b = A·θ need not be formed: (A + c·I)⁻¹b = θ − c·(A + c·I)⁻¹θ.
        times(V, 0, V, self.at, space, d, d)
        add(-added, space, d, V, self.at, d)
        self.decay = 1.0

    def look(self, x):
        """Return θᵀx and xᵀVx for a context (d,), not decayed.

        Raises:
            NonFiniteInput: the context or what was learned is not finite.
        """
        held = scratch(self.d)
        return self.see(x, of_block(held))

    cdef (Real, Real) see(self, x, Floats u):
        """Return what `look` returns, and write Vx into u (d numbers)."""
        d: Index = self.d
        given: Floats = known(x, d)
        # A row of a matrix may begin anywhere; a row that begins with a line of the cache is read
        # faster.
        held = scratch(d)
        context: Floats = of_block(held)
        for i in range(d):
            context[i] = given[i]
        spread: Real = self._product(context, u)
        mean: Real = dot(self.values, self.at, context, 0, d)
        if not isfinite(spread + mean):
            raise NonFiniteInput("a context or what was learned is not finite")
        if spread < 0.0:  # rounding has left V indefinite
            self._repair()
            spread = self._product(context, u)
        return mean, spread

    cdef Real _product(self, Floats x, Floats u):
        """Write Vx into u; return xᵀVx. Pending rows are included."""
        V: Floats = self.values
        d: Index = self.d
        times(V, 0, x, 0, u, 0, d)
        row: Index = self.at + d
        for _ in range(self.pending):
            add(-dot(V, row, x, 0, d), V, row, u, 0, d)
            row += d
        return dot(u, 0, x, 0, d)

    cdef void learn(self, Floats u, Real residual, Real spread):
        """Add an observation: A += xxᵀ, b += y·x, in O(d²).

        Li et al. 2010, Algorithm 1 (arXiv:1003.0146), by Sherman–Morrison: with u = Vx and s =
        decay + xᵀu, V −= uuᵀ/s and θ += u·residual/s. In undecayed statistics the observation
        weighs 1/decay.

        Args:
            u: Vx, and spread: xᵀVx, as `see` left them.
            residual: what was observed less what was predicted.
        """
        self.own()
        V: Floats = self.values
        d: Index = self.d
        s: Real = self.decay + spread
        self.changed()
        add(residual / s, u, 0, V, self.at, d)
        if d < WIDE:
            take_off(1.0 / s, u, 0, V, 0, d)
            return
        row: Index = self.at + (1 + self.pending) * d
        scale: Real = 1.0 / sqrt(s)
        for i in range(d):
            V[row + i] = u[i] * scale
        self.pending += 1
        if self.pending == TAILS:
            self.flush()

    cdef void move_along(self, Floats u, Real step):
        """Add a multiple of u = Vx to θ, which moves predictions of contexts like x."""
        self.own()
        add(step, u, 0, self.values, self.at, self.d)
        self.changed()

    def observe(self, x, Real value):
        """Add one observation; return its residual and xᵀA⁻¹x, both from before.

        Raises:
            NonFiniteInput: `x` or `value` holds a NaN or an infinity; nothing has changed.
        """
        if not isfinite(value):
            raise NonFiniteInput("what was observed is not finite")
        held = scratch(self.d)
        u: Floats = of_block(held)
        mean, spread = self.see(x, u)
        residual: Real = value - mean
        self.learn(u, residual, spread)
        return residual, spread / self.decay

    def revise(self, x, *, Real difference, Real discount):
        """Move b by the difference between a revised value and the learned one; A stays.

        Args:
            x: context, shape (d,).
            difference: new value − old value.
            discount: what is left of the original observation, in [0, 1].

        Raises:
            NonFiniteInput: a value is not finite; nothing has changed.
        """
        # In undecayed statistics an observation weighs 1/decay.
        step: Real = difference * discount / self.decay
        if not isfinite(step):
            raise NonFiniteInput("a reward is not finite")
        held = scratch(self.d)
        self.see(x, of_block(held))
        self.move_along(of_block(held), step)

    def withdraw(self, x, *, Real value, Real discount):
        """Undo an observation: A −= w·xxᵀ, b −= w·y·x, with what is left of it, in O(d²).

        By Sherman–Morrison, with u = Vx and s = xᵀu: V += uuᵀ·w/(1 − w·s), and θ −=
        u·(y − θᵀx)·w/(1 − w·s).

        Args:
            x: context, shape (d,).
            value: what was observed, as it was last revised.
            discount: what is left of the observation, in [0, 1].

        Raises:
            NonFiniteInput: a value is not finite; nothing has changed.
        """
        # In undecayed statistics an observation weighs 1/decay.
        weight: Real = discount / self.decay
        if not isfinite(weight * value):
            raise NonFiniteInput("a reward is not finite")
        self.own()
        self.flush()
        held = scratch(self.d)
        u: Floats = of_block(held)
        mean, spread = self.see(x, u)
        # Without the observation V is positive definite, so w·s is below 1, but for rounding.
        step: Real = weight / max(1.0 - weight * spread, EPSILON)
        add(-step * (value - mean), u, 0, self.values, self.at, self.d)
        take_off(-step, u, 0, self.values, 0, self.d)
        self.changed()


cdef room_of_products(Index d):
    """Return an empty array for a context and, where that is faster, for the products of its
    entries.
    """
    return scratch(d + (d * (d + 1) // 2 if d < WIDE else 0))


cdef void multiply(Floats x, Index d) noexcept:
    """Write the products of a context's entries behind the context, once for all regressions; see
    `spread_at`.
    """
    if d < WIDE:
        products(x, d)


cdef Real spread_at(Regression one, Floats x) noexcept:
    """Return xᵀVx for a context followed by its products, see `multiply`."""
    d: Index = one.d
    if d < WIDE:
        return dot(one.values, 0, x, d, one.at)
    spread: Real = quadratic(one.values, 0, x, 0, d)
    row: Index = one.at + d
    for _ in range(one.pending):
        tail: Real = dot(one.values, row, x, 0, d)
        spread -= tail * tail
        row += d
    return spread


# For Python, which does not see numbers of C.
globals().update(MAX_DECAY_STEPS=MAX_DECAY_STEPS, RIDGE_FLOOR=RIDGE_FLOOR)
