"""The image: what is in it, and what is not."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IMAGE = "paretobandit-streams:test"


@pytest.fixture(scope="module")
def image() -> str:
    """Build the image; layers that have not changed come from the builder's cache."""
    command = ["docker", "build", "-q", "-f", "docker/Dockerfile", "-t", IMAGE, "."]
    built = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=280
    )
    assert built.returncode == 0, built.stderr[-3000:]
    return IMAGE


@pytest.fixture(scope="module")
def inside(image: str) -> Iterator[str]:
    """Yield the id of a container of the image that only waits."""
    command = ["docker", "run", "-d", "--entrypoint", "sleep", image, "300"]
    container = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    try:
        yield container
    finally:
        subprocess.run(["docker", "rm", "-f", container], capture_output=True, check=True)


def run(container: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the container."""
    return subprocess.run(
        ["docker", "exec", container, *command], capture_output=True, text=True, check=False
    )


def test_the_command_teaches(image: str) -> None:
    shown = subprocess.run(
        ["docker", "run", "--rm", image, "--help"], capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0, shown.stderr
    assert "worker" in shown.stdout


def test_nothing_runs_as_root(inside: str) -> None:
    assert run(inside, "id", "-u").stdout.strip() == "10001"


@pytest.mark.parametrize("tool", ["gcc", "cc", "g++", "make", "uv"])
def test_no_build_tool_is_left_behind(inside: str, tool: str) -> None:
    assert run(inside, "sh", "-c", f"command -v {tool}").returncode != 0


def test_its_kernel_is_compiled(inside: str) -> None:
    code = (
        "from paretobandit_streams import enter; enter(); "
        "from router_state.kernel.choosing import arm; print(arm.__file__)"
    )
    shown = run(inside, "python", "-W", "error", "-c", code)
    assert shown.stdout.strip().endswith(".so"), shown.stderr


def test_prompts_are_encoded_without_torch_and_without_onnx_runtime(inside: str) -> None:
    code = (
        "import importlib.util as u, paretobandit_streams as p; p.enter(); from "
        "streams.encoder.encoder_by_settings import load_encoder; "
        "print(load_encoder().encode(['Why is the sky blue?']).shape, *map(u.find_spec, "
        "('torch', 'sklearn', 'onnxruntime')))"
    )
    assert run(inside, "python", "-c", code).stdout.strip() == "(1, 26) None None None"


def test_a_worker_is_the_default_and_its_health_is_asked_for(image: str) -> None:
    shown = subprocess.run(
        ["docker", "image", "inspect", image], capture_output=True, text=True, check=True
    )
    config = json.loads(shown.stdout)[0]["Config"]
    assert (config["Entrypoint"], config["Cmd"]) == (["pbstream"], ["worker"])
    assert config["Healthcheck"]["Test"] == ["CMD", "ready"]
    assert config["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"


def test_its_health_is_asked_for_without_python_and_is_bad_without_a_worker(inside: str) -> None:
    assert run(inside, "ready").returncode == 1
    assert "python" not in run(inside, "cat", "/usr/local/bin/ready").stdout
