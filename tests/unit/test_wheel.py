"""The wheel has one name in site-packages, and lives beside distributions that have an `agents` of
their own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOREIGN = "NAME = 'another distribution'\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from what is in this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    uv = shutil.which("uv") or str(ROOT / ".cache" / "uv" / "bin" / "uv")
    subprocess.run(
        [uv, "build", "--wheel", "--quiet", "--out-dir", str(folder), str(ROOT)],
        check=True,
        timeout=240,
    )
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder like site-packages, with the wheel and with another distribution's `agents`
    and `schemas`.
    """
    folder = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(folder)
    for name in ("agents", "schemas"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(FOREIGN)
    return folder


def python(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run this Python elsewhere than in the checkout, with `site` in front of what is installed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command, env = [sys.executable, *arguments], {**kept, "PYTHONPATH": str(site)}
    return subprocess.run(
        command, env=env, cwd=site.parent, capture_output=True, text=True, check=False, timeout=120
    )


def test_wheel_has_one_name_no_benchmarks_and_its_data(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {
        "paretobandit_streams"
    }
    assert "paretobandit_streams/py.typed" in names
    assert "paretobandit_streams/streams/broker/server.properties" in names
    for asset in (
        "drawing/assets/chart.js",
        "drawing/assets/style.css",
        "dashboard/assets/main.js",
    ):
        assert f"paretobandit_streams/streams/{asset}" in names
    assert not [name for name in names if "benchmarks" in name or "tests/" in name]


def test_command_runs_beside_another_agents_and_so_do_its_children(site: Path) -> None:
    ran = python(site, "-m", "paretobandit_streams", "--version")
    assert ran.returncode == 0, ran.stderr
    child = (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import agents; "
        "print(agents.__file__)'], check=True)"
    )
    ran = python(
        site,
        "-c",
        (
            "from paretobandit_streams import enter; enter(); import agents; "
            f"print(agents.__file__, flush=True); {child}"
        ),
    )
    ours = str(site / "paretobandit_streams" / "agents" / "__init__.py")
    assert ran.stdout.split() == [ours, ours], ran.stderr


def test_others_keep_their_agents(site: Path) -> None:
    ran = python(site, "-c", "import paretobandit_streams, agents; print(agents.NAME)")
    assert ran.stdout == "another distribution\n", ran.stderr


def test_process_that_imported_another_agents_is_refused(site: Path) -> None:
    ran = python(site, "-c", "import agents, paretobandit_streams; paretobandit_streams.enter()")
    assert ran.returncode == 1
    assert "ForeignPackage: another 'agents' is imported here already" in ran.stderr
