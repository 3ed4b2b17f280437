"""What an operator should know about a router."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert; `kind`, `signal` and `size` are those of `pb.alerts`. Times are seconds since the
    epoch."""

    kind: str
    direction: Literal["up", "down"]
    size: float
    since: float
    observed_at: float
    evidence: Mapping[str, object]
    model: str | None = None
    signal: Literal["reward", "cost"] | None = None
