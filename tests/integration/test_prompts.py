"""Prompts, through a real worker with the encoder that it has by default."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from router_state.costs.input_tokens import IN_USE_FROM
from schemas.prompt_length import BYTES_PER_TOKEN
from streams.encoder.encoder_by_settings import load_encoder
from tests.integration.commands import PRICES, done, done_json
from tests.integration.service import running_service

WIRE = Path(__file__).parents[2] / "docs" / "reference" / "wire.md"


def example(section: str) -> dict[str, Any]:
    """Return the first JSON example of a section of the wire contract."""
    text = WIRE.read_text(encoding="utf-8").split(f"## `pb.{section}`")[1]
    document: dict[str, Any] = json.loads(re.split(r"```(?:json)?\n", text)[1])
    return document


async def test_the_wire_contracts_own_example_is_decided_by_a_worker_without_settings(
    kafka: str, tmp_path: Path
) -> None:
    router, request = example("routers"), example("requests")
    async with running_service(kafka, tmp_path, PB_ENCODER_BACKEND="static") as service:
        worker = await service.ready(service.worker())
        await service.send("routers", router)
        prompts = [
            "Why is the sky blue?",
            "Почему небо голубое?",
            "x",
            "word " * 100_000,
            "def f(x):\n    return x",
        ]
        events = [
            {"router_id": router["router_id"], "request_id": f"p-{n}", "prompt": prompt}
            for n, prompt in enumerate(prompts)
        ]
        blank = {"router_id": router["router_id"], "request_id": "blank", "prompt": "\u2003"}
        for event in [request, *events, blank]:
            await service.send("requests", event)
        ids = {request["request_id"], *(event["request_id"] for event in events)}
        await service.until(
            lambda: {route["request_id"] for route in service.routes()} >= ids, "decisions"
        )
        await service.until(service.dead_letters, "a dead letter")
        assert service.reasons() == {"empty_prompt": 1}
        assert worker.running


async def test_what_a_prompt_costs_is_expected_by_its_length(kafka: str, tmp_path: Path) -> None:
    router = example("routers")
    name = router["router_id"]
    price = router["models"]["llama-3.1-8b"]["input_price_per_m"] / 1e6
    async with running_service(kafka, tmp_path, PB_ENCODER_BACKEND="static") as service:
        await service.ready(service.worker())
        await service.send("routers", router)
        for n in range(IN_USE_FROM):
            event = {"router_id": name, "request_id": f"p-{n}", "prompt": "word " * 40 * (n + 1)}
            await service.send("requests", event)
        # The same text, so that one has the context of the other.
        for n in (10, 10_000):
            event = {"router_id": name, "request_id": f"of {n}", "prompt": "word " * n}
            await service.send("requests", event)
        ids = {"of 10", "of 10000"}
        await service.until(
            lambda: {route["request_id"] for route in service.routes()} >= ids, "decisions"
        )
        expected = [
            next(
                candidate["expected_cost_usd"]
                for candidate in service.route(f"of {n}")["candidates"]  # type: ignore[index]
                if candidate["model"] == "llama-3.1-8b"
            )
            for n in (10, 10_000)
        ]
    assert expected[1] - expected[0] == pytest.approx(
        price * (5 * 9_990 / BYTES_PER_TOKEN), rel=0.01
    )


def test_a_prompt_is_asked_and_explained_without_a_word_on_dimensions(worker: Any) -> None:
    for model in ("small", "large"):
        done(worker, "models", "add", model, *PRICES, router="plain")
    long = "You are a helpful assistant. " * 100 + "Why is the sky blue?"
    done_json(worker, "request", long, "--id", "q", router="plain")
    tokens = load_encoder().reading(long).tokens
    assert f"Prompt: all of its {tokens} tokens are read (static)." in done(
        worker, "explain", "q", router="plain"
    )
    told = done_json(worker, "explain", "q", router="plain")["prompt"]
    assert told == {
        "backend": "static",
        "tokens": tokens,
        "read": tokens,
        "problem": None,
        "projection": None,
        "wordless": False,
    }
    context = json.dumps(np.append(np.zeros(25), 1.0).tolist())
    done_json(worker, "request", "--context", "-", "--id", "c", stdin=context, router="plain")
    assert done_json(worker, "explain", "c", router="plain")["prompt"] is None
