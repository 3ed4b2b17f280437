"""The encoder beside the event loop: loaded at the start, and no prompt that it can't encode ends a
worker.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from agents.ports import Prompt
from agents.refusal_kinds import EncoderUnavailable
from router_state.config import ProjectionRef
from streams.encoder.encoder_by_settings import load_encoder
from streams.encoder.projection import Projection
from streams.service.prompts import TRY_AGAIN_AFTER, PromptEncoder
from streams.settings import Settings

D = 26


class Picky:
    """Encodes a prompt as its length; bears no poison, and makes a NaN of "nan"."""

    identity = source = "picky"

    def encode(self, prompts: list[str]) -> Any:
        if "poison" in prompts:
            raise MemoryError("too much")
        return np.array(
            [[np.nan if prompt == "nan" else float(len(prompt))] * D for prompt in prompts]
        )


def of(load: Any, clock: Any = lambda: 0.0) -> PromptEncoder:
    return PromptEncoder(Settings(), load=load, clock=clock)


def texts(*prompts: str) -> list[Prompt]:
    return [(prompt, D) for prompt in prompts]


async def test_an_encoder_is_loaded_at_the_start() -> None:
    encoder = of(lambda settings: Picky())
    assert encoder.trouble == "loading the encoder"
    await encoder.start()
    assert encoder.trouble is None
    one, three = await encoder(texts("a", "abc"))
    assert isinstance(one, np.ndarray) and one[0] == 1.0
    assert isinstance(three, np.ndarray) and three.shape == (D,)


async def test_a_long_prompt_that_holds_up_callers_is_said_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = iter(range(100))
    encoder = of(lambda settings: Picky(), lambda: float(next(clock)))
    for prompts in (["short"], ["x" * 2**20], ["x" * 2**20]):
        await encoder(texts(*prompts))
    (line,) = (one.getMessage() for one in caplog.records if "fallbacks" in one.getMessage())
    assert "the longest has 1048576 characters" in line


@pytest.mark.parametrize("bad", ["poison", "nan"])
async def test_a_prompt_that_the_encoder_does_not_bear_is_refused_alone(bad: str) -> None:
    encoder = of(lambda settings: Picky())
    first, refused, last = await encoder(texts("a", bad, "abc"))
    assert isinstance(refused, EncoderUnavailable) and bad not in str(refused)
    assert isinstance(first, np.ndarray) and isinstance(last, np.ndarray) and last[0] == 3.0


async def test_an_encoder_that_can_not_be_loaded_is_said_once_and_tried_again_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, tries = SimpleNamespace(now=0.0), []

    def load(settings: Settings) -> Any:
        tries.append(clock.now)
        if len(tries) < 2:
            raise FileNotFoundError("no such folder: /models")
        return Picky()

    encoder = of(load, lambda: clock.now)
    await encoder.start()
    assert "/models" in (encoder.trouble or "") and "PB_ENCODER_PATH" in caplog.text
    for _ in range(3):
        (refused,) = await encoder(texts("a"))
        assert isinstance(refused, EncoderUnavailable) and "/models" not in str(refused)
    assert tries == [0.0] and len(caplog.records) == 1
    clock.now = TRY_AGAIN_AFTER
    (x,) = await encoder(texts("a"))
    assert isinstance(x, np.ndarray) and encoder.trouble is None


def projection(folder: Path, name: str, components: int) -> ProjectionRef:
    rng = np.random.default_rng(components)
    made = Projection.fit(rng.normal(size=(99, 128)), components)[0]
    return ProjectionRef(name, made.save(folder / name))


async def test_each_prompt_gets_the_context_of_its_routers_projection(tmp_path: Path) -> None:
    law, care = projection(tmp_path, "law", 4), projection(tmp_path, "care", 9)
    settings = Settings(encoder_backend="static", priors_path=tmp_path)
    encoder = PromptEncoder(settings)
    asked: list[Prompt] = [("one", law), ("two", D), ("three", care), ("one", D)]
    together = await encoder([*asked, ("three", law)])
    assert [len(x) for x in together if isinstance(x, np.ndarray)] == [5, 26, 10, 26, 5]
    for prompt, x in zip(asked, together, strict=False):
        (alone,) = await PromptEncoder(settings)([prompt])
        np.testing.assert_array_equal(alone, x)
    plain = load_encoder()
    expected = plain.projected(Projection.load(tmp_path / "law")).encode(["one"])
    np.testing.assert_array_equal(together[0], expected[0])


async def test_a_projection_that_is_missing_refuses_its_own_prompts_until_it_is_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    law = projection(tmp_path / "elsewhere", "law", 4)
    encoder = PromptEncoder(Settings(encoder_backend="static", priors_path=tmp_path))
    for _ in range(2):
        refused, plain = await encoder([("one", law), ("one", D)])
        assert isinstance(refused, EncoderUnavailable) and "'law'" in str(refused)
        assert str(tmp_path) not in str(refused) and isinstance(plain, np.ndarray)
    assert sum("does not exist" in record.message for record in caplog.records) == 1
    (tmp_path / "elsewhere" / "law").rename(tmp_path / "law")
    (x,) = await encoder([("one", law)])
    assert isinstance(x, np.ndarray) and len(x) == 5
