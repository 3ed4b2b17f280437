"""An audit finds whatever is done to the topics or to the state: each kind of damage by its own
name.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from agents.table import keys
from router_state.packing.framing import body_of, frame, loads
from streams.settings import Settings
from studies.audit.findings import Kind
from studies.audit.run import audit
from studies.history.records import Record
from tests.audit_world import World, busy_world
from tests.memory_topics import MemoryTopics

SETTINGS = Settings(prefix="pb.", app_id="audited", partitions=3)
Log = list[Record]
Spoil = Callable[[Log], Log]


@pytest.fixture(scope="module")
def world() -> World:
    """Return true topics, made once."""
    return asyncio.run(busy_world(SETTINGS, requests=160))


def spoiled(world: World, topic: str, spoil: Spoil) -> MemoryTopics:
    """Return the topics with one log spoiled: that of home-0, of dead letters that of home-3, which
    has some.
    """
    place = (topic, world.partition_of("home-3" if topic in ("dlq", "refusals") else "home-0"))
    return MemoryTopics({**world.records, place: spoil(list(world.records[place]))})


def last_state(log: Log, kind: bytes, *, of: str = "home-0") -> int:
    """Return where the last value of a kind of piece of a router stands in the changelog."""
    return max(
        at
        for at, record in enumerate(log)
        if record.value and record.key and record.key.startswith(kind + of.encode())
    )


def events(log: Log, **wanted: Any) -> list[int]:
    """Return where events with these fields stand."""
    found = []
    for at, record in enumerate(log):
        try:
            event = json.loads(record.value or b"null")
        except ValueError:
            continue
        if isinstance(event, dict) and all(
            event.get(name) == value for name, value in wanted.items()
        ):
            found.append(at)
    return found


def changed(log: Log, at: int, **fields: Any) -> Log:
    """Change fields of one event."""
    event = {**json.loads(log[at].value or b"{}"), **fields}
    log[at] = replace(log[at], value=json.dumps(event).encode())
    return log


def with_head(log: Log, change: Callable[[dict[str, Any]], None]) -> Log:
    """Change the last head of home-0."""
    at = last_state(log, keys.HEAD)
    value = log[at].value or b""
    head = loads(value)
    change(head)
    log[at] = replace(log[at], value=frame(json.dumps(head).encode()))
    return log


def with_record(log: Log, request_id: str, change: Callable[[list[Any]], None]) -> Log:
    """Change the last record of a request of home-0."""
    at = last_state(
        log, keys.key(keys.REQUEST, "home-0", request_id)[:1], of=f"home-0\x00{request_id}"
    )
    value = log[at].value or b""
    record = loads(value)
    change(record)
    log[at] = replace(log[at], value=frame(json.dumps(record).encode()))
    return log


def with_arm(log: Log, change: Callable[[np.ndarray[Any, Any]], None]) -> Log:
    """Change the arrays of an arm of home-0."""
    at = last_state(log, keys.ARM, of="home-0\x00llama")
    value = log[at].value or b""
    numbers = np.frombuffer(body_of(value), "<f8").copy()
    change(numbers)
    log[at] = replace(log[at], value=frame(numbers.tobytes()))
    return log


def without(log: Log, at: int) -> Log:
    """Lose one record; the others keep their offsets."""
    return log[:at] + log[at + 1 :]


def put(names: Any, at: int, value: Any) -> None:
    """Assign, as an expression."""
    names[at] = value


def cut_off(log: list[Any], at: int) -> list[Any]:
    """Return the log with the last bytes of a record gone."""
    put(log, at, replace(log[at], value=log[at].value[:-8]))
    return log


def nudge(head: dict[str, Any], counter: int, by: float) -> None:
    """Change one of the counters."""
    head["counters"][counter] += by


def candidate(log: Log, at: int, **fields: Any) -> Log:
    """Change the first candidate of a decision."""
    first, *rest = json.loads(log[at].value or b"{}")["candidates"]
    return changed(log, at, candidates=[{**first, **fields}, *rest])


HOME = {"router_id": "home-0"}
DAMAGE: list[tuple[str, str, Spoil, set[Kind]]] = [
    (
        "a decision is lost",
        "routes",
        lambda log: without(log, events(log, seq=20, repeat=False, **HOME)[0]),
        {Kind.UNANSWERED, Kind.SEQ_GAP, Kind.NOT_PUBLISHED},
    ),
    (
        "a repeat is lost",
        "routes",
        lambda log: without(log, events(log, repeat=True, **HOME)[0]),
        {Kind.UNANSWERED},
    ),
    (
        "a second decision of a request",
        "routes",
        lambda log: [*log, changed(list(log), (at := events(log, seq=20, **HOME)[0]), seq=999)[at]],
        {Kind.ANSWERED_TWICE},
    ),
    (
        "a decision under another's id",
        "routes",
        lambda log: changed(log, events(log, seq=20, **HOME)[0], request_id="r-40"),
        {Kind.ANSWERED_TWICE, Kind.UNANSWERED, Kind.NOT_IN_STATE},
    ),
    (
        "a decision beyond the state that nobody asked for",
        "routes",
        lambda log: [
            *log,
            changed(list(log), (at := events(log, seq=20, **HOME)[0]), seq=999, request_id="never")[
                at
            ],
        ],
        {Kind.UNASKED},
    ),
    (
        "the same under a later declaration",
        "routes",
        lambda log: [
            *log,
            changed(
                list(log),
                (at := events(log, seq=20, **HOME)[0]),
                seq=999,
                request_id="never",
                config_offset=999,
            )[at],
        ],
        {Kind.UNASKED},
    ),
    (
        "a decision for a router that was never declared",
        "routes",
        lambda log: [
            *log,
            changed(list(log), (at := events(log, seq=20, **HOME)[0]), router_id="nobody", seq=1)[
                at
            ],
        ],
        {Kind.UNASKED},
    ),
    (
        "a decision without request",
        "requests",
        lambda log: without(log, events(log, request_id="r-40")[0]),
        {Kind.UNASKED},
    ),
    (
        "another model was published",
        "routes",
        lambda log: changed(log, events(log, seq=20, **HOME)[0], model="other"),
        {Kind.UNEXPLAINED, Kind.NOT_IN_STATE},
    ),
    (
        "a decision is given again otherwise",
        "routes",
        lambda log: [
            *log,
            changed(list(log), (at := events(log, seq=20, **HOME)[0]), lambda_t=9.0)[at],
        ],
        {Kind.CONTRADICTION},
    ),
    (
        "a score that is not the sum of its terms",
        "routes",
        lambda log: candidate(log, events(log, seq=30, **HOME)[0], score=7.0),
        {Kind.UNEXPLAINED},
    ),
    (
        "a route that is no route",
        "routes",
        lambda log: changed(log, events(log, seq=30, **HOME)[0], seq=0),
        {Kind.MALFORMED},
    ),
    ("a dead letter is lost", "dlq", lambda log: without(log, 0), set()),
    (
        "a dead letter with other bytes",
        "dlq",
        lambda log: [replace(log[0], value=b"other"), *log[1:]],
        {Kind.LETTER_ALTERED},
    ),
    (
        "a dead letter of nothing",
        "dlq",
        lambda log: [
            *log,
            replace(log[0], headers={**log[0].headers, "__connect.errors.offset": "999999"}),
        ],
        {Kind.LETTER_UNFOUNDED},
    ),
    (
        "a dead letter of what was applied",
        "dlq",
        lambda log: [
            *log,
            replace(
                log[0],
                headers={
                    **log[0].headers,
                    "__connect.errors.topic": "pb.requests",
                    "__connect.errors.offset": "0",
                },
            ),
        ],
        set(),
    ),
    (
        "a client is not told of a dead letter",
        "refusals",
        lambda log: without(log, 1),
        {Kind.REFUSAL_MISSING},
    ),
    (
        "a client is told another reason",
        "refusals",
        lambda log: changed(log, 1, reason="cap_reached"),
        {Kind.REFUSAL_MISSING},
    ),
    (
        "a client is told a body",
        "refusals",
        lambda log: changed(log, 1, prompt="Hello"),
        {Kind.MALFORMED},
    ),
    (
        "a refusal that is none",
        "refusals",
        lambda log: changed(log, 1, router_id="no router"),
        {Kind.MALFORMED},
    ),
    (
        "a client is told of what was applied",
        "refusals",
        lambda log: changed(log, 1, topic="requests", offset=0),
        {Kind.REFUSAL_UNFOUNDED, Kind.REFUSAL_MISSING},
    ),
    (
        "a bill that was never sent is in the state",
        "costs",
        lambda log: without(log, events(log, request_id="r-40")[0]),
        {Kind.BILL, Kind.SPEND},
    ),
    (
        "a bill in the topic says otherwise",
        "costs",
        lambda log: changed(log, events(log, request_id="r-40")[0], cost_usd=0.5),
        {Kind.BILL, Kind.SPEND},
    ),
    (
        "spend is wrong",
        "changelog",
        lambda log: with_head(log, lambda head: nudge(head, 5, 1e-6)),
        {Kind.SPEND, Kind.PUBLISHED},
    ),
    (
        "commitments are wrong",
        "changelog",
        lambda log: with_head(log, lambda head: nudge(head, 6, 1e-6)),
        {Kind.COMMITTED},
    ),
    (
        "unmatched money is wrong",
        "changelog",
        lambda log: with_head(log, lambda head: nudge(head, 7, 1e-6)),
        {Kind.UNMATCHED},
    ),
    (
        "a counter is wrong",
        "changelog",
        lambda log: with_head(log, lambda head: nudge(head, 2, 1)),
        {Kind.COUNTER},
    ),
    (
        "λ is wrong",
        "changelog",
        lambda log: with_head(log, lambda head: put(head["ema"], 0, 0.123)),
        {Kind.LAMBDA, Kind.PUBLISHED},
    ),
    (
        "a bill in the state is wrong",
        "changelog",
        lambda log: with_record(log, "r-40", lambda record: put(record, 12, [0.7, 0])),
        {Kind.BILL},
    ),
    (
        "a bill in the state is lost",
        "changelog",
        lambda log: with_record(log, "r-40", lambda record: put(record, 12, None)),
        {Kind.BILL},
    ),
    (
        "a label in the state is lost",
        "changelog",
        lambda log: with_record(log, "r-40", lambda record: put(record, 13, None)),
        {Kind.REWARD},
    ),
    (
        "a reward that was never sent is in the state",
        "rewards",
        lambda log: without(log, events(log, request_id="r-40")[0]),
        {Kind.REWARD, Kind.DECIDED_OTHERWISE},
    ),
    (
        "a reward says otherwise",
        "rewards",
        lambda log: changed(log, events(log, request_id="r-40")[0], reward=0.123),
        {Kind.REWARD, Kind.DECIDED_OTHERWISE},
    ),
    *(
        (
            f"number {at} of an arm is wrong by 1e-6",
            "changelog",
            lambda log, at=at: with_arm(log, lambda numbers: put(numbers, at, numbers[at] + 1e-6)),
            {Kind.LEARNED},
        )
        for at in (0, 3, 11, 16, 20, -1)
    ),
    (
        "an arm holds a NaN",
        "changelog",
        lambda log: with_arm(log, lambda numbers: put(numbers, 0, float("nan"))),
        {Kind.LEARNED},
    ),
    (
        "an arm is cut off",
        "changelog",
        lambda log: cut_off(log, last_state(log, keys.ARM, of="home-0\x00llama")),
        {Kind.CORRUPT},
    ),
    (
        "a head is cut off",
        "changelog",
        lambda log: cut_off(log, last_state(log, keys.HEAD)),
        {Kind.CORRUPT},
    ),
    (
        "a commit is lost",
        "changelog",
        lambda log: without(log, last_state(log, keys.HEAD)),
        {Kind.COUNTER},
    ),
    (
        "a declaration is lost",
        "routers",
        lambda log: without(log, events(log, **HOME)[0]),
        {Kind.DECLARATION},
    ),
    (
        "another λ was published",
        "lambda",
        lambda log: changed(log, events(log, **HOME)[-1], lambda_t=4.5),
        {Kind.PUBLISHED},
    ),
    (
        "λ that is no λ",
        "lambda",
        lambda log: changed(log, events(log, **HOME)[-1], lambda_t=-1),
        {Kind.MALFORMED},
    ),
]


@pytest.mark.parametrize(
    ("topic", "spoil", "kinds"), [case[1:] for case in DAMAGE], ids=[case[0] for case in DAMAGE]
)
def test_damage_is_found(world: World, topic: str, spoil: Spoil, kinds: set[Kind]) -> None:
    findings = audit(spoiled(world, topic, spoil), SETTINGS)
    found = {Kind(kind) for kind in findings.violations}
    assert found
    assert kinds <= found, findings.examples


@pytest.mark.parametrize("at", [5, 4])
def test_a_period_that_was_charged_otherwise_is_found(world: World, at: int) -> None:
    """Dollars that are charged, and requests that wait."""
    place = ("changelog", world.partition_of("home-1"))
    log = list(world.records[place])
    last = max(k for k, r in enumerate(log) if r.key and b"home-1" in r.key and b"periods" in r.key)
    assert log[last].value is not None
    found = loads(log[last].value or b"")
    account = found["budgets"][0][1][-1]
    account[at - 1] += 1
    log[last] = replace(log[last], value=frame(json.dumps(found).encode()))
    seen = audit(MemoryTopics({**world.records, place: log}), SETTINGS)
    assert Kind.PERIOD.value in seen.violations


def test_what_was_sent_on_may_be_gone_before_what_it_was_sent_on_from(world: World) -> None:
    place, last = next(
        (place, log[-1].offset)
        for place, log in world.records.items()
        if place[0] == "requests" and any("pb.forwarded" in record.headers for record in log)
    )
    kept = [record for record in world.records[place] if record.offset == last]
    topics = MemoryTopics({**world.records, place: kept})
    found = audit(topics, SETTINGS)
    assert found.notes["strays"] > 0 and not found.violations[Kind.STRAY_LOST]
    lost = [record for record in world.records[place] if "pb.forwarded" not in record.headers]
    assert audit(MemoryTopics({**world.records, place: lost}), SETTINGS).violations[Kind.STRAY_LOST]
