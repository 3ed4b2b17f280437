"""List what a worker's user may do in Redis, and check it before a worker begins."""

from __future__ import annotations

from urllib.parse import urlsplit

from redis.exceptions import AuthenticationError, NoPermissionError

from ground.boundary import Attempt
from streams.log.rights_check import MissingRights
from streams.settings import Settings
from streams.state.redis_contexts import PROBE, connect, key_of, namespace_of

COMMANDS = ("set", "mget")
"""Commands of Redis that a worker uses; `acl` grants these and no more."""


def acl(settings: Settings, user: str) -> str:
    """Return the rule for a user, as `ACL SETUSER` and an ACL file take it, its password left to be
    filled in.
    """
    commands = " ".join(f"+{name}" for name in COMMANDS)
    return f"{user} on >PASSWORD resetkeys ~{settings.prefix}context:* -@all {commands}"


async def require_redis(settings: Settings) -> None:
    """Raise MissingRights where Redis refuses the user of PB_REDIS_URL; a Redis that is away is
    waited for later.
    """
    if settings.redis_url is None:
        return
    url = settings.redis_url.get_secret_value()
    user = urlsplit(url).username or "default"
    client = connect(url)
    key = key_of(namespace_of(settings, ""), PROBE)
    # Any other failure: it is away, full, or talks nonsense, for which redis-py's parser has errors
    # of all classes. A worker goes on without it.
    with Attempt() as asking:
        await client.set(key, b"", px=1000)
        await client.mget([key])
    await client.aclose()
    if isinstance(asking.error, AuthenticationError):
        raise MissingRights(
            f"Redis refuses user {user}: look at its name and password in PB_REDIS_URL"
        )
    if isinstance(asking.error, NoPermissionError):
        raise MissingRights(
            f"Redis: {asking.error}; user {user} needs: `ACL SETUSER {acl(settings, user)}`"
        )
