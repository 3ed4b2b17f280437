"""Ask Kafka for the rights of this process's user before a worker begins, so that a missing right
is named at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from streams.faust.allowed_operations import UNKNOWN, allowed_operations
from streams.log.rights import Operation, Right, Role, command, rights
from streams.settings import Settings


class MissingRights(Exception):
    """The user lacks rights; the message has one line per right, with the command that grants
    it.
    """

    reason = "missing_rights"
    retriable = False


async def missing_rights(
    settings: Settings, role: Role, *, beside: Iterable[Right] = ()
) -> list[Right]:
    """Return the rights that a role needs and this user does not have, with the rights in `beside`
    counted to the role; topics that do not exist are left out.

    Raises:
        KafkaError: Kafka does not answer, or rejects the user of these settings.
    """
    wanted = [*rights(settings, role), *beside]
    allowed = await allowed_operations(
        settings.kafka_auth(),
        sorted({right.name for right in wanted if right.resource == "topic"}),
        {right.name for right in wanted if right.resource == "group"},
    )
    missing = [
        right for right in wanted if not _allows(allowed.get((right.resource, right.name)), right)
    ]
    # Kafka lists no rights of a topic that the client must not describe: the right to describe it
    # is asked for first.
    unseen = {
        right.name
        for right in missing
        if right.operation is not Operation.DESCRIBE_CONFIGS and not _seen(allowed, right)
    }
    return [
        right
        for right in missing
        if right.operation is not Operation.DESCRIBE_CONFIGS or right.name not in unseen
    ]


async def require_rights(
    settings: Settings, role: Role, *, names: Collection[str] | None = None
) -> None:
    """Raise MissingRights if the user lacks a right. On a listener without login there are no
    users, so nothing is checked.

    Args:
        names: topics to which the check is limited.
    """
    if settings.security_protocol == "PLAINTEXT":
        return
    missing = [
        right
        for right in await missing_rights(settings, role)
        if names is None or right.name in names
    ]
    if missing:
        raise MissingRights(sentences(missing, settings))


def sentences(missing: Iterable[Right], settings: Settings) -> str:
    """Return a sentence for each missing right, with the command that grants it."""
    user = settings.sasl_username or "(the name in its certificate)"
    return "\n".join(
        (
            f"user {user} has no right to {right}: "
            f"`{command(right, principal=f'User:{user}', bootstrap=settings.bootstrap)}`"
        )
        for right in missing
    )


def _seen(allowed: dict[tuple[str, str], int], right: Right) -> bool:
    return allowed.get((right.resource, right.name)) != 0


def _allows(operations: int | None, right: Right) -> bool:
    # Bit n stands for operation n (KIP-430). Rights that Kafka does not tell do not count as
    # missing.
    return operations is None or operations == UNKNOWN or bool(operations >> right.operation & 1)
