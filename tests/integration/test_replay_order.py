"""What a history still proves: feedback that met in another order, and declarations that Kafka has
compacted away.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import uuid4

import pytest

from commands.reports import Booked, report
from schemas.costs import CostReported
from schemas.rewards import RewardObserved
from streams.settings import Settings
from tests.integration.commands import (
    CONTEXT,
    PRICES,
    add_two,
    done,
    done_json,
    new_service,
    run,
    running_worker,
)
from tests.integration.test_in_force_compacted import compact, eager

__all__ = ["eager"]
NONE = {"PB_ENCODER_BACKEND": "none"}


@pytest.fixture
def settings(kafka: str) -> Settings:
    """Return the settings of a service with topics of its own."""
    return new_service(kafka, "order")


def ask(settings: Settings, request_id: str) -> str:
    """Ask for a model, and return which one was chosen."""
    told = done_json(
        settings, "request", "--context", "-", "--id", request_id, stdin=CONTEXT, router="r"
    )
    return str(told["model"])


def book(settings: Settings, topic: Booked, request_id: str, model: str) -> None:
    """Report what an answer cost, naming the model, or how good it was, naming none; wait until it
    is in."""
    event = (
        CostReported(router_id="r", request_id=request_id, cost_usd=0.0004, model=model)
        if topic == "costs"
        else RewardObserved(router_id="r", request_id=request_id, reward=0.05, source="judge")
    )
    assert asyncio.run(report(settings, topic, event, seconds=30.0)).outcome == "booked"


def test_a_reward_before_a_bill_that_names_another_model_is_replayed_to_the_bit(
    settings: Settings, tmp_path: Path
) -> None:
    with running_worker(settings, environment=NONE, log=tmp_path / "worker.log"):
        add_two(settings, "r")
        for order in (("rewards", "costs"), ("costs", "rewards")) * 3:
            request_id = uuid4().hex
            other = "small" if ask(settings, request_id) == "large" else "large"
            for topic in order:
                book(settings, topic, request_id, other)
            ask(settings, f"after-{request_id}")
        verdict = done_json(settings, "replay", "--verify", router="r")
        assert verdict["compared"] == verdict["identical"] == 12
        assert verdict["differences"] == verdict["unprovable"] == {}
        audited = done_json(settings, "audit")
        assert audited["violations"] == {} and "learned" not in audited["unprovable"]


def test_what_compaction_took_is_not_provable_and_nothing_is_broken(
    eager: Settings, tmp_path: Path
) -> None:
    with running_worker(eager, environment=NONE, log=tmp_path / "worker.log"):
        add_two(eager, "r")
        done(eager, "models", "add", "large-v2", *PRICES, "--like", "large", router="r")
        done(eager, "models", "remove", "large-v2", router="r")
        # With whatever of the four declarations is left by then.
        assert done_json(eager, "audit")["violations"] == {}
        compact(eager, "r")
        chosen = ask(eager, "primes")
        assert chosen in ("small", "large")
        done(eager, "cost", "primes", "0.0021", router="r")
        done(eager, "reward", "primes", "0.9", "--source", "judge", router="r")
        ask(eager, "more")
        audited = done_json(eager, "audit")
        assert audited["violations"] == {}
        assert audited["unprovable"]["learned"] == 1
        told = done(eager, "audit")
        assert "Not provable: learned" in told and "compacted" in told
        verdict = run(eager, "replay", "--verify", router="r")
        assert verdict.exit_code == 1
        assert "can't be verified" in verdict.output and "compacted" in verdict.output
        assert "differ;" not in verdict.output
