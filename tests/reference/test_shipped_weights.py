"""What is shipped is what the commands make of the weights, and belongs to them alone."""

import json
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from streams.encoder.distill import distill
from streams.encoder.encoder_by_settings import projections_of
from streams.encoder.projection import Projection
from streams.encoder.static import SHIPPED
from streams.encoder.weights import find_weights, hash_weights
from streams.settings import Settings


def test_the_shipped_table_is_what_the_command_makes_of_the_weights(tmp_path: Path) -> None:
    distill(tmp_path)
    for path in sorted(SHIPPED.iterdir()):
        made = tmp_path / path.name
        if path.suffix == ".npz":  # the frame of a zip file differs between releases of Python
            with np.load(made) as ours, np.load(path) as shipped:
                assert sorted(ours) == sorted(shipped)
                assert all(np.array_equal(ours[name], shipped[name]) for name in shipped)
        else:
            assert made.read_bytes() == path.read_bytes(), path.name


def test_only_the_network_that_it_was_fitted_with_gets_the_general_projection(
    tmp_path: Path,
) -> None:
    def sizes(**settings: object) -> list[int]:
        given = Settings.model_validate({"encoder_backend": "onnx", **settings})
        return [found.dimensions for found in projections_of(given)]

    exported = {"weights_sha256": hash_weights(find_weights())}
    (tmp_path / "encoder.json").write_text(json.dumps(exported))
    assert sizes(encoder_path=tmp_path) == [26, 385]
    (tmp_path / "encoder.json").write_text(json.dumps({"weights_sha256": "0" * 64}))
    assert sizes(encoder_path=tmp_path) == [385]
    assert sizes(encoder_path=tmp_path / "nowhere") == [26, 385]
    assert sizes(encoder_weights="a/model") == [385]
    assert sizes(encoder_weights=str(find_weights())) == [26, 385]
    Projection(np.zeros(384), np.eye(384)[:3], np.ones(3)).save(tmp_path)
    assert sizes(projection_path=tmp_path) == [4]


def test_the_models_own_tokenizer_has_the_shipped_vocabulary() -> None:
    own = Tokenizer.from_file(str(find_weights() / "tokenizer.json"))
    shipped = (SHIPPED / "vocab.txt").read_text(encoding="utf-8").splitlines()
    assert own.get_vocab(with_added_tokens=True) == {word: n for n, word in enumerate(shipped)}
