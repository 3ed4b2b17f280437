"""What a worker and a command line import when they start: nothing that only development needs."""

import subprocess
import sys

import pytest

from commands.cli.loading import COMMANDS
from streams.service.worker import build_worker
from streams.settings import Settings
from tests.integration.service import ROOT


@pytest.mark.parametrize("module", ["commands.cli.commands", "streams.service.worker"])
def test_the_development_broker_is_imported_only_where_it_is_started(module: str) -> None:
    unwanted = ("commands.broker", "testcontainers", "tests")
    code = (
        f"import sys, {module}; print([name for name in sys.modules if "
        f"name.startswith({unwanted})])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_first_page_of_help_starts_no_event_loop() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "commands.cli", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "commands.cli.commands" in done.stderr and "asyncio" not in done.stderr


HEAVY = ("aiokafka", "faust", "litellm", "matplotlib", "numpy", "pydantic_settings", "redis")
"""What takes tenths of a second to import, and no page of help needs."""


def test_the_help_of_no_command_waits_for_heavy_imports() -> None:
    code = f"""
import sys
from click.testing import CliRunner
from commands.cli import main
for name in {[*COMMANDS]!r}:
    shown = CliRunner().invoke(main, [name, "--help"])
    found = [heavy for heavy in {HEAVY!r} if heavy in sys.modules]
    assert not shown.exit_code and not found, (name, found)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


async def test_a_worker_is_built_without_a_look_at_every_module_and_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("Faust looks through all that is installed or imported")

    for name in ("inspect.getmodule", "mode.utils.imports.load_extension_class_names"):
        monkeypatch.setattr(name, refuse)
    app = build_worker(Settings(bootstrap="127.0.0.1:9", encoder_backend="none"))
    assert app.tables["router_states"].data == {}
