"""API keys and the routers that each may use. Only hashes are kept; a key itself is shown once,
when it is made.
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
"""Pattern of a line of the list: a name, the key's SHA-256, patterns of routers."""
_KEY = re.compile(r"pbk_(?P<name>[A-Za-z0-9-]{1,64})_[A-Za-z0-9_-]{43}")
"""Pattern of a key: its name, and 256 random bits in base 64 (43 characters)."""
_NOBODY = "0" * 64
"""A digest that no key has, to compare with where the name is unknown."""


class BadKeys(Exception):
    """The list of keys is malformed; the message gives the line's number, not its text."""

    reason = "bad_keys"
    retriable = False


@dataclass(frozen=True, slots=True)
class Key:
    """A caller: a name for logs and limits, and patterns of the routers that it may use."""

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
"""The caller when no keys are required, on loopback."""


class Keys:
    """The keys of a gateway, by name."""

    def __init__(self, keys: Mapping[str, Key]) -> None:
        self._keys = dict(keys)

    def __len__(self) -> int:
        return len(self._keys)

    @classmethod
    def parse(cls, text: str) -> Keys:
        """Read a list of keys, one `NAME sha256:HEX ROUTERS` a line; empty lines and comments (#)
        are skipped.

        Raises:
            BadKeys: a line has another form, or a name appears twice.
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
        """Return the owner of the key in the header `Authorization: Bearer …`, or None.

        Names are not secret. Digests are compared in constant time, also for unknown names.
        """
        scheme, _, presented = authorization.partition(" ")
        named = _KEY.fullmatch(presented.strip())
        known = self._keys.get(named["name"]) if named else None
        matches = hmac.compare_digest(digest(presented.strip()), known.digest if known else _NOBODY)
        return known if known is not None and matches and scheme.lower() == "bearer" else None


def digest(key: str) -> str:
    """Return the hash that is kept of a key; a fast hash is enough for 256 random bits."""
    return hashlib.sha256(key.encode(errors="replace")).hexdigest()


def new_key(name: str, *, routers: str) -> tuple[str, str]:
    """Return a new key, and its line for the list.

    Raises:
        BadKeys: the name or the patterns are not valid.
    """
    key = f"pbk_{name}_{secrets.token_urlsafe(32)}"
    line = f"{name} sha256:{digest(key)} {routers}"
    if _ENTRY.fullmatch(line) is None:
        raise BadKeys(
            "a key needs a name (letters, digits, -) and patterns of router ids (such as "
            "acme.*,chat)"
        )
    return key, line
