"""An application behind LiteLLM whose models are chosen by paretobandit-streams.

It needs a worker, and a router of its own with five models. In a checkout, with the client's extra
`litellm` installed (docs/how-to/connect.md):

    pbstream routers apply examples/litellm/router.yaml
    python examples/litellm/app.py --calls 240
    pbstream routers remove --router litellm-example --yes

It ends with code 1 if no decision came.

A call's context is made here, of the kind of question: no prompt leaves the process, and the worker
needs no encoder. Leave `context_of` out, and the prompt decides (of a router that was made without
`--dimensions`).

The models are LiteLLM's mocks, so that it costs nothing: each answers with its own usage, and a
judge knows how good it is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import litellm

from paretobandit_client.calls import Message, last_user_message
from paretobandit_client.litellm import ParetoBandit

ROUTER = "litellm-example"
"""The router that router.yaml declares."""


@dataclass(frozen=True)
class Model:
    """A mocked model: dollars per million tokens, tokens of an answer, and how good it is on
    average.
    """

    input_price: float
    output_price: float
    output_tokens: int
    quality: float


MODELS = {
    "openai/nano": Model(0.05, 0.2, 200, 0.35),
    "openai/small": Model(0.1, 0.4, 300, 0.5),
    "openai/medium": Model(0.4, 1.6, 300, 0.9),
    "openai/verbose": Model(0.4, 1.6, 900, 0.6),
    "openai/large": Model(2.5, 10.0, 400, 0.92),
}
SUBJECTS = (
    "the sky",
    "a lemon",
    "an integral",
    "Saturn",
    "a sonnet",
    "a mortgage",
    "regular expressions",
    "yeast",
)
QUESTIONS = (
    "Why is {} the way it is?",
    "Explain {} to a child.",
    "Write three lines about {}.",
    "What is the history of {}?",
)


def deployment(name: str, model: Model) -> dict[str, Any]:
    """Return LiteLLM's entry of a model: all of them answer to the name `smart`."""
    answer = litellm.ModelResponse(
        choices=[{"message": {"role": "assistant", "content": f"an answer of {name}"}}],
        usage=litellm.Usage(
            prompt_tokens=40,
            completion_tokens=model.output_tokens,
            total_tokens=40 + model.output_tokens,
        ),
    )
    prices = {
        "input_cost_per_token": model.input_price / 1e6,
        "output_cost_per_token": model.output_price / 1e6,
    }
    return {
        "model_name": "smart",
        "litellm_params": {"model": name, "api_key": "none", "mock_response": answer, **prices},
    }


def features(messages: Sequence[Message]) -> list[float]:
    """Return the kind of question, and the bias 1.0."""
    text = last_user_message(messages)
    return [float(text.startswith(question.partition(" ")[0])) for question in QUESTIONS] + [1.0]


async def main(calls: int, at_once: int) -> int:
    """Make calls, judge the answers, and print what came of it; return how many were decided."""
    timeout = float(os.environ.get("PB_TIMEOUT", "0.25"))
    bandit = ParetoBandit(
        ROUTER,
        fallback="openai/small",
        timeout=timeout,
        context_of=features,
    )
    deployments = [deployment(name, model) for name, model in MODELS.items()]
    router, litellm.callbacks = (
        litellm.Router(model_list=deployments, plugins=[bandit], num_retries=1),
        [bandit],
    )
    places, chosen, dice = asyncio.Semaphore(at_once), [], random.Random(7)

    async def call(number: int) -> None:
        async with places:
            prompt = dice.choice(QUESTIONS).format(dice.choice(SUBJECTS)) + f" ({number})"
            request_id = uuid.uuid4().hex
            said = await router.acompletion(
                "smart",
                [{"role": "user", "content": prompt}],
                metadata={"pb_request_id": request_id, "session_id": "example"},
            )
            name = "openai/" + said.choices[0].message.content.rpartition("/")[2]
            chosen.append(name)
            # Your judge, your users' thumbs, your tests: here a die around the model's quality.
            reward = min(1.0, max(0.0, dice.gauss(MODELS[name].quality, 0.1)))
            await bandit.reward(request_id, reward, source="judge")
            if number % 40 == 0:
                print(json.dumps({"done": len(chosen)}), flush=True)

    await asyncio.gather(*(call(number) for number in range(calls)))
    await asyncio.sleep(1.0)  # LiteLLM calls back a moment after it has answered
    decided = bandit.counts.decided
    await bandit.close()
    halves = {
        "first half": Counter(chosen[: calls // 2]),
        "second half": Counter(chosen[calls // 2 :]),
    }
    print(json.dumps({"calls": len(chosen), "decided": decided, **halves}))
    return decided


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=240)
    parser.add_argument("--at-once", type=int, default=8)
    options = parser.parse_args()
    if not asyncio.run(main(options.calls, options.at_once)):
        sys.exit(f"no decision came: does a worker run, and is the router {ROUTER} declared?")
