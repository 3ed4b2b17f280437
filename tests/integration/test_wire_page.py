"""The examples of docs/reference/wire.md are one conversation: what the page sends is sent to a
worker, and what the page shows is what the worker says.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from schemas import RouterDeclared
from tests.integration.service import (
    ANSWERS,
    ROOT,
    RunningService,
    cost,
    reward,
    running_service,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
WIRE = (ROOT / "docs/reference/wire.md").read_text(encoding="utf-8")
WORTH = {"llama-3.1-8b": (0.79, 2.9e-05), "mistral-large": (0.92, 5.3e-04)}
"""Mean reward and bill of each model until then."""
EACH = 30
BEFORE = [["llama-3.1-8b"], ["mistral-large"], [*WORTH]]
"""What each lot of requests allows that the router has decided before the page's own."""
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
LEARNED = {
    *("mean", "bonus", "penalty", "score", "expected_reward", "expected_cost_usd"),
    *("propensity", "lambda_t", "target_usd", "size", "factor", "cusum", "limit"),
    *("cost_low_usd", "cost_high_usd", "debt_usd", "cheapest_usd"),
}
"""Fields whose values follow the algorithm: a better one may move them."""
PROMPT = "What is {} plus {}?"


def examples(topic: str) -> list[dict[str, Any]]:
    """Return a topic's examples: the one that is sent, then others."""
    section = WIRE.partition(f"\n## `pb.{topic}`")[2].partition("\n## ")[0]
    found = re.findall(r"^```json\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    return [json.loads(text) for text in found]


def example(topic: str) -> dict[str, Any]:
    """Return the example of a topic that is sent."""
    return examples(topic)[0]


ROUTER = str(example("routers")["router_id"])


def differing(shown: Any, said: Any, where: str = "") -> Iterator[str]:
    """Yield where the page differs from the service: times by their form, what is learned by a
    fifth, all other numbers by 1 %.
    """
    if isinstance(shown, dict) and isinstance(said, dict) and shown.keys() == said.keys():
        for name in shown:
            yield from differing(shown[name], said[name], f"{where}.{name}")
    elif isinstance(shown, list) and isinstance(said, list) and len(shown) == len(said):
        for at, (one, other) in enumerate(zip(shown, said, strict=True)):
            yield from differing(one, other, f"{where}[{at}]")
    elif isinstance(shown, float) and isinstance(said, float | int):
        name = where.rpartition(".")[2]
        rough = 0.02 if name == "bonus" else 0.0  # a part of it is drawn
        within = 0.2 if name in LEARNED else 0.01
        if not math.isclose(shown, said, rel_tol=within, abs_tol=rough):
            yield f"{where}: the page has {shown}, the service {said}"
    elif not (
        shown == said
        or (isinstance(shown, str) and TIME.fullmatch(shown) and TIME.fullmatch(str(said)))
    ):
        yield f"{where}: the page has {shown}, the service {said}"


class Conversation:
    """What a client sends to the page's router, one kind of event after the other: which of two
    topics is read first is chance.
    """

    def __init__(self, service: RunningService) -> None:
        self.service = service

    def state(self, name: str) -> Any:
        """Return a field of the router's last state."""
        return self.service.lambda_of(ROUTER).get(name, 0)

    async def ask(self, ids: list[str], allowed: list[str]) -> None:
        """Ask for a model, and wait for the decisions."""
        for at, one in enumerate(ids):
            asked = {"prompt": PROMPT.format(at, at % 7), "allowed_models": allowed}
            await self.service.post("requests", {"router_id": ROUTER, "request_id": one, **asked})
        await self.service.until(lambda: all(map(self.service.route, ids)), "decisions")

    async def pay(self, ids: list[str], *, factor: float = 1.0) -> None:
        """Pay each, and wait until that is in the books."""
        settled = self.state("settled") + len(ids)
        for one in ids:
            _, cost_usd = WORTH[self.model(one)]
            await self.service.post("costs", cost(ROUTER, one, factor * cost_usd))
        await self.service.until(lambda: self.state("settled") == settled, "bills")

    async def praise(self, ids: list[str]) -> None:
        """Judge them, one a little better than the other, and wait until that is learned."""
        learned = self.state("rewards_applied") + len(ids)
        for at, one in enumerate(ids):
            value, _ = WORTH[self.model(one)]
            differs = 0.03 * (7 * at % 5 - 2)
            await self.service.post("rewards", reward(ROUTER, one, value + differs))
        await self.service.until(lambda: self.state("rewards_applied") == learned, "rewards")

    def model(self, request_id: str) -> str:
        """Return which model a request got."""
        return str((self.service.route(request_id) or {})["model"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def said(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Send what the page sends, after a history; return what the service said."""
    folder = Path(tmp_path_factory.mktemp("wire"))
    async with running_service(kafka, folder, partitions=8, PB_ENCODER_BACKEND="static") as service:
        await service.ready(service.worker(instance="one"))
        client = Conversation(service)
        await service.send("routers", example("routers"))
        for allowed in BEFORE:
            ids = [f"{len(service.routes())}-{at}" for at in range(EACH)]
            await client.ask(ids, allowed)
            await client.pay(ids)
            await client.praise(ids)

        asked = example("requests")
        await service.send("requests", asked)
        await service.until(lambda: service.route(asked["request_id"]), "the decision")
        await service.send("rewards", example("rewards"))
        await service.until(
            lambda: client.state("rewards_applied") == len(BEFORE) * EACH + 1, "the reward"
        )
        await service.send("costs", example("costs"))
        await service.until(lambda: client.state("settled") == len(BEFORE) * EACH + 1, "the bill")
        await service.send("costs", example("costs"))
        await service.until(lambda: client.state("unbooked"), "the bill again")
        shown = {"routes": service.routes()[-1], "lambda": service.lambda_of(ROUTER)}

        await service.send("costs", {**example("costs"), "cost_usd": -1})
        await service.until(lambda: service.records["dlq"], "a dead letter")
        too_dear = {"request_id": example("refusals")["request_id"], "max_price_per_1k": 1e-6}
        await service.send("requests", {**asked, **too_dear})
        await service.until(lambda: len(service.records["refusals"]) == 2, "a refusal")
        shown["refusals"] = json.loads(service.records["refusals"][-1].value)

        ids = [f"dear-{at}" for at in range(40)]
        await client.ask(ids, ["mistral-large"])
        await client.pay(ids, factor=4.0)
        await service.until(lambda: service.records["alerts"], "an alert")
        shown["alerts"] = json.loads(service.records["alerts"][0].value)
        (letter,) = [one for one in service.records["dlq"] if b'"cost_usd": -1' in one.value]
        headers = {name: value.decode() for name, value in letter.headers}
        source = "__connect.errors.topic"
        headers[source] = headers[source].replace(service.settings.prefix, "pb.")
        return {**shown, "dlq": (headers, json.loads(letter.value))}


async def test_the_other_declarations_of_the_page_are_valid() -> None:
    others = examples("routers")[1:]
    assert others
    for one in others:
        RouterDeclared.model_validate_json(json.dumps(one))


@pytest.mark.parametrize("topic", [topic for topic in ANSWERS if topic != "dlq"])
async def test_the_service_says_what_the_page_shows(said: dict[str, Any], topic: str) -> None:
    assert list(differing(example(topic), said[topic])) == [], json.dumps(said[topic], indent=2)


async def test_a_dead_letter_has_the_headers_of_the_page(said: dict[str, Any]) -> None:
    section = WIRE.partition("\n## `pb.dlq`")[2].partition("The message")[0]
    listed = dict(re.findall(r"^\| `([\w.]+)` \| `(.+)` \|$", section, re.MULTILINE))
    assert said["dlq"] == (listed, {**example("costs"), "cost_usd": -1})
