"""The general projection of a network that is not shipped: the command makes one."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from commands.cli import main
from ground.files.array_folder import Array
from streams.encoder import encoder_by_settings as load
from streams.encoder.general_projection import GENERAL, SOURCE_FILE, drawn_texts
from streams.encoder.projection import Projection
from streams.encoder.sentence_encoder import Progress, Reading


class Made:
    """A network that makes of every text some direction of its own."""

    width = 40
    identity = source = "made"

    def embed(self, prompts: Sequence[str], *, progress: Progress | None = None) -> Array:
        """Return rows of length 1."""
        rows = np.random.default_rng(len(prompts)).normal(size=(len(prompts), self.width))
        if progress is not None:
            progress(len(prompts))
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))

    def reading(self, prompt: str) -> Reading:
        """Read all of it."""
        return Reading(1, 1)


def test_the_command_fits_a_general_projection_of_ones_own_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "load_sentences", lambda **_: Made())
    done = CliRunner().invoke(main, ["encoder", "general", str(tmp_path), "--json"])
    assert done.exit_code == 0, done.output
    fitted = Projection.load(tmp_path)
    assert (fitted.embedding_width, fitted.dimensions) == (40, 26)
    source = json.loads((tmp_path / SOURCE_FILE).read_text())
    shipped = json.loads((GENERAL / SOURCE_FILE).read_text())
    assert source == {**shipped, "checksum": fitted.checksum}
    contexts = fitted.project(Made().embed(drawn_texts()))[:, :-1]
    np.testing.assert_allclose(contexts.std(axis=0), 1.0, rtol=0.01)
    np.testing.assert_allclose(contexts.mean(axis=0), 0.0, atol=0.01)
