"""Write the JSON Schemas of every topic and of a scenario, and AsyncAPI's document of all topics:
`python -m schemas.export [--check] [FOLDER]`.
"""

import argparse
import json
import sys
from pathlib import Path

from schemas import EVENTS
from schemas.asyncapi import document, page
from schemas.cloud_events import schema_id
from schemas.event import Value
from studies.simulate.scenario import Scenario

FOLDER = Path(__file__).parents[1] / "docs"
"""Folder of the pages, which the published schemas are among."""
WRITTEN = ("schemas/*.json", "schemas/*.md", "scenarios/*.json")
"""Files of `FOLDER` that this module alone writes."""


def schema_files() -> dict[str, str]:
    """Render the JSON Schemas, the AsyncAPI document and its page, by path in `FOLDER`."""
    schemas = {f"schemas/{topic}.json": _schema(topic, event) for topic, event in EVENTS.items()}
    return {name: _json(schema) for name, schema in schemas.items()} | {
        "schemas/asyncapi.json": _json(document()),
        "schemas/README.md": page(),
        "scenarios/schema.json": _json(Scenario.model_json_schema()),
    }


def _schema(topic: str, event: type[Value]) -> dict[str, object]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": schema_id(topic),
        **event.model_json_schema(),
    }


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _present(folder: Path) -> dict[str, Path]:
    return {
        path.relative_to(folder).as_posix(): path
        for pattern in WRITTEN
        for path in folder.glob(pattern)
    }


def differences(folder: Path) -> list[str]:
    """Name the files of a folder that are missing, stale or superfluous."""
    wanted = schema_files()
    present = {name: path.read_text(encoding="utf-8") for name, path in _present(folder).items()}
    return sorted(
        name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name)
    )


def write(folder: Path) -> None:
    """Make a folder hold exactly the schemas of today."""
    wanted = schema_files()
    for name, path in _present(folder).items():
        if name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Write the schemas, or with `--check` exit with 1 where they differ from the code."""
    parser = argparse.ArgumentParser(
        prog="python -m schemas.export", description="JSON Schemas of all topics and of scenarios"
    )
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument(
        "--check", action="store_true", help="change nothing, exit with 1 on any difference"
    )
    options = parser.parse_args(arguments)
    if not options.check:
        write(options.folder)
        return 0
    stale = differences(options.folder)
    for name in stale:
        print(
            f"{options.folder / name} differs from the code: run python -m schemas.export",
            file=sys.stderr,
        )
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
