"""The dashboards for Grafana are as Grafana 12 reads them; Grafana itself does not run here."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "deploy" / "grafana" / "dashboards"
COLUMNS = 24
"""Columns of Grafana's grid."""
KINDS = {"row", "stat", "timeseries", "xychart"}
BUILT_IN = {"__rate_interval", "__interval", "__range"}
MERGED = re.compile(r"Value #(\w)")


@pytest.fixture(params=sorted(path.stem for path in FOLDER.glob("*.json")))
def board(request: pytest.FixtureRequest) -> dict[str, Any]:
    return dict(json.loads((FOLDER / f"{request.param}.json").read_text(encoding="utf-8")))


def test_panels_have_their_own_ids_and_places(board: dict[str, Any]) -> None:
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 1
    assert {panel["type"] for panel in panels} <= KINDS
    for panel in panels:
        at = panel["gridPos"]
        assert at["x"] >= 0 and at["y"] >= 0 and at["w"] > 0 and at["h"] > 0
        assert at["x"] + at["w"] <= COLUMNS, panel["title"]
    for one, other in combinations(panels, 2):
        assert not overlap(one["gridPos"], other["gridPos"]), (one["title"], other["title"])


def overlap(a: dict[str, int], b: dict[str, int]) -> bool:
    across = a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"]
    return across and a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"]


def test_every_query_names_its_source_and_only_variables_that_there_are(
    board: dict[str, Any],
) -> None:
    variables = {one["name"] for one in board["templating"]["list"]} | BUILT_IN
    for panel in board["panels"]:
        targets = panel.get("targets", [])
        assert (panel["type"] == "row") == (targets == []), panel["title"]
        assert len({target["refId"] for target in targets}) == len(targets)
        for target in targets:
            assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert set(re.findall(r"\$\{?(\w+)", target["expr"])) <= variables, panel["title"]
            assert set(re.findall(r"\$\{?(\w+)", target["datasource"]["uid"])) <= variables


def test_the_pareto_panel_draws_fields_that_its_queries_and_transformations_make() -> None:
    panels = json.loads((FOLDER / "routers.json").read_text(encoding="utf-8"))["panels"]
    (panel,) = (panel for panel in panels if panel["type"] == "xychart")
    targets = {target["refId"]: target for target in panel["targets"]}
    # Merged, tables of instant values have one column "Value #refId" a query.
    assert all(one["format"] == "table" and one["instant"] for one in targets.values())
    merge, organize = panel["transformations"]
    assert (merge["id"], organize["id"]) == ("merge", "organize")
    renamed = organize["options"]["renameByName"]
    assert {found[1] for name in renamed if (found := MERGED.fullmatch(name))} == set(targets)
    assert panel["options"]["mapping"] == "manual"
    names = set(renamed.values()) | {"router_id", "model"}
    drawn = [
        axis["matcher"]["options"] for series in panel["options"]["series"] for axis in axes(series)
    ]
    styled = [one["matcher"]["options"] for one in panel["fieldConfig"]["overrides"]]
    assert len(drawn) == 6 and {*drawn, *styled} <= names


def axes(series: dict[str, Any]) -> list[dict[str, Any]]:
    assert all(series[axis]["matcher"]["id"] == "byName" for axis in ("x", "y"))
    return [series["x"], series["y"]]
