"""What the page of families folds from records."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from schemas.families import FamilyEstimated
from schemas.routers import ModelDeclared, RouterDeclared
from tests.watching.dashboard.test_dashboard_folds import NOW, SETTINGS, Record, state
from watching.dashboard.families_view import MOST_MEMBERS, Families
from watching.dashboard.fleet import Fleet

LEFT_OUT = "left out: its labels mean something else than those of the others"


def member(router_id: str, **changed: Any) -> dict[str, Any]:
    told = {"router_id": router_id, "gives": True, "takes": True, "rewards": 40, "weight": 0.9}
    return {**told, "level": 0.02, "aside": False, **changed}


def side(expected: float | None, apart: float, requests: float) -> dict[str, Any]:
    known = {"members": 3, "knows": "AAAA", "scatter": [1.0, 2.0]}
    interval = {"apart_interval": [0.5 * apart, 2.0 * apart]}
    return {**known, **interval, "expected": expected, "apart": apart, "requests": requests}


def estimated(name: str, *listed: dict[str, Any], **changed: Any) -> FamilyEstimated:
    """Return what a family of these members knows of two models, of one only the rewards."""
    example: Any = FamilyEstimated.model_config["json_schema_extra"]["examples"][0]  # type: ignore[index]
    given: Any = {
        **example,
        "family": name,
        "members": len(listed),
        "listed": listed,
        "models": [
            {"model": "a", "rewards": side(0.7, 0.05, 60.0), "bills": side(-0.5, 0.2, 30.0)},
            {"model": "b", "rewards": side(None, 0.05, 1.5)},
        ],
        **changed,
    }
    return FamilyEstimated.model_validate_json(json.dumps(given))


def standing(name: str, **changed: Any) -> dict[str, Any]:
    told = {"name": name, "gives": True, "takes": True, "members": 2, "taken": 1, "aside": False}
    models = [{"model": model, "requests": n} for model, n in (("a", 12.5), ("b", 60.0))]
    return {**told, "models": models, **changed}


def declared(router_id: str, price: float) -> RouterDeclared:
    model = ModelDeclared(input_price_per_m=price, output_price_per_m=3 * price)
    return RouterDeclared(router_id=router_id, models={"a": model}, dimensions=26)


def told(fleet: Fleet, allows: Any = lambda _: True, only: str | None = None) -> list[Any]:
    found = Families(fleet, allows, only).changes(now=NOW)
    assert found is not None
    return list(found["families"])


@pytest.fixture
def fleet() -> Fleet:
    """Family `support` of chat, mail and odd, the last one left out; new has just joined."""
    made = Fleet(SETTINGS.source_rank)
    known = estimated("support", member("chat"), member("mail"), member("odd", aside=True))
    made.observe("families", Record(known, key="support"), now=NOW)
    for offset, name in enumerate(("chat", "mail", "odd", "new", "alone")):
        family = None if name == "alone" else standing("support")
        declaration = declared(name, 1.0 + (name == "mail"))
        made.observe("routers", Record(declaration, key=name, offset=offset), now=NOW)
        made.observe(
            "lambda", Record(state(name, family=family, config_offset=offset), key=name), now=NOW
        )
    return made


def test_a_family_says_who_is_in_it_and_why_one_has_no_part(fleet: Fleet) -> None:
    [family] = told(fleet)
    assert family["lines"][0] == "3 members, 2 models, contexts of 26 dimensions"
    rows = {one["router_id"]: one for one in family["members"]}
    assert list(rows) == ["odd", "new", "chat", "mail"]  # what is wrong comes first
    assert rows["odd"]["why"] == LEFT_OUT
    assert rows["new"]["why"] == "it has told nothing yet"
    assert rows["chat"]["why"] is None
    assert (rows["chat"]["weight"], rows["chat"]["level"]) == (0.9, 0.02)
    assert rows["chat"]["counts"] == [12.5, 60.0]
    refused = standing("support", refused="other contexts")
    fleet.observe("lambda", Record(state("new", family=refused), key="new"), now=NOW)
    assert "refused: other contexts" in [one["why"] for one in told(fleet)[0]["members"]]


def test_a_newcomer_expects_a_reward_between_members_and_a_bill_by_their_prices(
    fleet: Fleet,
) -> None:
    [family] = told(fleet)
    one, other = family["models"]
    assert one["rewards"]["between"] == pytest.approx((0.602, 0.798), rel=1e-4)
    # List prices of 1,000 tokens are $0.002 and $0.004; logarithms of bills vary by 0.3.
    ratio = math.exp(-0.5 + 0.15)
    assert one["bills"]["usd"] == pytest.approx((0.002 * ratio, 0.004 * ratio))
    assert other["rewards"]["between"] is None and other["bills"] is None
    assert fleet.families["support"].models[0].rewards.knows == ""  # type: ignore[union-attr]


def test_a_visitor_sees_families_of_own_routers_and_of_the_others_only_how_many(
    fleet: Fleet,
) -> None:
    [family] = told(fleet, lambda name: name == "mail")
    assert [one["router_id"] for one in family["members"]] == ["mail"]
    assert family["more"] == 2
    assert family["models"][0]["bills"]["usd"][0] == family["models"][0]["bills"]["usd"][1]
    assert told(fleet, lambda name: name == "alone") == []


def test_a_long_list_is_whole_only_on_the_familys_own_page() -> None:
    fleet = Fleet(SETTINGS.source_rank)
    names = [f"m{at:03d}" for at in range(MOST_MEMBERS + 9)]
    for name in ("big", "other"):
        known = estimated(name, *map(member, names), members=700)
        fleet.observe("families", Record(known, key=name), now=NOW)
    assert [one["family"] for one in told(fleet)] == ["big", "other"]
    assert len(told(fleet)[0]["members"]) == MOST_MEMBERS
    [big] = told(fleet, only="big")
    assert (len(big["members"]), big["more"]) == (len(names), 700 - len(names))


def test_a_page_hears_only_of_changes_and_of_a_family_that_is_gone(fleet: Fleet) -> None:
    view = Families(fleet, lambda _: True, None)
    assert view.changes(now=NOW) is not None
    fleet.observe("lambda", Record(state("alone"), key="alone"), now=NOW)
    assert view.changes(now=NOW + 10) is None
    fleet.observe("families", Record(None, key="support"), now=NOW)
    found: Any = view.changes(now=NOW + 20)
    assert "published nothing yet" in found["families"][0]["lines"][0]
    assert found["families"][0]["models"] == []
    fleet.observe("families", Record(state("alone"), key="support"), now=NOW)
    assert fleet.unreadable == 1
