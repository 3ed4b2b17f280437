"""Publish the metrics of every process: its build and its resources."""

import platform
import sys
from importlib.metadata import version

from prometheus_client import (
    CollectorRegistry,
    Gauge,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)

# The client would add a second series for each counter, its time of creation, which nothing here
# uses.
disable_created_metrics()  # type: ignore[no-untyped-call]


def new_registry() -> CollectorRegistry:
    """Return a new registry that holds `pb_build_info`, `process_*` and `python_*`."""
    registry = CollectorRegistry()
    build = Gauge(
        "pb_build_info",
        "1; its labels say what runs",
        ["version", "python", "faust_streaming", "aiokafka", "core"],
        registry=registry,
    )
    service, framework, client = (
        version(name) for name in ("paretobandit-streams", "faust-streaming", "aiokafka")
    )
    build.labels(service, platform.python_version(), framework, client, core()).set(1)
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    return registry


def core() -> str:
    """Return `compiled` where the core's kernel is loaded; `none` in a process that does not run
    it, as a gateway."""
    return "compiled" if "router_state.kernel" in sys.modules else "none"
