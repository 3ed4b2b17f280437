"""One text names an encoder, and becomes the settings that a worker reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.demo import show
from streams.encoder.encoder_by_settings import sentences_of
from streams.encoder.encoder_choice import choose_encoder, variables_of
from streams.encoder.encoder_errors import EncoderError
from streams.encoder.static import SHIPPED, StaticEncoder
from streams.settings import Settings


def test_a_folder_is_found_from_wherever_a_worker_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path)
    for named, variable in (("sentence-transformers:own", "WEIGHTS"), ("onnx:own", "PATH")):
        told = variables_of(choose_encoder(Settings(), named))
        assert told[f"PB_ENCODER_{variable}"] == str(tmp_path / "own")


def test_another_encoder_takes_nothing_over_from_the_one_before() -> None:
    before = Settings(
        encoder_backend="onnx", encoder_path=Path("/export"), projection_path=Path("/projection")
    )
    chosen = choose_encoder(before, f"static:{SHIPPED}")
    assert (chosen.encoder_weights, chosen.projection_path) == (None, None)
    assert isinstance(sentences_of(chosen), StaticEncoder)


@pytest.mark.parametrize("named", ["", "bert", ":model"])
def test_an_unknown_kind_is_told_the_known_ones(named: str) -> None:
    with pytest.raises(EncoderError, match="static, onnx, sentence-transformers"):
        choose_encoder(Settings(), named)


def test_a_demo_gives_its_worker_the_encoder_that_was_asked_for(tmp_path: Path) -> None:
    told = show._environment(tmp_path, "sentence-transformers:a/model")
    assert told == {
        "PB_ENCODER_BACKEND": "sentence-transformers",
        "PB_ENCODER_WEIGHTS": "a/model",
        "PB_PROJECTION_PATH": str(tmp_path / "projection"),
    }
