"""A worker that takes its event loop for busy: fetches leave the longest tick apart."""

import runpy
from unittest.mock import patch

if __name__ == "__main__":
    with patch("streams.faust.fetch_pace.BusyShare", lambda: lambda: 1.0):
        runpy.run_module("tests.integration.service_worker", run_name="__main__")
