"""What an operator should know about a router."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert; `kind`, `signal` and `size` are those of `pb.alerts`. Times are seconds since the epoch."""

    kind: str
    direction: str
    size: float
    since: float
    observed_at: float
    evidence: Mapping[str, Any]
    model: str | None = None
    signal: str | None = None
