"""Check that the service answers: events that wait while the state does not move show that there
is no worker, or that workers end again and again.
"""

from __future__ import annotations

from datetime import UTC, datetime

from studies.audit.findings import Findings, Kind
from studies.audit.recovered_state import Evidence

PATIENCE = 30.0
"""Seconds for which events may wait on a partition whose state does not move: a worker that is lost
for good is replaced within five seconds."""


def check_served(evidence: Evidence, findings: Findings, *, now: float) -> None:
    """Report a partition whose source events wait while none is applied; `now` is the time at
    which the topics were read, seconds since the epoch.
    """
    waits = {topic: found for topic, found in evidence.untaken.items() if found[0]}
    oldest = min((at for _, at in waits.values()), default=now)
    # Writes before the first waiting event do not show that a worker is there now.
    since = max(oldest, evidence.served_until)
    if not waits or now - since < PATIENCE:
        return
    events = ", ".join(f"{count:,} {topic}" for topic, (count, _) in waits.items())
    at = datetime.fromtimestamp(since, UTC).isoformat(timespec="seconds")
    findings.violation(
        Kind.UNSERVED,
        f"partition {evidence.number}",
        f"no worker answers since {at.replace('+00:00', 'Z')}: {events} wait. Start one; if one "
        "runs, it ends again and again, and its log says why",
    )
