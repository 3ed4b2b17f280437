"""Compare encoders: each fits the same judgements and predicts held-out prompts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import get_args

from rich.console import Console

from streams.encoder.encoder_errors import EncoderError
from streams.encoder.sentence_encoder import Backend, SentenceEncoder
from studies.warm_start.fit import observe
from studies.warm_start.judgements import JudgedPrompt
from studies.warm_start.worth import worth_of

ENCODERS: tuple[str, ...] = get_args(Backend)
"""Every kind of encoder, each with its default model."""
_TIMED = 64  # prompts


@dataclass(frozen=True, slots=True)
class EncoderWorth:
    """The value of one encoder's contexts on held-out prompts.

    Attributes:
        ms_per_prompt: time of encoding, on all CPU threads.
        reward_error: root mean square error of the predicted rewards, the mean over the models;
            None: no rewards.
        cost_error: the same of the logarithm of bills, as a factor; None: no bills.
        routed: reward of routing, the mean over budgets from the cheapest model's cost to the
            dearest one's; `mix` is the reward of the best fixed mix of models at the same budgets.
            None: not every model has rewards and bills.
        problem: why the encoder could not be loaded; all other attributes are None then.
    """

    encoder: str
    ms_per_prompt: float | None = None
    reward_error: float | None = None
    cost_error: float | None = None
    routed: float | None = None
    mix: float | None = None
    problem: str | None = None

    def as_json(self) -> dict[str, object]:
        """Return the comparison as JSON's types."""
        return asdict(self)


def compare_encoders(
    judged: Sequence[JudgedPrompt],
    load: Callable[[str], SentenceEncoder],
    *,
    encoders: Sequence[str] = ENCODERS,
    components: int = 25,
    console: Console | None = None,
) -> Iterator[EncoderWorth]:
    """Yield the worth of each encoder, or why it cannot be loaded.

    Args:
        load: makes an encoder by its name, `KIND` or `KIND:NAME`.

    Raises:
        UnusableJudgements: there are fewer prompts than `components` + 1.
    """
    for encoder in encoders:
        try:
            sentences = load(encoder)
        except EncoderError as error:
            yield EncoderWorth(encoder, problem=str(error))
            continue
        ms_per_prompt = _time(sentences, [row.prompt for row in judged[:_TIMED]])
        worth = worth_of(observe(judged, sentences, components=components, console=console)[0])
        yield EncoderWorth(
            encoder,
            ms_per_prompt,
            _mean([model.reward_error for model in worth.models]),
            _mean([model.cost_error for model in worth.models]),
            _mean([bought.routed for bought in worth.frontier]),
            _mean([bought.mix for bought in worth.frontier]),
        )


def within_chance(worths: Sequence[EncoderWorth], prompts: int) -> float | None:
    """Return the difference of reward that chance may make: two standard errors of unrelated
    choices.
    """
    errors = [worth.reward_error for worth in worths if worth.reward_error is not None]
    return 2.0 * math.sqrt(2.0) * fmean(errors) / math.sqrt(prompts) if errors else None


def _time(sentences: SentenceEncoder, prompts: Sequence[str]) -> float:
    sentences.embed(prompts[:1])  # what is loaded on the first call is not the prompts' time
    began = time.perf_counter()
    sentences.embed(prompts)
    return 1e3 * (time.perf_counter() - began) / len(prompts)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
