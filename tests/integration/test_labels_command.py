"""`pbstream labels` against a real service: what is listed, given, exported and imported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from streams.settings import Settings
from tests.integration.commands import CONTEXT, PRICES, done, done_json, run, until

ROUTER = "labelled"
REQUESTS = ("l-1", "l-2", "l-3")


def asked(worker: Settings) -> None:
    """Declare a router, and let it ask about three requests."""
    for name in ("small", "large"):
        done(worker, "models", "add", name, *PRICES, "--dimensions", "3", router=ROUTER)
    fields = ("sources.gold=human", "labels.want=20", "labels.per=day", "labels.steps=5")
    done(worker, "routers", "set", ROUTER, *fields, "label_url=https://a.test/{request_id}")
    for name in REQUESTS:
        done(worker, "request", "--context", "-", "--id", name, stdin=CONTEXT, router=ROUTER)


def listed(worker: Settings) -> list[str]:
    """Return what is to be labelled."""
    return [one["request_id"] for one in done_json(worker, "labels", "list", router=ROUTER)]


def applied(worker: Settings) -> int:
    """Return how many requests have a label, by the worker."""
    found = done_json(worker, "labels", "list", "--all", router=ROUTER)
    return sum(any(isinstance(v, float) for v in one["labels"].values()) for one in found)


def test_labels_are_listed_given_exported_imported_once_and_taken_back(
    worker: Settings, tmp_path: Path
) -> None:
    asked(worker)
    assert listed(worker) == ["l-3", "l-2", "l-1"]
    assert "3 to label" in done(worker, "labels", "list", router=ROUTER)
    told = done(worker, "explain", "l-1", router=ROUTER)
    assert "A person is asked to label it; that had a probability of 1." in told
    given = done_json(worker, "labels", "give", "l-3", "up", "--by", "anna", router=ROUTER)
    assert given["outcome"] == "booked"
    wrong = run(worker, "labels", "give", "l-3", "1.5", router=ROUTER)
    assert wrong.exit_code == 2
    assert "0 to 1, up, down, cant-tell or none" in wrong.output
    nobody = run(worker, "labels", "give", "l-3", "1", "--by", "a b", router=ROUTER)
    assert nobody.exit_code == 2

    path = tmp_path / "tasks.json"
    done(worker, "labels", "export", "label-studio", str(path), router=ROUTER)
    tasks: list[dict[str, Any]] = json.loads(path.read_text())
    links = [(one["data"]["request_id"], one["data"]["link"]) for one in tasks]
    assert links == [("l-2", "https://a.test/l-2"), ("l-1", "https://a.test/l-1")]
    for task, stars in zip(tasks, (4, 9), strict=True):
        result = {"type": "rating", "value": {"rating": stars}, "from_name": "reward"}
        ben = {"completed_by": {"email": "ben@a.test"}, "updated_at": "2026-02-02T10:00:00Z"}
        task["annotations"] = [{**ben, "result": [result]}]
    path.write_text(json.dumps(tasks))
    refused = run(worker, "labels", "import", "label-studio", str(path), router=ROUTER)
    assert refused.exit_code == 1
    assert "request l-1: 9 is not on the scale from 1 to 5" in refused.output
    assert listed(worker) == ["l-2", "l-1"]  # of a file with a wrong label nothing is sent

    first = {**tasks[0]["annotations"][0], "updated_at": "2026-02-01T10:00:00Z"}
    first["result"] = [{"type": "number", "value": {"number": 1}, "from_name": "reward"}]
    tasks[0]["annotations"].append(first)  # of a person's labels in one file the last one counts
    tasks[1]["annotations"] = [{"completed_by": 7, "result": [], "was_cancelled": True}]
    tasks[1]["drafts"] = [{"result": []}]
    path.write_text(json.dumps(tasks))
    importing = ("labels", "import", "label-studio", str(path))
    shown = done(worker, *importing, "--dry-run", router=ROUTER)
    assert [json.loads(line)["source"] for line in shown.splitlines()] == [
        "human:ben@a.test",
        "human:7",
    ]
    assert listed(worker) == ["l-2", "l-1"]
    told = done(worker, *importing, router=ROUTER)
    assert "2 labels sent, 0 were there already" in told
    assert "Passed over: drafts 1, earlier labels of the same person 1." in told
    assert "0 labels sent, 2 were there already" in done(worker, *importing, router=ROUTER)
    assert listed(worker) == []
    until(lambda: applied(worker) == 2)

    done(worker, "labels", "give", "l-3", "0", "--by", "ben", router=ROUTER)
    told = done(worker, "explain", "l-3", router=ROUTER)
    assert "Reward: 1 by human:anna." in told
    assert "2 people: their mean of 0.5 counts, they part by up to 1." in told
    done(worker, "labels", "give", "l-3", "none", "--by", "anna", router=ROUTER)
    done(worker, "labels", "give", "l-3", "none", "--by", "ben", router=ROUTER)
    assert listed(worker) == ["l-3"]
    everything = done(worker, "labels", "list", "--all", router=ROUTER)
    assert "withdrawn" in everything
    assert "None" not in everything
    done(worker, "labels", "give", "l-3", "cant-tell", "--by", "ben", router=ROUTER)
    assert listed(worker) == []
    assert "can't tell by human:ben, revision 2" in done(worker, "explain", "l-3", router=ROUTER)


def test_a_router_without_a_budget_of_labels_says_how_to_declare_one(worker: Settings) -> None:
    done(worker, "models", "add", "small", *PRICES, "--dimensions", "3", router="unlabelled")
    for words in (("labels", "list"), ("labels", "export", "jsonl")):
        found = run(worker, *words, router="unlabelled")
        assert found.exit_code == 1
        assert "labels.want=50 labels.per=day" in found.output
    missing = run(worker, "labels", "list", router="nowhere")
    assert missing.exit_code == 1
    assert "nowhere" in missing.output
