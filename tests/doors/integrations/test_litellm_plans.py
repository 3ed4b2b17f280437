"""The real LiteLLM follows plans: which calls it makes, what is streamed, and what is billed.

The decisions are made up, so that each test has the plan that it is about.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from paretobandit_client import Verifier, is_json
from paretobandit_client.decision import Decision
from paretobandit_client.sent_events import Step
from tests.client.test_attempts import decision

if TYPE_CHECKING:
    from paretobandit_client.litellm import ParetoBandit

pytestmark = [pytest.mark.asyncio, pytest.mark.filterwarnings("ignore")]
HELLO = [{"role": "user", "content": "JSON, please"}]
CHECKED = (Step(model="small", verify="json", accept_at=0.5), Step(model="large"))
PRICE = {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}


@dataclass
class Service:
    """The service as a plugin sees it: every decision has this plan."""

    plan: tuple[Step, ...] = CHECKED
    asked: list[dict[str, Any]] = field(default_factory=list)
    bills: list[dict[str, Any]] = field(default_factory=list)
    verdicts: list[tuple[str, float, int]] = field(default_factory=list)

    async def route(self, prompt: str | None = None, **request: Any) -> Decision:
        self.asked.append(request)
        named = request["verifiers"]
        steps = self.plan if named is None or named else (Step(model="small"),)
        made = decision(self, *steps)  # type: ignore[arg-type]  # it takes reports as well
        made.request_id = request["request_id"]
        return made

    async def cost(self, request_id: str, **bill: Any) -> None:
        self.bills.append(bill)

    async def verdict(self, request_id: str, verifier: str, value: float, *, attempt: int) -> None:
        self.verdicts.append((verifier, value, attempt))

    async def close(self) -> None:
        """There is nothing to close."""

    def billed(self) -> dict[tuple[int, str], float]:
        """Return the dollars in force, by attempt and model: a later revision replaces a bill."""
        last: dict[int, dict[str, Any]] = {}
        for bill in self.bills:
            number = bill.get("attempt", 0)
            if number not in last or bill["revision"] > last[number]["revision"]:
                last[number] = bill
        return {(number, one["model"]): one.get("cost_usd", 0.0) for number, one in last.items()}


@contextlib.contextmanager
def plugged(litellm: Any, service: Service, **options: Any) -> Iterator[ParetoBandit]:
    """Yield a plugin of this service."""
    from paretobandit_client.litellm import ParetoBandit

    options.setdefault("verifiers", {"json": is_json})
    bandit = ParetoBandit("coder", **options)

    async def router() -> Any:
        return service

    bandit._router = bandit._reports._router = router  # type: ignore[method-assign]
    litellm.callbacks = [bandit]
    try:
        yield bandit
    finally:
        litellm.callbacks = []


def routed(litellm: Any, bandit: ParetoBandit, answers: dict[str, Any], **options: Any) -> Any:
    """Return LiteLLM's router over models with these mocked answers."""
    options.setdefault("num_retries", 0)
    follow = options.pop("follow", True)
    models = [
        {
            "model_name": "smart",
            "litellm_params": {
                "model": f"openai/{name}",
                "api_key": "none",
                "mock_response": answer,
                **PRICE,
            },
        }
        for name, answer in answers.items()
    ]
    router = litellm.Router(
        model_list=models, plugins=[bandit], allowed_fails=100, cooldown_time=0, **options
    )
    return bandit.follow(router) if follow else router


async def read(answer: Any, *, stream: bool) -> list[str]:
    """Return the text of an answer, in the chunks in which it came."""
    if not stream:
        return [answer.choices[0].message.content or ""]
    return [
        text async for chunk in answer if chunk.choices and (text := chunk.choices[0].delta.content)
    ]


async def settled(bandit: ParetoBandit, until: Callable[[], bool]) -> None:
    """Wait until LiteLLM has called back, and the plugin has reported everything."""
    for _ in range(1000):
        if until() and not bandit._reports:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("LiteLLM did not call back")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("small", "models", "verdicts"),
    [
        ("{}", ["small"], [("json", 1.0, 0)]),
        ("No.", ["small", "large"], [("json", 0.0, 0)]),
    ],
)
async def test_an_answer_that_does_not_pass_is_followed_by_the_next_attempt_and_each_is_billed(
    litellm: Any, stream: bool, small: str, models: list[str], verdicts: list[Any]
) -> None:
    service = Service()
    with plugged(litellm, service) as bandit:
        router = routed(litellm, bandit, {"small": small, "large": "[1, 2, 3, 4, 5, 6, 7]"})
        answer = await router.acompletion("smart", HELLO, stream=stream)
        chunks = await read(answer, stream=stream)
        assert "".join(chunks) == (small if len(models) == 1 else "[1, 2, 3, 4, 5, 6, 7]")
        # What was collected comes as one chunk; the last attempt's comes as it is made.
        assert len(chunks) == 1 or (stream and len(models) == 2)
        assert len(chunks) > 1 or not stream or len(models) == 1
        await settled(bandit, lambda: len(service.bills) >= len(models))
    assert list(service.billed()) == list(enumerate(models))
    assert all(usd > 0.0 for usd in service.billed().values())
    assert service.verdicts == verdicts
    assert [one["verifiers"] for one in service.asked] == [("json",)]


async def slow(answer: str) -> bool:
    await asyncio.sleep(3600)
    return False


@pytest.mark.parametrize("look", [lambda answer: 1 / 0, Verifier(slow, seconds=0.05)])
async def test_a_verifier_that_fails_or_takes_too_long_counts_as_not_run(
    litellm: Any, look: Any
) -> None:
    service = Service()
    with plugged(litellm, service, verifiers={"json": look}) as bandit:
        router = routed(litellm, bandit, {"small": "No.", "large": "{}"})
        assert await read(await router.acompletion("smart", HELLO), stream=False) == ["No."]
        await settled(bandit, lambda: bool(service.bills))
    assert service.verdicts == [] and list(service.billed()) == [(0, "small")]


BOOM = "litellm.InternalServerError"
"""A mocked response that LiteLLM raises in its place."""


@pytest.mark.parametrize("retries", [0, 2])
async def test_an_attempt_that_fails_is_followed_by_the_plans_next_one(
    litellm: Any, retries: int
) -> None:
    service = Service()
    with plugged(litellm, service) as bandit:
        router = routed(litellm, bandit, {"small": BOOM, "large": "{}"}, num_retries=retries)
        assert await read(await router.acompletion("smart", HELLO), stream=False) == ["{}"]
        await settled(bandit, lambda: len(service.bills) >= 2)
        failed = [one for one in service.bills if one.get("status") == "error"]
        assert failed and all(one.get("attempt", 0) == 0 for one in failed)
    assert [key for key, usd in service.billed().items() if usd > 0.0] == [(1, "large")]
    assert service.verdicts == []


async def test_retries_of_one_attempt_add_up_to_its_bill(litellm: Any) -> None:
    service = Service()
    with plugged(litellm, service) as bandit:
        answers = {"small": "No.", "large": BOOM, "third": "{}"}
        router = routed(litellm, bandit, answers, num_retries=2)
        assert await read(await router.acompletion("smart", HELLO), stream=False) == ["{}"]
        await settled(bandit, lambda: len(service.bills) >= 3)
    # The second attempt's own model failed; LiteLLM's retry is of the same attempt.
    assert [number for number, _ in service.billed()] == [0, 1]
    assert all(usd > 0.0 for usd in service.billed().values())


async def test_if_the_last_attempt_fails_the_answer_before_it_counts(
    litellm: Any, caplog: pytest.LogCaptureFixture
) -> None:
    service = Service()
    with plugged(litellm, service) as bandit:
        router = routed(litellm, bandit, {"small": "No.", "large": BOOM})
        for stream in (False, True):
            answer = await router.acompletion("smart", HELLO, stream=stream)
            assert await read(answer, stream=stream) == ["No."]
        await settled(bandit, lambda: len(service.bills) >= 4)
    assert "the answer before it counts" in caplog.text


async def test_what_the_caller_did_wrong_is_raised_and_no_other_model_is_called(
    litellm: Any,
) -> None:
    service = Service()
    wrong = "litellm.ContextWindowExceededError"
    with plugged(litellm, service) as bandit:
        router = routed(litellm, bandit, {"small": wrong, "large": "{}"})
        with pytest.raises(litellm.ContextWindowExceededError):
            await router.acompletion("smart", HELLO)
        await settled(bandit, lambda: bool(service.bills))
    assert list(service.billed()) == [(0, "small")]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_look_without_consequence_waits_for_nobody_and_is_reported(
    litellm: Any, stream: bool
) -> None:
    service = Service((Step(model="small", verify="json"),))
    with plugged(litellm, service) as bandit:
        router = routed(litellm, bandit, {"small": "[1, 2, 3, 4, 5, 6, 7]", "large": "{}"})
        answer = await router.acompletion("smart", HELLO, stream=stream)
        assert (len(await read(answer, stream=stream)) > 1) is stream
        await settled(bandit, lambda: bool(service.verdicts))
    assert service.verdicts == [("json", 1.0, 0)]


async def test_calls_that_nobody_follows_ask_for_one_model(
    litellm: Any, caplog: pytest.LogCaptureFixture
) -> None:
    service = Service()
    with plugged(litellm, service, verifiers=None) as bandit:
        router = routed(litellm, bandit, {"small": "No.", "large": "{}"}, follow=False)
        for _ in range(2):
            assert await read(await router.acompletion("smart", HELLO), stream=False) == ["No."]
        await settled(bandit, lambda: len(service.bills) >= 2)
    assert [one["verifiers"] for one in service.asked] == [None, ()]
    assert "bandit.follow(router)" in caplog.text and service.verdicts == []


async def test_verifiers_that_no_router_was_given_to_are_missed_once(
    litellm: Any, caplog: pytest.LogCaptureFixture
) -> None:
    service = Service()
    with plugged(litellm, service) as bandit:
        router = routed(litellm, bandit, {"small": "No.", "large": "{}"}, follow=False)
        for _ in range(2):
            assert await read(await router.acompletion("smart", HELLO), stream=False) == ["No."]
    assert [one["verifiers"] for one in service.asked] == [(), ()]
    assert caplog.text.count("until bandit.follow(router) was called") == 1


async def test_the_cache_of_litellm_never_has_one_attempts_answer_for_the_next_one(
    litellm: Any,
) -> None:
    service = Service()
    litellm.cache = litellm.Cache(type="local")
    try:
        with plugged(litellm, service) as bandit:
            router = routed(litellm, bandit, {"small": "No.", "large": "{}"})
            for _ in range(2):
                answer = await router.acompletion("smart", HELLO, caching=True)
                assert await read(answer, stream=False) == ["{}"]
                await settled(bandit, lambda: len(service.bills) >= 2)
    finally:
        litellm.cache = None
    # The second time the good answer came from the cache: no verdict on the first model.
    await asyncio.sleep(0)
    assert service.verdicts == [("json", 0.0, 0)]


async def test_a_call_of_a_tool_is_no_text_to_look_at_unless_one_says_what_is(
    litellm: Any,
) -> None:
    from paretobandit_client.litellm_plans import text_of

    called = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [called]}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    assert text_of(litellm.ModelResponse(**whole), HELLO) is None
    assert text_of(litellm.ModelResponse(), HELLO) == ""
    seen: list[Any] = []

    def arguments(response: Any, messages: Any) -> Any:
        seen.append(messages)
        return response.choices[0].message.tool_calls[0].function.arguments

    for answer_of, verdicts in ((None, []), (arguments, [("json", 1.0, 0)])):
        service = Service()
        with plugged(litellm, service, answer_of=answer_of) as bandit:
            router = routed(litellm, bandit, {"small": whole, "large": "{}"})
            await router.acompletion("smart", HELLO)
            await settled(bandit, lambda: bool(service.bills))  # noqa: B023  # within the loop
        assert service.verdicts == verdicts
    assert seen == [HELLO]


@pytest.mark.parametrize("small", ["{}", "No."])  # it is collected, or the last one is streamed
async def test_a_stream_may_be_closed_before_its_end(litellm: Any, small: str) -> None:
    with plugged(litellm, Service()) as bandit:
        router = routed(litellm, bandit, {"small": small, "large": "[1]"})
        answer = await router.acompletion("smart", HELLO, stream=True)
        await answer.aclose()
        assert await read(answer, stream=True) == []


async def test_a_verifier_may_ask_the_same_router_or_another_one(litellm: Any) -> None:
    for followed in (True, False):
        service, answered = Service(), []
        judge: list[Any] = []

        async def asks(answer: str) -> bool:
            if answer.startswith("judged"):
                return True
            said = await judge[0].acompletion("smart", HELLO)  # noqa: B023  # of this turn
            answered.append(said.choices[0].message.content)  # noqa: B023
            return False

        with plugged(litellm, service, verifiers={"json": asks}) as bandit:
            router = routed(litellm, bandit, {"small": "No.", "large": "{}"})
            answers = {"small": "judged so", "large": "{}"}
            judge.append(routed(litellm, bandit, answers, follow=followed))
            assert await read(await router.acompletion("smart", HELLO), stream=False) == ["{}"]
            await settled(bandit, lambda: len(service.bills) >= 3)  # noqa: B023
        assert answered == ["judged so"]
        assert [one["verifiers"] for one in service.asked] == [
            ("json",),
            ("json",) if followed else (),
        ]


@contextlib.asynccontextmanager
async def provider(answers: dict[str, str]) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """Serve OpenAI's API for these models; yield its address, and the calls that came."""
    calls: list[dict[str, Any]] = []

    async def complete(request: web.Request) -> web.StreamResponse:
        call = await request.json()
        calls.append(call)
        usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
        same = {"id": "x", "created": 1, "model": call["model"]}
        text = answers[call["model"]]
        if not call.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", "content": text}}
            choice["finish_reason"] = "stop"
            return web.json_response(
                {**same, "object": "chat.completion", "choices": [choice], "usage": usage}
            )
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        for part in (*text, None):
            delta = {} if part is None else {"role": "assistant", "content": part}
            choice = {"index": 0, "delta": delta, "finish_reason": None if part else "stop"}
            chunk = {**same, "object": "chat.completion.chunk", "choices": [choice]}
            await stream.write(f"data: {json.dumps(chunk)}\n\n".encode())
        last = {**same, "object": "chat.completion.chunk", "choices": [], "usage": usage}
        await stream.write(f"data: {json.dumps(last)}\n\ndata: [DONE]\n\n".encode())
        return stream

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}/v1", calls
    finally:
        await runner.cleanup()


async def test_a_provider_is_asked_for_a_stream_only_in_the_last_attempt(litellm: Any) -> None:
    service = Service()
    options = {"include_usage": True}
    async with provider({"small": "No.", "large": "[1]"}) as (url, calls):
        with plugged(litellm, service) as bandit:
            router = routed(litellm, bandit, {"small": None, "large": None})
            for one in router.model_list:
                one["litellm_params"] |= {"api_base": url}
            router.set_model_list(router.model_list)
            answer = await router.acompletion(
                "smart", HELLO, stream=True, stream_options=options, temperature=0.5
            )
            assert await read(answer, stream=True) == ["[", "1", "]"]
            await settled(bandit, lambda: len(service.bills) >= 2)
    assert [call["model"] for call in calls] == ["small", "large"]
    assert [bool(call.get("stream")) for call in calls] == [False, True]
    assert [call.get("stream_options") for call in calls] == [None, options]
    assert [call["temperature"] for call in calls] == [0.5, 0.5]
    usd = 5 * 1e-6 + 7 * 2e-6
    assert service.billed() == pytest.approx({(0, "small"): usd, (1, "large"): usd})
