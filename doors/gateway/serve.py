"""Run the gateway until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
import uvloop
from fastapi import FastAPI

from doors.console.failures import Failure
from doors.gateway.api_keys import BadKeys, Keys
from doors.gateway.app import build_gateway
from doors.gateway.origin import is_loopback
from doors.gateway.protocol import KEEP_ALIVE, GuardedProtocol
from streams.settings import Settings
from streams.settings_problems import BadSettings

CLOSING = 15
"""Seconds that open requests have to finish at shutdown."""


def keys_of(settings: Settings) -> Keys | None:
    """Return the API keys; None if none are set and the gateway listens on loopback.

    Raises:
        BadSettings: the list cannot be read, or is empty although other machines can call.
    """
    text = settings.gateway_keys
    try:
        keys = None if text is None else Keys.parse(text.get_secret_value())
    except BadKeys as error:
        raise BadSettings(f"PB_GATEWAY_KEYS: {error}") from error
    if not keys and not is_loopback(settings.gateway_bind):
        raise BadSettings(
            f"PB_GATEWAY_BIND={settings.gateway_bind} can be reached from elsewhere, and there "
            "are no API keys: "
            "`pbstream gateway --new-key NAME` makes one, PB_GATEWAY_KEYS_FILE names the list"
        )
    # An empty list counts as no list: on loopback no key is required, elsewhere it was refused
    # above.
    return keys or None


class Server(uvicorn.Server):
    """uvicorn's server, but it ends in order on SIGTERM and Ctrl-C and does not raise the signal
    again.

    Attributes:
        setting: beginning of the settings of its address, `PB_GATEWAY`.
        when_started: function that is called with the server's URL once it listens.
    """

    setting: str
    when_started: Callable[[str], object]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and pass the URL to `when_started`.

        Raises:
            Failure: the address is in use; the text names the settings of the address.
        """
        where = f"{self.config.host}:{self.config.port}"
        try:
            await super().startup(sockets)
        except SystemExit:
            if self.lifespan.should_exit:
                raise
            raise Failure(
                f"cannot listen on {where}: give another --port (0 takes a free one), or set "
                f"{self.setting}_PORT or {self.setting}_BIND."
            ) from None
        if self.started:
            port = self.servers[0].sockets[0].getsockname()[1]
            self.when_started(f"http://{self.config.host}:{port}")

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let both signals end the server."""
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self.handle_exit, name, None)
        yield

    def run_until_stopped(self) -> bool:
        """Serve until stopped; return whether the server could start."""
        gc.collect()
        gc.freeze()  # 80,000 objects of the start: looking through them held every request 60 ms
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self.serve())
        return self.started


def server_of(settings: Settings) -> Server:
    """Return the server; it opens nothing yet."""
    config = guarded(
        build_gateway(settings, keys_of(settings)),
        host=settings.gateway_bind,
        port=settings.gateway_port,
        closing=CLOSING,
    )
    # Each connection is a file descriptor; the usual soft limit of 1,024 would refuse the next one.
    _allow_many_connections()
    server = Server(config)
    server.setting = "PB_GATEWAY"
    return server


def guarded(app: FastAPI, *, host: str, port: int, closing: int) -> uvicorn.Config:
    """Return uvicorn's settings for an app that strangers may call: bounded connections, no server
    header, our own log.

    Args:
        closing: seconds in which open requests may end.
    """
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=GuardedProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=closing,
    )


def _allow_many_connections() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
