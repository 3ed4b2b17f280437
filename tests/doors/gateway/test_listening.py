"""The addresses of `pbstream gateway` and `pbstream dashboard`: a free port is told, and one in use
is an error that says what to set.
"""

import socket
from typing import Any

import pytest

from doors.console.failures import Failure
from doors.gateway.serve import Server
from doors.gateway.serve import server_of as gateway_of
from streams.settings import load_settings
from watching.dashboard.serve_dashboard import server_of
from watching.dashboard.visitors import Sessions

SETTINGS: dict[str, Any] = {"bootstrap": "127.0.0.1:1"}


def made(name: str, port: int) -> Server:
    """Return a server of this kind; no Kafka answers it."""
    settings = load_settings(**SETTINGS, gateway_port=port, dashboard_port=port)
    return gateway_of(settings) if name == "gateway" else server_of(settings, Sessions(None, None))


@pytest.mark.parametrize("name", ["gateway", "dashboard"])
def test_the_free_port_that_was_taken_is_told(name: str) -> None:
    server, told = made(name, 0), []

    def started(where: str) -> None:
        told.append(where)
        server.should_exit = True

    server.when_started = started
    assert server.run_until_stopped()
    (where,) = told
    host, _, port = where.rpartition(":")
    assert (host, int(port) > 0) == ("http://127.0.0.1", True)


@pytest.mark.parametrize("name", ["gateway", "dashboard"])
def test_a_port_in_use_is_an_error_with_the_setting_to_change(name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = made(name, port)
        server.when_started = lambda where: pytest.fail(f"it listens on {where}")
        with pytest.raises(Failure) as failure:
            server.run_until_stopped()
    assert f"127.0.0.1:{port}: give another --port (0 takes a free one)" in failure.value.message
    assert f"PB_{name.upper()}_PORT or PB_{name.upper()}_BIND" in failure.value.message
