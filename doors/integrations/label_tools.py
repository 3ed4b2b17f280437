"""Write the requests that people are asked to label for labelling tools, and read their labels.

Label Studio: tasks as it imports and exports them as JSON. Argilla: records as `to_json` writes
them, and as its server returns them. Langfuse: items of an annotation queue, and its scores. And
lines of JSON, for anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from doors.integrations.documents import documents_of
from doors.integrations.langfuse import traced
from doors.integrations.payload_items import Item, Unconvertible, either, person_of
from ground.json_values import Document, Json
from schemas import Reason

TOOLS = ("label-studio", "argilla", "langfuse", "jsonl")
"""Names of the forms, as commands use them."""


class Task(NamedTuple):
    """One request that people are asked about; `link` leads to its answer, None: nowhere."""

    router_id: str
    request_id: str
    link: str | None


class Given(NamedTuple):
    """One label that a person gave in a tool.

    Attributes:
        request_id: the request whose answer was labelled.
        value: a number or a word; None: the person can't tell.
        question: name of what was asked; None: the form has no names.
        by: the person, as a source names them; None: not said.
        whole: whether the value is a reward already, and no point of a scale.
        at: when the person said so, in ISO 8601; None: the form does not say.
    """

    request_id: str
    value: float | str | None
    question: str | None = None
    by: str | None = None
    whole: bool = False
    at: str | None = None


def exported(tool: str, tasks: Iterable[Task]) -> Json:
    """Return tasks in the form that a tool imports; of `jsonl` a list of its lines."""
    return [_WRITERS[tool](one) for one in tasks]


def _label_studio_task(one: Task) -> Document:
    return {"data": one._asdict()}


def _argilla_record(one: Task) -> Document:
    return {
        "id": one.request_id,
        "fields": {"answer": one.link or one.request_id},
        "metadata": {},  # a dataset refuses metadata that its settings do not name
        "suggestions": {},
        "responses": {},
        "vectors": {},
    }


def _queue_item(one: Task) -> Document:
    """Return the body of POST /api/public/annotation-queues/{queueId}/items."""
    return {"objectId": one.request_id, "objectType": "TRACE", "status": "PENDING"}


_WRITERS: dict[str, Callable[[Task], Document]] = {
    "label-studio": _label_studio_task,
    "argilla": _argilla_record,
    "langfuse": _queue_item,
    "jsonl": Task._asdict,
}


def given_in(tool: str, raw: bytes) -> list[Given]:
    """Return people's labels, in the order of the file.

    Raises:
        Unconvertible: the file has another form; the message names the item.
        MalformedEvent: it is not JSON.
    """
    found: list[Given] = []
    for number, document in enumerate(documents_of(raw)):
        try:
            if isinstance(document, Item):
                raise Unconvertible("is not an object", Reason.MALFORMED_EVENT)
            found += _READERS[tool](document)
        except (KeyError, TypeError, AttributeError) as error:
            raise Unconvertible(f"item {number}: this is not a {tool} export ({error})") from error
        except Unconvertible as error:
            raise Unconvertible(f"item {number}: {error}", error.reason) from error
    return found


def _from_label_studio(task: Document) -> Iterator[Given]:
    if "annotations" not in task:
        raise Unconvertible("has no annotations: export as JSON, not as JSON-MIN or CSV")
    data = task["data"]
    for one in task["annotations"]:
        by, at = person_of(one.get("completed_by")), one.get("updated_at") or one.get("created_at")
        if one.get("was_cancelled"):
            yield Given(_request(data), None, by=by, at=at)
            continue
        for result in one["result"] or ():
            kind, value = result["type"], result["value"]
            if kind in ("rating", "number"):
                yield Given(_request(data), value[kind], result["from_name"], by, at=at)
            elif kind == "choices":
                said = value["choices"]
                answer = str(said[0]) if len(said) == 1 else said
                yield Given(_request(data), answer, result["from_name"], by, at=at)


def _request(data: Document) -> str:
    found = data.get("request_id")
    # Tables make numbers of ids that are digits.
    if isinstance(found, int) and not isinstance(found, bool):
        found = str(found)
    if not isinstance(found, str):
        raise Unconvertible("has no request_id: it is not one of `pbstream labels export`")
    return found


def _from_argilla(document: Document) -> Iterator[Given]:
    page = document.get("items")  # records as the server lists them
    for record in page if isinstance(page, list) else [document]:
        yield from _from_record(record)


def _from_record(record: Document) -> Iterator[Given]:
    request_id = (record.get("metadata") or {}).get("request_id") or record.get("external_id")
    request_id = _request({"request_id": request_id or record["id"]})
    responses = record["responses"]
    if isinstance(responses, dict):  # as `to_json` writes them
        for question, each in responses.items():
            for one in each:
                # Argilla writes "None" where nobody is known.
                by = None if one.get("user_id") == "None" else person_of(one.get("user_id"))
                yield Given(request_id, one["value"], question, by)
        return
    for one in responses or ():  # as the server returns them
        by, at = person_of(one.get("user_id")), one.get("updated_at")
        if one["status"] == "discarded":
            yield Given(request_id, None, by=by, at=at)
        elif one["status"] == "submitted":
            for question, answer in one["values"].items():
                yield Given(request_id, answer["value"], question, by, at=at)


def _from_langfuse(document: Document) -> Iterator[Given]:
    page = document.get("data")
    for score in page if isinstance(page, list) else [document]:
        # A score of another source is a judge's or a program's: `pbstream ingest` takes those.
        if score["source"] != "ANNOTATION":
            continue
        kind = score.get("dataType") or "NUMERIC"
        if kind not in ("NUMERIC", "BOOLEAN", "CATEGORICAL"):
            continue  # a comment, or a corrected answer
        is_word = kind == "CATEGORICAL"
        yield Given(
            _of_trace(score),
            _word(score) if is_word else float(score["value"]),
            score["name"],
            person_of(score.get("authorUserId")),
            whole=kind == "BOOLEAN",
            at=either(score, "updatedAt") or score.get("timestamp"),
        )


def _word(score: Document) -> str:
    # Version 3 returns the word as the value, which was its number before.
    return str(score["stringValue"] if "stringValue" in score else score["value"])


def _of_trace(score: Document) -> str:
    request_id = traced(score)
    if request_id is None:
        raise Unconvertible(
            "a score names no trace: people label traces, and version 3 of the API names them with "
            "fields=subject,details,annotation"
        )
    return _request({"request_id": request_id})


def _from_lines(line: Document) -> Iterator[Given]:
    value, cannot = line.get("reward"), line.get("cant_tell")
    if value is None and not cannot:
        return  # not labelled yet
    by = person_of(line.get("by"))
    yield Given(_request(line), None if cannot else value, by=by, whole=not isinstance(value, str))


_READERS: dict[str, Callable[[Document], Iterator[Given]]] = {
    "label-studio": _from_label_studio,
    "argilla": _from_argilla,
    "langfuse": _from_langfuse,
    "jsonl": _from_lines,
}
