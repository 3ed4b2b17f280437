"""The status of a router on `pb.routers`: the declaration that workers took up, and a later one
that they refused, or that waits for a worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import orjson

from doors.console.failures import NotReadable, Refused
from doors.console.session import named
from ground.json_values import Document
from schemas import EventRefused, LambdaUpdated, RouterDeclared, decode

Status = Literal["in_force", "refused", "waiting", "leaving", "none"]


@dataclass(frozen=True, slots=True)
class Declared:
    """A router's declaration: a JSON document, which may have newer fields, and its offset."""

    document: Document
    offset: int

    @property
    def router(self) -> RouterDeclared:
        """Return the document as an event."""
        return decode(RouterDeclared, orjson.dumps(self.document))


@dataclass(frozen=True, slots=True)
class Later:
    """The newest record after the declaration in force.

    Attributes:
        declared: the declaration; None: the record removes the router, or is not a declaration.
        removes: whether the record is null.
        refusal: why workers refused it; None: no worker has read it.
        at: time of the record, in milliseconds since the epoch.
    """

    offset: int
    declared: Declared | None
    removes: bool
    at: int
    refusal: EventRefused | None = None


@dataclass(frozen=True, slots=True)
class RouterStatus:
    """The status of a router's declarations: the one that workers took up, and a later one.

    Attributes:
        state: the last state that a worker published.
        in_force: the declaration that `state` names; None: there is none, or compaction removed
            it.
    """

    router_id: str
    state: LambdaUpdated | None
    in_force: Declared | None
    later: Later | None

    @property
    def status(self) -> Status:
        """Return the status of the newest declaration."""
        if self.later is None:
            return "none" if self.state is None else "in_force"
        if self.later.refusal is not None:
            return "refused"
        return "leaving" if self.later.removes else "waiting"

    @property
    def waiting(self) -> Declared | None:
        """Return the declaration that no worker has read yet."""
        return self.later.declared if self.later and self.later.refusal is None else None

    @property
    def basis(self) -> Declared | None:
        """Return the declaration that workers will compare the next one with: a waiting one, else
        the one in force; None: there is none.

        Raises:
            NotReadable: compaction removed it.
        """
        if self.status == "leaving":
            return None
        if self.waiting is not None:
            return self.waiting
        if self.in_force is None and self.state is not None:
            raise NotReadable(self.router_id, self.state.config_offset)
        return self.in_force

    @property
    def refused(self) -> Refused | None:
        """Return the failure of the newest declaration, if workers refused it."""
        if self.later is None or self.later.refusal is None:
            return None
        refusal = self.later.refusal
        what = f"the declaration of router {self.router_id!r} at offset {self.later.offset}"
        return Refused(what, refusal.reason, refusal.message, router_id=self.router_id)

    @property
    def note(self) -> str | None:
        """Return a sentence about a declaration that is not in force; None: the newest one is."""
        if self.later is None:
            return None
        if (refused := self.refused) is not None:
            if self.state is not None:
                kept = f"In force is still the one at offset {self.state.config_offset}."
                return f"{refused.message} {kept} The next declaration replaces it."
            return (
                f"{refused.message} No declaration of it is in force. The next declaration "
                f"replaces it, and `pbstream routers remove{named(self.router_id)}` lets it go."
            )
        what = "removal" if self.later.removes else "declaration"
        return (
            f"the {what} of router {self.router_id!r} at offset {self.later.offset} waits for a "
            "worker: is `pbstream worker` running?"
        )
