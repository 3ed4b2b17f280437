"""Attempts through the client, over Kafka and over HTTP: the plan is followed, and the books have
each call once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import pytest_asyncio

from paretobandit_client import Router, SyncRouter, Undelivered, Verifier, is_json
from paretobandit_client.attempt import Attempt, attempts_of
from paretobandit_client.decision import Decision
from paretobandit_client.sent_events import Route, Step
from paretobandit_client.sync import SyncAttempt
from tests.doors.gateway.running import CONTEXT, KEY, Gateway, running_gateway
from tests.integration.service import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")

VERIFIERS = {"tests": {"usd": 0, "exact": True}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    """Run one worker and one gateway for all tests of this file."""
    async with running_gateway(kafka, tmp_path_factory.mktemp("attempts")) as running:
        yield running


class Sent:
    """A router that keeps what is reported."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any]] = []

    async def cost(self, request_id: str, **bill: Any) -> None:
        self.sent.append(("cost", bill))

    async def reward(self, request_id: str, value: float | None, **more: Any) -> None:
        self.sent.append(("reward", more))

    async def verdict(self, request_id: str, verifier: str, value: float, **more: Any) -> None:
        self.sent.append((verifier, more))


def decision(sent: Sent, *steps: Step, **more: Any) -> Decision:
    """Return a decision with a plan, made by nobody."""
    terms: dict[str, Any] = {"propensity": 1.0, "expected_reward": 0.5, "expected_cost_usd": 0.1}
    route = Route(
        router_id="r",
        request_id="q",
        model=steps[0].model,
        seq=1,
        reason="ucb",
        lambda_t=0.0,
        decided_at=None,  # type: ignore[arg-type]  # nobody looks
        repeat=False,
        plan=steps,
        **terms,
        **more,
    )
    return Decision("q", steps[0].model, False, route, sent)


PLAN = (Step(model="small", verify="tests", accept_at=0.5), Step(model="large"))


@pytest.mark.parametrize(
    ("said", "called"),
    [
        ({"tests": True}, ["small"]),
        ({"tests": False}, ["small", "large"]),
        ({"tests": 0.5}, ["small"]),
        ({"other": False}, ["small"]),
        ({}, ["small"]),  # a verifier that fails counts as not run
    ],
)
async def test_the_next_attempt_follows_where_the_plans_verifier_says_too_little(
    said: dict[str, float], called: list[str]
) -> None:
    sent, models = Sent(), []
    async for attempt in attempts_of(decision(sent, *PLAN), sent):
        models.append(attempt.model)
        await attempt.cost(cost_usd=0.1)
        for verifier, value in said.items() if attempt.verify else ():
            await attempt.verdict(verifier, value)
    assert models == called
    bills = [bill for kind, bill in sent.sent if kind == "cost"]
    assert [(bill["attempt"], bill["model"]) for bill in bills] == list(enumerate(called))


@pytest.mark.parametrize(
    ("look", "called", "verdicts"),
    [
        (lambda answer: answer == "large", ["small", "large"], 1),
        (lambda answer: True, ["small"], 1),
        (lambda answer: 1 / 0, ["small"], 0),  # it failed: the answer counts as it is
        (lambda answer: None, ["small"], 0),
    ],
)
async def test_a_callable_looks_at_answers_and_its_verdict_is_reported(
    look: Any, called: list[str], verdicts: int
) -> None:
    sent, models = Sent(), []
    verifiers = {"tests": Verifier(look)}
    async for attempt in attempts_of(decision(sent, *PLAN), sent, verifiers):
        models.append(attempt.model)
        await attempt.check(attempt.model)
    assert models == called
    assert [kind for kind, _ in sent.sent] == ["tests"] * verdicts


@pytest.mark.parametrize(
    ("revision", "called"), [(0, ["small"]), (1, ["small", "large"])], ids=["repeat", "revision"]
)
async def test_a_later_verdict_counts_only_with_a_higher_revision(
    revision: int, called: list[str]
) -> None:
    sent, models = Sent(), []
    async for attempt in attempts_of(decision(sent, *PLAN), sent):
        models.append(attempt.model)
        if attempt.verify is not None:
            await attempt.verdict("tests", True)
            await attempt.verdict("tests", False, revision=revision)
    assert models == called


async def test_who_looks_again_replaces_the_verdict() -> None:
    sent, models, looks = Sent(), [], iter([True, False])
    verifiers = {"tests": Verifier(lambda answer: next(looks))}
    async for attempt in attempts_of(decision(sent, *PLAN), sent, verifiers):
        models.append(attempt.model)
        if attempt.verify is not None:
            await attempt.check("the first answer")
            await attempt.check("the answer of a retry")
    assert models == ["small", "large"]
    assert [more["revision"] for _, more in sent.sent] == [0, 1]


async def test_a_verifier_without_a_callable_says_what_to_give() -> None:
    sent = Sent()
    (attempt,) = [one async for one in attempts_of(decision(sent, *PLAN), sent)]
    with pytest.raises(ValueError, match=r"verifiers=\{'tests': …\}"):
        await attempt.check("x")


async def test_a_call_that_failed_is_followed_by_the_next_one_and_its_answer_is_no_revision() -> (
    None
):
    sent, models = Sent(), []
    async for attempt in attempts_of(decision(sent, *PLAN), sent):
        models.append(attempt.model)
        status = "timeout" if attempt.number == 0 else None
        await attempt.cost(cost_usd=0.0, status=status)
    assert models == ["small", "large"]
    assert [bill["revision"] for _, bill in sent.sent] == [0, 0]


async def test_whoever_bills_a_plans_first_call_alone_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sent = Sent()
    for _ in range(2):
        await decision(sent, *PLAN).cost(cost_usd=0.1)
    assert caplog.text.count("route(…, verifiers=()) asks for one model") == 1
    caplog.clear()
    async for attempt in attempts_of(decision(sent, *PLAN), sent):
        await attempt.cost(cost_usd=0.1)
    await decision(sent, PLAN[1]).cost(cost_usd=0.1)
    assert caplog.text == ""


@pytest.mark.parametrize("is_billed_first", [True, False])
@pytest.mark.parametrize("is_delivered", [True, False])
@pytest.mark.parametrize("ended", [{"verdict": False}, {"verdict": True}, {"status": "timeout"}])
async def test_what_follows_depends_neither_on_when_a_bill_is_reported_nor_on_its_delivery(
    ended: dict[str, Any], is_billed_first: bool, is_delivered: bool
) -> None:
    sent, models = Sent(), []
    if not is_delivered:
        sent.cost = sent.verdict = undelivered  # type: ignore[method-assign]

    async def bill(attempt: Attempt) -> None:
        with suppress(Undelivered):
            await attempt.cost(cost_usd=0.1, status=ended.get("status"))

    async def look(attempt: Attempt) -> None:
        with suppress(Undelivered):
            if "verdict" in ended and attempt.verify:
                await attempt.verdict("tests", ended["verdict"])

    async for attempt in attempts_of(decision(sent, *PLAN), sent):
        models.append(attempt.model)
        for report in (bill, look) if is_billed_first else (look, bill):
            await report(attempt)
    assert models == (["small"] if ended.get("verdict") else ["small", "large"])


async def undelivered(*report: Any, **more: Any) -> None:
    raise Undelivered("Kafka is away")


async def test_a_retry_of_a_call_that_failed_is_its_answer() -> None:
    sent = Sent()
    async for attempt in attempts_of(decision(sent, *PLAN), sent):
        await attempt.cost(status="timeout")
        assert attempt.goes_on
        await attempt.cost(cost_usd=0.1)
        assert not attempt.goes_on
        await attempt.verdict("tests", 0.1)
        await attempt.verdict("tests", 0.9, revision=1)
    assert attempt.number == 0


async def test_a_bill_may_name_another_model_than_the_plans() -> None:
    sent = Sent()
    async for attempt in attempts_of(decision(sent, *PLAN), sent):
        await attempt.cost(cost_usd=0.1, model="own")
        await attempt.reward(1.0, source="user")
    assert [(what, more["model"]) for what, more in sent.sent] == [
        ("cost", "own"),
        ("reward", "own"),
    ]


async def test_threads_see_of_an_attempt_what_tasks_see() -> None:
    theirs = {name for name in dir(Attempt) if not name.startswith("_")}
    assert theirs - set(dir(SyncAttempt)) == set()


async def test_a_decision_without_a_plan_is_one_attempt() -> None:
    sent = Sent()
    fallback = Decision("q", "small", True, None, sent)
    found = [attempt async for attempt in attempts_of(fallback, sent)]
    assert [(one.model, one.verify) for one in found] == [("small", None)]


def access(gateway: Gateway, way: str) -> dict[str, Any]:
    """Return the options of a router that goes this way."""
    if way == "http":
        return {"url": f"http://127.0.0.1:{gateway.port}", "key": KEY}
    settings = gateway.service.settings
    return {"bootstrap": settings.bootstrap, "prefix": settings.prefix}


async def even(n: int) -> bool:
    return n % 2 == 0


@pytest.mark.parametrize("way", ["kafka", "http"])
async def test_plans_are_followed_and_booked(gateway: Gateway, way: str) -> None:
    name = f"a-{way}"
    await gateway.declare(name, verifiers=VERIFIERS, budget_usd_per_request=0.002)
    second, spent = 0, 0.0
    async with Router(name, timeout=PATIENCE, **access(gateway, way)) as asking:
        for n in range(20):
            numbers = []
            asked: dict[str, Any] = {"context": CONTEXT, "request_id": f"{way}{n}"}
            async for attempt in asking.attempts(
                verifiers={"tests": lambda n: n % 2 == 0}, **asked
            ):
                await attempt.cost(cost_usd=1e-4 if attempt.number == 0 else 3e-3)
                await attempt.check(n)
                numbers.append(attempt.number)
                spent += 1e-4 if attempt.number == 0 else 3e-3
            await attempt.reward(0.9, source="judge")
            second += len(numbers) > 1
            assert n % 2 or numbers == [0]
        assert [one async for one in asking.attempts(context=CONTEXT, verifiers=[])]
    assert second > 3
    books = await gateway.settled(name, settled=20, rewards_applied=20)
    assert books["spend_usd"] == pytest.approx(spent)


@pytest.mark.parametrize("way", ["kafka", "http"])
async def test_a_request_may_try_again_what_another_one_did(gateway: Gateway, way: str) -> None:
    name = f"f-{way}"
    await gateway.declare(name, verifiers=VERIFIERS, max_attempts=1)
    async with Router(name, timeout=PATIENCE, **access(gateway, way)) as asking:
        first = await asking.route(context=CONTEXT, request_id=f"{way}-1")
        await first.cost(cost_usd=1e-4)
        seen: dict[str, Any] = {"verdicts": {"tests": False}, "signals": {"repeats": 2}}
        again = await asking.route(
            context=CONTEXT, request_id=f"{way}-2", follows=first.request_id, **seen
        )
        with pytest.raises(ValueError, match="need follows"):
            await asking.route(context=CONTEXT, **seen)
        with pytest.raises(ValueError, match="tests_passed"):
            await asking.route(context=CONTEXT, follows="x", signals={"tests_passed": 2.0})
        with pytest.raises(ValueError, match="no such field of signals: mood"):
            await asking.route(context=CONTEXT, follows="x", signals={"mood": 1})
    assert again.route is not None and again.route.chain is not None
    assert again.route.chain.follows == first.request_id and again.route.chain.known
    assert again.route.chain.tried == (first.model,) and again.model != first.model


async def test_threads_follow_plans_too(gateway: Gateway) -> None:
    await gateway.declare("a-sync", verifiers=VERIFIERS)
    with SyncRouter("a-sync", timeout=PATIENCE, **access(gateway, "http")) as asking:
        for attempt in asking.attempts(context=CONTEXT, verifiers={"tests": is_json}):
            attempt.cost(cost_usd=0.001)
            attempt.check("{}")
        attempt.reward(1.0, source="user")
    books = await gateway.settled("a-sync", settled=1, rewards_applied=1)
    assert books["spend_usd"] == pytest.approx(0.001)


@pytest.mark.parametrize("wrong", ["1", None, -0.1, 1.5, float("nan"), [1.0]])
async def test_what_is_no_verdict_is_refused_before_it_is_sent(wrong: Any) -> None:
    sent = Sent()
    (attempt,) = [one async for one in attempts_of(decision(sent, *PLAN), sent)]
    with pytest.raises(ValueError, match="verdict lies in"):
        await attempt.verdict("tests", wrong)
    assert not sent.sent
    await attempt.verdict("tests", np.bool_(True))  # type: ignore[arg-type]  # a column's value
    assert sent.sent


async def test_a_name_that_the_router_does_not_declare_is_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for _ in range(2):
        decision(Sent(), *PLAN, unknown_verifiers=("tets",))
    assert caplog.text.count("declares no verifier 'tets'") == 1
