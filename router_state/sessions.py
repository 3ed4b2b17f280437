"""Sessions: conversations that requests name, with the prefix that each model saw last.

They are bounded and durable: 256 drawers by the checksum of their names, with at most 32 sessions
each. A full drawer forgets the one that has been idle for the longest time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from zlib import crc32

from msgspec import Struct, to_builtins

from router_state.changes import Journal
from router_state.state.framing import Json

DRAWERS, IN_DRAWER = 256, 32
"""Drawers, each a piece of its own, and sessions in one: 8,192 of a router."""
IDLE_SECONDS = 86_400.0
"""Seconds after which an idle session is forgotten: no cache lasts longer."""
MOST_MODELS = 8
"""Models of a session whose prefixes are remembered, the latest."""
WHOLE = "\x1f"
"""Prefix by which a whole session is named in place of a request; no request id begins with it.
"""
_PIECE = "\x1fsession"
"""Prefix of a drawer's piece."""


class Warm(Struct):
    """A prefix: its tokens, and when a model saw it last, in seconds since the epoch."""

    tokens: int
    at: float


class Session(Struct, omit_defaults=True):
    """One conversation.

    `turns` are its requests so far, `last` is the last one, of time `at`, and `warm` the prefix
    that each model saw last.
    """

    turns: int
    at: float
    warm: dict[str, Warm]
    last: str | None = None


class Sessions:
    """The sessions of a router."""

    __slots__ = ("_journal", "drawers")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.drawers: dict[int, dict[str, Session]] = {}

    def __len__(self) -> int:
        return sum(map(len, self.drawers.values()))

    def __iter__(self) -> Iterator[Session]:
        for drawer in self.drawers.values():
            yield from drawer.values()

    def find(self, name: str) -> Session | None:
        """Return a session that is remembered, or None."""
        return self.drawers.get(_drawer_of(name), {}).get(name)

    def turn(self, name: str, *, now: float) -> Session:
        """Note a request of a session, new or known; return the session."""
        drawer = self.drawers.setdefault(_drawer_of(name), {})
        session = drawer.pop(name, None) or Session(0, now, {})
        session.turns, session.at = session.turns + 1, now
        drawer[name] = session
        # In order of use: the first has been idle for the longest time.
        for idle in [other for other, one in drawer.items() if now - one.at > IDLE_SECONDS]:
            del drawer[idle]
        while len(drawer) > IN_DRAWER:
            del drawer[next(iter(drawer))]
        self.changed(name)
        return session

    def changed(self, name: str) -> None:
        """Note that a session has changed."""
        self._journal.pieces.add(f"{_PIECE}{_drawer_of(name)}")

    def seen(self, name: str, model: str, tokens: int, *, at: float) -> None:
        """Note that a model has seen a prompt of a session."""
        session = self.find(name)
        if session is None:
            return
        known = session.warm.pop(model, None)
        if known is None or known.at <= at:
            known = Warm(tokens, at)
        session.warm[model] = known
        while len(session.warm) > MOST_MODELS:
            del session.warm[next(iter(session.warm))]
        self.changed(name)

    def unseen(self, name: str, model: str, *, at: float) -> None:
        """Note that a model did not answer, so it may not have cached the prompt."""
        session = self.find(name)
        if session is not None and model in session.warm and session.warm[model].at == at:
            del session.warm[model]
            self.changed(name)

    def clear(self) -> None:
        """Forget all sessions."""
        if self.drawers:
            self._journal.pieces.update(self.pieces)
            self.drawers = {}

    @property
    def pieces(self) -> list[str]:
        """Return the names of the pieces that hold them."""
        # In one order, however the sessions came: an exported router is equal to the byte.
        return [piece_of(number) for number, drawer in sorted(self.drawers.items()) if drawer]

    def pack(self, piece: str) -> Json | None:
        """Return the packed drawer of a piece; None if it is empty or the piece is no drawer."""
        if not holds(piece):
            return None
        drawer = self.drawers.get(int(piece.removeprefix(_PIECE)))
        return [[name, to_builtins(one)] for name, one in drawer.items()] if drawer else None

    def restore(self, number: int, packed: Json) -> None:
        """Invert `pack`. Raises TypeError, LookupError, ValueError."""
        self.drawers[number] = {
            name: Session(
                one["turns"],
                one["at"],
                {model: Warm(**warm) for model, warm in one["warm"].items()},
                one.get("last"),
            )
            for name, one in packed
        }

    def faults(self) -> Iterable[str]:
        """Yield the faults of a state that can't be true."""
        for number, drawer in self.drawers.items():
            if len(drawer) > IN_DRAWER or any(_drawer_of(name) != number for name in drawer):
                yield "drawers of sessions"
        if any(one.turns < 1 or len(one.warm) > MOST_MODELS for one in self):
            yield "sessions"


def holds(piece: str) -> bool:
    """Tell whether a piece holds sessions."""
    return piece.startswith(_PIECE)


def piece_of(number: int) -> str:
    """Return the name of a drawer's piece."""
    return f"{_PIECE}{number}"


def _drawer_of(name: str) -> int:
    return crc32(name.encode()) % DRAWERS
