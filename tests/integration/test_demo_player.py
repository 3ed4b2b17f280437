"""The demo's player before a real worker: contexts instead of prompts, and no encoder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from commands.demo.demo_clients import Traffic
from commands.demo.demo_play import Scenario
from commands.demo.player import Player
from commands.demo.shocks import SHOCKS
from schemas import RouterDeclared
from schemas.routers import ModelDeclared
from streams.log.service_topics import create_topics
from tests.integration.commands import named_apart, running_worker


def vectors(count: int, *, router_id: str) -> Scenario:
    """Return a scenario with contexts instead of prompts, so that no encoder is needed."""
    rng = np.random.default_rng(4)
    contexts = np.concatenate([rng.normal(size=(count, 4)), np.ones((count, 1))], axis=1)
    skill = 0.7 + 0.1 * np.tanh(contexts[:, :3])
    names, prices = ("small", "middle", "large"), (0.1, 1.0, 10.0)
    models = {
        name: ModelDeclared(input_price_per_m=price, output_price_per_m=price)
        for name, price in zip(names, prices, strict=True)
    }
    declared = RouterDeclared(
        router_id=router_id, models=models, budget_usd_per_request=5e-4, dimensions=5
    )
    return Scenario(
        models=names,
        prompts=[""] * count,
        contexts=contexts,
        rewards=skill + np.array([0.0, 0.05, 0.1]),
        costs=rng.lognormal(0.0, 0.3, (count, 3)) * prices * 5e-4,
        available=np.ones((count, 3), dtype=bool),
        declarations=((0, declared),),
    )


async def test_a_player_plays_contexts_through_a_price_change_and_all_books_agree(
    kafka: str, tmp_path: Path
) -> None:
    settings = named_apart(kafka, "play")
    await create_topics(settings)
    scenario = SHOCKS["price-rise"](vectors(300, router_id="vectors"))
    with running_worker(
        settings, environment={"PB_ENCODER_BACKEND": "none"}, log=tmp_path / "worker.log"
    ):
        play = await Player(settings, Traffic(scenario, in_flight=60)).play()
    assert [outcome.decision.seq for outcome in play.outcomes] == list(range(1, 301))
    assert (play.refused, play.dead_letters) == ({}, [])
    assert (
        play.state.decided,
        play.state.settled,
        play.state.rewards_applied,
        play.state.in_flight,
    ) == (300, 300, 300, 0)
    assert play.state.spend_usd == pytest.approx(
        sum(outcome.cost_usd for outcome in play.outcomes), rel=1e-9
    )
    assert play.state.config_offset == 2
    assert {outcome.decision.config_offset for outcome in play.outcomes} == {0, 1, 2}


async def test_a_player_counts_refused_requests_as_answered(kafka: str, tmp_path: Path) -> None:
    settings = named_apart(kafka, "play")
    await create_topics(settings)
    scenario = vectors(20, router_id="vectors")
    assert scenario.contexts is not None
    wrong = replace(scenario, contexts=scenario.contexts[:, 1:])
    with running_worker(
        settings, environment={"PB_ENCODER_BACKEND": "none"}, log=tmp_path / "worker.log"
    ):
        play = await Player(settings, Traffic(wrong)).play()
    assert set(play.refused.values()) == {"wrong_context"}
    assert (len(play.refused), len(play.dead_letters), play.outcomes) == (20, 20, [])
