"""The real LiteLLM, in front of a real service: bills from its callbacks, calls that go on whatever
fails; and what it logs of calls itself.

One file, and so one process of a parallel run: each that imports LiteLLM takes seconds of work.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest
import pytest_asyncio
from click.testing import CliRunner

from commands.cli import main
from doors.integrations.convert import convert, finder_of
from doors.integrations.payload_items import Defaults
from paretobandit_client import is_json
from router_state.engine import Engine
from router_state.outages.outages import Outages
from router_state.state import invariants
from tests.integration.service import PATIENCE, RunningService, running_service
from tests.pages import ROOT

if TYPE_CHECKING:
    import litellm

    from paretobandit_client.litellm import ParetoBandit

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.filterwarnings("ignore")]
EXAMPLE = ROOT / "examples" / "litellm" / "app.py"
GOLDEN = Path(__file__).parent / "golden" / "litellm.ndjson"
BUDGET = 8e-4
CONTEXT = [0.5, 1.0]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(
    kafka: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    """Run one worker for all tests of this file."""
    async with running_service(kafka, tmp_path_factory.mktemp("litellm")) as running:
        await running.ready(running.worker(instance="one"))
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def bandit(
    service: RunningService, litellm: Any, request: pytest.FixtureRequest
) -> AsyncIterator[ParetoBandit]:
    """Yield a plugin for a router of the test's own, of two dimensions, whose calls need no
    encoder.
    """
    from paretobandit_client.litellm import ParetoBandit

    router_id = request.function.__name__
    models = {"gpt-4o-mini": (0.15, 0.6), "gpt-4o": (2.5, 10.0)}
    declared = {
        name: {"input_price_per_m": i, "output_price_per_m": o, "onboarding_pulls": 0}
        for name, (i, o) in models.items()
    }
    await service.send("routers", {"router_id": router_id, "models": declared, "dimensions": 2})
    options: dict[str, Any] = {
        "bootstrap": service.settings.bootstrap,
        "prefix": service.settings.prefix,
        "timeout": PATIENCE,
        "connect_timeout": PATIENCE,
    }
    plugin = ParetoBandit(router_id, context_of=lambda messages: CONTEXT, **options)
    litellm.callbacks = [plugin]
    yield plugin
    await plugin.close()
    litellm.callbacks = []


def smart(bandit: ParetoBandit, *models: str, **options: Any) -> litellm.Router:
    """Return LiteLLM's router over mocked models."""
    import litellm

    parameters = [
        {"model": model, "api_key": "none", "mock_response": f"from {model}"} for model in models
    ]
    return litellm.Router(
        model_list=[{"model_name": "smart", "litellm_params": one} for one in parameters],
        plugins=[bandit],
        **options,
    )


async def books(service: RunningService, router_id: str, **wanted: float) -> dict[str, Any]:
    """Wait until a router's books say this."""
    await service.until(
        lambda: wanted.items() <= service.lambda_of(router_id).items(), f"{router_id} with {wanted}"
    )
    return service.lambda_of(router_id)


SLOW_START = 4
"""How many times as long as usual is waited for a process that imports LiteLLM, which is seconds of
work for an idle core.
"""
HELLO = [{"role": "user", "content": "hello"}]


async def test_plain_streamed_and_cached_calls_are_billed(
    service: RunningService, litellm: Any, bandit: ParetoBandit
) -> None:
    name = "test_plain_streamed_and_cached_calls_are_billed"
    router = smart(bandit, "openai/gpt-4o-mini", "openai/gpt-4o")
    answer = await router.acompletion(
        "smart", HELLO, metadata={"pb_request_id": "mine", "session_id": "s"}
    )
    spent = answer._hidden_params["response_cost"]
    assert (await books(service, name, settled=1))["spend_usd"] == pytest.approx(spent)
    async for _ in await router.acompletion("smart", HELLO, stream=True):
        pass
    after = await books(service, name, settled=2)
    assert after["spend_usd"] > spent
    litellm.cache = litellm.Cache(type="local")
    again = [{"role": "user", "content": "again"}]
    try:
        first = await router.acompletion("smart", again, caching=True)
        await asyncio.sleep(0.2)
        await router.acompletion("smart", again, caching=True)
    finally:
        litellm.cache = None
    cached = await books(service, name, settled=4)
    # Another model may have answered than before: the second call was of the cache, and free.
    spent = first._hidden_params["response_cost"]
    assert cached["spend_usd"] == pytest.approx(after["spend_usd"] + spent)
    await bandit.reward("mine", 0.9, source="judge")
    await books(service, name, rewards_applied=1)
    records = (await service.engine(name)).records
    assert records["mine"].input_tokens == litellm.token_counter(model="", messages=HELLO)


async def test_a_stream_whose_reader_goes_away_is_billed_for_what_it_delivered(
    service: RunningService, bandit: ParetoBandit, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "test_a_stream_whose_reader_goes_away_is_billed_for_what_it_delivered"
    router = smart(bandit, "openai/gpt-4o-mini", "openai/gpt-4o")
    monkeypatch.setattr("paretobandit_client.litellm_streams.SILENT_SECONDS", 0.5)
    async for _ in await router.acompletion("smart", HELLO, stream=True):
        break
    first = await books(service, name, settled=1)
    assert first["spend_usd"] > 0.0 and first["in_flight"] == 0
    # One that goes on after a pause has the bill of its end, and no other.
    metadata = {"pb_request_id": "slow"}
    slow = await router.acompletion("smart", HELLO, stream=True, metadata=metadata)
    before = (await books(service, name, settled=2))["spend_usd"]
    async for _ in slow:
        pass
    await service.until(lambda: service.lambda_of(name)["spend_usd"] > before, "its end's bill")
    written = [
        one
        for many in (await service.log_of(service.settings.topic("costs"))).values()
        for one in many
    ]
    bills = [orjson.loads(one.value) for one in written]
    (unread, read) = [bill for bill in bills if bill["request_id"] == "slow"]
    assert (unread["status"], unread["output_tokens"], unread.get("revision", 0)) == (
        "cancelled",
        0,
        0,
    )
    assert read["revision"] == 1 and "status" not in read and read["cost_usd"] > 0.0
    # What is still being read when the application ends is billed as well.
    monkeypatch.setattr("paretobandit_client.litellm_streams.SILENT_SECONDS", 600.0)
    async for _ in await router.acompletion("smart", HELLO, stream=True):
        break
    await bandit.close()
    assert (await books(service, name, settled=3))["in_flight"] == 0


async def test_a_model_without_a_known_price_is_billed_in_tokens_and_a_free_one_in_dollars(
    service: RunningService, litellm: Any, bandit: ParetoBandit
) -> None:
    name, price = bandit.router_id, {"input_price_per_m": 1.0, "output_price_per_m": 2.0}
    models = {"of-our-own": price, "on-the-house": price}
    await service.until(lambda: service.lambda_of(name), "the router")
    before = service.lambda_of(name)["config_offset"]
    await service.send("routers", {"router_id": name, "models": models, "dimensions": 2})
    await service.until(lambda: service.lambda_of(name)["config_offset"] > before, "the models")
    free = {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
    for settled, (model, costs) in enumerate({"of-our-own": {}, "on-the-house": free}.items(), 1):
        router = smart(bandit, f"openai/{model}")
        router.model_list[0]["litellm_params"] |= costs
        router.set_model_list(router.model_list)
        await router.acompletion("smart", HELLO, metadata={"pb_request_id": model})
        # LiteLLM's mocked answers have 10 input and 20 output tokens.
        spent = (await books(service, name, settled=settled))["spend_usd"]
        assert spent == pytest.approx(10 * 1e-6 + 20 * 2e-6)


async def test_a_model_that_fails_is_tried_no_more_and_the_call_succeeds(
    service: RunningService, litellm: Any, bandit: ParetoBandit
) -> None:
    name = "test_a_model_that_fails_is_tried_no_more_and_the_call_succeeds"
    router = smart(bandit, "openai/gpt-4o-mini", "openai/gpt-4o", num_retries=2, allowed_fails=100)
    for one in router.model_list:
        one["litellm_params"]["mock_response"] = None
    broken = asyncio.Event()

    async def answer(**call: Any) -> Any:
        if not broken.is_set():
            broken.set()
            raise litellm.InternalServerError("boom", llm_provider="openai", model=call["model"])
        return await real(**{**call, "mock_response": "at last"})

    real, litellm.acompletion = litellm.acompletion, answer
    try:
        said = await router.acompletion("smart", HELLO)
    finally:
        litellm.acompletion = real
    assert said.choices[0].message.content == "at last"
    await books(service, name, settled=1, decided=1)
    (record,) = (await service.engine(name)).records.values()
    assert record.called != record.model


async def test_the_parameters_of_a_variant_go_with_its_call(
    service: RunningService, litellm: Any, bandit: ParetoBandit
) -> None:
    """Two variants share one deployment; the bill and the label are of the one that was chosen."""
    name, price = bandit.router_id, {"input_price_per_m": 0.15, "output_price_per_m": 0.6}
    high = {**price, "variant_of": "gpt-4o-mini", "params": {"user": "high", "max_tokens": 77}}
    await service.until(lambda: service.lambda_of(name), "the router")
    before = service.lambda_of(name)["config_offset"]
    models = {"gpt-4o-mini": price, "mini-high": high}
    await service.send("routers", {"router_id": name, "models": models, "dimensions": 2})
    await service.until(lambda: service.lambda_of(name)["config_offset"] > before, "the models")
    bandit._variants = {"mini-high": "gpt-4o-mini", "elsewhere": "claude"}
    seen: dict[str, Any] = {}

    class Watching(litellm.integrations.custom_logger.CustomLogger):
        async def async_log_success_event(self, kwargs: Any, **more: Any) -> None:
            metadata = kwargs["litellm_params"]["metadata"]
            seen[metadata["pb_request_id"]] = kwargs["optional_params"].get("max_tokens")

    litellm.callbacks = [bandit, Watching()]
    router = smart(bandit, "openai/gpt-4o-mini")
    calls = [f"r-{number}" for number in range(12)]
    for call in calls:
        await judged(bandit, router, call)
    await books(service, name, settled=12, rewards_applied=12)
    await service.until(lambda: len(seen) == 12, "what was called")
    records = (await service.engine(name)).records
    chosen = {call: records[call].model for call in calls}
    assert set(chosen.values()) == {"gpt-4o-mini", "mini-high"}
    assert {call: records[call].called for call in calls} == chosen
    assert {call: bandit.model_of(call) for call in calls} == chosen
    assert not any(records[call].is_redirected for call in calls)
    assert seen == {call: 77 if chosen[call] == "mini-high" else None for call in calls}


async def test_an_answer_of_another_model_is_told(
    service: RunningService, litellm: Any, bandit: ParetoBandit
) -> None:
    router = smart(bandit, "openai/gpt-4o-mini", "openai/gpt-4o")
    for one in router.model_list:
        one["litellm_params"]["mock_response"] = litellm.ModelResponse(
            model="gpt-5-2026-01-01",
            choices=[{"message": {"role": "assistant", "content": "hi"}}],
            usage={"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        )
    await router.acompletion("smart", HELLO, metadata={"pb_request_id": "other"})
    await books(service, bandit.router_id, settled=1)
    assert (await service.engine(bandit.router_id)).records["other"].is_redirected


BOOM = "litellm.InternalServerError"
"""A mocked response that LiteLLM raises in its place."""


async def judged(bandit: ParetoBandit, router: litellm.Router, request_id: str) -> str:
    """Make a call, judge its answer before LiteLLM calls back, and return the answering model."""
    said = await router.acompletion("smart", HELLO, metadata={"pb_request_id": request_id})
    await bandit.reward(request_id, 0.9, source="judge")
    return str(said.choices[0].message.content).removeprefix("from openai/")


def bills(engine: Engine, model: str) -> float:
    """Return how many bills stand behind what a model is expected to cost; the first guess is
    one.
    """
    arm = engine.state.arms.find(model)
    assert arm is not None
    return arm.costs.bills


async def test_what_another_attempt_costs_and_earns_is_its_own_model_s(
    service: RunningService, litellm: Any, bandit: ParetoBandit
) -> None:
    router = smart(bandit, "openai/gpt-4o-mini", "openai/gpt-4o", num_retries=2, allowed_fails=100)
    router.model_list[0]["litellm_params"]["mock_response"] = BOOM
    calls = [f"r-{number}" for number in range(8)]
    answered = [await judged(bandit, router, call) for call in calls]
    assert set(answered) == {"gpt-4o"} == {bandit.model_of(call) for call in calls}
    await books(service, bandit.router_id, settled=8, rewards_applied=8, decided=8)
    engine = await service.engine(bandit.router_id)
    assert {engine.records[call].model for call in calls} >= {"gpt-4o-mini"}
    assert {engine.records[call].called for call in calls} == {"gpt-4o"}
    assert bills(engine, "gpt-4o-mini") == 0.0 < bills(engine, "gpt-4o")


async def test_plans_are_followed_and_each_attempt_is_in_the_books_once(
    service: RunningService, litellm: Any, bandit: ParetoBandit
) -> None:
    from litellm.integrations.custom_logger import CustomLogger

    from paretobandit_client.litellm import ParetoBandit as Plugin

    paid: list[float] = []

    class Till(CustomLogger):
        async def async_log_success_event(self, kwargs: Any, *_: Any, **__: Any) -> None:
            paid.append(kwargs["response_cost"])

    name, _ = bandit._arguments
    declared = {
        "router_id": name,
        "models": {
            model: {"input_price_per_m": i, "output_price_per_m": o, "onboarding_pulls": 0}
            for model, (i, o) in {"gpt-4o-mini": (0.15, 0.6), "gpt-4o": (2.5, 10.0)}.items()
        },
        "dimensions": 2,
        "budget_usd_per_request": 2e-4,
        "verifiers": {"json": {"usd": 0, "exact": True}},
    }
    await service.until(lambda: service.lambda_of(name), "the router")
    before = service.lambda_of(name)["config_offset"]
    await service.send("routers", declared)
    await service.until(lambda: service.lambda_of(name)["config_offset"] > before, "verifiers")
    planned = Plugin(
        name,
        context_of=lambda messages: CONTEXT,
        verifiers={"json": is_json},
        timeout=PATIENCE,
        bootstrap=service.settings.bootstrap,
        prefix=service.settings.prefix,
    )
    litellm.callbacks = [planned, Till()]
    router = planned.follow(smart(planned, "openai/gpt-4o-mini", "openai/gpt-4o"))
    second = 0
    for n in range(30):
        call = {"stream": n % 2 == 0, "metadata": {"pb_request_id": f"p-{n}"}}
        answer = await router.acompletion("smart", HELLO, **call)
        if n % 2 == 0:
            async for _ in answer:
                pass
        await service.until(lambda n=n: service.route(f"p-{n}"), "the decision")
        plan = (service.route(f"p-{n}") or {}).get("plan") or []
        second += len(plan) > 1
        # No mocked answer is JSON; what the large model says is right all the same.
        right = planned.model_of(f"p-{n}") == "gpt-4o"
        await planned.reward(f"p-{n}", float(right), source="judge")
    assert second > 0
    await books(service, name, settled=30, rewards_applied=30, in_flight=0)
    await planned.close()
    assert len(paid) == 30 + second
    assert service.lambda_of(name)["spend_usd"] == pytest.approx(sum(paid))
    engine = await service.engine(name)
    invariants.check(engine.state, engine.records)


async def test_a_fallback_of_litellm_itself_is_paid_and_judged_by_its_name_in_the_portfolio(
    service: RunningService, litellm: Any, bandit: ParetoBandit
) -> None:
    router = smart(bandit, "openai/gpt-4o-mini", num_retries=0, fallbacks=[{"smart": ["backup"]}])
    router.model_list[0]["litellm_params"]["mock_response"] = BOOM
    answers = {"model": "openai/gpt-4o", "api_key": "none", "mock_response": "from afar"}
    router.add_deployment(litellm.Deployment(model_name="backup", litellm_params=answers))
    for count, stream in enumerate((False, True), 1):
        call = {"stream": stream, "metadata": {"pb_request_id": f"r-{count}"}}
        said = await router.acompletion("smart", HELLO, **call)
        if stream:
            async for _ in said:
                pass
        await bandit.reward(f"r-{count}", 0.9, source="judge")
        await books(service, bandit.router_id, settled=count, rewards_applied=count)
    # The bills of the attempts that failed came first.
    engine = await all_answered(service, bandit.router_id)
    for record in engine.records.values():
        assert (record.model, record.called) == ("gpt-4o-mini", "gpt-4o")
        assert record.bill is not None and record.bill.cost_usd > 0.0
    assert bills(engine, "gpt-4o-mini") == 0.0


async def test_a_group_of_one_fallback_answers_for_one_that_was_narrowed_also_while_it_cools_down(
    service: RunningService, litellm: Any, bandit: ParetoBandit
) -> None:
    """LiteLLM would look for the chosen model of the first group in the second one."""
    router = smart(
        bandit,
        "openai/gpt-4o-mini",
        "openai/gpt-4o",
        num_retries=0,
        fallbacks=[{"smart": ["backup"]}],
        allowed_fails=0,
        cooldown_time=600,
    )
    for deployment in router.model_list:
        deployment["litellm_params"]["mock_response"] = BOOM
    answers = {"model": "openai/gpt-4.1", "api_key": "none", "mock_response": "from afar"}
    router.add_deployment(litellm.Deployment(model_name="backup", litellm_params=answers))
    for count in range(1, 7):
        said = await router.acompletion("smart", HELLO)
        assert said.choices[0].message.content == "from afar"
        await books(service, bandit.router_id, settled=count)
    engine = await all_answered(service, bandit.router_id)
    assert {record.called for record in engine.records.values()} == {"openai/gpt-4.1"}
    assert all(record.bill.cost_usd > 0.0 for record in engine.records.values() if record.bill)


async def all_answered(service: RunningService, router_id: str) -> Engine:
    """Return a router's engine once every request has the bill of its answer."""
    for _ in range(1000):
        engine = await service.engine(router_id)
        if all(record.is_answered for record in engine.records.values()):
            return engine
        await asyncio.sleep(0.05)
    raise AssertionError("a bill is missing")


async def test_a_call_that_fails_for_good_is_billed_and_says_how_it_failed(
    service: RunningService, litellm: Any, bandit: ParetoBandit
) -> None:
    router = smart(bandit, "openai/gpt-4o-mini", num_retries=0)
    router.model_list[0]["litellm_params"]["mock_response"] = BOOM
    for settled in (1, 2):
        with pytest.raises(litellm.InternalServerError):
            await router.acompletion("smart", HELLO)
        books_now = await books(service, bandit.router_id, settled=settled)
        assert books_now["spend_usd"] == 0.0
    engine = await service.engine(bandit.router_id)
    outages = engine.state.having(Outages)
    assert outages is not None and outages.availability.models["gpt-4o-mini"].streak == 2
    assert bills(engine, "gpt-4o-mini") == 0.0


async def test_attempts_that_cost_something_add_up_however_often_they_are_reported(
    service: RunningService, litellm: Any, bandit: ParetoBandit
) -> None:
    router_id = bandit.router_id
    signal = {"request_id": "paid-twice", "candidate": "openai/gpt-4o"}
    metadata = {"routing_plugin_signals": {bandit._signal: signal}}
    failed = litellm.InternalServerError("boom", "openai", "gpt-4o-mini")
    began = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
    call = {"litellm_params": {"metadata": metadata}, "litellm_call_id": "c"}
    await service.send(
        "requests", {"router_id": router_id, "request_id": "paid-twice", "context": CONTEXT}
    )
    for _ in range(2):
        cost = {**call, "response_cost": 0.004, "exception": failed}
        await bandit.async_log_failure_event(cost, None, began, began + timedelta(seconds=1))
        later = began + timedelta(seconds=2)
        # The clock of a machine that slept: a call of 35 hours.
        end = later + timedelta(hours=35)
        await bandit.async_log_success_event({**call, "response_cost": 0.01}, None, later, end)
    after = await books(service, router_id, settled=1, in_flight=0)
    await service.until(
        lambda: service.lambda_of(router_id)["spend_usd"] > 0.004, "the bill of the answer"
    )
    assert service.lambda_of(router_id)["spend_usd"] == pytest.approx(0.014), after


async def test_a_price_and_a_usage_that_are_unknown_are_no_bill(
    service: RunningService, litellm: Any, bandit: ParetoBandit, caplog: pytest.LogCaptureFixture
) -> None:
    signal = {"request_id": "unknown", "candidate": "openai/gpt-4o"}
    metadata = {"routing_plugin_signals": {bandit._signal: signal}}
    call = {"litellm_params": {"metadata": metadata}, "litellm_call_id": "c", "model": "x"}
    for cost in (None, 0.0):
        await bandit.async_log_success_event({**call, "response_cost": cost}, None, None, None)
    assert not bandit._reports
    assert caplog.text.count("neither price nor usage") == 2


@pytest.mark.parametrize(
    ("cost", "usage", "bill"),
    [
        (0.01, None, {"cost_usd": 0.01}),
        ("0.01", None, {"cost_usd": 0.01}),
        (-0.29, {"prompt_tokens": 9, "completion_tokens": 4}, (9, 4)),
        (float("nan"), {"input_tokens": 9, "output_tokens": 4}, (9, 4)),
        (None, {"prompt_tokens": 9, "completion_tokens": None}, (9, 0)),
        (None, {"prompt_tokens": 0, "completion_tokens": 0}, None),
        ("unknown", None, None),
    ],
)
def test_a_cost_that_cannot_be_is_billed_in_tokens(
    litellm: Any, cost: Any, usage: Any, bill: Any
) -> None:
    from paretobandit_client.litellm_bills import cost_of

    if isinstance(bill, tuple):
        bill = dict(zip(("input_tokens", "output_tokens"), bill, strict=True))
    response = {"usage": usage}
    for one in (response, type("Response", (), response)()):
        assert cost_of({"response_cost": cost, "model": "no-such"}, one) == bill


def test_a_failure_is_told_by_whose_fault_it_was(litellm: Any) -> None:
    from paretobandit_client.litellm_bills import failed_of

    named = {"llm_provider": "openai", "model": "gpt-4o"}
    limited = litellm.RateLimitError("no", headers={"retry-after-ms": "1500"}, **named)
    own = litellm.RateLimitError("no", category="litellm_rate_limit", **named)
    told = {
        "cancelled": [
            litellm.ContextWindowExceededError("long", **named),
            litellm.BadRequestError("bad", **named),
            litellm.AuthenticationError("who", **named),
            asyncio.CancelledError(),
            own,
        ],
        "rate_limited": [limited, litellm.APIError(429, "busy", **named)],
        "refused": [litellm.ContentPolicyViolationError("no", **named)],
        "timeout": [litellm.Timeout("slow", **named)],
        "error": [litellm.InternalServerError("boom", **named), None],
    }
    for status, errors in told.items():
        for error in errors:
            assert failed_of({"exception": error})["status"] == status, error
    assert failed_of({"exception": limited})["retry_after_seconds"] == 1.5


async def test_messages_that_can_t_be_counted_are_routed_all_the_same(
    service: RunningService, litellm: Any, bandit: ParetoBandit
) -> None:
    name = "test_messages_that_can_t_be_counted_are_routed_all_the_same"
    bandit._count = lambda messages: 1 // 0
    await smart(bandit, "openai/gpt-4o-mini", "openai/gpt-4o").acompletion("smart", HELLO)
    await books(service, name, settled=1, decided=1)
    (record,) = (await service.engine(name)).records.values()
    assert record.input_tokens is None


SOUND = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


async def test_a_turn_of_an_image_or_of_sound_alone_is_decided_and_billed(
    service: RunningService, litellm: Any, bandit: ParetoBandit
) -> None:
    name = "test_a_turn_of_an_image_or_of_sound_alone_is_decided_and_billed"
    bandit._context_of = None  # the messages' text is the prompt
    router = smart(bandit, "openai/gpt-4o-mini", "openai/gpt-4o")
    for settled, part in enumerate((SOUND, IMAGE), 1):
        await router.acompletion("smart", [{"role": "user", "content": [part]}])
        assert (await books(service, name, settled=settled, decided=settled))["spend_usd"] > 0.0
    for record in (await service.engine(name)).records.values():
        assert record.x is not None and record.x.tolist() == [0.0, 1.0]
        assert record.input_tokens


async def test_a_call_beyond_a_limit_is_not_made_and_any_other_refusal_goes_on(
    service: RunningService, litellm: Any, bandit: ParetoBandit
) -> None:
    """Whose run has spent its budget, and who said to refuse then, pays for no further call."""
    name = "test_a_call_beyond_a_limit_is_not_made_and_any_other_refusal_goes_on"
    from paretobandit_client.litellm import BeyondLimit

    router = smart(bandit, "openai/gpt-4o-mini", "openai/gpt-4o", num_retries=2)
    await router.acompletion("smart", HELLO, metadata={"session_id": "s"})
    before = await books(service, name, settled=1)
    models = {"gpt-4o-mini": {"input_price_per_m": 0.15, "output_price_per_m": 0.6}}
    spent = {"budget_usd": 1e-6, "when_spent": "refuse"}
    declared = {"router_id": name, "models": models, "dimensions": 2, "sessions": spent}
    sent = await service.send("routers", declared)
    await books(service, name, config_offset=sent.offset)
    for stream in (False, True):
        with pytest.raises(BeyondLimit, match=r"session_spent: .*end the run") as raised:
            await router.acompletion("smart", HELLO, stream=stream, metadata={"session_id": "s"})
        assert raised.value.status_code == 400
    await service.send("routers", {**declared, "models": {}, "sessions": None})
    await service.until(
        lambda: service.lambda_of(name)["config_offset"] > sent.offset, "no model is left"
    )
    answer = await router.acompletion("smart", HELLO)  # empty_portfolio limits nothing
    assert answer.choices[0].message.content.startswith("from openai/")
    await service.until(lambda: service.reasons()["empty_portfolio"], "a refusal that goes on")
    assert service.reasons()["session_spent"] == 2  # LiteLLM has not tried them again
    assert service.lambda_of(name)["spend_usd"] == before["spend_usd"]


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"session_budget_usd": 0.5}, "session_budget_usd needs a session"),
        ({"session_id": "s", "session_budget_usd": 0.0}, "session_budget_usd"),
        ({"session_id": "s", "session_budget_usd": "much"}, "session_budget_usd"),
    ],
)
async def test_a_call_whose_budget_of_a_session_cannot_be_kept_is_not_made(
    litellm: Any, bandit: ParetoBandit, metadata: dict[str, Any], words: str
) -> None:
    router = smart(bandit, "openai/gpt-4o-mini", "openai/gpt-4o")
    with pytest.raises(ValueError, match=words):
        await router.acompletion("smart", HELLO, metadata=metadata)


async def test_when_the_service_is_away_calls_go_on(litellm: Any, bandit: ParetoBandit) -> None:
    from paretobandit_client.litellm import ParetoBandit

    away: dict[str, Any] = {
        "bootstrap": "127.0.0.1:9",
        "connect_timeout": 0.1,
        "timeout": 0.05,
        "delivery_timeout": 0.2,
    }
    for fallback in ("gpt-4o", None):
        alone = ParetoBandit("chat", fallback=fallback, **away)
        litellm.callbacks = [alone]
        said = await smart(alone, "openai/gpt-4o-mini", "openai/gpt-4o").acompletion("smart", HELLO)
        assert said.choices[0].message.content in {
            "from openai/gpt-4o",
            None if fallback else "from openai/gpt-4o-mini",
        }
        await alone.close()


async def test_silence_of_the_service_is_said_once_however_many_calls_it_meets(
    litellm: Any, bandit: ParetoBandit, caplog: pytest.LogCaptureFixture
) -> None:
    router = smart(bandit, "openai/gpt-4o-mini", "openai/gpt-4o")
    await router.acompletion("smart", HELLO)
    (await bandit._router()).timeout = 1e-6
    caplog.clear()
    for _ in range(5):
        await router.acompletion("smart", HELLO)
    (await bandit._router()).timeout = PATIENCE
    await router.acompletion("smart", HELLO)
    said = [one for one in caplog.records if one.name.startswith("paretobandit_client")]
    assert ["back after" in one.getMessage() for one in said] == [False, True]


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "a"),
        (
            [{"role": "user", "content": [{"type": "image_url"}, {"type": "text", "text": "c"}]}],
            "c",
        ),
        ([{"role": "system", "content": "d"}, {"role": "user", "content": None}], "d\n"),
        ([], ""),
    ],
)
async def test_the_last_user_message_decides(
    litellm: Any, messages: list[dict[str, Any]], text: str
) -> None:
    from paretobandit_client.calls import last_user_message

    assert last_user_message(messages) == text


async def test_the_proxy_finds_the_plugin_by_its_name(litellm: Any) -> None:
    from litellm.proxy.types_utils.utils import get_instance_fn
    from litellm.types.router import RoutingPlugin

    from paretobandit_client.litellm import ParetoBandit

    found = get_instance_fn("paretobandit_client.litellm_proxy.bandit")
    assert isinstance(found, ParetoBandit) and isinstance(found, RoutingPlugin)


OWN = "litellm-example"
"""The example's router."""


def where(service: RunningService) -> dict[str, str]:
    """Return where commands find the service, and a router of the user's that no example is for."""
    return {
        "PB_BOOTSTRAP": service.settings.bootstrap,
        "PB_PREFIX": service.settings.prefix,
        "PB_PARTITIONS": str(service.settings.partitions),
        "PB_ROUTER": "the-user-s-own",
    }


async def commanded(service: RunningService, *words: str) -> str:
    """Run a command where the service is."""
    ran = await asyncio.to_thread(
        lambda: CliRunner().invoke(main, words, env=where(service), catch_exceptions=False)
    )
    assert ran.exit_code == 0, ran.output
    return ran.output


@pytest.mark.timeout(600)
async def test_the_example_keeps_its_budget_and_finds_the_better_model_while_a_worker_is_killed(
    service: RunningService,
) -> None:
    environment = {**os.environ, **where(service), "PB_TIMEOUT": "3", "PYTHONWARNINGS": "ignore"}
    for _ in range(2):  # again changes nothing
        await commanded(service, "routers", "apply", str(EXAMPLE.with_name("router.yaml")))
    command = [sys.executable, str(EXAMPLE), "--calls", "240"]
    app = await asyncio.create_subprocess_exec(
        *command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        ended = asyncio.create_task(app.communicate())
        for _ in range(SLOW_START):
            with contextlib.suppress(AssertionError):
                await service.until(
                    lambda: ended.done() or service.lambda_of(OWN).get("settled", 0) > 100,
                    "half of the calls",
                )
                break
        service.workers[-1].kill()
        await service.ready(service.worker(instance="one"))
        said, complained = await asyncio.wait_for(ended, SLOW_START * PATIENCE)
    finally:
        if app.returncode is None:
            app.kill()
    assert app.returncode == 0, complained.decode()
    summary = json.loads(said.splitlines()[-1])
    assert summary["calls"] == 240 and summary["decided"] > 200
    end = await books(service, OWN, decided=240, settled=240, rewards_applied=240)
    assert end["spend_usd"] <= 1.1 * 240 * BUDGET and end["unmatched_cost_usd"] == 0.0
    second = summary["second half"]
    assert max(second, key=second.get) == "openai/medium", summary


@pytest.mark.timeout(600)
async def test_the_example_touches_no_other_router_and_says_when_nothing_was_decided(
    service: RunningService,
) -> None:
    mine = {"gpt-4o": {"input_price_per_m": 2.5, "output_price_per_m": 10.0}}
    others = ("default", "the-user-s-own")
    for router_id in others:
        await service.send("routers", {"router_id": router_id, "models": mine, "dimensions": 2})
    await commanded(service, "routers", "apply", str(EXAMPLE.with_name("router.yaml")))
    await commanded(service, "routers", "remove", "--router", OWN, "--yes")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(EXAMPLE), "--calls", "2"),
        env={**os.environ, **where(service), "PB_TIMEOUT": str(PATIENCE)},
        stderr=subprocess.PIPE,
    )
    _, complained = await asyncio.wait_for(process.communicate(), SLOW_START * PATIENCE)
    assert process.returncode == 1
    assert OWN in complained.decode().splitlines()[-1], complained.decode()
    for router_id in others:
        assert (await books(service, router_id, decided=0))["seq"] == 0
    log = (await service.log_of(service.settings.topic("routers"))).values()
    written = [record.key.decode() for records in log for record in records]
    assert [written.count(one) for one in others] == [1, 1]


async def test_prices_are_imported_and_doubtful_ones_left(service: RunningService) -> None:
    hand = {"input_price_per_m": 0.1, "output_price_per_m": 0.5}
    declared = {
        "gpt-4o-mini": hand,
        "gpt-4o": {"input_price_per_m": 0.001, "output_price_per_m": 1.0},
    }
    await service.send("routers", {"router_id": "priced", "models": declared, "dimensions": 2})
    await service.send("requests", {"router_id": "priced", "request_id": "r", "context": CONTEXT})
    await service.send(
        "costs",
        {"router_id": "priced", "request_id": "r", "input_tokens": 1000, "output_tokens": 100},
    )
    await books(service, "priced", settled=1)

    async def imported(*words: str) -> str:
        return await commanded(
            service, "models", "import", "--litellm", "--router", "priced", *words
        )

    shown = await imported("--dry-run", "--only", "gpt-4o*mini")
    assert "by hand" in shown and "Nothing was changed" in shown
    assert "jumps from" in await imported()
    await imported("--accept", "gpt-4o", "--only", "gpt-4.1")
    await imported("--accept", "gpt-4o")
    (last,) = [
        log[-1]
        for log in (await service.log_of(service.settings.topic("routers"))).values()
        if log and log[-1].key == b"priced"
    ]
    models = json.loads(last.value)["models"]
    assert {name: models["gpt-4o-mini"][name] for name in hand} == hand
    assert models["gpt-4o"]["input_price_per_m"] == 2.5
    assert models["gpt-4.1"]["expected_cost_usd"] == pytest.approx((1000 * 2.0 + 100 * 8.0) / 1e6)


def test_golden_payloads_have_fields_of_the_whole_schema_only(litellm: Any) -> None:
    from litellm.types.utils import StandardLoggingMetadata, StandardLoggingPayload

    for line in GOLDEN.read_text().splitlines():
        payload = json.loads(line)
        assert payload.keys() <= StandardLoggingPayload.__annotations__.keys()
        assert payload["metadata"].keys() <= StandardLoggingMetadata.__annotations__.keys()


async def test_a_call_without_a_known_price_is_billed_in_tokens(
    litellm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from litellm.integrations.custom_logger import CustomLogger

    logged: asyncio.Queue[Any] = asyncio.Queue()

    class Logger(CustomLogger):
        async def async_log_success_event(
            self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
        ) -> None:
            logged.put_nowait(kwargs["standard_logging_object"])

    monkeypatch.setattr(litellm, "callbacks", [Logger()])
    bills = []
    for model in ("openai/self-hosted", "openai/gpt-4o-mini"):
        await litellm.acompletion(
            model, [{"role": "user", "content": "Hi"}], mock_response="Hello", api_key="none"
        )
        payload = await asyncio.wait_for(logged.get(), 30)
        found = convert(orjson.dumps(payload), finder_of("litellm", Defaults("default")))
        (one,) = found.taken
        bills.append(one.event.model_dump(exclude_none=True))
    assert "cost_usd" not in bills[0]
    assert (bills[0]["input_tokens"], bills[0]["output_tokens"]) == (10, 20)
    assert bills[1]["cost_usd"] == pytest.approx(10 * 0.15e-6 + 20 * 0.6e-6)
