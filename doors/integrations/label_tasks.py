"""Write the requests that people are asked to label, as labelling tools import them.

Label Studio: tasks. Argilla: records. Langfuse: items of an annotation queue. And lines of JSON,
for anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ground.json_values import Document, Json


class Task(NamedTuple):
    """One request that people are asked about; `link` leads to its answer, None: nowhere."""

    router_id: str
    request_id: str
    link: str | None


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
