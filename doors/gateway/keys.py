"""API keys: who may speak for which routers. Only hashes are kept; a key itself is shown once, when
it is made.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

_ENTRY = re.compile(
    r"(?P<name>[A-Za-z0-9-]{1,64}) sha256:(?P<digest>[0-9a-f]{64}) (?P<routers>[A-Za-z0-9._*?,-]+)"
)
"""A line of the list: a name, the key's SHA-256, patterns of routers."""
_KEY = re.compile(r"pbk_(?P<name>[A-Za-z0-9-]{1,64})_[A-Za-z0-9_-]{43}")
"""A key: its name, and 256 random bits in base 64 (43 characters)."""
_NOBODY = "0" * 64
"""A digest that no key has, to compare with where the name is unknown."""


class BadKeys(Exception):
    """The list of keys cannot be read; the message says which line, and not what stands there."""

    reason = "bad_keys"
    retriable = False


@dataclass(frozen=True, slots=True)
class Key:
    """One caller: a name for logs and limits, and patterns of the routers that it may use."""

    name: str
    digest: str
    routers: tuple[str, ...]

    def allows(self, router_id: str) -> bool:
        """Tell whether the caller may use a router.

        >>> Key("chat", digest("…"), ("acme.*",)).allows("acme.chat")
        True
        """
        return any(fnmatchcase(router_id, pattern) for pattern in self.routers)


ANYONE = Key("anyone", _NOBODY, ("*",))
"""Caller where no keys are asked for, on loopback."""


class Keys:
    """All keys, by name."""

    def __init__(self, keys: Mapping[str, Key]) -> None:
        self._keys = dict(keys)

    def __len__(self) -> int:
        return len(self._keys)

    @classmethod
    def parse(cls, text: str) -> Keys:
        """Read a list of keys: a line each, `NAME sha256:HEX ROUTERS`; empty lines and what follows
        a # are skipped.

        Raises:
            BadKeys: a line is none, or a name stands twice.
        """
        keys: dict[str, Key] = {}
        for number, line in enumerate(text.splitlines(), 1):
            line = line.partition("#")[0].strip()
            if not line:
                continue
            found = _ENTRY.fullmatch(line)
            if found is None or found["name"] in keys:
                what = "is not `NAME sha256:HEX ROUTERS`" if found is None else "names a key again"
                raise BadKeys(
                    f"line {number} of the API keys {what}; `pbstream gateway --new-key NAME` "
                    "prints one"
                )
            keys[found["name"]] = Key(
                found["name"], found["digest"], tuple(found["routers"].split(","))
            )
        return cls(keys)

    def check(self, authorization: str) -> Key | None:
        """Return whose key the header `Authorization: Bearer …` holds, or None.

        A name is no secret; the digests are compared in constant time, also where there is none of
        that name.
        """
        scheme, _, presented = authorization.partition(" ")
        named = _KEY.fullmatch(presented.strip())
        known = self._keys.get(named["name"]) if named else None
        matches = hmac.compare_digest(digest(presented.strip()), known.digest if known else _NOBODY)
        return known if known is not None and matches and scheme.lower() == "bearer" else None


def digest(key: str) -> str:
    """Return what is kept of a key: it holds 256 random bits, so that a fast hash is enough."""
    return hashlib.sha256(key.encode(errors="replace")).hexdigest()


def new_key(name: str, *, routers: str) -> tuple[str, str]:
    """Return a new key, and its line for the list.

    Raises:
        BadKeys: no name, or no patterns of routers.
    """
    key = f"pbk_{name}_{secrets.token_urlsafe(32)}"
    line = f"{name} sha256:{digest(key)} {routers}"
    if _ENTRY.fullmatch(line) is None:
        raise BadKeys(
            "a key needs a name (letters, digits, -) and patterns of router ids (such as "
            "acme.*,chat)"
        )
    return key, line
