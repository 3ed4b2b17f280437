"""The reward of a whole session: whom it is credited to."""

from __future__ import annotations

from router_state.errors import ContextLost, UnknownRequest
from router_state.events import Judged
from router_state.record import Records, RequestRecord
from router_state.sessions.ranks import BELOW_OWN

CREDITED = 100
"""Most requests of a session to which its reward is credited: the latest ones."""
WHOLE = "\x1f"
"""Prefix by which a whole session is named in place of a request; no request id begins with it.
"""


def requests_of(
    last: str | None, name: str, records: Records, *, most: int = CREDITED
) -> dict[str, RequestRecord]:
    """Return the last remembered requests of a session by their ids, the oldest first, at most so
    many: those after any forgotten one. `last` is the id of its last request."""
    request_id, found = last, dict[str, RequestRecord]()
    while request_id is not None and len(found) < most:
        record = records.get(request_id)
        # A request that was asked again after it was forgotten may be of another session.
        if record is None or record.call is None or record.call.session_id != name:
            break
        found[request_id] = record
        request_id = record.call.before
    return dict(reversed(found.items()))


def shares(event: Judged, requests: dict[str, RequestRecord]) -> list[Judged]:
    """Return the rewards of a session's requests that its own reward stands for.

    Each request gets the session's reward, so that means over requests stay right. A request's own
    reward wins over it, whichever comes first.

    Raises:
        UnknownRequest: none of its requests is remembered.
        ContextLost: the context of none of them is in a store.
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
