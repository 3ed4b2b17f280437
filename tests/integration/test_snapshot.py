"""`pbstream snapshot` against a real worker on a real broker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streams.settings import Settings
from tests.integration.commands import CONTEXT, add_two, done, done_json, run

CONTEXTS = ("[0.9, 0.4, 1.0]", "[-0.7, 0.1, 1.0]", "[0.0, -0.9, 1.0]")
SAME = ("model", "propensity", "candidates", "lambda_t", "expected_cost_usd")


@pytest.fixture(scope="module")
def original(worker: Settings) -> Settings:
    """Return a service with a router that has seen some traffic."""
    add_two(worker, "original")
    done(worker, "budget", "set", "0.002", router="original")
    for number in range(6):
        made = done_json(
            worker,
            "request",
            "--context",
            "-",
            "--id",
            f"q-{number}",
            stdin=CONTEXT,
            router="original",
        )
        done(worker, "cost", f"q-{number}", str(0.001 * (1 + number)), router="original")
        done(
            worker,
            "reward",
            f"q-{number}",
            "0.9" if made["model"] == "large" else "0.4",
            router="original",
        )
    return worker


def routers(service: Settings) -> dict[str, Any]:
    """Return all routers by name."""
    return {row["router_id"]: row for row in done_json(service, "routers", "list")}


def test_a_router_goes_on_under_another_name(original: Settings, tmp_path: Path) -> None:
    file = tmp_path / "original.pbs"
    written = done_json(original, "snapshot", "export", str(file), router="original")
    assert (written["decided"], written["settled"], written["rewards_applied"]) == (6, 6, 6)
    assert done_json(original, "snapshot", "inspect", str(file)) == written
    assert "large" in done(original, "snapshot", "inspect", str(file))
    state = done_json(original, "snapshot", "import", str(file), router="copy")
    assert (state["router_id"], state["decided"], state["spend_usd"]) == ("copy", 0, 0.0)
    assert (state["lambda_t"], state["debt_usd"]) == (written["lambda_t"], written["debt_usd"])
    for number, context in enumerate(CONTEXTS):
        one, other = (
            done_json(
                original,
                "request",
                "--context",
                "-",
                "--id",
                f"n-{number}",
                stdin=context,
                router=name,
            )
            for name in ("original", "copy")
        )
        assert {name: one[name] for name in SAME} == {name: other[name] for name in SAME}
        assert (one["seq"], other["seq"]) == (7 + number, 1 + number)
    done(
        original,
        "models",
        "reprice",
        "small",
        "--input-price",
        "0.2",
        "--output-price",
        "0.8",
        router="copy",
    )
    later = tmp_path / "copy.pbs"
    done(original, "snapshot", "export", str(later), router="copy")
    found = done_json(original, "snapshot", "diff", str(file), str(later))
    assert found["router"]["decided"] == [6, 3]
    assert found["models"]["small"]["other"]["input_price_per_m"] == [0.1, 0.2]
    assert "same state" in done(original, "snapshot", "diff", str(file), str(file))
    found = done_json(original, "audit")
    assert found["violations"] == {}, found


def test_an_import_never_touches_a_router_that_is_there(original: Settings, tmp_path: Path) -> None:
    file = tmp_path / "original.pbs"
    done(original, "snapshot", "export", str(file), router="original")
    before = routers(original)["original"]
    refused = run(original, "snapshot", "import", str(file))
    assert refused.exit_code == 1
    assert "'original' is declared already" in refused.output
    assert routers(original)["original"] == before
    again = run(original, "snapshot", "export", str(file), router="original")
    assert again.exit_code == 1
    assert "--force" in again.output


def test_a_file_that_is_not_whole_is_refused_with_its_reason(
    original: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "original.pbs"
    done(original, "snapshot", "export", str(file), router="original")
    data = file.read_bytes()
    for spoilt, says in (
        (data[:-20], "truncated"),
        (data[:200] + b"\x00" + data[201:], "damaged"),
        (json.dumps({"A": [[1.0]]}).encode(), "foreign"),
        (data[:9] + b"\x07" + data[10:], "newer"),
    ):
        file.write_bytes(spoilt)
        for words in (
            ("import", str(file), "--router", "never"),
            ("inspect", str(file)),
            ("diff", str(file), str(file)),
        ):
            refused = run(original, "snapshot", *words)
            assert refused.exit_code == 1
            assert says in refused.output
    assert "never" not in routers(original)


def test_a_router_that_is_not_declared_cannot_be_exported(
    original: Settings, tmp_path: Path
) -> None:
    refused = run(original, "snapshot", "export", str(tmp_path / "none.pbs"), router="nobody")
    assert refused.exit_code == 1
    assert "'nobody' is not declared" in refused.output
    assert not (tmp_path / "none.pbs").exists()
