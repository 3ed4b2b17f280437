"""The evidence of all models, and the shared prior, means and scales, that follows from it.

θ_a = θ_0 + δ_a, δ_a ~ N(0, σ²R⁻¹), θ_0 ~ N(μ, σ²R_0⁻¹), R and R_0 diagonal. Given θ_0 the
regressions are independent, so nothing of size (Nd)² is needed: each keeps V_a = (A_a + R)⁻¹, and
θ_0 follows from sums of d × d matrices (Lindley and Smith 1972).

All quantities are relative to a point m, the shared coefficients of the last estimate: y_a = b_a −
A_a·m is the response beyond m. B_a = I − V_a·R = V_a·A_a says how far data determine a regression.
Then

    θ_0 = m + e,   (R·ΣB_a + R_0)·e = R·ΣV_a·y_a + R_0·(μ − m),   θ_a = m + V_a·(y_a + R·e).
"""

import numpy as np

from router_state.kernel.learning.regression cimport Regression
from router_state.kernel.learning.shared_prior cimport SharedPrior, rescale
from router_state.kernel.numbers.linear cimport EPSILON, add, dot, invert, quadratic, times
from router_state.kernel.numbers.words cimport Floats, Index, Real, behind, view

cdef class Evidence:
    """The evidence of N regressions of dimension d.

    Attributes:
        A, y: all A_a, as lower triangles, and all y_a, each in one array.
        R: the diagonal of R, behind all y_a.
        work: room for two triangles, and for columns.
        m: the shared coefficients of the last estimate, shape (d,).
        square: mean square of a feature.
        N, d, T: number of regressions, number of dimensions, and size of a triangle.
    """

    def __init__(self, SharedPrior prior, list regressions):
        d: Index = prior.d
        self.prior, self.regressions, self.N, self.d = prior, regressions, len(regressions), d
        self.T = d * (d + 1) // 2
        A, y = np.empty(self.N * self.T), np.empty((self.N + 1) * d)
        work, m = np.zeros(2 * self.T + 8 * d), np.array(prior.mean)
        self.arrays = [A, y, work, m]
        self.A, self.y, self.work, self.m = view(A), view(y), view(work), view(m)
        self.R = behind(self.y, self.N * d)

    def gather(self, list left):
        """Compute A_a = V_a⁻¹ − R and y_a = V_a⁻¹·(θ_a − m) of every regression, both decayed."""
        T, d, A, y, R = self.T, self.d, self.A, self.y, self.R
        one: Regression
        self.take_ridges()
        column: Index = 2 * T
        for a in range(self.N):
            one = self.regressions[a]
            one.own()
            one.flush()
            share: Real = left[a]
            for n in range(T):
                A[a * T + n] = one.values[n]
            invert(A, a * T, d, behind(self.work, column))
            for i in range(d):
                self.work[column + i] = one.values[T + i] - self.m[i]
            times(A, a * T, self.work, column, y, a * d, d)
            for i in range(d):
                A[a * T + i * (i + 1) // 2 + i] -= R[i]
                y[a * d + i] *= share
            for n in range(a * T, (a + 1) * T):
                A[n] *= share
        self.square = self.spread()

    cdef void take_ridges(self):
        """Copy R from the prior."""
        for i in range(self.d - 1):
            self.R[i] = self.prior.ridge
        self.R[self.d - 1] = self.prior.bias_ridge

    def shift(self, list shifts):
        """Shift every observation of each regression a by the a-th offset."""
        # The last feature is 1 for every context: the last row of A is Σx.
        for a in range(self.N):
            add(shifts[a], self.A, (a + 1) * self.T - self.d, self.y, a * self.d, self.d)

    cdef void information(self, Index total, Index column):
        """Turn ΣV_a, at `total`, into (N·R − R·ΣV_a·R + R_0)⁻¹."""
        work, d, R, place = self.work, self.d, self.R, total
        bias: Real = self.prior.noise / (self.prior.guess.deviation * self.prior.guess.deviation)
        for i in range(d):
            for j in range(i + 1):
                work[place + j] *= -R[i] * R[j]
            own: Real = bias if i == d - 1 else self.prior.shared_ridge
            work[place + i] += self.N * R[i] + own
            place += i + 1
        invert(work, total, d, behind(work, column))

    cdef void toward(self, Index said):
        """Turn ΣV_a·y_a, at `said`, into R·ΣV_a·y_a + R_0·(μ − m)."""
        work, d = self.work, self.d
        for i in range(d - 1):
            work[said + i] = self.prior.ridge * work[said + i] - self.prior.shared_ridge * self.m[i]
        bias: Real = self.prior.noise / (self.prior.guess.deviation * self.prior.guess.deviation)
        mu: Real = self.prior.guess.mean
        work[said + d - 1] = self.prior.bias_ridge * work[said + d - 1] + bias * (
            mu - self.m[d - 1]
        )

    cdef Real spread(self):
        """Return the mean square of a feature over all observations (1 before the first), and
        store the mean context.
        """
        squares, count, d, T = 0.0, 0.0, self.d, self.T
        for a in range(self.N):
            for i in range(d - 1):
                squares += self.A[a * T + i * (i + 1) // 2 + i]
            count += self.A[(a + 1) * T - 1]
        features: Real = squares / max(d - 1, 1)
        if count < EPSILON or features <= EPSILON * count:
            return 1.0
        mean = np.zeros(d)
        center: Floats = view(mean)
        for a in range(self.N):
            # The last feature is 1 for every context: the last row of A is Σx.
            add(1.0 / count, self.A, (a + 1) * T - d, center, 0, d)
        center[d - 1] = 1.0
        self.prior.center = mean
        return features / count

    def rescale(self):
        """Move the scales by one step, from the sizes of coefficients at the scales with which the
        regressions were estimated, as if nothing was forgotten since.
        """
        d, T, work, R, prior = self.d, self.T, self.work, self.R, self.prior
        total, said, shift, determined, squares, row, column = (
            0,
            2 * T,
            2 * T + d,
            2 * T + 2 * d,
            2 * T + 3 * d,
            2 * T + 4 * d,
            2 * T + 5 * d,
        )
        one: Regression
        for n in range(2 * T + 8 * d):
            work[n] = 0.0
        for a in range(self.N):
            one = self.regressions[a]
            add(1.0, one.values, 0, work, total, T)
            for i in range(d):
                work[said + i] += one.values[T + i] - self.m[i]
        self.toward(said)
        self.information(total, column)
        times(work, total, work, said, work, shift, d)
        for a in range(self.N):
            one = self.regressions[a]
            V: Floats = one.values
            for i in range(d):
                # The i-th row of B_a.
                place: Index = i * (i + 1) // 2
                for j in range(d):
                    work[row + j] = 0.0 - V[place] * R[j]
                    place += 1 if j < i else j + 1
                work[row + i] += 1.0
                # The variance of δ_a = θ_a − θ_0 = V_a·y_a − B_a·e includes that of θ_0.
                doubt: Real = quadratic(work, total, work, row, d) * R[i]
                # 1 for a coefficient that data determine, 0 for one that only the prior determines.
                work[determined + i] += max(work[row + i] - doubt, 0.0)
                size: Real = V[T + i] - self.m[i] - dot(work, row, work, shift, d)
                work[squares + i] += size * size
        shared: Real = 0.0
        for i in range(d - 1):
            shared += max(1.0 - prior.shared_ridge * work[total + i * (i + 1) // 2 + i], 0.0)
        for i in range(d):
            work[shift + i] += self.m[i]
        rescale(
            prior,
            behind(work, determined),
            behind(work, squares),
            behind(work, shift),
            shared,
            self.square,
        )

    def conclude(self):
        """Compute the prior's means and every regression from A and y at the present scales."""
        d, T, work, A, y, R = self.d, self.T, self.work, self.A, self.y, self.R
        self.take_ridges()
        total, said, shift, column = 0, 2 * T, 2 * T + d, 2 * T + 2 * d
        one: Regression
        for n in range(2 * T + 8 * d):
            work[n] = 0.0
        for a in range(self.N):
            one = self.regressions[a]
            V: Floats = one.values
            for n in range(T):
                V[n] = A[a * T + n]
            for i in range(d):
                V[i * (i + 1) // 2 + i] += R[i]
            invert(V, 0, d, behind(work, column))
            add(1.0, V, 0, work, total, T)
            times(V, 0, y, a * d, work, column, d)
            add(1.0, work, column, work, said, d)
        self.toward(said)
        self.information(total, column)
        times(work, total, work, said, work, shift, d)
        for a in range(self.N):
            one = self.regressions[a]
            for i in range(d):
                work[column + i] = y[a * d + i] + R[i] * work[shift + i]
            times(one.values, 0, work, column, one.values, T, d)
            add(1.0, self.m, 0, one.values, T, d)
            one.decay = 1.0
            one.changed()
        mean = np.empty(d)
        shared: Floats = view(mean)
        for i in range(d):
            shared[i] = self.m[i] + work[shift + i]
        self.prior.mean = mean
