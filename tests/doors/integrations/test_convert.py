"""What payloads of others become; each golden one is in the form that its source documents
(golden/README.md).
"""

import asyncio
import base64
import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import MessageSizeTooLargeError
from click.testing import CliRunner

from commands.cli import main
from doors.integrations.convert import Converted, convert, finder_of
from doors.integrations.forms import FORMS
from doors.integrations.mapping import BadMapping, read_mapping
from doors.integrations.payload_items import Defaults, Unconvertible, rfc3339
from doors.integrations.payload_topic import Ingest
from schemas import DeadLetter, MalformedEvent, RewardObserved
from streams.log.service_topics import create_topics
from streams.settings import Settings
from tests.doors.integrations.exporters import FAILED, LOGGED
from tests.integration.service import RunningService

GOLDEN = Path(__file__).parent / "golden"
DEFAULTS = Defaults("default")
SCORES = (
    *("helpfulness", "novelty", "hallucination", "accuracy"),
    *("Relevance", "IntentResolution"),
)
"""Names of the scores in the golden payloads, which hold several."""


def events(name: str, form: str, **headers: str) -> list[tuple[str, dict[str, Any]]]:
    """Return what a golden payload becomes."""
    return plain((GOLDEN / name).read_bytes(), form, **headers)


def plain(raw: bytes, form: str, **headers: str) -> list[tuple[str, dict[str, Any]]]:
    """Return what a payload becomes, without what is not given."""
    return events_of(convert(raw, finder_of(form, DEFAULTS), headers=headers, scores=SCORES))


def events_of(found: Converted) -> list[tuple[str, dict[str, Any]]]:
    """Return what was taken of a payload of which nothing was refused."""
    assert not found.refused, found.refused
    return [
        (one.topic, one.event.model_dump(mode="json", exclude_none=True)) for one in found.taken
    ]


def test_open_telemetry_spans_and_their_evaluations() -> None:
    assert events("otel-trace.json", "otel") == [
        (
            "costs",
            {
                "router_id": "default",
                "request_id": "r-1",
                "input_tokens": 52,
                "output_tokens": 17,
                "revision": 1,
                "latency_ms": 1000.0,
            },
        ),
        (
            "rewards",
            {
                "router_id": "default",
                "request_id": "r-1",
                "reward": 0.75,
                "source": "judge",
                "revision": 0,
                "observed_at": "2025-11-21T09:30:02.500000Z",
            },
        ),
        (
            "costs",  # of a call that failed: what went in; of an agent and an embedding none
            {
                "router_id": "default",
                "request_id": "r-2",
                "input_tokens": 52,
                "output_tokens": 0,
                "revision": 0,
                "status": "timeout",
            },
        ),
    ]
    ((topic, reward),) = events("otel-logs.json", "otel")
    assert (topic, reward["request_id"], reward["reward"], reward["source"]) == (
        "rewards",
        "chatcmpl-123",
        1.0,
        "metric",
    )


def test_litellms_standard_logging_payload_line_by_line_and_as_an_array() -> None:
    lines = events("litellm.ndjson", "litellm")
    assert lines == [
        (
            "costs",
            {
                "router_id": "chat",
                "request_id": "r-1",
                "cost_usd": 1.35e-05,
                "revision": 1,
                "latency_ms": 800.0,
            },
        ),
        (
            "costs",
            {
                "router_id": "default",
                "request_id": "call-2",
                "cost_usd": 0.0,
                "revision": 0,
                "status": "error",
            },
        ),
        (
            "costs",
            {
                "router_id": "default",
                "request_id": "chatcmpl-3",
                "input_tokens": 7,
                "output_tokens": 9,
                "revision": 1,
            },
        ),
    ]
    texts = (GOLDEN / "litellm.ndjson").read_text().splitlines()
    assert plain(f"[{','.join(texts)}]".encode(), "litellm") == lines
    assert plain(texts[0].encode(), "litellm") == lines[:1]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "langfuse.json",
            [
                ("default", "r-1", 1.0, "human:u-1", "2026-11-21T09:30:05.250000Z"),
                ("chat", "r-2", 0.9, "judge", "2026-11-21T09:30:05Z"),
            ],
        ),
        (
            "langfuse-v3.json",
            [
                ("default", "r-1", 1.0, "human", "2026-11-21T09:30:05.250000Z"),
                ("default", "r-2", 0.9, "judge", "2026-11-21T09:30:05Z"),
                ("chat", "r-3", 0.0, "judge", "2026-11-21T09:30:05Z"),
            ],
        ),
        ("langfuse-create.json", [("default", "r-3", 0.25, "judge", None)]),
    ],
)
def test_langfuse_scores(name: str, expected: list[Any]) -> None:
    names = ("router_id", "request_id", "reward", "source", "observed_at")
    found = [event for _, event in events(name, "langfuse")]
    assert [tuple(event.get(field) for field in names) for event in found] == expected


def test_cloudevents_in_both_modes() -> None:
    ((topic, structured),) = events("cloudevent.json", "cloudevents")
    assert (topic, structured["router_id"], structured["request_id"]) == ("rewards", "chat", "r-1")
    assert (structured["source"], structured["observed_at"]) == (
        "human",
        "2026-11-21T09:30:05.250000Z",
    )
    headers = {
        "ce_specversion": "1.0",
        "ce_type": "paretobandit.costs.v1",
        "ce_source": "/x",
        "ce_id": "1",
        "ce_subject": "r-9",
    }
    assert plain(b'{"cost_usd": 0.5}', "cloudevents", **headers) == [
        ("costs", {"router_id": "default", "request_id": "r-9", "cost_usd": 0.5, "revision": 0})
    ]
    both = events(
        "cloudevent.json",
        "cloudevents",
        **headers | {"content-type": "application/CloudEvents+json; charset=UTF-8"},
    )
    assert [one["request_id"] for _, one in both] == ["r-1"]
    encoded = base64.b64encode(b'{"cost_usd": 0.5, "request_id": "r"}').decode()
    packed = {"specversion": "1.0", "type": "x", "source": "/x", "id": "1", "data_base64": encoded}
    assert plain(json.dumps(packed).encode(), "cloudevents")[0][1]["cost_usd"] == 0.5


MAPPING = """
topic: rewards
each: $.feedback[*]
fields:
  request_id: $.trace
  router_id: {value: chat}
  reward: {path: $.stars, scale: [1, 5]}
  source: {path: $.by, values: {staff: human}, default: user}
  observed_at: {path: $.at, time: true}
"""


def mapped(tmp_path: Path, text: str, document: Any) -> list[dict[str, Any]]:
    """Return what a mapping file makes of a document."""
    (tmp_path / "mapping.yaml").write_text(text)
    mapping = read_mapping(tmp_path / "mapping.yaml")
    found = convert(
        json.dumps(document).encode(), lambda part, headers: mapping.items_in(part, DEFAULTS)
    )
    if found.refused:
        raise found.refused[0].error
    return [event for _, event in events_of(found)]


def test_a_mapping_file_reads_anything_else(tmp_path: Path) -> None:
    given = {
        "feedback": [
            {"trace": "a", "stars": 4, "by": "staff", "at": 1763717402},
            {"trace": "b", "stars": 1, "by": "x"},
        ]
    }
    first, second = mapped(tmp_path, MAPPING, given)
    assert (first["reward"], first["source"], first["observed_at"]) == (
        0.75,
        "human",
        "2025-11-21T09:30:02Z",
    )
    assert (second["reward"], second["source"], second["router_id"]) == (0.0, "user", "chat")


@pytest.mark.parametrize(
    ("thumb", "reward"), [("up", 1), ("👎", 0), (True, 1), (False, 0), (-1, 0), ("+1", 1)]
)
def test_thumbs_become_rewards(tmp_path: Path, thumb: Any, reward: float) -> None:
    text = "topic: rewards\nfields: {request_id: $.id, reward: {path: $.thumb, thumbs: true}}"
    assert mapped(tmp_path, text, {"id": "r", "thumb": thumb})[0]["reward"] == reward


@pytest.mark.parametrize(
    ("thumb", "reward"),
    [
        (1.0, 1),
        (0.0, 0),
        (-1.0, 0),
        ("-1.0", 0),
        ("\u22121", 0),
        ("👍🏽", 1),
        ("👎🏿", 0),
        ("👍\ufe0f", 1),
        (":thumbs_up:", 1),
        ("thumbsdown", 0),
    ],
)
def test_thumbs_are_read_however_they_are_written(
    tmp_path: Path, thumb: Any, reward: float
) -> None:
    text = "topic: rewards\nfields: {request_id: $.id, reward: {path: $.thumb, thumbs: true}}"
    assert mapped(tmp_path, text, {"id": "r", "thumb": thumb})[0]["reward"] == reward


def test_numbers_of_a_mapping_are_read_as_they_are_written(tmp_path: Path) -> None:
    text = (
        'topic: rewards\nfields: {request_id: $.id, reward: {path: $.by, values: {"1": 0.5, '
        '"true": 1}}}'
    )
    for value, reward in ((1, 0.5), (1.0, 0.5), ("1", 0.5), (True, 1.0)):
        assert mapped(tmp_path, text, {"id": "r", "by": value})[0]["reward"] == reward


SCORED = """
topic: rewards
each: $.scores[*]
name: $.metric
id: $.id
fields: {request_id: $.of, reward: $.value}
"""


def scored(tmp_path: Path, document: Any, text: str = SCORED) -> Converted:
    """Convert what a mapping file with names of scores reads."""
    (tmp_path / "scored.yaml").write_text(text)
    mapping = read_mapping(tmp_path / "scored.yaml")
    return convert(
        json.dumps(document).encode(),
        lambda part, headers: mapping.items_in(part, DEFAULTS),
        scores=() if mapping.score is None else (mapping.score,),
    )


def test_a_mapping_file_chooses_a_score_and_corrects_one(tmp_path: Path) -> None:
    one = {"id": "s", "of": "r", "metric": "correctness", "value": 0.5}
    document = {"scores": [one, {**one, "id": "t", "metric": "toxicity"}, {**one, "value": 1}]}
    assert "toxicity" in str(scored(tmp_path, document).refused[0].error)
    found = scored(tmp_path, document, f"{SCORED}score: correctness\n")
    told = [
        (one.event.reward, one.event.revision)
        for one in found.taken
        if isinstance(one.event, RewardObserved)
    ]
    assert (told, found.passed_over) == ([(0.5, 0), (1.0, 1)], 1)


def test_of_what_each_matches_the_odd_parts_are_kept_alone(tmp_path: Path) -> None:
    good = {"id": "s", "of": "r", "metric": "correctness", "value": 0.5}
    document = {"scores": [good, {**good, "value": 7}, good, {**good, "of": None}]}
    found = scored(tmp_path, document)
    assert [one.index for one in found.refused] == [1, 3]
    kept = [json.loads(line)["scores"] for line in found.letter.splitlines()]
    assert kept == [[document["scores"][1]], [document["scores"][3]]]


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"feedback": []}, "each"),
        ({"feedback": [{"trace": "a", "stars": "many"}]}, "reward"),
        ({"feedback": [{"trace": "a", "stars": 9}]}, "reward"),
        ({"feedback": [{"stars": 3}]}, "request_id"),
        ({"feedback": [{"trace": "a", "stars": 3, "at": "soon"}]}, "observed_at"),
    ],
)
def test_what_a_mapping_cannot_read_is_refused(tmp_path: Path, document: Any, why: str) -> None:
    with pytest.raises((Unconvertible, MalformedEvent), match=why):
        mapped(tmp_path, MAPPING, document)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "topic: routes\nfields: {a: $.a}",
        "topic: costs",
        "topic: costs\nfields: {a: '$['}",
        "a: [",
        "topic: costs\nfields: {a: {}}",
        "topic: costs\nname: $.name\nfields: {a: $.a}",
        "topic: rewards\nscore: x\nfields: {a: $.a}",
    ],
)
def test_a_wrong_mapping_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "mapping.yaml").write_text(text)
    with pytest.raises(BadMapping, match=r"mapping\.yaml"):
        read_mapping(tmp_path / "mapping.yaml")


ODD = [
    b"",
    b"7",
    b"[7]",
    b"{",
    b'"x"',
    b'{"resourceSpans": 7}',
    b'{"value": "high"}',
    b'{"data": [7]}',
    b"\xff",
    b"null",
    b'{"specversion": "1.0"}',
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("raw", ODD)
def test_odd_payloads_are_refused_or_say_nothing(form: str, raw: bytes) -> None:
    try:
        found = convert(raw, finder_of(form, DEFAULTS))
    except MalformedEvent as error:
        assert error.reason and "high" not in str(error)
    else:
        assert not found.taken and found.refused
        assert all(one.error.reason and "high" not in str(one.error) for one in found.refused)


@pytest.mark.parametrize(
    "time",
    [
        1763717402.5,
        1763717402500,
        "1763717402500000000",
        "2025-11-21T09:30:02.5Z",
        "2025-11-21T10:30:02.5+01:00",
    ],
)
def test_times_of_every_unit_are_read(time: Any) -> None:
    assert rfc3339(time, "at") == "2025-11-21T09:30:02.500000Z"


def test_convert_shows_events_and_refusals() -> None:
    ran = CliRunner().invoke(
        main,
        [
            *("convert", "--from", "langfuse", str(GOLDEN / "langfuse-v3.json")),
            *("--router", "acme"),
            *(f"--score={name}" for name in SCORES),
        ],
    )
    assert ran.exit_code == 0, ran.output
    assert [json.loads(line)["topic"] for line in ran.output.splitlines()] == ["rewards"] * 3
    wrong = CliRunner().invoke(main, ["convert", "--from", "langfuse"], input='{"value": "secret"}')
    assert wrong.exit_code == 1 and "invalid_field" in wrong.output and "secret" not in wrong.output
    assert CliRunner().invoke(main, ["convert"], input="{}").exit_code == 2


async def test_ingest_writes_events_and_dead_letters_what_it_cannot_map(
    kafka: str, tmp_path: Path
) -> None:
    name = f"ingest-{uuid.uuid4().hex[:8]}"
    settings = Settings(bootstrap=kafka, prefix=f"{name}.", app_id=name, partitions=2)
    await create_topics(settings)
    service = RunningService(settings, tmp_path, {})
    topic = settings.topic("alerts")  # any one that is there
    good, bad = (GOLDEN / "langfuse-v3.json").read_bytes(), b'{"value": "high", "traceId": "r"}'
    async with AIOKafkaProducer(bootstrap_servers=kafka) as producer:
        for value in (good, bad, good):
            await producer.send_and_wait(topic, value, key=b"k")
    for records, group in ((3, name), (0, name)):
        work, stop = (
            Ingest(
                settings, finder_of("langfuse", DEFAULTS), topic=topic, group=group, scores=SCORES
            ),
            asyncio.Event(),
        )
        running = asyncio.create_task(work.run(stop))
        async with asyncio.timeout(60):
            while work.done.records < records:  # noqa: ASYNC110 - counted by the loop itself
                await asyncio.sleep(0.05)
        stop.set()
        await running
        assert work.done.records == records
    log = await service.log_of(settings.topic("rewards"))
    found = [
        json.loads(record.value)["request_id"] for records in log.values() for record in records
    ]
    assert sorted(found) == ["r-1", "r-1", "r-2", "r-2", "r-3", "r-3"]
    (letter,) = [
        record
        for records in (await service.log_of(settings.topic("dlq"))).values()
        for record in records
    ]
    told = DeadLetter.from_headers(letter.headers)
    assert (letter.value, letter.key, told.stage, told.reason, told.topic) == (
        bad,
        b"k",
        "ingest",
        "invalid_field",
        topic,
    )


async def test_ingest_writes_the_good_items_of_a_record_and_keeps_the_odd_ones(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = AIOKafkaConsumer.committed

    async def late(consumer: AIOKafkaConsumer, tp: Any) -> Any:
        """Answer when a fetch at the committed offset would have come back."""
        await asyncio.sleep(0.5)
        return await committed(consumer, tp)

    monkeypatch.setattr(AIOKafkaConsumer, "committed", late)
    name = f"ingest-{uuid.uuid4().hex[:8]}"
    settings = Settings(bootstrap=kafka, prefix=f"{name}.", app_id=name, partitions=1)
    await create_topics(settings)
    topic, odd = settings.topic("alerts"), {**LOGGED, "response_cost": -1}
    async with AIOKafkaProducer(bootstrap_servers=kafka) as producer:
        # The second process knows of the first one's attempt, and sends nothing of it again.
        for batch, counts in (([FAILED, odd], (1, 1, 1)), ([LOGGED], (1, 1, 0))):
            await producer.send_and_wait(topic, json.dumps(batch).encode(), key=b"k", partition=0)
            work = Ingest(settings, finder_of("litellm", DEFAULTS), topic=topic, group=name)
            stop = asyncio.Event()
            running = asyncio.create_task(work.run(stop))
            async with asyncio.timeout(60):
                while work.done.records < 1:  # noqa: ASYNC110 - counted by the loop itself
                    await asyncio.sleep(0.05)
            stop.set()
            await running
            done = work.done
            assert (done.records, done.events, done.refused) == counts
    service = RunningService(settings, tmp_path, {})
    (bills,) = (await service.log_of(settings.topic("costs"))).values()
    assert [json.loads(bill.value)["cost_usd"] for bill in bills] == [0.004, 0.014]
    letters = [one for log in (await service.log_of(settings.topic("dlq"))).values() for one in log]
    assert [json.loads(letter.value) for letter in letters] == [odd]


async def test_ingest_commits_nothing_that_kafka_refused(kafka: str) -> None:
    name = f"ingest-{uuid.uuid4().hex[:8]}"
    settings = Settings(bootstrap=kafka, prefix=f"{name}.", app_id=name, partitions=1)
    await create_topics(settings)
    topic = settings.topic("alerts")
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
    await admin.start()
    smaller = {"max.message.bytes": "100"}
    rewards = settings.topic("rewards")
    await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, rewards, smaller)])
    async with AIOKafkaProducer(bootstrap_servers=kafka) as producer:
        value = (GOLDEN / "langfuse-v3.json").read_bytes()
        await producer.send_and_wait(topic, value, key=b"k")
        # The controller has taken the limit; the broker follows a moment later.
        async with asyncio.timeout(60):
            with pytest.raises(MessageSizeTooLargeError):
                while True:
                    await producer.send_and_wait(rewards, bytes(1000))
    work = Ingest(settings, finder_of("langfuse", DEFAULTS), topic=topic, group=name, scores=SCORES)
    with pytest.raises(MessageSizeTooLargeError):
        await asyncio.wait_for(work.run(asyncio.Event()), 60)
    assert not await admin.list_consumer_group_offsets(name)
    await admin.close()


@pytest.mark.parametrize(
    ("changed", "source"),
    [
        ({}, "human:u-1"),
        ({"authorUserId": None}, "human"),
        ({"authorUserId": ""}, "human"),
        ({"authorUserId": "Zoë <b>:" + 80 * "x"}, "human:Zo---b--" + 56 * "x"),
        ({"source": "EVAL"}, "judge"),
        ({"source": "API"}, "judge"),
    ],
)
def test_an_annotation_of_langfuse_names_who_has_annotated(
    changed: dict[str, Any], source: str
) -> None:
    score = json.loads((GOLDEN / "langfuse.json").read_text())["data"][0] | changed
    ((_, event),) = plain(json.dumps(score).encode(), "langfuse")
    assert event["source"] == source
