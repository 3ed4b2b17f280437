"""What labelling tools write becomes labels; each golden file is in the form that its source
documents (golden/README.md).
"""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands.cli.labels_exchange import TOOLS as OF_COMMAND
from doors.integrations.label_scale import Scale, chosen, last_labels, reward_of
from doors.integrations.label_tasks import Task, exported
from doors.integrations.label_tools import TOOLS, WANTED, Given, given_in
from doors.integrations.payload_items import Unconvertible

GOLDEN = Path(__file__).parent / "golden"
FIVE = Scale(1.0, 5.0)
TASKS = [
    Task("acme.help", "7f3c", "https://traces.acme.test/7f3c"),
    Task("acme.help", "7f3d", None),
]
ANNA, BEN = "df114042-958d-42c6-9f03-ab49bd451c6c", "5a8f0c7e-11c4-4a2b-9d6c-0c2f5d7a9e21"


def read(name: str, tool: str, scale: Scale = FIVE, question: str | None = None) -> list[Any]:
    """Return request, reward and person of each label in a golden file."""
    given = chosen(given_in(tool, (GOLDEN / name).read_bytes()).given, question)
    return [(one.request_id, reward_of(one, scale), one.by) for one in given]


def test_ratings_and_choices_of_label_studio_and_tasks_that_were_skipped() -> None:
    assert read("label-studio.json", "label-studio") == [
        ("7f3c", 0.75, "anna@acme.test"),
        ("7f3c", 0.0, "11"),
        ("7f3d", None, "10"),
    ]


def test_responses_of_argilla_by_question_as_written_and_as_returned() -> None:
    assert read("argilla.json", "argilla", question="quality") == [
        ("7f3c", 0.75, ANNA),
        ("7f3c", 0.0, BEN),
    ]
    assert read("argilla-server.json", "argilla") == [("7f3c", 0.75, ANNA), ("7f3c", None, BEN)]
    with pytest.raises(Unconvertible, match=r"quality, why.*--question"):
        read("argilla.json", "argilla")
    with pytest.raises(Unconvertible, match=r"nobody was asked 'speed'"):
        read("argilla.json", "argilla", question="speed")


def test_scores_of_a_queue_of_langfuse_that_people_gave() -> None:
    assert read("langfuse-queue-scores.json", "langfuse", Scale(0.0, 1.0)) == [
        ("7f3c", 0.75, "clx0anna"),
        ("7f3d", 0.0, "clx0ben"),
    ]


def test_scores_of_a_queue_as_version_3_of_langfuse_returns_them() -> None:
    assert read("langfuse-queue-scores-v3.json", "langfuse", Scale(0.0, 1.0)) == [
        ("7f3c", 0.75, "clx0anna"),
        ("7f3d", 0.0, "clx0ben"),
        ("7f40", 1.0, "clx0ben"),
    ]


def test_scores_of_version_3_without_their_traces_say_what_to_ask_for() -> None:
    score = {"id": "s", "source": "ANNOTATION", "dataType": "NUMERIC", "name": "q", "value": 1}
    with pytest.raises(Unconvertible, match="fields=subject,details,annotation"):
        given_in("langfuse", json.dumps({"data": [score]}).encode())


def test_lines_with_a_reward_or_a_word() -> None:
    lines = [
        {"request_id": "a", "reward": 0.3, "by": "anna"},
        {"request_id": "b", "reward": "good"},
        {"request_id": "c", "cant_tell": True},
        {"request_id": "d"},
    ]
    raw = "\n".join(map(json.dumps, lines)).encode()
    found = [(one.request_id, reward_of(one, FIVE), one.by) for one in given_in("jsonl", raw).given]
    assert found == [("a", 0.3, "anna"), ("b", 1.0, None), ("c", None, None)]


@pytest.mark.parametrize("tool", TOOLS)
def test_what_is_exported_and_labelled_there_is_read_again(tool: str) -> None:
    made = exported(tool, TASKS)
    assert isinstance(made, list)
    first: dict[str, Any] = made[0]
    if tool == "label-studio":
        result = {"type": "number", "value": {"number": 5}, "from_name": "reward"}
        first |= {"annotations": [{"completed_by": 1, "result": [result]}]}
        made[1] |= {"annotations": []}
    elif tool == "argilla":
        assert first["metadata"] == {}  # the usual dataset refuses any
        first["responses"] = {"quality": [{"value": 5, "user_id": ANNA}]}
    elif tool == "langfuse":
        assert first == {"objectId": "7f3c", "objectType": "TRACE", "status": "PENDING"}
        score = {"traceId": first["objectId"], "source": "ANNOTATION", "dataType": "BOOLEAN"}
        made = {"data": [{**score, "name": "good", "value": 1}]}
    else:
        first["reward"] = 1
    (found,) = given_in(tool, json.dumps(made).encode()).given
    assert (found.request_id, reward_of(found, FIVE)) == ("7f3c", 1.0)


@pytest.mark.parametrize(
    ("value", "scale", "reward"),
    [
        (3, FIVE, 0.5),
        (10, Scale(0.0, 10.0), 1.0),
        ("👍", FIVE, 1.0),
        (" Bad ", FIVE, 0.0),
        ("2", FIVE, 0.25),
        ("can't tell", FIVE, None),
        (None, FIVE, None),
    ],
)
def test_numbers_by_their_scale_and_words(value: Any, scale: Scale, reward: float | None) -> None:
    assert reward_of(Given("r", value), scale) == reward


@pytest.mark.parametrize("value", [0, 6, float("nan"), "great", ["a"], {"a": 1}])
def test_what_is_not_on_the_scale_is_refused_with_what_to_do(value: Any) -> None:
    with pytest.raises(Unconvertible, match=r"scale|is not a label|several answers"):
        reward_of(Given("r", value), FIVE)


@pytest.mark.parametrize(
    ("tool", "document", "why"),
    [
        ("label-studio", [{"annotations": []}], "item 0: this is not an export of label-studio"),
        ("label-studio", [{"request_id": "a", "reward": 4}], "export as JSON, not as JSON-MIN"),
        ("label-studio", [{"data": {}, "annotations": [{"was_cancelled": True}]}], "request_id"),
        ("argilla", [{"id": "a"}], "item 0: this is not an export of argilla"),
        ("langfuse", {"id": "a"}, "item 0: this is not an export of langfuse"),
        ("jsonl", [{"reward": 1}], "request_id"),
        ("jsonl", [1], "item 0: is not an object"),
    ],
)
def test_a_file_of_another_form_is_refused_by_item(tool: str, document: Any, why: str) -> None:
    with pytest.raises(Unconvertible, match=why):
        given_in(tool, json.dumps(document).encode())


def test_the_command_names_the_same_tools() -> None:
    assert OF_COMMAND == TOOLS


ANNOTATION = {"completed_by": 7, "was_cancelled": False}


def rated(stars: int, **fields: Any) -> dict[str, Any]:
    result = {"type": "rating", "value": {"rating": stars}, "from_name": "reward"}
    return {**ANNOTATION, "result": [result], **fields}


@pytest.mark.parametrize(
    ("dates", "last"),
    [
        (("2026-03-01T10:00:00.5Z", "2026-03-01T09:00:00Z"), 0.25),
        (("2026-03-01T10:00:00+02:00", "2026-03-01T09:00:00Z"), 1.0),
        (("2026-03-01T10:00:00", "2026-03-01T09:00:00+00:00"), 0.25),
        ((None, "2026-03-01T09:00:00Z"), 1.0),
        (("yesterday", "2026-03-01"), 1.0),
    ],
)
def test_of_several_labels_of_a_person_in_one_file_the_last_one_counts(
    dates: tuple[str | None, str], last: float
) -> None:
    annotations = [rated(stars, updated_at=at) for stars, at in zip((2, 5), dates, strict=True)]
    task = {
        "data": {"request_id": 12345},
        "annotations": [*annotations, rated(3) | {"completed_by": 8}],
    }
    given = given_in("label-studio", json.dumps([task]).encode()).given
    found = last_labels(given, lambda one: str(one.by))
    assert [(one.request_id, one.by, reward_of(one, FIVE)) for one in found] == [
        ("12345", "7", last),
        ("12345", "8", 0.5),
    ]
    assert len(last_labels(given, lambda one: "one person")) == 1


def test_several_choices_are_no_label_and_what_is_empty_says_nothing() -> None:
    choices = {"type": "choices", "value": {"choices": ["good", "bad"]}, "from_name": "reward"}
    empty = {**ANNOTATION, "result": None}
    task = {
        "data": {"request_id": "a"},
        "annotations": [empty, {**ANNOTATION, "result": [choices]}],
    }
    (found,) = given_in("label-studio", json.dumps([task]).encode()).given
    with pytest.raises(Unconvertible, match="several answers"):
        reward_of(found, FIVE)


def test_records_as_argilla_lists_them_and_responses_of_nobody() -> None:
    page = {"items": json.loads((GOLDEN / "argilla-server.json").read_bytes()), "total": 1}
    found = [
        (one.request_id, one.by) for one in given_in("argilla", json.dumps(page).encode()).given
    ]
    assert found == [("7f3c", ANNA), ("7f3c", BEN)]
    record = {"id": "a", "responses": {"quality": [{"value": 3, "user_id": "None"}]}}
    (alone,) = given_in("argilla", json.dumps([record]).encode()).given
    assert alone.by is None


def test_comments_and_corrections_of_langfuse_are_no_labels() -> None:
    score = {"traceId": "a", "source": "ANNOTATION", "name": "quality", "authorUserId": "u"}
    page = [
        {**score, "dataType": "TEXT", "stringValue": "too long", "value": None},
        {**score, "dataType": "CORRECTION", "stringValue": "Paris", "value": 0},
        {**score, "value": 0.5, "updatedAt": "2026-03-01T09:00:00.000Z"},
    ]
    (found,) = given_in("langfuse", json.dumps({"data": page, "meta": {"page": 1}}).encode()).given
    assert (found.value, found.at) == (0.5, "2026-03-01T09:00:00.000Z")


def label_studio_task(*results: Any, **fields: Any) -> dict[str, Any]:
    annotations = [{**ANNOTATION, "result": list(results)}]
    return {"data": {"request_id": "a"}, "annotations": annotations, **fields}


def test_what_label_studio_writes_beside_labels_is_counted() -> None:
    stars = rated(4)["result"][0]
    why = {"type": "textarea", "value": {"text": ["too long"]}, "from_name": "why"}
    arrow = {"type": "relation", "from_id": "x", "to_id": "y", "direction": "right"}
    tasks = [
        label_studio_task(stars, why, arrow, drafts=[rated(1)], predictions=[3, 4]),
        label_studio_task(),
        label_studio_task(annotations=[], drafts=[], predictions=None),
    ]
    found = given_in("label-studio", json.dumps(tasks).encode())
    assert [one.value for one in found.given] == [4]
    assert found.passed_over == {
        "drafts": 1,
        "predictions": 2,
        "results of type textarea": 1,
        "results of type relation": 1,
        "empty annotations": 1,
        "tasks that nobody labelled": 1,
    }


@pytest.mark.parametrize(
    ("tool", "document", "counted"),
    [
        ("argilla", {"id": "a", "responses": {}}, {"records without a response": 1}),
        ("argilla", {"id": "a", "responses": None}, {"records without a response": 1}),
        (
            "argilla",
            {"id": "a", "responses": [{"status": "draft", "values": {"q": {"value": 1}}}]},
            {"responses with status draft": 1},
        ),
        ("langfuse", {"data": [{"source": "EVAL"}]}, {"scores with source EVAL": 1}),
        (
            "langfuse",
            {"data": [{"source": "ANNOTATION", "dataType": "TEXT"}] * 2},
            {"scores of type TEXT": 2},
        ),
        ("jsonl", {"request_id": "a", "reward": None}, {"lines without a label": 1}),
    ],
)
def test_what_is_no_label_is_counted(tool: str, document: Any, counted: dict[str, int]) -> None:
    assert given_in(tool, json.dumps(document).encode()) == ([], counted)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("raw", [b"", b" \r\n", b"id,reward\r\n1,4\r\n", b'[{"data": {"requ'])
def test_what_is_not_json_is_refused_with_the_export_that_is_wanted(tool: str, raw: bytes) -> None:
    with pytest.raises(Unconvertible, match=re.escape(WANTED[tool])):
        given_in(tool, raw)


@pytest.mark.parametrize(
    ("pack", "why"),
    [
        (gzip.compress, "gzip: unpack"),
        (lambda raw: b"PK\x03\x04" + raw, "zip archive.*: unpack"),
        (lambda raw: raw.decode().encode("utf-16"), "UTF-8"),
    ],
)
def test_a_packed_file_says_what_to_do(pack: Callable[[bytes], bytes], why: str) -> None:
    with pytest.raises(Unconvertible, match=why):
        given_in("jsonl", pack(b'{"request_id": "a", "reward": 1}'))


def test_a_file_of_another_tool_is_no_list_of_lines() -> None:
    with pytest.raises(Unconvertible, match="has no request_id"):
        given_in("jsonl", json.dumps([label_studio_task()]).encode())
