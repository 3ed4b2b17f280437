"""What `pbstream budget set` makes of a declaration."""

from __future__ import annotations

from typing import Any

import pytest

from commands.cli.budget import with_period

MONTH = {"usd": 10.0, "per": "month", "timezone": "Europe/Berlin"}


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        (None, ("month", 5.0, None, None), [{"usd": 5.0, "per": "month"}]),
        (MONTH, ("month", 5.0, None, "all"), [{**MONTH, "usd": 5.0, "carry": "all"}]),
        (
            [MONTH],
            ("day", 1.0, None, None),
            [MONTH, {"usd": 1.0, "per": "day", "timezone": "Europe/Berlin"}],
        ),
        ([MONTH], ("day", None, None, None), [MONTH]),
        (
            [MONTH],
            ("month", 5.0, "UTC", "2"),
            [{**MONTH, "usd": 5.0, "timezone": "UTC", "carry": 2.0}],
        ),
        ([MONTH], ("month", None, None, None), None),
    ],
)
def test_one_period_changes_and_all_else_stays(before: Any, change: Any, after: Any) -> None:
    document = {"router_id": "a", "models": {}} | ({} if before is None else {"budget": before})
    found = with_period(document, *change)
    assert found.get("budget") == after
    assert {name: found[name] for name in ("router_id", "models")} == {
        "router_id": "a",
        "models": {},
    }
