"""The encoder beside the event loop: loaded at the start, and no prompt that it can't encode ends a
worker.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from agents.refusals import EncoderUnavailable
from streams.service.prompts import TRY_AGAIN_AFTER, PromptEncoder
from streams.settings import Settings

D = 26


class Picky:
    """Encodes a prompt as its length; bears no poison, and makes a NaN of "nan"."""

    identity = "picky"

    def encode(self, prompts: list[str]) -> Any:
        if "poison" in prompts:
            raise MemoryError("too much")
        return np.array(
            [[np.nan if prompt == "nan" else float(len(prompt))] * D for prompt in prompts]
        )


def of(load: Any, clock: Any = lambda: 0.0) -> PromptEncoder:
    return PromptEncoder(Settings(), load=load, clock=clock)


async def test_an_encoder_is_loaded_at_the_start() -> None:
    encoder = of(lambda settings: Picky())
    assert encoder.trouble == "loading the encoder"
    await encoder.start()
    assert encoder.trouble is None
    one, three = await encoder(["a", "abc"])
    assert isinstance(one, np.ndarray) and one[0] == 1.0
    assert isinstance(three, np.ndarray) and three.shape == (D,)


@pytest.mark.parametrize("bad", ["poison", "nan"])
async def test_a_prompt_that_the_encoder_does_not_bear_is_refused_alone(bad: str) -> None:
    encoder = of(lambda settings: Picky())
    first, refused, last = await encoder(["a", bad, "abc"])
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
        (refused,) = await encoder(["a"])
        assert isinstance(refused, EncoderUnavailable) and "/models" not in str(refused)
    assert tries == [0.0] and len(caplog.records) == 1
    clock.now = TRY_AGAIN_AFTER
    (x,) = await encoder(["a"])
    assert isinstance(x, np.ndarray) and encoder.trouble is None
