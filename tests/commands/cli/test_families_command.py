"""`pbstream families`: what is refused before anything is sent, and how a family is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from commands.cli import main
from commands.cli.families_command import show_family
from schemas.event import decode
from schemas.families import FamilyEstimated


def test_a_member_that_neither_gives_nor_takes_is_refused() -> None:
    done = CliRunner().invoke(
        main, ["families", "join", "support", "--router", "chat", "--no-give", "--no-take"]
    )
    assert done.exit_code == 2 and "give one of both" in done.output


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff\x00", b'{"family": "support"}'])
def test_a_file_that_is_no_family_is_refused(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "support.json"
    file.write_bytes(data)
    done = CliRunner().invoke(main, ["families", "import", str(file)])
    assert done.exit_code == 1 and "families export" in done.output


def test_a_family_is_shown_with_its_members_and_models(capsys: pytest.CaptureFixture[str]) -> None:
    (value,) = FamilyEstimated.model_json_schema()["examples"]
    family = decode(FamilyEstimated, json.dumps(value).encode())
    show_family(family)
    shown = capsys.readouterr().out
    assert all(
        word in shown
        for word in ("support", "12 members", "acme.chat", "mistral-large", "0.78", "to 0.069")
    )
