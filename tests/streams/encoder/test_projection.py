from pathlib import Path

import numpy as np
import pytest

from ground.files.array_folder import Array, UnusableArrays
from streams.encoder.encoder_errors import EncoderError, UnusablePrompt
from streams.encoder.projected_encoder import Encoder
from streams.encoder.projection import Projection
from streams.encoder.sentence_encoder import Reading
from streams.priors.fitted_priors import Priors, load_priors, prior_for_wire


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def projection(rng: np.random.Generator) -> Projection:
    components = np.linalg.qr(rng.normal(size=(8, 8)))[0][:3]
    return Projection(rng.normal(size=8), components, np.array([4.0, 1.0, 0.25]))


class FixedSentences:
    """Hands out the embeddings it was given."""

    width = 8
    identity = source = "fixed"

    def __init__(self, embeddings: Array) -> None:
        self._embeddings = embeddings

    def embed(self, prompts: object, *, progress: object = None) -> Array:
        return self._embeddings

    def reading(self, prompt: str) -> Reading:
        return Reading(len(prompt), len(prompt))


def test_contexts_are_centred_rotated_whitened_and_end_in_one(projection: Projection) -> None:
    assert projection.components is not None
    embedding = projection.mean + 2.0 * projection.components[0] - 1.0 * projection.components[2]
    np.testing.assert_allclose(
        projection.project(embedding[None]), [[1.0, 0.0, -2.0, 1.0]], atol=1e-12
    )


def test_a_row_has_the_same_context_to_the_bit_alone_and_among_others(
    rng: np.random.Generator,
) -> None:
    projection = Projection.fit(rng.normal(size=(200, 128)), 25)[0]
    embeddings = rng.normal(size=(64, 128))
    alone = np.concatenate([projection.project(row[None]) for row in embeddings])
    assert projection.project(embeddings).tobytes() == alone.tobytes()


def test_a_fit_whitens_and_keeps_what_varies_most(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(500, 6)) * np.array([5.0, 3.0, 1.0, 0.1, 0.1, 0.1]) + 7.0
    projection, kept = Projection.fit(rows, 3)
    contexts = projection.project(rows)[:, :-1]
    np.testing.assert_allclose(np.cov(contexts.T), np.eye(3), atol=1e-9)
    assert 0.99 < kept < 1.0


def test_rows_that_are_all_alike_are_fitted_and_make_finite_contexts() -> None:
    projection, kept = Projection.fit(np.ones((30, 6)), 3)
    assert kept == 1.0
    np.testing.assert_allclose(projection.project(np.ones((2, 6))), [[0.0, 0.0, 0.0, 1.0]] * 2)


def test_identity_only_appends_one(rng: np.random.Generator) -> None:
    embeddings = rng.normal(size=(5, 384))
    projection = Projection.identity()
    assert projection.dimensions == 385
    np.testing.assert_array_equal(
        projection.project(embeddings), np.column_stack([embeddings, np.ones(5)])
    )


@pytest.mark.parametrize("kind", ["fitted", "identity"])
def test_a_saved_projection_is_equal_to_the_bit(
    projection: Projection, tmp_path: Path, kind: str
) -> None:
    saved = projection if kind == "fitted" else Projection.identity(8)
    checksum = saved.save(tmp_path)
    loaded = Projection.load(tmp_path)
    x = np.linspace(-1, 1, 8)[None]
    assert loaded.project(x).tobytes() == saved.project(x).tobytes()
    assert loaded.checksum == saved.checksum == checksum
    assert sorted(path.name for path in tmp_path.iterdir()) == ["projection.json", "projection.npz"]


def test_saving_over_an_older_projection_replaces_it(
    projection: Projection, tmp_path: Path
) -> None:
    Projection.identity(8).save(tmp_path)
    projection.save(tmp_path)
    assert Projection.load(tmp_path).dimensions == 4


def test_exchanged_arrays_are_refused(projection: Projection, tmp_path: Path) -> None:
    projection.save(tmp_path)
    Projection.identity(8).save(tmp_path / "other")
    (tmp_path / "other" / "projection.npz").replace(tmp_path / "projection.npz")
    with pytest.raises(UnusableArrays, match="checksum"):
        Projection.load(tmp_path)


def test_another_version_is_refused(projection: Projection, tmp_path: Path) -> None:
    projection.save(tmp_path)
    header = tmp_path / "projection.json"
    header.write_text(header.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(UnusableArrays, match="version 2"):
        Projection.load(tmp_path)


def test_pickled_objects_are_never_loaded(tmp_path: Path, projection: Projection) -> None:
    projection.save(tmp_path)
    with (tmp_path / "projection.npz").open("wb") as file:
        np.savez(file, mean=np.array([{"a": 1}], dtype=object))
    with pytest.raises(UnusableArrays, match="cannot be read"):
        Projection.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 cut short"])
def test_a_damaged_file_is_refused(projection: Projection, tmp_path: Path, content: bytes) -> None:
    projection.save(tmp_path)
    (tmp_path / "projection.npz").write_bytes(content)
    with pytest.raises(UnusableArrays):
        Projection.load(tmp_path)


@pytest.mark.parametrize("header", ["", "[]", "{}", '{"version": 1}', "\udcff"])
def test_a_damaged_header_is_refused(projection: Projection, tmp_path: Path, header: str) -> None:
    projection.save(tmp_path)
    (tmp_path / "projection.json").write_bytes(header.encode("utf-8", "surrogateescape"))
    with pytest.raises(UnusableArrays):
        Projection.load(tmp_path)


def test_a_missing_projection_says_what_writes_it(tmp_path: Path) -> None:
    with pytest.raises(UnusableArrays, match="pbstream fit"):
        Projection.load(tmp_path)


def test_arrays_that_are_not_finite_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(UnusableArrays, match="not finite"):
        Projection(np.array([np.nan]), None, np.empty(0)).save(tmp_path)
    assert not list(tmp_path.iterdir())


def test_arrays_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(UnusableArrays, match="do not fit"):
        Projection(np.zeros(8), np.zeros((3, 7)), np.ones(3))


def test_embeddings_of_another_width_are_refused(projection: Projection) -> None:
    with pytest.raises(UnusableArrays, match="expected"):
        projection.project(np.zeros((2, 9)))


def test_an_encoder_refuses_a_projection_of_another_width(rng: np.random.Generator) -> None:
    with pytest.raises(EncoderError, match="width 384"):
        Encoder(FixedSentences(rng.normal(size=(1, 8))), Projection.identity(384))


@pytest.mark.parametrize("prompt", ["", " \n\t", "\ud800"])
def test_an_unusable_prompt_is_named_by_its_position(prompt: str) -> None:
    with pytest.raises(UnusablePrompt) as refused:
        Encoder(FixedSentences(np.zeros((2, 8)))).encode(["fine", prompt])
    assert refused.value.position == 1


def test_a_context_that_is_not_finite_never_leaves_the_encoder() -> None:
    embeddings = np.zeros((2, 8))
    embeddings[1, 3] = np.inf
    with pytest.raises(UnusablePrompt, match="not finite") as refused:
        Encoder(FixedSentences(embeddings)).encode(["one", "two"])
    assert refused.value.position == 1


def test_no_prompts_are_no_contexts() -> None:
    assert Encoder(FixedSentences(np.empty((0, 8)))).encode([]).shape == (0, 9)


def test_saved_priors_are_equal_to_the_bit(rng: np.random.Generator, tmp_path: Path) -> None:
    priors = Priors(("small", "large"), rng.normal(size=(2, 4, 4)), rng.normal(size=(2, 4)), "abc")
    priors.save(tmp_path)
    loaded = load_priors(tmp_path)
    assert (loaded.models, loaded.projection, loaded.dimensions) == (("small", "large"), "abc", 4)
    assert (loaded.A.tobytes(), loaded.b.tobytes()) == (priors.A.tobytes(), priors.b.tobytes())


def test_a_prior_on_the_wire_is_the_models_own(rng: np.random.Generator) -> None:
    priors = Priors(("small", "large"), rng.normal(size=(2, 4, 4)), rng.normal(size=(2, 4)), "abc")
    assert prior_for_wire(priors, "large", n_eff=7.5) == {
        "A": priors.A[1].tolist(),
        "b": priors.b[1].tolist(),
        "n_eff": 7.5,
    }
    assert "n_eff" not in prior_for_wire(priors, "small")


def test_an_unknown_model_has_no_prior(rng: np.random.Generator) -> None:
    priors = Priors(("small",), np.eye(4)[None], np.zeros((1, 4)), "abc")
    with pytest.raises(UnusableArrays, match="there are priors for small"):
        prior_for_wire(priors, "huge")


def test_priors_whose_arrays_do_not_fit_are_refused() -> None:
    with pytest.raises(UnusableArrays, match="2 models"):
        Priors(("small", "large"), np.eye(4)[None], np.zeros((1, 4)), "abc")
