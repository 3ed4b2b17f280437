"""Serve /livez, /readyz and /metrics, without state or contents of events."""

from collections.abc import Callable

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder


class Web:
    """A small HTTP server beside the worker, up before the first recovery.

    Args:
        not_ready: function that returns why the worker is not ready, None if it is.
        before_scrape: function that brings gauges up to date.
        bind: address to listen on; port 0 takes any free one.
    """

    def __init__(
        self,
        *,
        bind: str,
        port: int,
        registry: CollectorRegistry,
        not_ready: Callable[[], str | None],
        before_scrape: Callable[[], None],
    ) -> None:
        self._bind = bind
        self._port = port
        self._registry = registry
        self._not_ready = not_ready
        self._before_scrape = before_scrape
        self._runner: web.AppRunner | None = None

    @property
    def port(self) -> int:
        """Return the port in use, once started."""
        if self._runner is None or not self._runner.addresses:
            return self._port
        return int(self._runner.addresses[0][1])

    @property
    def address(self) -> str:
        """Return host and port."""
        return f"{self._bind}:{self.port}"

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: the address is in use; the text names the setting of the port.
        """
        app = web.Application()
        app.router.add_get("/livez", self._livez)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._bind, self._port).start()
        except OSError as error:
            hint = (
                f"cannot listen on {self._bind}:{self._port}: {error.strerror}; give another "
                "--port (0 takes a free one), or set PB_WEB_PORT or PB_WEB_BIND"
            )
            raise OSError(error.errno, hint) from error

    async def stop(self) -> None:
        """Close the server."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _livez(self, request: web.Request) -> web.Response:
        return web.Response(text="alive\n")

    async def _readyz(self, request: web.Request) -> web.Response:
        reason = self._not_ready()
        return (
            web.Response(text=f"{reason}\n", status=503) if reason else web.Response(text="ready\n")
        )

    async def _metrics(self, request: web.Request) -> web.Response:
        self._before_scrape()
        # OpenMetrics, which Prometheus asks for, includes exemplars.
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(self._registry), headers={"Content-Type": content_type})
