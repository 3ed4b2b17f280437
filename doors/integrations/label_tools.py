"""Read people's labels from the files of labelling tools.

Label Studio: tasks as it exports them as JSON. Argilla: records as `to_json` writes them, and as
its server returns them. Langfuse: scores. And lines of JSON, for anything else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from doors.integrations.documents import documents_of
from doors.integrations.langfuse import traced
from doors.integrations.payload_items import Item, Unconvertible, either, person_of
from ground.json_values import Document
from schemas import MalformedEvent, Reason

TOOLS = ("label-studio", "argilla", "langfuse", "jsonl")
"""Names of the forms, as commands use them."""
WANTED = {
    "label-studio": "export as JSON, not as JSON-MIN, CSV or TSV",
    "argilla": "write the records by dataset.records.to_json, or take the server's",
    "langfuse": "save what GET /api/public/v3/scores answers",
    "jsonl": "write a line of JSON each, in UTF-8",
}
"""Files that are wanted of each tool, as errors name them."""


class Given(NamedTuple):
    """One label that a person gave in a tool.

    Attributes:
        request_id: the request whose answer was labelled.
        value: a number or a word; None: the person can't tell.
        question: name of what was asked; None: the form has no names.
        by: the person, by the name in a source; None: not stated.
        whole: whether the value is a reward, and not a point of a scale.
        at: time of the label, in ISO 8601; None: the form has no times.
    """

    request_id: str
    value: float | str | None
    question: str | None = None
    by: str | None = None
    whole: bool = False
    at: str | None = None


class PassedOver(NamedTuple):
    """Parts of a file that are not labels: their kind, in the plural, and their number."""

    kind: str
    many: int = 1


class Labels(NamedTuple):
    """Labels of a file in its order, and the parts that were passed over, by kind."""

    given: list[Given]
    passed_over: Counter[str]


def given_in(tool: str, raw: bytes) -> Labels:
    """Return people's labels, and the parts that were passed over.

    Raises:
        Unconvertible: the file has another form; the message names the item and the form wanted.
    """
    found = Labels([], Counter())
    for number, document in enumerate(_documents(tool, raw)):
        try:
            if isinstance(document, Item):
                raise Unconvertible("is not an object", Reason.MALFORMED_EVENT)
            for one in _READERS[tool](document):
                if isinstance(one, Given):
                    found.given.append(one)
                elif one.many:
                    found.passed_over[one.kind] += one.many
        except (KeyError, TypeError, AttributeError) as error:
            why = f"item {number}: this is not an export of {tool} ({error}): {WANTED[tool]}"
            raise Unconvertible(why) from error
        except Unconvertible as error:
            raise Unconvertible(f"item {number}: {error}", error.reason) from error
    return found


NOT_TEXT = {
    b"\x1f\x8b": "is compressed by gzip: unpack it first",
    b"PK\x03\x04": "is a zip archive, or a spreadsheet: unpack it first",
    b"\xff\xfe": "is in UTF-16, as PowerShell writes it: write it in UTF-8",
    b"\xfe\xff": "is in UTF-16: write it in UTF-8",
}
"""First bytes of files that are often given instead of JSON, and what to do."""


def _documents(tool: str, raw: bytes) -> list[Document | Item]:
    """Return a file's documents. Raises Unconvertible, which says what to export instead."""
    if not raw.strip():
        raise Unconvertible(f"is empty: {WANTED[tool]}", Reason.MALFORMED_JSON)
    for start, why in NOT_TEXT.items():
        if raw.startswith(start):
            raise Unconvertible(why, Reason.MALFORMED_JSON)
    try:
        return documents_of(raw)
    except MalformedEvent as error:
        raise Unconvertible(f"{error}; {WANTED[tool]}", error.reason) from error


Read = Iterator[Given | PassedOver]
"""Labels and other parts that a reader finds in a document."""


def _from_label_studio(task: Document) -> Read:
    if "annotations" not in task:
        raise Unconvertible(f"has no annotations: {WANTED['label-studio']}")
    data = task["data"]
    yield PassedOver("drafts", len(task.get("drafts") or ()))
    yield PassedOver("predictions", len(task.get("predictions") or ()))
    if not task["annotations"]:
        yield PassedOver("tasks that nobody labelled")
    for one in task["annotations"] or ():
        yield from _from_annotation(data, one)


def _from_annotation(data: Document, one: Document) -> Read:
    by, at = person_of(one.get("completed_by")), one.get("updated_at") or one.get("created_at")
    if one.get("was_cancelled"):
        yield Given(_request(data), None, by=by, at=at)
        return
    if not one["result"]:
        yield PassedOver("empty annotations")
    for result in one["result"] or ():
        kind = result["type"]
        if kind in ("rating", "number"):
            value = result["value"][kind]
            yield Given(_request(data), value, result["from_name"], by, at=at)
        elif kind == "choices":
            said = result["value"]["choices"]
            answer = str(said[0]) if len(said) == 1 else said
            yield Given(_request(data), answer, result["from_name"], by, at=at)
        else:
            yield PassedOver(f"results of type {kind}")


def _request(data: Document) -> str:
    found = data.get("request_id")
    # Tables make numbers of ids that are digits.
    if isinstance(found, int) and not isinstance(found, bool):
        found = str(found)
    if not isinstance(found, str):
        raise Unconvertible("has no request_id: it is not one of `pbstream labels export`")
    return found


def _from_argilla(document: Document) -> Read:
    page = document.get("items")  # records as the server lists them
    for record in page if isinstance(page, list) else [document]:
        yield from _from_record(record)


def _from_record(record: Document) -> Read:
    request_id = (record.get("metadata") or {}).get("request_id") or record.get("external_id")
    request_id = _request({"request_id": request_id or record["id"]})
    responses = record["responses"]
    if not responses:
        yield PassedOver("records without a response")
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
        else:
            yield PassedOver(f"responses with status {one['status']}")


def _from_langfuse(document: Document) -> Read:
    page = document.get("data")
    for score in page if isinstance(page, list) else [document]:
        # A score of another source is a judge's or a program's: `pbstream ingest` takes those.
        if score["source"] != "ANNOTATION":
            yield PassedOver(f"scores with source {score['source']}")
            continue
        kind = score.get("dataType") or "NUMERIC"
        if kind not in ("NUMERIC", "BOOLEAN", "CATEGORICAL"):
            yield PassedOver(f"scores of type {kind}")  # a comment, or a corrected answer
            continue
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


def _from_lines(line: Document) -> Read:
    request_id = _request(line)
    value, cannot = line.get("reward"), line.get("cant_tell")
    if value is None and not cannot:
        yield PassedOver("lines without a label")
        return
    by = person_of(line.get("by"))
    yield Given(request_id, None if cannot else value, by=by, whole=not isinstance(value, str))


_READERS: dict[str, Callable[[Document], Read]] = {
    "label-studio": _from_label_studio,
    "argilla": _from_argilla,
    "langfuse": _from_langfuse,
    "jsonl": _from_lines,
}
