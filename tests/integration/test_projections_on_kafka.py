"""Routers with projections of their own beside others, on a real worker and a real broker."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from streams.encoder.encoder_by_settings import load_encoder
from streams.encoder.projection import Projection
from tests.integration.commands import done_json, run
from tests.integration.service import MODELS, running_service

PROMPTS = [f"{what} number {n}" for n in range(8) for what in ("A poem on", "Add", "Prove", "Tell")]


def fitted(folder: Path, name: str, components: int) -> dict[str, str]:
    """Fit a projection to the prompts; return how a declaration refers to it."""
    embeddings = load_encoder().projected(Projection.identity(128)).encode(PROMPTS)[:, :-1]
    return {"ref": name, "sha256": Projection.fit(embeddings, components)[0].save(folder / name)}


async def test_routers_of_two_projections_and_one_of_none_share_a_worker(
    kafka: str, tmp_path: Path
) -> None:
    priors = tmp_path / "priors"
    named = {"law": (5, fitted(priors, "law", 4)), "care": (10, fitted(priors, "care", 9))}
    routers: dict[str, dict[str, Any]] = {
        home: {"router_id": home, "models": MODELS, "dimensions": d, "projection": ref}
        for home, (d, ref) in named.items()
    }
    routers["plain"] = {"router_id": "plain", "models": MODELS}
    async with running_service(kafka, tmp_path, PB_ENCODER_BACKEND="static") as service:

        async def ask(part: str, homes: list[str]) -> None:
            for n, prompt in enumerate(PROMPTS):
                for home in homes:
                    event = {"router_id": home, "request_id": f"{part}-{n}", "prompt": prompt}
                    await service.post("requests", event)

        def decided(home: str, part: str) -> int:
            return sum(route["request_id"].startswith(part) for route in service.routes(home))

        with_them = await service.ready(service.worker(PB_PRIORS_PATH=str(priors)))
        for router in routers.values():
            await service.send("routers", router)
        await ask("a", list(routers))
        await service.until(
            lambda: all(decided(home, "a") == len(PROMPTS) for home in routers), "decisions"
        )
        assert service.reasons() == {}
        with_them.kill()

        # The next owner does not have the folder: it refuses these prompts alone, and says why.
        without = await service.ready(service.worker())
        await ask("b", ["law", "plain"])
        await service.until(lambda: decided("plain", "b") == len(PROMPTS), "decisions of plain")
        await service.until(lambda: len(service.dead_letters()) == len(PROMPTS), "dead letters")
        assert service.reasons() == {"encoder_unavailable": len(PROMPTS)}
        assert all("'law'" in letter.message for letter, _ in service.dead_letters().values())
        context = {"router_id": "law", "request_id": "given", "context": [0.1, 0.2, 0.3, 0.4, 1.0]}
        await service.send("requests", context)
        await service.until(lambda: service.route("given"), "the decision of a context")
        await service.send("routers", {**routers["law"], "router_id": "law-2"})
        await service.until(
            lambda: service.reasons()["wrong_projection"] == 1, "a refused declaration"
        )
        assert "PB_PRIORS_PATH is not set" in without.log.read_text()
        without.kill()

        await service.ready(service.worker(PB_PRIORS_PATH=str(priors)))
        await ask("b", ["law"])
        await service.until(lambda: decided("law", "b") == len(PROMPTS), "decisions of law")

        # Decided again from the topics alone, each prompt by its router's projection.
        settings = service.settings.model_copy(update={"priors_path": priors})
        verdict = await asyncio.to_thread(
            done_json, settings, "replay", "--verify", "--all-routers"
        )
        assert verdict["compared"] == verdict["identical"] == 5 * len(PROMPTS) + 1
        blind = await asyncio.to_thread(run, service.settings, "replay", "--verify", router="law")
        assert blind.exit_code == 1 and "PB_PRIORS_PATH is not set" in blind.output
        found = await asyncio.to_thread(done_json, settings, "explain", "a-0", router="care")
        assert found["prompt"]["projection"] == "care"
        file = str(tmp_path / "law.pbs")
        for command in (["export", file, "--router", "law"], ["import", file, "--router", "copy"]):
            copied = await asyncio.to_thread(run, settings, "snapshot", *command)
            assert copied.exit_code == 0, copied.output
        shown = await asyncio.to_thread(done_json, settings, "routers", "show", "copy")
        assert shown["projection"] == named["law"][1]
