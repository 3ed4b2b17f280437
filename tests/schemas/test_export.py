"""The exported JSON Schemas and docs/reference/wire.md agree with the code."""

import json
import re
from pathlib import Path

import pytest

from schemas import EVENTS, Reason, RouteReason, decode
from schemas.alerts import AlertKind
from schemas.asyncapi import KEYS
from schemas.dlq import HEADERS
from schemas.export import FOLDER, differences, main, schema_files

WIRE = (FOLDER / "reference/wire.md").read_text(encoding="utf-8")


def test_committed_schemas_are_those_of_the_code() -> None:
    assert differences(FOLDER) == [], "run: python -m schemas.export"
    assert main(["--check"]) == 0


def test_check_fails_on_a_stale_a_missing_and_a_superfluous_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == 0
    (tmp_path / "schemas" / "costs.json").write_text("{}")
    (tmp_path / "schemas" / "rewards.json").unlink()
    (tmp_path / "schemas" / "gone.json").write_text("{}")
    (tmp_path / "scenarios" / "schema.json").write_text("{}")
    assert main([str(tmp_path), "--check"]) == 1
    reported = capsys.readouterr().err
    names = ("costs.json", "rewards.json", "gone.json", "scenarios/schema.json")
    assert all(name in reported for name in names)
    assert main([str(tmp_path)]) == 0
    assert differences(tmp_path) == []


def test_schemas_name_topic_key_and_version() -> None:
    files = schema_files()
    for topic in EVENTS:
        schema = json.loads(files[f"schemas/{topic}.json"])
        key = KEYS.get(topic, "router_id")
        assert (schema["x-topic"], schema["x-key"], schema["x-version"]) == (topic, key, 1)


@pytest.mark.parametrize("topic", EVENTS)
def test_example_in_the_docs_decodes(topic: str) -> None:
    section = re.search(rf"^## `pb\.{topic}`.*?(?=^## )", WIRE, re.MULTILINE | re.DOTALL)
    assert section
    found = re.findall(r"```json\n(.*?)```", section.group(), re.DOTALL)
    assert found
    for example in found:
        decode(EVENTS[topic], example.encode())


def test_every_field_is_documented() -> None:
    for event in EVENTS.values():
        assert [
            name
            for name in event.model_fields
            if f"`{name}`" not in WIRE and f'"{name}"' not in WIRE
        ] == [], f"docs/reference/wire.md: say what these fields of {event.__name__} are"


def test_docs_list_exactly_the_reasons_of_the_code() -> None:
    section = WIRE[WIRE.index("## `pb.dlq`") : WIRE.index("## Compatibility")]
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| (.+) \|$", section, re.MULTILINE))
    assert rows == {reason.value: reason.meaning for reason in Reason}, (
        "docs/reference/wire.md: a line for each reason, with the words of schemas/reasons.py"
    )


def test_docs_list_headers_route_reasons_and_alerts() -> None:
    assert [name for name in (*HEADERS, *RouteReason, *AlertKind) if f"`{name}`" not in WIRE] == []
