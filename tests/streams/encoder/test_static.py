"""The default encoder on the table that is shipped."""

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers.implementations import BertWordPieceTokenizer

from streams.encoder.encoder_by_settings import (
    backend_of,
    dimensions_of,
    encoder_of,
    load_encoder,
    projections_of,
)
from streams.encoder.encoder_errors import EncoderError, UnusablePrompt
from streams.encoder.general_projection import GENERAL, SOURCE_FILE, drawn_texts, hash_texts
from streams.encoder.projected_encoder import Encoder
from streams.encoder.projection import Projection
from streams.encoder.sentence_encoder import Reading
from streams.encoder.static import SHIPPED, StaticEncoder
from streams.encoder.token_table import read_table
from streams.encoder.word_pieces import Words
from streams.encoder.zipf import token_frequencies
from streams.settings import Settings

LANGUAGES = [
    "Why is the sky blue?",
    "Warum ist der Himmel blau?",
    "Pourquoi le ciel est-il bleu ? Ça m'étonne…",
    "Почему небо голубое?",
    "天空为什么是蓝色的?",
    "空はなぜ青いのですか。",
    "왜 하늘은 파란가요?",
    "لماذا السماء زرقاء؟",
    "आसमान नीला क्यों है?",
    "def merge(a: list[int], b: list[int]) -> list[int]:\n    return sorted(a + b)\n",
    "x",
    "Hello",
    "42",
    "?",
    "🙂",
    "“Quoted” — naïve café, façade; e\u0301te\u0301",
]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return load_encoder()


@pytest.fixture(scope="module")
def reference_ids() -> Callable[[str], list[int]]:
    """Return the library's tokenizer of BERT over the shipped vocabulary."""
    tokenizer = BertWordPieceTokenizer(str(SHIPPED / "vocab.txt"))
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


@given(st.text(max_size=200) | st.text(st.characters(max_codepoint=127), max_size=200))
def test_tokens_are_those_of_the_models_own_tokenizer(
    reference_ids: Callable[[str], list[int]], text: str
) -> None:
    text = text.replace("[", "(")
    assert sorted(SHIPPED_WORDS.token_ids(text)) == sorted(reference_ids(text))


@pytest.mark.parametrize(
    "text",
    [
        *LANGUAGES,
        "a" * 101 + " b",
        "nbsp\u00a0and\u2028lines\x85",
        "tab\tline\nreturn\r\x0bdel\x7fete",
    ],
)
def test_tokens_are_those_of_the_models_own_tokenizer_in_any_language(
    reference_ids: Callable[[str], list[int]], text: str
) -> None:
    for _ in range(2):  # the second time its words are remembered
        assert sorted(SHIPPED_WORDS.token_ids(text)) == sorted(reference_ids(text))


SHIPPED_WORDS = Words(SHIPPED / "vocab.txt")


def test_the_names_of_special_tokens_are_text() -> None:
    assert not {100, 101, 102, 103} & set(SHIPPED_WORDS.token_ids("[CLS] [SEP] [MASK] é[SEP]"))


def test_contexts_fit_a_router_as_it_is_declared_by_default(encoder: Encoder) -> None:
    contexts = encoder.encode(LANGUAGES)
    assert contexts.shape == (len(LANGUAGES), 26)
    assert (contexts[:, -1] == 1.0).all()
    assert len(np.unique(contexts, axis=0)) == len(LANGUAGES)


def test_no_prompt_is_an_outlier_not_even_one_word_or_one_word_again_and_again(
    encoder: Encoder,
) -> None:
    contexts = encoder.encode([*LANGUAGES, "word " * 50_000, "\u200b", "漢字" * 10_000])
    # Twenty-five numbers of variance 1 have length 5.
    assert np.linalg.norm(contexts[:, :-1], axis=1).max() < 12.0


def test_an_embedding_is_the_mean_over_all_tokens(
    reference_ids: Callable[[str], list[int]],
) -> None:
    table, prompt = read_table(SHIPPED), "The merged lists are sorted, naïvely; 12 times. " * 200
    mean = (table.values[reference_ids(prompt)].astype(np.float64) * table.scale).mean(axis=0)
    np.testing.assert_allclose(
        StaticEncoder().embed([prompt])[0], mean / np.linalg.norm(mean), rtol=1e-12
    )


def test_the_end_of_a_prompt_of_a_hundred_thousand_tokens_counts(encoder: Encoder) -> None:
    system = (
        "You are a helpful assistant. Answer in one sentence, and say when you do not know. "
        * 5_500
    )
    first, second = encoder.encode(
        [system + "Why is the sky blue? " * 5_000, system + "def f(x): return x " * 5_000]
    )
    assert encoder.reading(system) == Reading(tokens := 19 * 5_500, tokens)
    assert np.linalg.norm(first - second) > 0.5


def test_a_context_is_the_same_to_the_bit_whatever_was_encoded_before_or_is_beside_it(
    encoder: Encoder,
) -> None:
    prompts = [*LANGUAGES, "long " * 20_000 + "ünd " * 20_000, "z" * 300_000]
    together = encoder.encode(prompts)
    alone = np.concatenate([load_encoder().encode([prompt]) for prompt in prompts])
    backwards = encoder.encode(prompts[::-1])[::-1]
    assert together.tobytes() == alone.tobytes() == backwards.tobytes()


def test_a_long_prompt_is_cut_between_words_alone() -> None:
    text = " ".join(f"word{n}, naïve{n}-né{n}!?\n" for n in range(300))
    whole = sorted(SHIPPED_WORDS.token_ids(text))
    for piece in (*range(1, 12), 39):
        cut = Words(SHIPPED / "vocab.txt", piece=piece)
        assert sorted(cut.token_ids(text)) == whole


def test_the_memory_of_words_is_bounded_and_changes_nothing() -> None:
    text = " ".join(f"w{n}x" for n in range(200))
    whole = sorted(SHIPPED_WORDS.token_ids(text))
    small = Words(SHIPPED / "vocab.txt", remembered=50)
    for part in (text, text[:200], "y" * 101, text[200:], text):
        small.token_ids(part)
        assert len(small._known) <= 50 + len(small._vocabulary)
    assert sorted(small.token_ids(text)) == whole


@pytest.mark.parametrize(
    ("prompt", "problem"), [("", "blank"), (" \n\t", "blank"), ("\ud800", "Unicode")]
)
def test_a_prompt_with_nothing_to_encode_is_refused(
    encoder: Encoder, prompt: str, problem: str
) -> None:
    with pytest.raises(UnusablePrompt, match=problem) as refused:
        encoder.encode(["fine", prompt])
    assert refused.value.position == 1


def test_characters_without_a_token_make_a_finite_context(encoder: Encoder) -> None:
    assert np.isfinite(encoder.encode(["\x00\x01", "\u200b\u200c"])).all()


def test_a_process_that_encodes_has_no_heavy_library_and_stays_small() -> None:
    code = """
        import json, sys, psutil
        from streams.encoder.encoder_by_settings import load_encoder
        load_encoder().encode(["one prompt", "a long one " * 30_000])
        heavy = {"torch", "onnxruntime", "sentence_transformers", "transformers", "sklearn"}
        found = sorted((heavy | {"safetensors", "scipy"}) & set(sys.modules))
        print(json.dumps([found, psutil.Process().memory_info().rss / 2**20]))
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    heavy, megabytes = json.loads(done.stdout)
    assert heavy == []
    assert megabytes < 120


def test_what_is_shipped_is_small_and_says_where_it_is_from() -> None:
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 4.5e6
    source = json.loads((SHIPPED / "table.json").read_text())["source"]
    assert source["license"] == "Apache-2.0"
    assert len(source["weights_sha256"]) == 64


def test_frequencies_are_shares_and_special_tokens_have_none() -> None:
    frequencies = token_frequencies(["[PAD]", "[unused1]", "!", "a", "é", "the", "of", "##s"])
    assert frequencies.sum() == pytest.approx(1.0)
    assert frequencies[:2].tolist() == [0.0, 0.0]
    assert frequencies[5] == pytest.approx(2 * frequencies[6])


@pytest.mark.parametrize("damaged", ["table.npy", "vocab.txt", "table.json"])
def test_a_damaged_table_is_refused(tmp_path: Path, damaged: str) -> None:
    for path in SHIPPED.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    with (tmp_path / damaged).open("r+b") as file:
        file.seek(20)
        file.write(b"\xff\xff")
    with pytest.raises(EncoderError, match="encoder distill"):
        StaticEncoder(tmp_path)


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match="no table of token vectors"):
        StaticEncoder(tmp_path)


def test_without_settings_the_table_makes_26_numbers() -> None:
    assert backend_of(Settings()) == "static"
    assert dimensions_of(Settings()) == encoder_of(Settings()).dimensions == 26


def test_a_table_of_ones_own_is_used(tmp_path: Path) -> None:
    for path in SHIPPED.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert backend_of(Settings(encoder_path=tmp_path)) == "static"
    assert encoder_of(Settings(encoder_path=tmp_path)).identity == load_encoder().identity


@pytest.mark.parametrize("named", ["onnx", "sentence-transformers"])
def test_a_named_network_makes_26_numbers_and_385_for_routers_of_that_size(named: str) -> None:
    settings = Settings.model_validate({"encoder_backend": named})
    assert backend_of(settings) == named
    assert dimensions_of(settings) == 26
    assert [found.dimensions for found in projections_of(settings)] == [26, 385]


def test_the_general_projection_of_the_network_is_small_and_says_where_it_is_from() -> None:
    assert sum(path.stat().st_size for path in GENERAL.iterdir()) < 25_000
    source = json.loads((GENERAL / SOURCE_FILE).read_text())
    assert source["checksum"] == Projection.load(GENERAL).checksum
    assert source["texts_sha256"] == hash_texts(drawn_texts())
    assert source["license"] == "Apache-2.0"


def test_settings_that_only_a_network_has_mean_the_network(tmp_path: Path) -> None:
    Projection(np.zeros(384), np.eye(384)[:3], np.ones(3)).save(tmp_path)
    assert backend_of(Settings(encoder_path=tmp_path)) == "onnx"
    assert backend_of(Settings(encoder_weights="a/model")) == "onnx"
    assert backend_of(Settings(projection_path=tmp_path)) == "onnx"
    assert dimensions_of(Settings(projection_path=tmp_path)) == 4


def test_a_projection_fitted_with_another_encoder_is_refused(tmp_path: Path) -> None:
    Projection(np.zeros(384), np.eye(384)[:3], np.ones(3)).save(tmp_path)
    with pytest.raises(EncoderError, match="width 384"):
        encoder_of(Settings(encoder_backend="static", projection_path=tmp_path))
