"""Estimate what members of a family share beside their regressions: numbers of capabilities, such
as what a verifier's verdicts mean.

    z_rp = θ_p + δ_rp,   δ_rp ~ N(0, τ²_p ÷ w_r)

z_rp is number p of router r, and θ_p that of the family. τ²_p is estimated by the fixed point of
the evidence (MacKay 1992), and shrunk to that of all models together. The weight w_r is that of a
Student's t (Lange, Little and Taylor 1989). Numbers are in units of the deviation that is expected
between routers (`router_state.shared_numbers`), so the first guess of τ² is 1, or what another
family has found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from router_state.config import Matrix, Vector
from router_state.errors import UnusablePrior
from router_state.families.family_fit import MEMBERS_TAIL
from router_state.kernel import GUESSED, MEMORY
from router_state.shared_numbers import LARGEST, Numbers, Packed, bytes_of, numbers_of

SHARED_ROUNDS = 12
"""Steps of the fixed point, which begins from nothing each time."""
LEAST_SCATTER = 1.0 / MEMORY
"""Least τ²: numbers of other members count for no more observations than a router remembers. If
they counted for more, a router would forget them no faster than it learns."""

LEAST_SHARED_PRECISION = 1e-3
"""Precision up to which a family counts as knowing nothing of a number."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A family's knowledge of θ, and τ², each of shape (p,)."""

    numbers: Numbers
    tau2: Vector

    def pack(self) -> bytes:
        """Return precisions, precisions × means, and τ² as 32-bit floats."""
        return bytes_of(self.numbers) + np.minimum(self.tau2, LARGEST).astype("<f4").tobytes()

    @classmethod
    def unpack(cls, data: bytes) -> Known:
        """Invert `pack`. Raises UnusablePrior."""
        size = len(data) // 12
        if len(data) % 12:
            raise UnusablePrior(f"{len(data)} bytes do not hold what a family knows of numbers")
        tau2 = np.frombuffer(data, "<f4", offset=8 * size).astype(float)
        if not (np.isfinite(tau2) & (tau2 > 0.0)).all():
            raise UnusablePrior("variances between members must be finite and above 0")
        return cls(numbers_of(data[: 8 * size]), tau2)


@dataclass(slots=True, eq=False)
class _Of:
    """Numbers of one subject and model: the members that share them, W and z of shape (n, p), and
    the knowledge that another family brought."""

    names: list[str]
    at: dict[str, int]
    W: Matrix
    z: Matrix
    brought: Known
    tau2: Vector = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def stacked(cls, numbers: Mapping[str, Numbers], brought: Known | None) -> _Of:
        """Return the numbers of members as one stack. Of a verifier that has other bins here,
        nothing is brought."""
        names = sorted(numbers)
        p = len(next(iter(numbers.values())).precision) if numbers else _size(brought)
        if brought is None or _size(brought) != p:
            brought = Known(Numbers(np.zeros(p), np.zeros(p)), np.ones(p))
        W, z = np.zeros((2, len(names), p))
        for k, name in enumerate(names):
            W[k], z[k] = numbers[name].precision, numbers[name].means
        at = {name: k for k, name in enumerate(names)}
        return cls(names, at, W, z, brought, brought.tau2)

    def sums(self, J: Matrix) -> Numbers:
        """Return the sums of statements of the weights J, and of what was brought."""
        more = self.brought.numbers
        return Numbers(J.sum(0) + more.precision, (J * self.z).sum(0) + more.weighted)


class Shared:
    """A family's knowledge of the numbers that its members share.

    Attributes:
        stacks: numbers by subject and model; weights: w_r by subject and member.
    """

    def __init__(self) -> None:
        self.stacks: dict[tuple[str, str], _Of] = {}
        self.weights: dict[tuple[str, str], float] = {}

    @classmethod
    def of(
        cls,
        numbers: Mapping[str, Mapping[str, Packed]],
        aside: set[str],
        brought: Mapping[str, Packed] | None = None,
    ) -> Shared:
        """Estimate from the numbers of all members.

        Args:
            numbers: by member and model; those of `aside` do not count.
            brought: knowledge of another family, by model, see `Known`.
        """
        found: dict[tuple[str, str], dict[str, Numbers]] = {}
        elsewhere = {
            (subject, model): Known.unpack(data)
            for model, subjects in (brought or {}).items()
            for subject, data in subjects.items()
        }
        for member, models in numbers.items():
            for model, subjects in models.items():
                for subject, data in subjects.items() if member not in aside else ():
                    found.setdefault((subject, model), {})[member] = numbers_of(data)
        one = cls()
        one.stacks = {
            key: _Of.stacked(_alike(found.get(key, {})), elsewhere.get(key))
            for key in {**elsewhere, **found}
        }
        for _ in range(SHARED_ROUNDS):
            for subject in sorted({subject for subject, _ in one.stacks}):
                one._move(subject)
        return one

    def forget(self, member: str) -> None:
        """Forget a member that has left."""
        for one in self.stacks.values():
            if (k := one.at.get(member)) is not None:
                one.W[k] = 0.0

    def _weights(self, subject: str, one: _Of) -> Vector:
        return np.array([self.weights.get((subject, name), 1.0) for name in one.names])

    def _move(self, subject: str) -> None:
        """Move the scatters of a subject's numbers, and its members' weights, by one step."""
        freedom, squares = {}, {}
        misfit: dict[str, list[float]] = {}
        for (of, model), one in self.stacks.items():
            if of != subject:
                continue
            w = self._weights(subject, one)[:, None]
            known = one.sums(_information(one.W, one.tau2, w))
            total, theta = known.precision, known.means
            believed = one.W / (one.W + w / one.tau2)
            apart = believed * (one.z - theta)
            # θ was estimated from the same members.
            doubt = believed**2 * (w / one.tau2) / np.maximum(total, 1e-12)
            freedom[model] = np.maximum(believed - doubt, 0.0).sum(0)
            squares[model] = (w * apart**2).sum(0)
            for k, name in enumerate(one.names):
                sums = misfit.setdefault(name, [0.0, 0.0])
                sums[0] += float((apart[k] ** 2 / one.tau2).sum())
                sums[1] += float(believed[k].sum())
        by_size: dict[int, list[str]] = {}
        for model, of_model in squares.items():
            by_size.setdefault(len(of_model), []).append(model)
        for models in by_size.values():
            all_squares = np.sum([squares[model] for model in models], axis=0)
            all_freedom = np.sum([freedom[model] for model in models], axis=0)
            first = np.mean([self.stacks[subject, model].brought.tau2 for model in models], axis=0)
            common = (all_squares + GUESSED * first) / (all_freedom + GUESSED)
            for model in models:
                one = self.stacks[subject, model]
                guess = common * one.brought.tau2 / first
                tau2 = (squares[model] + GUESSED * guess) / (freedom[model] + GUESSED)
                one.tau2 = np.maximum(tau2, LEAST_SCATTER)
        found = {
            name: (MEMBERS_TAIL + n) / (MEMBERS_TAIL + far) for name, (far, n) in misfit.items()
        }
        usual = min(float(np.median(list(found.values()))), 1.0) if found else 1.0
        self.weights |= {(subject, name): min(one / usual, 1.0) for name, one in found.items()}

    def numbers_for(self, member: str, model: str) -> dict[str, Numbers]:
        """Return a member's prior for the numbers of a model, by subject: what all others know."""
        found = {}
        for (subject, of), one in self.stacks.items():
            if of != model:
                continue
            J = _information(one.W, one.tau2, self._weights(subject, one)[:, None])
            if (k := one.at.get(member)) is not None:
                J[k] = 0.0
            known = one.sums(J)
            precision = known.precision / (1.0 + one.tau2 * known.precision)
            if precision.max() > LEAST_SHARED_PRECISION:
                found[subject] = Numbers(precision, precision * known.means)
        return found

    def known_of(self, model: str) -> dict[str, Known]:
        """Return what all members together, and what was brought, say of a model, by subject."""
        found = {}
        for (subject, of), one in self.stacks.items():
            if of == model:
                J = _information(one.W, one.tau2, self._weights(subject, one)[:, None])
                known = Known(one.sums(J), one.tau2)
                if known.numbers.precision.max() > LEAST_SHARED_PRECISION:
                    found[subject] = known
        return found

    def apart(self, subject: str, model: str) -> Vector:
        """Return the estimated deviations between members, in units of those that were expected."""
        return np.asarray(np.sqrt(self.stacks[subject, model].tau2), np.float64)


def _information(W: Matrix, tau2: Vector, w: Matrix) -> Matrix:
    """Return the precision of members' statements on θ: 1 ÷ (1 ÷ W + τ² ÷ w), shape (n, p)."""
    return np.asarray(W / (1.0 + W * tau2 / w), np.float64)


def _alike(numbers: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Return those with as many numbers as most have: a verifier may have other bins elsewhere."""
    sizes = [len(one.precision) for one in numbers.values()]
    usual = max(sorted(set(sizes)), key=sizes.count, default=0)
    return {name: one for name, one in numbers.items() if len(one.precision) == usual}


def _size(known: Known | None) -> int:
    return 0 if known is None else len(known.tau2)
