"""The inbox without a broker: what is listed for whom, and which labels are refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from commands.broker.wire import free_ports
from doors.gateway.api_keys import ANYONE, Key
from doors.gateway.problems import Problem
from schemas import RewardObserved
from streams.settings import load_settings
from tests.watching.dashboard.test_dashboard_folds import NOW, Record, route
from watching.dashboard.fleet import Fleet
from watching.dashboard.label_inbox import SHOWN, Inbox, Labels, own_name

TTL = 100.0


def fleet_of(*requests: tuple[str, str, float]) -> Fleet:
    """Return the fleet after requests that people are asked about: router, request, time."""
    fleet = Fleet(lambda source: 0)
    for number, (router_id, request_id, at) in enumerate(requests):
        decided = route(request_id, router_id=router_id)
        later = decided.decided_at.fromtimestamp(at, decided.decided_at.tzinfo)
        changed = {"label_wanted": True, "decided_at": later, "seq": number + 2}
        record: Any = Record(decided.model_copy(update=changed), key=router_id)
        fleet.observe("routes", record, now=NOW)
    return fleet


def shown(inbox: Inbox, now: float = NOW) -> dict[str, Any]:
    found = inbox.changes(now=now)
    assert found is not None
    return dict(found["inbox"])


def test_what_is_asked_for_is_listed_newest_first_for_those_who_may_see_it() -> None:
    fleet = fleet_of(("chat", "a", NOW - 9), ("mail", "b", NOW - 5), ("chat", "old", NOW - 101))
    everybody = shown(Inbox(fleet, ANYONE, None, takes=True, remembered=TTL))
    assert [one["request_id"] for one in everybody["wanted"]] == ["b", "a"]
    assert (everybody["count"], everybody["name"]) == (2, None)
    ada = Key("ada", "", ("chat",))
    hers = shown(Inbox(fleet, ada, None, takes=False, remembered=TTL))
    assert [one["request_id"] for one in hers["wanted"]] == ["a"]
    assert (hers["name"], hers["takes"], own_name(ada)) == ("ada", False, "ada")
    assert shown(Inbox(fleet, ada, "mail", takes=True, remembered=TTL))["wanted"] == []
    assert "model" not in everybody["wanted"][0]


def test_a_label_leaves_the_list_at_once_and_a_list_has_an_end() -> None:
    fleet = fleet_of(*(("chat", f"r{n}", NOW - n / 100) for n in range(SHOWN + 5)))
    inbox = Inbox(fleet, ANYONE, None, takes=True, remembered=TTL)
    first = shown(inbox)
    assert (first["count"], len(first["wanted"])) == (SHOWN + 5, SHOWN)
    assert inbox.changes(now=NOW) is None
    event = RewardObserved(router_id="chat", request_id="r0", reward=1.0, source="human")
    record: Any = Record(event, key="chat")
    fleet.observe("rewards", record, now=NOW)
    assert shown(inbox)["count"] == SHOWN + 4


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"request_id": "other", "reward": 1}, "not_found"),
        ({"reward": 1}, "not_found"),
        ({"request_id": "a"}, "invalid_field"),
        ({"request_id": "a", "reward": "1"}, "invalid_field"),
        ({"request_id": "a", "reward": True}, "invalid_field"),
        ({"request_id": "a", "reward": 0.5, "undo": True}, "invalid_field"),
        ({"request_id": "a", "undo": True}, "invalid_field"),
        ({"request_id": "a", "reward": 1, "name": "a:b"}, "invalid_field"),
        ({"request_id": "a", "reward": 1, "name": ["a"]}, "invalid_field"),
        ({"request_id": "a", "reward": 1.5}, "reward_out_of_range"),
        ({"request_id": "a", "reward": float("nan")}, "reward_out_of_range"),
        ({"request_id": "a", "reward": 1, "name": "anna"}, "undelivered"),
    ],
)
def test_a_label_that_cannot_be_written_is_a_problem(asked: dict[str, Any], reason: str) -> None:
    settings = load_settings(bootstrap=f"127.0.0.1:{free_ports(1)[0]}")
    labels = Labels(settings, fleet_of(("chat", "a", NOW)))
    with pytest.raises(Problem) as refused:
        asyncio.run(labels.give("chat", ANYONE, asked))
    assert refused.value.reason == reason
