"""Keep the sessions of visitors; each begins with an API key that gives its rights."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request

from doors.gateway.api_keys import ANYONE, Key, Keys
from doors.gateway.origin import from_this_machine, of_another_site
from doors.gateway.problems import Problem

COOKIE = "pb_dashboard"
"""Name of the cookie that holds a session's token."""
LASTS_SECONDS = 12 * 3600.0
"""Length of a session, twelve hours; then one signs in again."""
MOST = 1000
"""Most visitors at a time; the one who has been idle for longest goes first."""
HEADER = "x-pbstream"
"""Header that every change must carry; a form of another site cannot send it."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """A visitor of the page: the key with its routers, and whether changes are allowed."""

    key: Key
    admin: bool


class Sessions:
    """Sessions in memory: a restart ends them.

    Args:
        keys: who may read; None: everybody on this machine.
        admins: who may change routers; None: nobody.
        takes_labels: whether whoever may read a router may label its answers.
    """

    def __init__(
        self,
        keys: Keys | None,
        admins: Keys | None,
        *,
        takes_labels: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.takes_labels = takes_labels
        self._keys = keys
        self._admins = admins
        self._clock = clock
        self._open: OrderedDict[str, tuple[float, Visitor]] = OrderedDict()

    @property
    def takes_changes(self) -> bool:
        """Say whether anybody may change routers."""
        return self._admins is not None

    def begin(self, key: str) -> str:
        """Return the cookie of a new session. Raises Problem for a key that is not on the lists."""
        header = f"Bearer {key}"
        admin = self._admins.check(header) if self._admins else None
        found = admin or (self._keys.check(header) if self._keys else None)
        if found is None:
            raise Problem("unauthorized", "this key is not on the list")
        # A token, not the key: a cookie is on disk, and can be revoked without a new key.
        token = secrets.token_urlsafe(32)
        self._open[token] = self._clock(), Visitor(found, admin is not None)
        while len(self._open) > MOST:
            self._open.popitem(last=False)
        return token

    def end(self, request: Request) -> None:
        """Forget the session of a browser."""
        self._open.pop(request.cookies.get(COOKIE, ""), None)

    def visitor(self, request: Request) -> Visitor | None:
        """Return the visitor; None: a key is needed. Raises Problem, without keys, for a page of
        another host or site.
        """
        # A session comes first: with keys it is needed, and on loopback it may be an operator's.
        began, visitor = self._open.get(request.cookies.get(COOKIE, ""), (0.0, None))
        if visitor is not None and self._clock() - began < LASTS_SECONDS:
            return visitor
        if self._keys is not None:
            return None
        from_this_machine(request, keys="PB_DASHBOARD_KEYS_FILE")
        return Visitor(ANYONE, admin=False)

    def reader(self, request: Request, router_id: str | None = None) -> Visitor:
        """Return the visitor, who may read the router if one is named. Raises Problem."""
        visitor = self.visitor(request)
        if visitor is None:
            raise Problem("unauthorized", headers={"WWW-Authenticate": "Bearer"})
        if router_id is not None and not visitor.key.allows(router_id):
            raise Problem("forbidden")
        return visitor

    def labeller(self, request: Request, router_id: str) -> Visitor:
        """Return the visitor, who may label the router's answers. Raises Problem."""
        visitor = self.reader(request, router_id)
        if not self.takes_labels:
            raise Problem("forbidden", "labels need a dashboard that was started with --labels")
        from_page(request)
        return visitor

    def operator(self, request: Request, router_id: str) -> Visitor:
        """Return the visitor, who may change the router. Raises Problem."""
        visitor = self.reader(request, router_id)
        if not visitor.admin:
            raise Problem("forbidden", "changes need an operator's key")
        from_page(request)
        return visitor


def from_page(request: Request) -> None:
    """Refuse requests that no page of this server sent. Raises Problem."""
    if request.headers.get(HEADER) != "1" or of_another_site(request):
        raise Problem("forbidden", "changes come from the dashboard's own page")
