"""Add up what the attempts of a request cost: the service has one bill of each request, and a later
revision replaces an earlier one.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence

REMEMBERED = 10_000
"""Most requests whose attempts are remembered; the oldest is forgotten first."""
COUNTS = ("input_tokens", "output_tokens", "cached_input_tokens")
Bill = Mapping[str, object]


class Attempts:
    """The bills of the last requests, attempt by attempt, as far as this process has seen them."""

    def __init__(self) -> None:
        self._requests: OrderedDict[Hashable, dict[Hashable, tuple[Bill, Bill]]] = OrderedDict()

    def add(self, request: Hashable, attempt: Hashable, bill: Bill) -> Bill:
        """Return the bill of a request after one more of its attempts: the cost of all attempts,
        which replaces the earlier bill. An attempt that is known already leaves the bill as it was.

        Args:
            bill: the bill of this attempt; the sum's revision is at least the bill's.
        """
        known = self._requests.setdefault(request, {})
        self._requests.move_to_end(request)
        if attempt not in known:
            revisions = [_revision(total) + 1 for _, total in known.values()]
            total = {
                **bill,
                **summed([one for one, _ in known.values()], bill),
                "revision": max([_revision(bill), *revisions]),
            }
            known[attempt] = bill, total
        while len(self._requests) > REMEMBERED:
            self._requests.popitem(last=False)
        return known[attempt][1]


def summed(before: Sequence[Bill], bill: Bill) -> dict[str, object]:
    """Return the sum of a bill and others: in dollars, or in tokens where all of them are in
    tokens. Where some are in dollars, those in tokens are left out.

    >>> summed([{"cost_usd": 0.25}], {"cost_usd": 0.5})
    {'cost_usd': 0.75}
    """
    in_dollars = bill.get("cost_usd") is not None
    # A failed call mostly cost nothing, which is nothing in either kind.
    free = bill.get("cost_usd") == 0.0 and any(one.get("cost_usd") is None for one in before)
    if in_dollars and not free:
        usd = [one.get("cost_usd") for one in (*before, bill)]
        return {"cost_usd": math.fsum(one for one in usd if isinstance(one, int | float))}
    alike = [one for one in (*before, bill) if one.get("cost_usd") is None]
    found: dict[str, object] = {}
    for name in COUNTS:
        counts = [count for one in alike if isinstance(count := one.get(name), int)]
        if counts:
            found[name] = sum(counts)
    return {**found, "cost_usd": None} if free else found


def lost(before: Sequence[Bill], bill: Bill) -> bool:
    """Tell whether dollars are among bills in tokens, or the reverse, so that a sum leaves some
    out."""
    bills = (*before, bill)
    priced = any(one.get("cost_usd") for one in bills)
    counted = any(one.get("cost_usd") is None and any(map(one.get, COUNTS)) for one in bills)
    return priced and counted


def _revision(bill: Bill) -> int:
    found = bill.get("revision", 0)
    return found if isinstance(found, int) else 0
