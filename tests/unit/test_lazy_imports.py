"""What a worker and a command line import when they start: nothing that only development needs."""

import subprocess
import sys

import pytest

from tests.integration.service import ROOT


@pytest.mark.parametrize("module", ["streams.cli.commands", "streams.service.worker"])
def test_the_development_broker_is_imported_only_where_it_is_started(module: str) -> None:
    unwanted = ("streams.broker", "testcontainers", "tests")
    code = (
        f"import sys, {module}; print([name for name in sys.modules if "
        f"name.startswith({unwanted})])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
