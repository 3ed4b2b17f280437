"""The sums in a router's regressions that are not its own evidence: what it took from its family,
and what its declaration gave.

A router and its table share the bytes of the record, so the sums are in memory once.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from router_state.errors import DamagedState, UnusablePrior
from router_state.families.family_sums import Sums, sums_of
from router_state.families.sum_bytes import lower
from router_state.kernel import Regression, exp_of
from router_state.packing.framing import Framed

_SIZES = struct.Struct("<4I")
"""Bytes of four shares: taken of rewards and of bills, given of both; 0: there is none."""
_NUMBERS = struct.Struct("<ddd")
"""A share begins with these: count, forgotten, moved; its sums follow."""

Sides: TypeAlias = "Sequence[Share | None]"
"""Shares of rewards and of bills; None: there is none."""


@dataclass(frozen=True, slots=True)
class Share:
    """Sums in a regression that are not its router's own evidence.

    Attributes:
        data: the sums, see `bytes_of`, or as 64-bit floats where they were not rounded.
        count: number of observations in the sums.
        forgotten, moved: the regression's values of these when it got the share. Later forgetting
            and later shifts of the regression apply to these sums as well.
    """

    data: bytes
    count: float
    forgotten: float
    moved: float

    @classmethod
    def taken(cls, data: bytes, one: Regression) -> Share:
        """Return the sums that a regression takes from its family now, as a share."""
        return cls(data, sums_of(data, one.d).count, one.forgotten, one.moved)

    @classmethod
    def given(cls, sums: Sums, one: Regression) -> Share:
        """Return the sums that a regression starts with, as a share."""
        data = sums.triangle().astype("<f8").tobytes()
        return cls(data, sums.count, one.forgotten, one.moved)

    def sums(self, d: int) -> Sums:
        """Return the sums as they were taken. Raises UnusablePrior."""
        T = d * (d + 1) // 2
        if len(self.data) != 8 * (T + d):
            return sums_of(self.data, d)
        numbers = np.frombuffer(self.data, "<f8")
        if not np.isfinite(numbers).all():
            raise UnusablePrior("the sums that a router was given must be finite")
        A = np.zeros((d, d))
        A[lower(d)] = numbers[:T]
        return Sums(A + np.tril(A, -1).T, numbers[T:])

    def requests(self, one: Regression) -> float:
        """Return the number of observations that a share still counts for after forgetting."""
        return self.count * exp_of(self.forgotten - one.forgotten)

    def left(self, one: Regression) -> Sums:
        """Return the sums after forgetting."""
        sums, moved = self.sums(one.d), one.moved - self.moved
        A = exp_of(self.forgotten - one.forgotten) * sums.A
        b = exp_of(self.forgotten - one.forgotten) * sums.b
        return Sums(A, b + moved * A[-1])


class OutsideSums(Framed):
    """The sums of one model that came from the router's family or with its declaration, packed
    as they are stored.
    """

    __slots__ = ()

    def __init__(self, taken: Sides = (None, None), given: Sides = (None, None)) -> None:
        shares = [
            b"" if one is None else _NUMBERS.pack(one.count, one.forgotten, one.moved) + one.data
            for one in (*taken, *given)
        ]
        super().__init__(b"".join([_SIZES.pack(*map(len, shares)), *shares]))

    @classmethod
    def read(cls, body: bytes, d: int) -> OutsideSums:
        """Return the sums in a record. Raises DamagedState."""
        try:
            found = cls._of(body)
            for share in (*found.taken, *found.given):
                if share is not None:
                    share.sums(d)
        except (ValueError, UnusablePrior, struct.error) as error:
            raise DamagedState(f"family: {error}") from None
        return found

    @classmethod
    def _of(cls, body: bytes) -> OutsideSums:
        if len(body) != _SIZES.size + sum(_SIZES.unpack_from(body)):
            raise DamagedState(f"family: sums of {len(body)} bytes")
        found = cls.__new__(cls)
        Framed.__init__(found, body)
        return found

    @property
    def taken(self) -> list[Share | None]:
        """Return the shares taken from the family: of rewards, and of bills."""
        return [self._share(0), self._share(1)]

    @property
    def given(self) -> list[Share | None]:
        """Return the shares that the declaration gave: of rewards, and of bills."""
        return [self._share(2), self._share(3)]

    def _share(self, k: int) -> Share | None:
        body, sizes = self.body, _SIZES.unpack_from(self.body)
        if not sizes[k]:
            return None
        at = _SIZES.size + sum(sizes[:k])
        count, forgotten, moved = _NUMBERS.unpack_from(body, at)
        return Share(bytes(body[at + _NUMBERS.size : at + sizes[k]]), count, forgotten, moved)

    def requests(self, one: Regression) -> float | None:
        """Return the number of rewards that the family's sums still count for after forgetting;
        None: the model took no sums of rewards.
        """
        body = self.body
        if not _SIZES.unpack_from(body)[0]:
            return None
        count, forgotten, _ = _NUMBERS.unpack_from(body, _SIZES.size)
        return float(count * exp_of(forgotten - one.forgotten))


def together(shares: Sides, one: Regression) -> Sums | None:
    """Return the total of several sums of a regression after forgetting; None: there are none."""
    left = [share.left(one) for share in shares if share is not None]
    if not left:
        return None
    A = np.sum([sums.A for sums in left], axis=0)
    return Sums(A, np.sum([sums.b for sums in left], axis=0))
