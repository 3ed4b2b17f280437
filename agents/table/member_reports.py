"""Decide when a member reports to its pool: soon if its spend moves, seldom if nothing does."""

from __future__ import annotations

from router_state.periods.reporting import Reported

OFTEN = 1.0
"""Seconds between two reports of a member whose spend moves."""
MOVED = 0.01
"""Least change of a member's spend, as a share of its money left, for a report at once."""
SELDOM = 10.0
"""Seconds after which a member reports any change, however small."""
QUARTER = 0.25
"""Share of a grant's time after which a member reports even without a change."""
ALONE = 5.0
"""Seconds after which a member without holdings reports again."""


class Last:
    """The last report of a member."""

    __slots__ = ("again_at", "at", "left", "moves", "spent")

    def __init__(self, report: Reported, *, now: float, until: float | None) -> None:
        self.at, self.moves = now, report.moves
        self.spent = sum(held.spent_usd for held in report.lines)
        self.left = sum(max(held.holds_usd - held.spent_usd, 0.0) for held in report.lines)
        left = ALONE if until is None or until <= now else QUARTER * (until - now)
        self.again_at = now + max(left, OFTEN)


class Reports:
    """The last reports of members, "router:…" or "pool:…". They are not durable, so each member
    reports again after a recovery.
    """

    def __init__(self) -> None:
        self._last: dict[str, Last] = {}

    def forget(self, member: str) -> None:
        """Forget a member that has another pool now, or none."""
        self._last.pop(member, None)

    def may_be_due(self, member: str, moves: int, *, now: float) -> bool:
        """Tell whether a report may be due, before it is computed."""
        last = self._last.get(member)
        if last is None or now >= last.again_at or now < last.at:
            return True
        return moves != last.moves and now - last.at >= OFTEN

    def take(
        self, member: str, report: Reported, until: float | None, *, now: float, due: bool
    ) -> Reported | None:
        """Return a report that is to be sent, and note that it is the member's last.

        Args:
            until: time at which the member's last holding ends.
            due: whether to return a report only if one is due.
        """
        last = self._last.get(member)
        if due and last is not None and last.at <= now < last.again_at:
            spent = sum(held.spent_usd for held in report.lines)
            moved = abs(spent - last.spent) > MOVED * last.left
            if now - last.at < (OFTEN if moved else SELDOM) or report.moves == last.moves:
                return None
        self._last[member] = Last(report, now=now, until=until)
        return report
