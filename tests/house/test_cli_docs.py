"""What the documents say of settings, metrics, commands and files is what is there."""

from __future__ import annotations

import json
import re
from typing import Any

import click
import yaml
from click.testing import CliRunner

from commands.cli import main
from schemas import EVENTS
from streams.log.rights import ROLES, rights
from streams.log.service_topics import topic_specs
from streams.service.worker_metrics import Metrics
from streams.settings import Settings
from streams.state.redis_rights import acl
from tests.pages import PAGES, ROOT


def shown(default: Any) -> str:
    """Write a default as the table of settings does."""
    if default is None:
        return "–"
    if isinstance(default, tuple):
        return ",".join(default)
    return f"{default:g}" if isinstance(default, float) else str(default)


def test_the_table_of_settings_is_complete_and_its_defaults_are_true() -> None:
    text = (ROOT / "docs/reference/settings.md").read_text()
    listed = dict(re.findall(r"^\| `(PB_\w+)` \| (.*?) \| .+ \|$", text, re.MULTILINE))
    assert listed == {
        f"PB_{name.upper()}": shown(field.default) for name, field in Settings.model_fields.items()
    }


def test_the_table_of_metrics_is_complete() -> None:
    text = (ROOT / "docs/reference/metrics.md").read_text().partition("## Metrics")[2]
    text = text.partition("##")[0]
    there = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in Metrics().registry.collect()
    }
    # Metrics of routers and families are opt-in, those of pools and of books are the service's.
    described = {
        name
        for name in re.findall(r"`(pb_\w+)`", text)
        if not name.startswith(("pb_router", "pb_family", "pb_pool", "pb_books"))
    }
    assert described == {name for name in there if name.startswith("pb_")}


def test_every_link_leads_to_a_file() -> None:
    found = []
    for page in PAGES:
        text = (ROOT / page).read_text()
        links = re.findall(r"\]\((?!https?:)([^)#]+)", text)
        links += re.findall(r'(?:src|srcset)="(?!https?:)([^"]+)"', text)
        found += [(page, link) for link in links if not ((ROOT / page).parent / link).exists()]
    assert found == []


def test_every_picture_of_a_benchmark_has_a_twin_for_dark_pages() -> None:
    alone = r"!\[[^\]]*\]\(([^)]+\.png)\)"
    assert [page for page in PAGES if re.search(alone, (ROOT / page).read_text())] == []


def test_every_value_that_helm_is_told_to_set_is_one_of_the_chart() -> None:
    values = yaml.safe_load((ROOT / "deploy/helm/paretobandit-streams/values.yaml").read_text())
    for page in PAGES:
        for path in re.findall(r"--set ([\w.]+)=", (ROOT / page).read_text()):
            place = values
            for part in path.split("."):
                assert part in place, (page, path)
                place = place[part]


def _named(text: str) -> list[str]:
    """Return what a page writes as a command: in backquotes, or as a line of a block."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    prose = re.sub(r"^```\w*\n.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    written = [*re.findall(r"`([^`\n]+)`", prose), *"".join(blocks).splitlines()]
    return [one for line in written for one in re.findall(r"\bpbstream ([a-z][^#|>`]*)", line)]


def glossary() -> list[list[str]]:
    """Return the rows of the glossary: term, meaning, unit, field."""
    rows = re.findall(
        r"^\| (.+?) *\|$", (ROOT / "docs/reference/glossary.md").read_text(), re.MULTILINE
    )
    return [re.split(r"\s*\|\s*", row) for row in rows[2:]]


def test_every_field_that_the_glossary_names_is_on_its_topic() -> None:
    schemas: dict[str, Any] = {name: event.model_json_schema() for name, event in EVENTS.items()}
    for term, meaning, _, field in glossary():
        assert meaning.endswith("."), term
        if not field:
            continue
        (topic, path) = re.fullmatch(r"`pb\.(\w+)` `([\w.]+)`", field).groups()  # type: ignore[union-attr]
        at = schemas[topic]
        for name in path.split("."):
            assert name in inner(schemas[topic], at), f"{path} is not a field of {topic}"
            at = inner(schemas[topic], at)[name]


def inner(schema: Any, part: Any) -> dict[str, Any]:
    """Return the fields of a part of a schema: its own, its alternatives', its values'."""
    if "$ref" in part:
        return inner(schema, schema["$defs"][part["$ref"].rpartition("/")[2]])
    found = dict(part.get("properties", {}))
    values = part.get("additionalProperties")
    for one in (*part.get("anyOf", ()), *part.get("oneOf", ()), *([values] if values else ())):
        found |= inner(schema, one) if isinstance(one, dict) else {}
    return found


def test_pages_with_words_of_the_glossary_lead_to_it() -> None:
    terms = {term for row in glossary() for term in row[0].split(", ")}
    assert len(terms) > 35
    for page in (
        "docs/index.md",
        "docs/tutorial/quickstart.md",
        "docs/how-to/dashboard.md",
        "docs/reference/wire.md",
    ):
        assert re.search(r"\]\([\w./-]*glossary\.md\)", (ROOT / page).read_text()), page


def test_pages_name_commands() -> None:
    assert len(PAGES) > 20
    assert sum(len(_named((ROOT / page).read_text())) for page in PAGES) > 150


def test_every_command_and_option_that_is_named_exists() -> None:
    named = [(page, one) for page in PAGES for one in _named((ROOT / page).read_text())]
    for place, example in named:
        words = re.findall(r'"[^"]*"|[^\s;,]+', example)
        command: click.Command = main
        while isinstance(command, click.Group) and words:
            command = command.commands[words.pop(0)]
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, (place, example)


def test_the_table_of_rights_is_the_list_in_the_code() -> None:
    text = (ROOT / "docs/reference/rights.md").read_text()
    everything = {spec.name for spec in topic_specs(Settings())}
    listed: dict[tuple[str, str, str], str] = {}
    for role, operations, where in re.findall(
        rf"^\| ({'|'.join(ROLES)})[^|]* \| (\w+(?:, \w+)*) \| (.+) \|$", text, re.MULTILINE
    ):
        names = everything if "all topics" in where else set(re.findall(r"`([^`]+)`", where))
        listed |= {
            (role, operation, name): where for operation in operations.split(", ") for name in names
        }
    needed = {
        (role, right.operation.title, right.name)
        for role in ROLES
        for right in rights(Settings(), role)
    }
    assert listed.keys() == needed


def test_the_rule_for_redis_is_the_one_in_the_code() -> None:
    assert (
        f"ACL SETUSER {acl(Settings(), 'pb-worker')}"
        in (ROOT / "docs/reference/rights.md").read_text()
    )


def test_rights_are_printed_as_commands_and_as_data() -> None:
    printed = CliRunner().invoke(
        main, ["topics", "acls", "--role", "client", "--principal", "User:gateway"]
    )
    assert printed.exit_code == 0
    lines = printed.output.splitlines()
    assert len(lines) == len(rights(Settings(), "client"))
    assert lines[0].endswith(
        "--add --allow-principal User:gateway --operation Write --topic pb.requests"
    )
    data = json.loads(CliRunner().invoke(main, ["topics", "acls", "--json"]).output)
    assert {"resource": "group", "name": "paretobandit", "operation": "Read"} in data["rights"]
