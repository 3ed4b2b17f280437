"""The AsyncAPI document names every topic, and refers to nothing that is not there."""

import json
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

from schemas import EVENTS
from schemas.asyncapi import document
from schemas.cloud_events import schema_id
from schemas.export import schema_files
from schemas.topic_roles import TOPICS
from streams.service.agent_ports import STAGES
from streams.service.agent_ports import TOPICS as WORKERS_TOPICS

ROOT = Path(__file__).parents[2]


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for part in value.values():
            yield from references(part)
    elif isinstance(value, list):
        for part in value:
            yield from references(part)


def test_every_topic_of_a_worker_is_a_channel_and_an_operation() -> None:
    assert set(TOPICS) == set(WORKERS_TOPICS) | {"refusals"} == set(EVENTS) | {"dlq"}
    assert {name for name, topic in TOPICS.items() if topic.to_service} == set(STAGES)
    made = document()
    assert {channel["address"] for channel in made["channels"].values()} == {
        f"pb.{name}" for name in TOPICS
    }
    assert {
        operation["channel"]["$ref"].rpartition("/")[2] for operation in made["operations"].values()
    } == set(TOPICS)


def test_every_reference_leads_to_something() -> None:
    made = document()
    for reference in references(made):
        assert reference.startswith("#/")
        reduce(lambda at, part: at[part], reference[2:].split("/"), made)


def test_schemas_have_stable_ids() -> None:
    files = schema_files()
    for topic in EVENTS:
        assert (
            json.loads(files[f"schemas/{topic}.json"])["$id"]
            == schema_id(topic)
            == f"urn:paretobandit:schemas:v1:{topic}"
        )
