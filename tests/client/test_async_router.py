"""The client against a real broker and real workers: killed, frozen, away."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaConnectionError

from commands.broker.local import LocalKafka
from paretobandit_client import (
    NoDecision,
    Refusal,
    Refused,
    Router,
    SyncRouter,
    Unreachable,
)
from streams.log.service_topics import create_topics
from streams.settings import Settings
from tests.integration.service import PATIENCE, RunningService, router, running_service

pytestmark = pytest.mark.asyncio(loop_scope="module")
CONTEXT = [0.1, -0.2, 0.3, 0.4, 1.0]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(
    kafka: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    """Run one worker for all tests of this file; each has routers of its own."""
    async with running_service(
        kafka, tmp_path_factory.mktemp("client"), PB_ORPHAN_WAIT="2"
    ) as running:
        await running.ready(running.worker(instance="one"))
        async with running.supervised("one"):
            yield running


def client(service: RunningService, router_id: str, **options: Any) -> Router:
    """Return a client of a router, patient unless told otherwise."""
    return Router(router_id, **access(service), **{"timeout": PATIENCE, **options})


def access(service: RunningService) -> dict[str, Any]:
    """Return where the service is, and patience: a busy machine may be slow to connect."""
    return {
        "bootstrap": service.settings.bootstrap,
        "prefix": service.settings.prefix,
        "connect_timeout": PATIENCE,
    }


async def settled(service: RunningService, router_id: str, **wanted: float) -> dict[str, Any]:
    """Wait until a router's books say this, and return them."""
    await service.until(
        lambda: wanted.items() <= service.lambda_of(router_id).items(), f"{router_id} with {wanted}"
    )
    return service.lambda_of(router_id)


async def test_a_request_is_routed_paid_and_judged(service: RunningService) -> None:
    await service.send("routers", router("plain"))
    async with client(service, "plain") as asking:
        decision = await asking.route(context=CONTEXT, session="s-17")
        assert decision.model in {"llama", "mistral", "gemini"} and not decision.fallback
        assert decision.route is not None and decision.route.seq == 1 and decision.route.candidates
        await decision.cost(cost_usd=0.004)
        await decision.reward(0.9, source="judge")
        again = await asking.route(context=CONTEXT, request_id=decision.request_id)
        assert again.route is not None and again.route.repeat and again.model == decision.model
        await asking.reward(decision.request_id, 0.4, source="human")
        books = await settled(service, "plain", settled=1, rewards_applied=1, decided=1)
        assert books["spend_usd"] == 0.004


async def test_a_cut_prompt_and_one_that_is_an_image_are_decided_and_a_fallback_is_said(
    service: RunningService, caplog: pytest.LogCaptureFixture
) -> None:
    await service.send("routers", router("cut"))
    async with client(service, "cut", fallback="llama") as asking:
        cut: dict[str, Any] = {"prompt": "cut \ud83d", "context": CONTEXT}
        for asked in (cut, {"needs": {"vision": True}}):
            decision = await asking.route(**asked)
            assert not decision.fallback
            await decision.cost(cost_usd=0.001)
        books = await settled(service, "cut", settled=2, decided=2)
        assert books["spend_usd"] == pytest.approx(0.002)
        with pytest.raises(ValueError, match=r"request_id: .* valid Unicode"):
            await asking.route(context=CONTEXT, request_id="cut \ud83d")
        assert not caplog.messages
        # No worker knows this router, so that its requests wait.
        async with client(service, "nobody-s", fallback="llama", timeout=1.0) as silent:
            assert (await silent.route("x" * 2**19)).fallback
    (line,) = (said for said in caplog.messages if "fallback" in said)
    assert "its prompt has 524,288 bytes" in line


async def test_refusals_come_with_their_reason(service: RunningService) -> None:
    await service.send("routers", router("strict"))
    heard: list[Refusal] = []
    async with client(service, "strict", on_refused=heard.append) as asking:
        with pytest.raises(Refused) as refused:
            await asking.route(context=CONTEXT, max_price_per_1k=1e-9)
        assert refused.value.reason == "no_affordable_model"
        with pytest.raises(Refused) as refused:
            await asking.route(context=[*CONTEXT, 1.0], request_id="wrong")
        assert (refused.value.reason, refused.value.request_id) == ("wrong_context", "wrong")
        answers = await asking.route_many(
            [{"context": CONTEXT}, {"context": CONTEXT, "allowed_models": ["nobody's"]}]
        )
        assert isinstance(answers[1], Refused) and answers[1].reason == "no_allowed_model"
        assert not isinstance(answers[0], Refused)
        await asking.cost("nobody", cost_usd=0.5)
        await service.until(lambda: heard, "the refusal of a bill")
        assert [(refusal.topic, refusal.request_id, refusal.reason) for refusal in heard] == [
            ("costs", "nobody", "orphan_cost")
        ]
        with pytest.raises(ValueError, match="among allowed_models"):
            await asking.route(context=CONTEXT, allowed_models=["llama"], fallback="gemini")
    assert asking.counts.refused == 3


async def test_thousands_in_flight_while_workers_are_frozen_and_killed(
    service: RunningService,
) -> None:
    await service.send("routers", router("crowd"))
    count, usd, done = 3_000, 2.0**-11, 0
    trouble = asyncio.create_task(_trouble(service, lambda: done))
    async with client(service, "crowd", timeout=120.0) as asking:

        async def one(number: int) -> int:
            nonlocal done
            decision = await asking.route(context=CONTEXT, request_id=f"c-{number}")
            await decision.cost(cost_usd=usd)
            done += 1
            assert decision.route is not None
            return decision.route.seq

        seqs = await asyncio.gather(*(one(number) for number in range(count)))
        assert sorted(seqs) == list(range(1, count + 1))
        await trouble
        books = await settled(service, "crowd", decided=count, settled=count)
    assert (books["spend_usd"], books["unmatched_cost_usd"], books["in_flight"]) == (
        count * usd,
        0.0,
        0,
    )
    assert (asking.counts.decided, asking.counts.fallbacks) == (count, 0)


async def _trouble(service: RunningService, done: Any) -> None:
    """Freeze the worker for a while, then kill it and start another one."""
    for at, act in ((300, _freeze), (1200, _replace)):
        await service.until(lambda at=at: done() >= at, f"{at} decisions", poll=False)
        await act(service)


async def _freeze(service: RunningService) -> None:
    service.workers[-1].freeze()
    await asyncio.sleep(0.5)
    service.workers[-1].thaw()


async def _replace(service: RunningService) -> None:
    service.workers[-1].kill()
    await service.ready(service.worker(instance="one"))


async def test_a_fallback_is_paid_once_and_the_late_decision_teaches_nothing(
    service: RunningService,
) -> None:
    await service.send("routers", router("open"))
    async with client(service, "open", fallback="gemini") as asking:
        service.workers[-1].freeze()
        try:
            asked = [{"context": CONTEXT, "request_id": f"f-{number}"} for number in range(200)]
            decisions = await asking.route_many(asked, timeout=0.2)
            for decision in decisions:
                assert not isinstance(decision, Refused)
                assert decision.fallback and decision.model == "gemini" and decision.route is None
                await decision.cost(input_tokens=1000, output_tokens=1000)
                await decision.reward(0.5, source="judge")
        finally:
            service.workers[-1].thaw()
        books = await settled(service, "open", decided=200, settled=200, rewards_applied=200)
        again = await asking.route(context=CONTEXT, request_id="f-7")
        assert not again.fallback and again.route is not None
        await again.cost(cost_usd=500.0)
    assert books["spend_usd"] == pytest.approx(200 * (1000 * 1.25e-6 + 1000 * 10e-6))
    assert (books["unmatched_cost_usd"], books["in_flight"], books["committed_usd"]) == (
        0.0,
        0,
        0.0,
    )
    assert asking.counts.fallbacks == 200
    await service.until(
        lambda: len({route["request_id"] for route in service.routes("open")}) == 200,
        "all decisions",
    )
    assert {route["model"] for route in service.routes("open")} - {"gemini"}
    assert {record.called for record in (await service.engine("open")).records.values()} == {
        "gemini"
    }


async def test_whoever_calls_another_model_says_so_once(service: RunningService) -> None:
    await service.send("routers", router("other"))
    async with client(service, "other") as asking:
        for in_bill, in_reward in (("gemini", None), (None, "gemini")):
            decision = await asking.route(context=CONTEXT, allowed_models=["llama"])
            await decision.cost(cost_usd=0.002, model=in_bill)
            await decision.reward(0.5, source="judge", model=in_reward)
            assert decision.model == "gemini"
            await decision.cost(cost_usd=0.001, revision=1)
            with pytest.raises(ValueError, match="not a model"):
                await decision.reward(0.5, source="judge", model="\n")
            assert decision.model == "gemini"
    await asyncio.to_thread(_another_model, service)
    await settled(service, "other", settled=3, rewards_applied=3)
    records = (await service.engine("other")).records.values()
    assert {(record.model, record.called) for record in records} == {("llama", "gemini")}


def _another_model(service: RunningService) -> None:
    with SyncRouter("other", timeout=PATIENCE, **access(service)) as asking:
        decision = asking.route(context=CONTEXT, allowed_models=["llama"])
        decision.reward(0.5, source="judge", model="gemini")
        decision.cost(cost_usd=0.001)
        assert decision.model == "gemini"


async def test_a_slow_worker_is_not_waited_for_and_its_late_decisions_are_not_paid_twice(
    kafka: str, tmp_path: Path
) -> None:
    slow = {"PB_ENCODER_BACKEND": "static", "SLOW_ENCODER_SECONDS": "1.5"}
    async with running_service(kafka, tmp_path, partitions=1, **slow) as service:
        await service.ready(service.worker(module="tests.integration.slow_encoder_worker"))
        await service.send("routers", router("slow"))
        async with client(service, "slow", fallback="gemini") as asking:
            asked = [{"prompt": f"prompt {n}", "request_id": f"s-{n}"} for n in range(20)]
            for decision in await asking.route_many(asked, timeout=0.1):
                assert not isinstance(decision, Refused)
                assert decision.fallback and decision.model == "gemini"
                await decision.cost(input_tokens=1000, output_tokens=1000)
            books = await settled(service, "slow", decided=20, settled=20)
            late = await asking.route("prompt 7", request_id="s-7")
        # The client may read only now the decision that it gave up: then that is the answer, else
        # a repeat of it.
        await service.until(
            lambda: (
                late.route is not None
                and late.route.seq
                in {r["seq"] for r in service.routes() if r["request_id"] == "s-7"}
            ),
            "the answer on the log",
        )
    assert books["spend_usd"] == pytest.approx(20 * (1000 * 1.25e-6 + 1000 * 10e-6))
    assert (books["unmatched_cost_usd"], books["in_flight"]) == (0.0, 0)


async def test_without_a_fallback_silence_is_an_error(service: RunningService) -> None:
    async with client(service, "nobody", timeout=0.05) as asking:
        with pytest.raises(NoDecision, match="no fallback"):
            await asking.route(context=CONTEXT)


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Return a log that hears Kafka's clients, which commands run in this process have quieter."""
    caplog.set_level(logging.NOTSET, "aiokafka")
    return caplog


@pytest.mark.parametrize("level", [logging.NOTSET, logging.CRITICAL])
async def test_an_outage_of_the_broker_is_said_when_it_begins_and_when_it_ends(
    own_broker: LocalKafka, heard: pytest.LogCaptureFixture, level: int
) -> None:
    logging.getLogger("aiokafka").setLevel(level)  # an application may have them switched off
    settings = Settings(bootstrap=own_broker.bootstrap, prefix="gone.", app_id="gone")
    await create_topics(settings)
    (node,) = own_broker.nodes
    async with Router(
        "chat", bootstrap=own_broker.bootstrap, prefix="gone.", fallback="small"
    ) as asking:
        heard.clear()
        began = time.monotonic()
        own_broker.kill(node)
        fallen = [await asking.route(context=CONTEXT, timeout=0.1) for _ in range(30)]
        bills = asyncio.gather(*(decision.cost(cost_usd=0.01) for decision in fallen))
        async with asyncio.timeout(PATIENCE):
            while not heard.messages:  # noqa: ASYNC110 - what is waited for
                await asyncio.sleep(0.05)
        await asyncio.to_thread(own_broker.start_node, node)
        await asyncio.to_thread(own_broker.wait_ready, [node])
        await bills
        async with asyncio.timeout(PATIENCE):
            while "back after" not in heard.messages[-1]:  # noqa: ASYNC110 - what is waited for
                await asyncio.sleep(0.05)
    minutes = int((time.monotonic() - began) / 60.0)
    said = [message for message in heard.messages if own_broker.bootstrap in message]
    assert heard.messages == said and 2 <= len(said) <= 2 + minutes, heard.messages


async def test_other_kafka_clients_of_the_process_are_heard_as_before(
    service: RunningService, heard: pytest.LogCaptureFixture
) -> None:
    async with client(service, "plain"):
        theirs = AIOKafkaAdminClient(bootstrap_servers="127.0.0.1:9")
        with pytest.raises(KafkaConnectionError):
            await theirs.start()
        await theirs.close()
    assert [record.name for record in heard.records] == ["aiokafka"]


async def test_missing_topics_are_named(service: RunningService) -> None:
    asking = Router(
        "chat", bootstrap=service.settings.bootstrap, prefix="other.", connect_timeout=1.0
    )
    with pytest.raises(Unreachable, match=r"other\.costs"):
        await asking.__aenter__()


async def test_threads_use_the_same_router(service: RunningService) -> None:
    await service.send("routers", router("threads"))
    await asyncio.to_thread(_blocking, service)
    books = await settled(service, "threads", settled=3, rewards_applied=3)
    assert books["spend_usd"] == pytest.approx(0.003)


def _blocking(service: RunningService) -> None:
    with SyncRouter("threads", timeout=PATIENCE, **access(service)) as asking:
        first = asking.route(context=CONTEXT)
        others = asking.route_many([{"context": CONTEXT}] * 2)
        decisions = [first, *(other for other in others if not isinstance(other, Refused))]
        asking.cost_many(
            [{"request_id": decision.request_id, "cost_usd": 0.001} for decision in decisions]
        )
        first.reward(0.5, source="judge")
        asking.reward_many(
            [{"request_id": d.request_id, "value": 0.7} for d in decisions[1:]], source="human"
        )
        with pytest.raises(ValueError, match="reward lies"):
            asking.reward(first.request_id, 2.0, source="judge")
        assert (asking.counts.decided, first.fallback) == (3, False)


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKafka]:
    """Run a broker that a test may freeze."""
    with LocalKafka() as broker:
        yield broker


async def test_a_broker_that_hangs_loses_no_bill(own_broker: LocalKafka, tmp_path: Path) -> None:
    settings = Settings(bootstrap=own_broker.bootstrap, prefix="hang.", app_id="hang", partitions=2)
    await create_topics(settings)
    service = RunningService(settings, tmp_path, {})
    async with Router(
        "chat", bootstrap=own_broker.bootstrap, prefix="hang.", fallback="small", timeout=0.1
    ) as asking:
        (node,) = own_broker.nodes
        own_broker.pause(node)
        async with asyncio.timeout(PATIENCE):
            decisions = [
                await asking.route(context=CONTEXT, request_id=f"h-{number}") for number in range(5)
            ]
        assert {decision.fallback for decision in decisions} == {True}
        bills = asyncio.gather(*(decision.cost(cost_usd=0.01) for decision in decisions))
        cancelled = asyncio.create_task(asking.cost("h-0", cost_usd=0.01, revision=1))
        await asyncio.sleep(0.1)
        cancelled.cancel()
        own_broker.resume(node)
        await bills
    for topic, expected in (("requests", 5), ("costs", 6)):
        log = await service.log_of(settings.topic(topic))
        assert sum(map(len, log.values())) == expected
