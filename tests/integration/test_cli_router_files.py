"""A router in one file: shown, compared, applied, on a real broker."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from streams.settings import Settings
from tests.integration.commands import add_two, done, done_json, run


def test_a_router_is_shown_changed_and_applied_once(worker: Settings, tmp_path: Path) -> None:
    add_two(worker, "files.chat")
    file = tmp_path / "chat.yaml"
    file.write_text(done(worker, "routers", "show", "files.chat"))
    assert "Nothing changes" in done(worker, "routers", "diff", str(file))
    document = yaml.safe_load(file.read_text())
    document |= {"caps": {"day": {"usd": 5.0, "mode": "hard"}}, "epsilon": 0.05, "gamma": 0.999}
    document["models"].pop("small")
    file.write_text(yaml.safe_dump(document))
    compared = run(worker, "routers", "diff", str(file))
    assert compared.exit_code == 1
    assert "caps.day.usd" in compared.output
    difference = json.loads(run(worker, "routers", "diff", str(file), "--json").stdout)
    assert (difference["in_force"], len(difference["changes"])) == (None, 6)
    before = difference["based_on"]
    assert "In force at offset" in done(worker, "routers", "apply", str(file))
    assert "Nothing changes" in done(worker, "routers", "apply", str(file))
    shown = done_json(worker, "routers", "show", "files.chat")
    assert shown == document
    assert (
        yaml.safe_load(done(worker, "routers", "show", "files.chat", "--output", "yaml"))
        == document
    )
    document["gamma"] = 0.998
    file.write_text(yaml.safe_dump(document))
    stale = run(worker, "routers", "apply", str(file), "--based-on", str(before))
    assert stale.exit_code == 1
    assert "nothing was changed" in stale.output


def test_a_new_router_is_created_from_a_file_and_wrong_ones_are_refused(
    worker: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "new.yaml"
    model = {"input_price_per_m": 1, "output_price_per_m": 2}
    file.write_text(
        yaml.safe_dump({"router_id": "files.new", "models": {"a": model}, "dimensions": 3})
    )
    assert "is as the file says" in done(worker, "routers", "apply", str(file), "--based-on", "-1")
    file.write_text(
        yaml.safe_dump({"router_id": "files.new", "models": {"a": model}, "dimensions": 4})
    )
    for command in ("diff", "apply"):
        assert "dimensions" in run(worker, "routers", command, str(file)).output
    assert "no such field" in run(worker, "routers", "apply", str(_typo(tmp_path))).output
    assert "is not declared" in run(worker, "routers", "show", "files.nobody").output


def _typo(folder: Path) -> Path:
    path = folder / "typo.yaml"
    path.write_text("router_id: files.new\nmodels: {}\ndimension: 3\n")
    return path
