"""A worker that takes its event loop for busy: fetches leave the longest tick apart."""

import runpy

from streams.faust import fetch_pace

if __name__ == "__main__":
    fetch_pace.BusyShare = lambda: lambda: 1.0  # type: ignore[assignment,misc]
    runpy.run_module("tests.integration.service_worker", run_name="__main__")
