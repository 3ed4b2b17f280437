"""Run the dashboard until it is told to stop."""

from __future__ import annotations

from types import FrameType

from doors.gateway.api_keys import BadKeys, Keys, new_key
from doors.gateway.origin import is_loopback
from doors.gateway.serve import Server, guarded
from streams.settings import Settings
from streams.settings_problems import BadSettings
from watching.dashboard.dashboard_app import Dashboard, build_dashboard
from watching.dashboard.visitors import Sessions

CLOSING = 5
"""Seconds that open pages have to finish at shutdown."""


class DashboardServer(Server):
    """uvicorn's server, which ends its streams before it stops."""

    board: Dashboard

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop."""
        # Streams never end by themselves, and the server waits for open answers.
        self.board.closing.set()
        super().handle_exit(sig, frame)


def sessions_of(
    settings: Settings, *, admin: bool, labels: bool = False
) -> tuple[Sessions, str | None]:
    """Return the sessions, and a new operator's key if `admin` is set on loopback without a list of
    operators.

    Args:
        labels: whether whoever may read a router may label its answers.

    Raises:
        BadSettings: a list cannot be read, or is missing although other machines can call.
    """
    keys = _keys(settings, "dashboard_keys")
    local = is_loopback(settings.dashboard_bind)
    if keys is None and not local:
        raise BadSettings(
            f"PB_DASHBOARD_BIND={settings.dashboard_bind} can be reached from elsewhere, and there "
            "are no API keys: `pbstream gateway --new-key NAME` makes one, PB_DASHBOARD_KEYS_FILE "
            "names the list"
        )
    if not admin:
        return Sessions(keys, None, takes_labels=labels), None
    admins = _keys(settings, "dashboard_admin_keys")
    if admins is not None:
        return Sessions(keys, admins, takes_labels=labels), None
    if not local:
        raise BadSettings(
            "--admin where others can call needs a list of operators' keys: "
            "PB_DASHBOARD_ADMIN_KEYS_FILE names it, `pbstream gateway --new-key NAME` makes one"
        )
    # A key for this run, so that on your own machine no list is needed.
    key, line = new_key("operator", routers="*")
    return Sessions(keys, Keys.parse(line), takes_labels=labels), key


def _keys(settings: Settings, name: str) -> Keys | None:
    text = getattr(settings, name)
    try:
        return None if text is None else Keys.parse(text.get_secret_value()) or None
    except BadKeys as error:
        raise BadSettings(f"PB_{name.upper()}: {error}") from error


def server_of(settings: Settings, sessions: Sessions) -> DashboardServer:
    """Return the server; opens nothing."""
    app = build_dashboard(settings, sessions)
    config = guarded(
        app, host=settings.dashboard_bind, port=settings.dashboard_port, closing=CLOSING
    )
    server = DashboardServer(config)
    server.setting, server.board = "PB_DASHBOARD", app.state.board
    return server
