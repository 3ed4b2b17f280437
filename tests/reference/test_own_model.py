"""Any model of sentence-transformers: fitted, served by a worker, decided again by a replay."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streams.encoder.encoder_errors import EncoderError
from streams.encoder.projection import Projection
from streams.encoder.transformer import TransformerEncoder
from streams.encoder.weights import is_mean_of_tokens, source_of, width_of
from tests.integration.commands import PRICES, done, variables_of
from tests.integration.service import ROOT, running_service

# Torch is loaded by four processes, each of which may wait for a busy machine.
pytestmark = pytest.mark.timeout(900)

TASKS = ("Write a poem about", "Add up", "Prove the claim of", "Tell a story about")
PROMPTS = [f"{task} number {n}" for n in range(16) for task in TASKS]


def python(*arguments: str, **variables: str) -> str:
    """Run code or a module in a process of its own, so that torch stays out of this one."""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        env={**os.environ, **variables},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that no other test has: cut, pooled otherwise, of another width."""
    folder = tmp_path_factory.mktemp("own") / "model"
    python("-m", "tests.reference.own_model", str(folder))
    return folder


def judged(path: Path) -> Path:
    """Write a file of prompts on which one model is the better one at poems and stories."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["prompt", "model", "cost", "score"])
        for n, prompt in enumerate(PROMPTS):
            told = n % 2 == 0
            rows.writerow([prompt, "small", 1e-5, 0.9 if told else 0.4])
            rows.writerow([prompt, "large", 1e-3, 0.6 if told else 0.9])
    return path


def test_a_model_is_known_by_its_files(model: Path) -> None:
    assert (width_of(model), is_mean_of_tokens(model)) == (64, False)
    assert source_of(model).startswith("model-")


async def test_a_model_of_ones_own_is_fitted_served_and_replayed(
    kafka: str, tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "priors" / "own"
    told: dict[str, Any] = json.loads(
        await asyncio.to_thread(
            python,
            "-m",
            "commands.cli",
            "fit",
            str(judged(tmp_path / "rows.csv")),
            str(folder),
            "--encoder",
            f"sentence-transformers:{model}",
            "--components",
            "8",
            "--json",
        )
    )
    variables = told["settings"]
    assert variables == {
        "PB_ENCODER_BACKEND": "sentence-transformers",
        "PB_ENCODER_WEIGHTS": str(model),
    }
    projection = Projection.load(folder)
    assert projection.embedding_width == 64
    assert projection.source == source_of(model)

    variables["PB_PRIORS_PATH"] = str(folder.parent)
    async with running_service(kafka, tmp_path) as service:
        await service.ready(service.worker(**variables))
        there = {**variables_of(service.settings), **variables}
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        for name in ("small", "large"):
            add = ("models", "add", name, *PRICES, "--prior", str(folder))
            await asyncio.to_thread(done, service.settings, *add, router="own")
        for n, prompt in enumerate(PROMPTS):
            event = {"router_id": "own", "request_id": f"{n}", "prompt": prompt}
            await service.post("requests", event)
        await service.until(
            lambda: len(service.routes("own")) == len(PROMPTS) or service.reasons(), "decisions"
        )
        assert service.reasons() == {}
        # It chooses by the prompt, which it has only the contexts of this model to know by.
        chosen = {int(one["request_id"]): one["model"] for one in service.routes("own")}
        right = ["small" if n % 2 == 0 else "large" for n in range(len(PROMPTS))]
        assert sum(chosen[n] == one for n, one in enumerate(right)) > 0.9 * len(PROMPTS)

        verify = ("-m", "commands.cli", "replay", "--verify", "--router", "own", "--json")
        verdict = json.loads(await asyncio.to_thread(python, *verify, **there))
        assert verdict["compared"] == verdict["identical"] == len(PROMPTS)


def test_a_folder_that_is_no_model_says_what_to_do(tmp_path: Path) -> None:
    code = (
        "from streams.encoder.transformer import TransformerEncoder; "
        f"TransformerEncoder({str(tmp_path)!r}, threads=1)"
    )
    with pytest.raises(AssertionError, match=r"(?s)cannot load.*save_pretrained"):
        python("-c", code)


def test_without_the_extra_the_encoder_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(EncoderError, match=r"'\.\[sentence-transformers\]'"):
        TransformerEncoder(str(tmp_path), threads=1)
