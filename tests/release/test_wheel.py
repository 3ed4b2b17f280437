"""The wheel has one name in site-packages, lives beside distributions that have an `agents` of
their own, and is installed with the words of docs/how-to/connect.md, as the client is.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from paretobandit_streams import FOLDERS as ROOMS
from tests.pages import PAGES

ROOT = Path(__file__).parents[2]
FOREIGN = "NAME = 'another distribution'\n"


UV = shutil.which("uv") or str(ROOT / ".cache" / "uv" / "bin" / "uv")


def uv(*words: str, **environment: str) -> None:
    """Run uv in the checkout."""
    # The checkout's own environment is not the one that is meant.
    own = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    ran = subprocess.run(
        [UV, *words],
        cwd=ROOT,
        env={**own, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert ran.returncode == 0, ran.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from what is in this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    uv("build", "--wheel", "--quiet", "--out-dir", str(folder), str(ROOT))
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
    assert "paretobandit_streams/commands/broker/server.properties" in names
    for asset in (
        "drawing/assets/chart.js",
        "drawing/assets/style.css",
        "watching/dashboard/assets/main.js",
    ):
        assert f"paretobandit_streams/{asset}" in names
    assert not [name for name in names if "benchmarks" in name or "tests/" in name]


def test_the_wheel_has_the_kernel_compiled_and_an_sdist_without_a_compiler_says_so(
    wheel: Path, tmp_path: Path
) -> None:
    assert "-none-any" not in wheel.name
    zipfile.ZipFile(wheel).extractall(tmp_path / "built")
    code = "from paretobandit_streams import enter; enter(); import router_state.kernel"
    ran = python(tmp_path / "built", "-W", "error", "-c", code)
    assert ran.returncode == 0, ran.stderr
    for built in (tmp_path / "built").rglob("*.so"):
        built.unlink()
    assert "run tools/setup" in python(tmp_path / "built", "-c", code).stderr
    uv("build", "--sdist", "--quiet", "--out-dir", str(tmp_path), str(ROOT))
    sdist = next(tmp_path.glob("*.tar.gz"))
    with pytest.raises(AssertionError, match="/nowhere/cc"):
        nowhere = {"CC": "/nowhere/cc"}
        uv("build", "--wheel", "--out-dir", str(tmp_path), str(sdist), **nowhere)


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


PAGE = (ROOT / "docs/how-to/connect.md").read_text()
INSTALLS = re.findall(r"^pip install (.+)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("wanted", INSTALLS)
def test_what_the_page_installs_runs_in_an_environment_of_its_own(
    wanted: str, tmp_path: Path
) -> None:
    targets = shlex.split(wanted)
    service = targets[-1].startswith(".[") or targets[-1] == "."
    extras = re.findall(r"\w+", targets[-1].partition("[")[2])
    package = "paretobandit-streams" if service else "paretobandit-client"
    locked = ["sync", "--frozen", "--offline", "--no-install-workspace", "--package", package]
    # The dependencies from the lock, by what uv's cache holds; then the words of the page.
    uv(*locked, *(f"--extra={one}" for one in extras), UV_PROJECT_ENVIRONMENT=str(tmp_path / "env"))
    python = tmp_path / "env" / "bin" / "python"
    uv("pip", "install", "--offline", "--python", str(python), *targets)
    proofs = {
        "": "from paretobandit_client import Router; Router('chat')",
        "http": "from paretobandit_client import Router; Router('chat', url='http://127.0.0.1:1')",
        "litellm": "from importlib.util import find_spec as found; assert found('litellm')",
        "replay": "import pyarrow",
        "tracing": "import opentelemetry.sdk",
    }
    for name in ("", *extras):
        ran = run(python, "-I", "-c", proofs[name])
        assert ran.returncode == 0, ran.stderr
    if service:
        assert "version" in run(python.with_name("pbstream"), "--version").stdout
    elif not extras:
        # What is missing is said with the words of the page.
        assert f"pip install {INSTALLS[1]}" in run(python, "-I", "-c", proofs["http"]).stderr


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command elsewhere than in the checkout."""
    return subprocess.run(
        command, cwd="/", capture_output=True, text=True, check=False, timeout=120
    )


def test_a_project_of_uv_takes_the_client_from_a_checkout(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "theirs"\nversion = "0"\nrequires-python = ">=3.11"\n'
    )
    adding = ["add", "--frozen", "--offline", "--directory", str(tmp_path), str(ROOT / "client")]
    uv(*adding, "--extra", "http")
    theirs = tomllib.loads((tmp_path / "pyproject.toml").read_text())
    assert theirs["project"]["dependencies"] == ["paretobandit-client[http]"]


def test_nothing_is_said_to_come_from_an_index_that_does_not_have_it() -> None:
    pages = [ROOT / page for page in PAGES]
    code = [one for where in (*ROOMS, "client/src") for one in ROOT.glob(f"{where}/**/*.py")]
    advice = re.compile(r"""(pip install|uv add)[\s"'`]+paretobandit-(client|streams)""")
    told = [one for one in (*pages, *code, *ROOT.glob("examples/**/*")) if one.is_file()]
    assert len(told) > 300
    assert [one for one in told if advice.search(one.read_text(encoding="utf-8"))] == []
