"""Parts of an encoder that are missing say what to install; the paper's benchmark is whole."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.data import load_benchmark, wheel_folder, wheel_priors, wheel_projection
from streams.encoder.errors import EncoderError
from streams.encoder.onnx import OnnxEncoder
from streams.encoder.weights import find_weights


def test_missing_weights_say_what_to_name() -> None:
    code = (
        "from streams.encoder.load import load_encoder; load_encoder(backend='onnx', "
        "weights='nobody/none')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        check=False,
    )
    assert done.returncode == 1
    assert "nobody/none is neither a folder nor an installed package" in done.stderr
    assert "a name on the Hugging Face hub" in done.stderr


def test_an_incomplete_weights_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match="holds no config"):
        find_weights(str(tmp_path))


def test_a_folder_without_an_export_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match="pbstream encoder export"):
        OnnxEncoder(tmp_path, threads=1)


def test_the_benchmark_is_whole_and_its_priors_fit_its_contexts() -> None:
    benchmark, priors = load_benchmark("val", encoder="static", limit=40), wheel_priors()
    assert benchmark.contexts.shape == (40, 26) == (len(benchmark), priors.dimensions)
    assert benchmark.models == priors.models
    assert benchmark.rewards.shape == benchmark.costs.shape == (40, 3)
    assert priors.projection == wheel_projection().checksum
    lines = (wheel_folder() / "data/examples/test_holdout.jsonl").read_bytes().splitlines()
    assert len(lines) == 1824
