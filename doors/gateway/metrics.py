"""Define the metrics of a gateway."""

from collections.abc import Iterable

from prometheus_client import Counter, Gauge, Histogram

from streams.process_metrics import new_registry

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of a histogram's buckets, seconds."""

STATUSES = (200, 202, 207, 400, 401, 403, 404, 413, 415, 422, 429, 500, 503, 504)
"""HTTP statuses whose counters exist from the start."""


class GatewayMetrics:
    """The metrics of a gateway, all with the prefix `pb_gateway_`."""

    def __init__(self) -> None:
        registry = self.registry = new_registry()
        self.requests = Counter(
            "pb_gateway_requests_total", "Requests answered", ["what", "status"], registry=registry
        )
        self.seconds = Histogram(
            "pb_gateway_seconds",
            "Seconds until the response",
            ["what"],
            buckets=SECONDS,
            registry=registry,
        )
        self.waiting = Gauge(
            "pb_gateway_waiting", "Requests that are waiting for their decision", registry=registry
        )
        self.late = Gauge(
            "pb_gateway_late", "Decisions that came when nobody waited any more", registry=registry
        )
        self.ready = Gauge(
            "pb_gateway_ready",
            "1 while events can be sent and decisions are read",
            registry=registry,
        )

    def begin_at_zero(self, names: Iterable[str]) -> None:
        """Create every series at zero, so that its first increase is seen.

        Args:
            names: names of the paths.
        """
        # A counter that appears with its first failure has no increase that an alert could see.
        for name in (*names, "other"):
            self.seconds.labels(what=name)
            for status in STATUSES:
                self.requests.labels(what=name, status=status)
