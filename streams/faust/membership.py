"""Be a member of the group: with a session that the broker grants, and not any longer than the
group says.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from aiokafka.errors import InvalidSessionTimeoutError

if TYPE_CHECKING:
    from aiokafka.consumer.group_coordinator import GroupCoordinator
    from aiokafka.consumer.subscription_state import Subscription
    from faust.types import AppT

log = logging.getLogger(__name__)

#: The shortest session that a broker grants unless `group.min.session.timeout.ms` says otherwise,
#: seconds.
USUAL_SESSION = 6.0


def membership_error(app: AppT) -> BaseException | None:
    """Return the error that has ended this worker's membership, None while there is none or nothing
    has started.

    aiokafka keeps it for a call that Faust never makes.
    """
    consumer = None if app._consumer is None else app._consumer._thread._consumer
    coordinator = None if consumer is None else consumer._coordinator
    if coordinator is None:
        return None
    task = coordinator._coordination_task
    if (
        coordinator._pending_exception is None
        and task is not None
        and task.done()
        and not task.cancelled()
    ):
        return task.exception()  # type: ignore[no-any-return]
    return coordinator._pending_exception  # type: ignore[no-any-return]


def accept_longer_session(coordinator: GroupCoordinator, extend: Callable[[float], None]) -> None:
    """Join again with the session that every broker grants, where this one refuses a shorter one.

    Args:
        extend: told the session's new length in seconds.
    """
    join = coordinator._do_rejoin_group

    async def rejoin(subscription: Subscription) -> bool:
        try:
            return bool(await join(subscription))
        except InvalidSessionTimeoutError:
            asked = coordinator._session_timeout_ms / 1000
            if asked >= USUAL_SESSION:
                raise
            log.warning(
                "the broker grants no session of %g s, it is %g s now "
                "(group.min.session.timeout.ms)",
                asked,
                USUAL_SESSION,
            )
            coordinator._session_timeout_ms = int(USUAL_SESSION * 1000)
            extend(USUAL_SESSION)
            return False

    coordinator._do_rejoin_group = rejoin
