"""Share the reward of a whole session among its requests."""

from __future__ import annotations

from router_state.errors import ContextLost, UnknownRequest
from router_state.events import Judged
from router_state.record import Records, RequestRecord
from router_state.sessions.ranks import BELOW_OWN
from router_state.sessions.turn import turn_of

CREDITED = 100
"""Most requests of a session that get its reward: the latest ones."""
WHOLE = "\x1f"
"""Prefix of an id that names a whole session instead of a request; no request id begins with it.
"""


def requests_of(
    last: str | None, name: str, records: Records, *, most: int = CREDITED
) -> dict[str, RequestRecord]:
    """Return the latest requests of a session by their ids, the oldest first, at most `most`.
    Requests before a forgotten one are left out. `last` is the id of the session's last
    request.
    """
    request_id, found = last, dict[str, RequestRecord]()
    while request_id is not None and len(found) < most:
        record = records.get(request_id)
        # A request that was sent again after it was forgotten may belong to another session.
        if record is None or record.call is None or record.call.session_id != name:
            break
        found[request_id] = record
        request_id = turn_of(record).before
    return dict(reversed(found.items()))


def shares(event: Judged, requests: dict[str, RequestRecord]) -> list[Judged]:
    """Return the rewards of a session's requests that follow from the session's reward.

    Each request gets the session's reward, so that means over requests stay right. A request's own
    reward replaces the session's, whichever comes first.

    Raises:
        UnknownRequest: no request of the session is remembered.
        ContextLost: no store holds the
        context of any of them.
    """
    name = event.request_id.removeprefix(WHOLE)
    if not requests:
        raise UnknownRequest(f"no request of session {name!r} is remembered")
    contexts, found = event.contexts or {}, []
    for request_id, record in requests.items():
        x = contexts.get(request_id)
        if x is not None or record.x is not None:
            source, rank = WHOLE + event.source, event.rank - BELOW_OWN
            one = Judged(request_id, event.reward, source, rank, revision=event.revision, x=x)
            found.append(one)
    if not found:
        raise ContextLost(f"the contexts of session {name!r} are in no store")
    return found
