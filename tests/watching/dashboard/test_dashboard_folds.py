"""What the dashboard folds from records, without a broker and without a browser."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from doors.console.router_status import Declared
from doors.gateway.api_keys import Keys, new_key
from doors.gateway.problems import Problem
from schemas import (
    Candidate,
    CostReported,
    EventRefused,
    LambdaUpdated,
    RewardObserved,
    RouteDecided,
    encode,
)
from schemas.event import Value
from schemas.pools import PoolDeclared
from schemas.routers import ModelDeclared, RouterDeclared
from streams.settings import load_settings
from streams.settings_problems import BadSettings
from studies.simulate.cases import Case
from studies.simulate.scenario import Scenario
from watching import dashboard
from watching.board import Board
from watching.dashboard.bins import BINS, COLUMN, FINEST_SECONDS, Bins, moving
from watching.dashboard.changing import edited
from watching.dashboard.decisions import lost
from watching.dashboard.declared_changes import Declarations
from watching.dashboard.fleet import Asked, Fleet
from watching.dashboard.kinds import Words, clusters, kinds
from watching.dashboard.pools_view import Pools
from watching.dashboard.serve_dashboard import sessions_of
from watching.dashboard.stream import Single, Table
from watching.dashboard.studies import Studies
from watching.dashboard.visitors import Sessions
from watching.joined import Joined

NOW = 1_800_000_000.0
SETTINGS = load_settings()


class Record:
    """A record of a topic, as a consumer hands it over."""

    topic, partition = "any", 0
    headers: Sequence[tuple[str, bytes]] = ()

    def __init__(self, event: Value | None, *, key: str, at: float = NOW, offset: int = 0) -> None:
        self.key = key.encode()
        self.value = None if event is None else encode(event)
        self.timestamp = int(1000 * at)
        self.offset = offset


def state(router_id: str = "chat", **changed: Any) -> LambdaUpdated:
    given: Any = LambdaUpdated.model_config["json_schema_extra"]["examples"][0]  # type: ignore[index]
    return LambdaUpdated.model_validate_json(
        json.dumps({**given, "router_id": router_id, **changed})
    )


def route(request_id: str, model: str = "b", *, router_id: str = "chat") -> RouteDecided:
    candidates = tuple(
        Candidate(
            model=name,
            mean=mean,
            bonus=0.0,
            penalty=0.1,
            score=mean - 0.1,
            expected_cost_usd=cost,
            excluded=None,
        )
        for name, mean, cost in (("a", 0.6, 1e-4), ("b", 0.8, 5e-4), ("c", 0.9, 1e-2))
    )
    given = RouteDecided.model_config["json_schema_extra"]["examples"][0]  # type: ignore[index]
    read = RouteDecided.model_validate_json(json.dumps(given))
    return read.model_copy(
        update={
            "router_id": router_id,
            "request_id": request_id,
            "model": model,
            "candidates": candidates,
        }
    )


def label(request_id: str, reward: float, source: str = "judge", revision: int = 0) -> Any:
    return RewardObserved(
        router_id="chat", request_id=request_id, reward=reward, source=source, revision=revision
    )


def bill(request_id: str, cost_usd: float, revision: int = 0) -> CostReported:
    return CostReported(
        router_id="chat", request_id=request_id, cost_usd=cost_usd, revision=revision
    )


def failed(request_id: str, **changed: Any) -> CostReported:
    given = {"router_id": "chat", "request_id": request_id, "cost_usd": 0.0, "status": "error"}
    return CostReported.model_validate({**given, **changed})


def seen(*events: tuple[str, Any]) -> Fleet:
    fleet = Fleet(SETTINGS.source_rank)
    for name, event in events:
        fleet.observe(name, Record(event, key=event.router_id), now=NOW)
    return fleet


@given(st.randoms(use_true_random=False))
def test_watch_gives_the_dashboards_answer_in_whatever_order_topics_are_read(random: Any) -> None:
    told: list[tuple[str, Any]] = []
    for at in range(60):
        told += [
            ("routes", route(f"r-{at}", random.choice("abc"))),
            ("costs", bill(f"r-{at}", random.random() * 1e-3)),
            ("rewards", label(f"r-{at}", random.random(), random.choice(["judge", "user"]))),
            ("rewards", label(f"r-{at}", random.random(), random.choice(["judge", "user"]), 1)),
        ]
    told.append(("lambda", state()))
    fleet, board = seen(*told), Board("chat", rank=SETTINGS.source_rank)
    random.shuffle(told)
    for _, event in told:
        board.observe(event, at=NOW)
    shown, expected = board.pareto(), fleet.router("chat").pareto()
    assert shown.sentence() == expected.sentence() and "estimated over 60 req" in shown.sentence()
    assert shown.facts(60) == expected.facts(60)


def test_calls_count_for_the_model_that_was_called_and_once_each() -> None:
    fleet = seen(
        *(("routes", route(f"r-{at}")) for at in range(3)),
        ("costs", bill("r-0", 0.001)),
        ("costs", bill("r-0", 0.001)),
        ("costs", failed("r-1")),
        ("costs", failed("r-2", model="a")),
        ("costs", failed("r-2", model="unheard-of")),
    )
    models = fleet.router("chat").tally.models
    assert {name: (one.called, one.answered) for name, one in models.items()} == {
        "a": (1, 0),
        "b": (2, 1),
        "c": (0, 0),
    }


times = st.lists(
    st.floats(NOW - 40 * 86_400, NOW + 40 * 86_400, allow_nan=False), min_size=1, max_size=60
)


@given(times)
def test_bins_lose_nothing_in_whatever_order_it_comes(drawn: list[float]) -> None:
    bins = Bins()
    for at in drawn:
        bins.add(at, "decided", 1.0)
        bins.count(at, 0)
    first, last, rows = bins.table()
    assert len(first) <= BINS
    assert rows[:, COLUMN["decided"]].sum() == rows[:, -1].sum() == len(drawn)
    assert (first <= last).all() and (last[:-1] <= first[1:]).all()
    assert (first[0], last[-1]) == (min(drawn), max(drawn))


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4), st.floats(60.0, 400 * 86_400.0))
def test_bins_keep_the_detail_of_each_range_however_long_it_goes_on(
    starts: list[float], seconds: float
) -> None:
    bins, steps = Bins(), 300
    for at in np.sort(np.concatenate([np.linspace(one, 1.0, steps) for one in starts])):
        bins.add(NOW + seconds * at, "decided", 1.0)
    first, last, rows = bins.table()
    assert rows[:, COLUMN["decided"]].sum() == steps * len(starts)
    for shown in (3600.0, 86_400.0, 7 * 86_400.0):
        within = first >= last[-1] - shown
        # Where the whole is shorter than the range, it has all bins.
        assert (last - first)[within].max(initial=0.0) <= max(
            shown / 8, FINEST_SECONDS, seconds / steps
        )


@given(st.floats(1.0, 400 * 86_400.0), st.integers(150, 240))
def test_one_late_request_merges_no_bins_that_would_have_stayed(later: float, many: int) -> None:
    bins = Bins()
    for number in range(many):
        bins.add(NOW + 0.25 * number, "decided", 1.0)
    bins.add(NOW + 0.25 * many + later, "decided", 1.0)
    assert len(bins.table().first) == many + 1
    for number in range(BINS):
        bins.add(NOW + 0.25 * (many + number) + later, "decided", 1.0)
    # Full: what came before is coarser, and keeps its shape.
    before = bins.table().last < NOW + 0.25 * many
    assert before.sum() >= 16


def test_a_last_value_is_that_of_the_newest_event_also_after_bins_were_merged() -> None:
    bins = Bins()
    for number in range(1000):
        bins.put(NOW + number, "lambda_t", float(number))
        bins.add(NOW + number + 0.5, "spend_usd", 1.0)
    _, last, rows = bins.table()
    told = rows[:, COLUMN["lambda_t"]]
    assert told[-1] == 999.0 or np.isnan(told[-1])
    merged = rows[:, COLUMN["spend_usd"]] > 1.0
    assert merged.any() and len(rows) <= BINS
    assert (told[merged] == np.floor(last[merged] - NOW)).all()


def test_a_moving_mean_takes_as_few_bins_as_hold_enough_events() -> None:
    sums, counts = np.array([1.0, 0.0, 4.0, 9.0]), np.array([1.0, 0.0, 2.0, 3.0])
    assert moving(sums, counts, 3) == [1.0, 1.0, 5.0 / 3.0, 3.0]
    assert moving(np.zeros(2), np.zeros(2), 3) == [None, None]


def test_a_better_label_replaces_a_worse_one_and_a_repeated_one_changes_nothing() -> None:
    fleet = seen(
        ("routes", route("r1")),
        ("rewards", label("r1", 0.4)),
        ("rewards", label("r1", 0.4)),
        ("rewards", label("r1", 0.2, "metric")),
        ("rewards", label("r1", 1.0, "human")),
        ("costs", bill("r1", 0.1)),
        ("costs", bill("r1", 0.2, revision=1)),
        ("costs", bill("r1", 0.3, revision=1)),
    )
    router = fleet.routers["chat"]
    labels, bills = router.tally.labels, router.tally.models["b"].bills
    assert labels.value == pytest.approx(1.0) and labels.n == 1
    assert bills.value == pytest.approx(0.2) and bills.n == 1


def test_the_reward_of_a_session_goes_to_its_requests_that_have_none_of_their_own() -> None:
    talk, other = {"session_id": "talk"}, {"session_id": "other"}
    session = RewardObserved(router_id="chat", session_id="talk", reward=1.0, source="human")
    events: list[tuple[str, Any]] = [
        ("routes", route("r1").model_copy(update=talk)),
        ("routes", route("r2").model_copy(update=talk)),
        ("routes", route("r3").model_copy(update=other)),
        ("routes", route("r4")),
        ("rewards", label("r1", 0.4, "metric")),
        ("rewards", session),
        ("rewards", session),
    ]
    labels = seen(*events).routers["chat"].tally.labels
    assert labels.n == 2 and labels.value == pytest.approx(0.7)
    # One of the request itself comes before it, also afterwards.
    labels = seen(*events, ("rewards", label("r2", 0.0, "metric"))).routers["chat"].tally.labels
    assert labels.n == 2 and labels.value == pytest.approx(0.2)
    board = Board("chat")
    for _, event in events:
        board.observe(event, at=NOW)
    assert board.pareto().router is None and board.mean_reward == pytest.approx(0.7)


def standing(usd: float, charged: float, line: str = "shop/month") -> dict[str, Any]:
    dates = {
        "begins": "2027-01-01T00:00:00Z",
        "ends": "2027-02-01T00:00:00Z",
        "lease_until": "2027-01-15T09:00:00Z",
    }
    names: tuple[str, ...] = (
        "reserved_usd",
        "requests_left",
        "requests_low",
        "requests_high",
        "per_request_usd",
    )
    names += ("forecast_usd", "forecast_low_usd", "forecast_high_usd")
    money = {"usd": usd, "charged_usd": charged, "left_usd": usd - charged}
    of_pool = {"pool": line.partition("/")[0], "line": line, "period": "month", "binds": True}
    return {**dict.fromkeys(names, 1.0), **dates, **money, **of_pool}


def test_pools_say_what_is_lent_and_spent_and_to_whom_as_far_as_a_visitor_may_see() -> None:
    shop = PoolDeclared.model_validate({"pool_id": "shop", "budget": {"usd": 100, "per": "month"}})
    fleet = Fleet(SETTINGS.source_rank)
    assert Pools(fleet, lambda _: True).changes(now=NOW) == {"pools": []}
    fleet.observe("pools", Record(shop, key="shop"), now=NOW)
    same = ({"usd": 7, "per": "month"}, {"usd": 9, "per": "month"})
    twice = {"pool_id": "shop", "budget": same}
    fleet.observe("pools", Record(PoolDeclared.model_validate(twice), key="shop"), now=NOW)
    for name, usd, charged in (("chat", 30.0, 12.0), ("search", 50.0, 5.0), ("alone", 0.0, 0.0)):
        budgets = [standing(usd, charged)] if usd else None
        fleet.observe("lambda", Record(state(name, budgets=budgets), key=name), now=NOW)
    view = Pools(fleet, lambda _: True)
    [pool] = view.changes(now=NOW)["pools"]  # type: ignore[index]
    [line] = pool["lines"]
    assert (line["usd"], line["lent_usd"], line["charged_usd"]) == (100.0, 80.0, 17.0)
    assert [one["router_id"] for one in line["leases"]] == ["search", "chat"]
    assert view.changes(now=NOW + 10) is None
    [pool] = Pools(fleet, lambda name: name == "chat").changes(now=NOW)["pools"]  # type: ignore[index]
    assert [one["router_id"] for one in pool["lines"][0]["leases"]] == ["chat"]
    assert Pools(fleet, lambda name: name == "alone").changes(now=NOW) == {"pools": []}
    fleet.observe("pools", Record(None, key="shop"), now=NOW)
    [pool] = view.changes(now=NOW + 20)["pools"]  # type: ignore[index]
    assert not pool["declared"] and pool["lines"][0]["usd"] is None
    fleet.observe("pools", Record(bill("r1", 1.0), key="shop"), now=NOW)
    assert fleet.unreadable == 2


def test_what_is_read_before_its_decision_counts_once_that_is_read() -> None:
    fleet = seen(("rewards", label("r1", 0.5)), ("costs", bill("r1", 0.1)), ("routes", route("r1")))
    tally = fleet.routers["chat"].tally
    assert tally.labels.value == 0.5 and tally.models["b"].bills.n == 1


def test_a_decision_that_is_given_again_counts_once() -> None:
    again = route("r1").model_copy(update={"repeat": True})
    fleet = seen(("routes", route("r1")), ("routes", again), ("routes", route("r1")))
    assert fleet.routers["chat"].tally.decisions == 1


def test_requests_are_remembered_up_to_a_bound() -> None:
    joined = Joined(2)
    for name in ("r1", "r2", "r3"):
        assert joined.add(route(name))
    assert len(joined) == 2 and joined.get("chat", "r1") is None


def declared(price: float) -> RouterDeclared:
    model = ModelDeclared(input_price_per_m=price, output_price_per_m=price)
    return RouterDeclared(router_id="chat", models={"a": model})


def test_a_declaration_counts_once_a_worker_has_put_it_in_force() -> None:
    found = Declarations()
    assert found.add(0, declared(1.0), at=NOW, known=None) == []
    assert found.acknowledge(0, at=NOW) == []
    found.add(1, declared(2.0), at=NOW, known=0)  # refused, and written again behind
    found.add(2, declared(3.0), at=NOW, known=0)
    assert found.in_force is not None and found.in_force.prices["a"] == (1.0, 1.0)
    (news,) = found.acknowledge(2, at=NOW)
    assert news.kind == "price" and "$1/$1 → $3/$3" in news.text


def refused(offset: int, reason: str = "wrong_prior", topic: str = "routers") -> EventRefused:
    return EventRefused(
        router_id="chat", topic=topic, partition=0, offset=offset, reason=reason, message="no file"
    )


def declare(fleet: Fleet, offset: int, price: float, *, again: bool = False) -> None:
    headers = (("pb.repeated", b"1"),) if again else ()
    record = Record(declared(price), key="chat", offset=offset)
    record.headers = headers
    fleet.observe("routers", record, now=NOW)


def declaration(fleet: Fleet) -> str:
    return str(fleet.row(fleet.routers["chat"], now=NOW)["declaration"]["status"])


def test_a_refused_declaration_is_shown_as_refused_until_the_next_one_replaces_it() -> None:
    fleet = seen()
    declare(fleet, 0, 1.0)
    assert declaration(fleet) == "waiting"
    fleet.observe("refusals", Record(refused(0), key="chat"), now=NOW)
    router = fleet.routers["chat"]
    assert declaration(fleet) == "refused" and router.declared is None
    assert "wrong_prior (no file)" in router.news[-1].text
    declare(fleet, 1, 1.0)
    assert declaration(fleet) == "waiting"
    fleet.observe("lambda", Record(state(config_offset=1), key="chat"), now=NOW)
    assert declaration(fleet) == "in_force"
    # The next one is refused, and the worker writes again what is in force.
    declare(fleet, 2, 9.0)
    fleet.observe("refusals", Record(refused(2), key="chat"), now=NOW)
    declare(fleet, 3, 1.0, again=True)
    fleet.observe("lambda", Record(state(config_offset=3), key="chat"), now=NOW)
    assert declaration(fleet) == "refused"
    assert router.declared is not None and router.declared.prices["a"] == (1.0, 1.0)
    # One that no page can read is refused as well.
    fleet.observe("refusals", Record(refused(4, "malformed_json"), key="chat"), now=NOW)
    assert fleet.row(router, now=NOW)["declaration"]["offset"] == 4
    declare(fleet, 5, 2.0)
    fleet.observe("lambda", Record(state(config_offset=5), key="chat"), now=NOW)
    assert declaration(fleet) == "in_force"


def test_a_name_in_an_event_of_anybody_makes_no_router() -> None:
    fleet = seen(("refusals", refused(0, "unknown_router", "requests")), ("rewards", label("r", 1)))
    fleet.observe("costs", Record(bill("r", 1.0), key="chat"), now=NOW)
    assert fleet.page(Asked(), now=NOW) == ([], 0)
    assert fleet.total(lambda one: True, now=NOW)["routers"] == 0
    fleet.observe("routes", Record(route("r"), key="chat"), now=NOW)
    assert fleet.routers["chat"].tally.bills.n == 1


def test_a_router_that_is_gone_leaves_the_table() -> None:
    fleet = seen(("lambda", state()), ("routes", route("r1")))
    assert fleet.page(Asked(), now=NOW)[1] == 1
    fleet.observe("lambda", Record(None, key="chat"), now=NOW)
    assert fleet.page(Asked(), now=NOW) == ([], 0)


def test_a_router_that_was_declared_anew_shows_nothing_of_the_one_before() -> None:
    old, new = route("r-1", "a"), route("r-2", "b")
    later = old.decided_at + timedelta(hours=1)
    fleet = seen(
        ("routes", old.model_copy(update={"seq": 1})),
        ("routes", route("r-3", "a").model_copy(update={"seq": 2})),
        ("routes", old.model_copy(update={"seq": 1})),  # delivered again
        ("routes", new.model_copy(update={"seq": 1, "decided_at": later})),
        ("rewards", label("r-1", 0.1)),
        ("rewards", label("r-2", 0.9)),
    )
    tally = fleet.router("chat").tally
    assert (tally.decisions, tally.models["a"].chosen, tally.models["b"].chosen) == (1, 0, 1)


def test_what_cannot_be_read_is_counted_and_changes_nothing() -> None:
    fleet = seen(("lambda", state()))
    broken = Record(state(), key="chat")
    broken.value = b'{"router_id": "chat"}'
    fleet.observe("lambda", broken, now=NOW)
    assert fleet.unreadable == 1 and len(fleet.routers) == 1


def test_the_table_is_sorted_searched_and_cut_and_nothing_unknown_comes_first() -> None:
    fleet = seen(*(("lambda", state(f"r{n}", lambda_t=float(n % 7))) for n in range(50)))
    fleet.observe("routes", Record(route("x", router_id="bare"), key="bare"), now=NOW)
    for descending in (True, False):
        rows, count = fleet.page(
            Asked(sort="lambda_t", descending=descending, begin=0, count=60), now=NOW
        )
        values = [row["lambda_t"] for row in rows]
        assert count == 51 and values[-1] is None
        assert values[:-1] == sorted(values[:-1], reverse=descending)
    rows, count = fleet.page(Asked(search="R4", sort="router_id", descending=False), now=NOW)
    assert [row["router_id"] for row in rows] == ["r4", *(f"r4{n}" for n in range(10))]
    allowed = fleet.page(Asked(allows=lambda one: one == "r1"), now=NOW)
    assert allowed[1] == 1


def test_a_page_gets_only_what_has_changed() -> None:
    fleet = seen(*(("lambda", state(f"r{n}")) for n in range(10)))
    table = Table(fleet, Asked(sort="router_id", descending=False, count=5))
    first = table.changes(now=NOW)
    assert first is not None and len(first["rows"]) == 5 and first["count"] == 10
    assert table.changes(now=NOW + 2) is None
    changed = Record(state("r3", in_flight=7), key="r3")
    fleet.observe("lambda", changed, now=NOW)
    fleet.observe("lambda", Record(state("r9", in_flight=7), key="r9"), now=NOW)
    found = table.changes(now=NOW + 4)
    assert found is not None and [row["router_id"] for row in found["rows"]] == ["r3"]


def test_charts_begin_at_the_first_decision_however_long_before_it_was_declared() -> None:
    fleet = Fleet(SETTINGS.source_rank)
    declared = state(seq=0, decided=0, settled=0, in_flight=0, lambda_t=0.0)
    fleet.observe("lambda", Record(declared, key="chat", at=NOW), now=NOW)
    router = fleet.routers["chat"]
    assert router.charts.series()["at"] == []
    later = NOW + 86_400
    fleet.observe("routes", Record(route("r"), key="chat", at=later), now=later)
    asked = state(decided=1, lambda_t=0.5)
    fleet.observe("lambda", Record(asked, key="chat", at=later + 0.1), now=later + 0.1)
    series = router.charts.series()
    assert later <= series["at"][0] <= later + 1.0
    assert series["lambda"][-1] == 0.5


def test_of_the_charts_a_page_gets_the_last_bins_and_the_others_stay() -> None:
    fleet = Fleet(SETTINGS.source_rank)
    single = Single(fleet, "chat")
    assert single.changes(now=NOW) == {"router": None}
    shown: list[tuple[float, float | None]] = []
    for number in range(300):
        at = NOW + 0.5 * number
        update = state(lambda_t=float(number))
        fleet.observe("lambda", Record(update, key="chat", at=at), now=at)
        found = single.changes(now=at)
        assert found is not None
        series = found["series"]
        if series["from"] == series["first"]:
            shown = []
        shown = [one for one in shown if one[0] < series["from"]]
        shown += list(zip(series["at"], series["lambda"], strict=True))
    whole = fleet.routers["chat"].charts.series()
    assert shown == list(zip(whole["at"], whole["lambda"], strict=True))


def test_why_a_candidate_lost_is_said_by_the_term_that_cost_it_most() -> None:
    low, chosen, dear = route("r1").candidates or ()
    assert "a lower expected reward takes 0.200" in lost(low, chosen)
    dear = dear.model_copy(update={"penalty": 0.9, "score": 0.0})
    assert "the penalty for its cost takes 0.800, the rest gives back 0.100" in lost(dear, chosen)
    unreachable = dear.model_copy(update={"excluded": "over_max_price"})
    assert "maximum price" in lost(unreachable, chosen)


def asking(host: str = "127.0.0.1:8070", **headers: str) -> Request:
    given = {"host": host, **headers}
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()]
    return Request({"type": "http", "method": "GET", "headers": raw, "path": "/"})


def test_without_keys_only_this_machine_reads_and_nobody_changes_anything() -> None:
    sessions = Sessions(None, None)
    assert sessions.reader(asking(), "chat").admin is False
    assert sessions.reader(asking("localhost:1"), "chat") and sessions.reader(asking("[::1]:80"))
    with pytest.raises(Problem):
        sessions.reader(asking("evil.example"))
    with pytest.raises(Problem):
        sessions.operator(asking(x_pbstream="1"), "chat")


def test_an_operator_changes_the_routers_of_the_key_from_the_page_until_the_session_ends() -> None:
    clock = [0.0]
    key, line = new_key("ada", routers="chat*")
    sessions = Sessions(None, Keys.parse(line), clock=lambda: clock[0])
    with pytest.raises(Problem):
        sessions.begin(key[:-1])
    cookie = f"pb_dashboard={sessions.begin(key)}"
    assert sessions.operator(asking(cookie=cookie, x_pbstream="1"), "chat").admin
    for request, router in (
        (asking(cookie=cookie), "chat"),
        (asking(cookie=cookie, x_pbstream="1", sec_fetch_site="cross-site"), "chat"),
        (asking(cookie=cookie, x_pbstream="1"), "other"),
    ):
        with pytest.raises(Problem):
            sessions.operator(request, router)
    clock[0] = 13 * 3600.0
    with pytest.raises(Problem):
        sessions.operator(asking(cookie=cookie, x_pbstream="1"), "chat")


def test_others_than_this_machine_need_keys() -> None:
    with pytest.raises(BadSettings, match="PB_DASHBOARD_KEYS_FILE"):
        sessions_of(load_settings(dashboard_bind="0.0.0.0"), admin=False)
    keys = {"dashboard_keys": new_key("ada", routers="*")[1]}
    sessions, _ = sessions_of(load_settings(dashboard_bind="0.0.0.0", **keys), admin=False)
    assert sessions.visitor(asking()) is None and not sessions.takes_changes
    with pytest.raises(BadSettings, match="PB_DASHBOARD_ADMIN_KEYS_FILE"):
        sessions_of(load_settings(dashboard_bind="0.0.0.0", **keys), admin=True)
    sessions, key = sessions_of(load_settings(), admin=True)
    assert key is not None and sessions.begin(key)


def test_kinds_of_requests_are_told_apart_and_named_by_words_that_several_prompts_share() -> None:
    rng, words = np.random.default_rng(0), Words()
    cases = []
    for number in range(100):
        is_maths = number % 4 == 0
        x = np.append(rng.normal(10.0 if is_maths else 0.0, 0.1, 3), 1.0)
        request_id = f"r{number}"
        cost = 0.1 if is_maths else 0.01
        case = Case(number, request_id, x, NOW, None, None, {}, "a", 1.0, cost, 0, 0.5)
        cases.append(case)
        prompt = {"algebra", "solve"} if is_maths else {"poem", f"secret{'abcdefgh'[number % 8]}"}
        words.of[request_id] = frozenset(prompt | {"please"})
    found = kinds(cases, words)
    maths = [kind for kind in found if "algebra" in kind["words"]]
    assert maths[0] is found[0] and sum(kind["requests"] for kind in maths) == 25
    assert sum(kind["spend_share"] for kind in maths) == pytest.approx(2.5 / 3.25)
    assert all("poem" not in kind["words"] for kind in maths)
    assert sum(kind["requests"] for kind in found) == 100
    assert all("please" not in kind["words"] for kind in found)


@pytest.mark.parametrize("rows", [1, 2, 30])
def test_requests_that_are_all_alike_are_one_kind(rows: int) -> None:
    assert set(clusters(np.ones((rows, 3)), 5, seed=0)) == {0}


def test_the_page_offers_every_kind_of_event_that_a_scenario_may_have() -> None:
    page = (Path(dashboard.__file__).parent / "assets" / "whatif.js").read_text()
    offered = re.findall(r"^  (\w+): \{ label: ", page, re.MULTILINE)
    kinds = {one["kind"]["const"] for one in _scenario_events()}
    assert set(offered) == kinds and len(offered) == len(kinds)


def _scenario_events() -> list[dict[str, Any]]:
    schema = Scenario.model_json_schema()["$defs"]
    return [one["properties"] for one in schema.values() if "kind" in one.get("properties", {})]


@pytest.mark.parametrize(
    "changes",
    [
        None,
        [],
        [{}],
        [{"path": "budget_usd_per_request"}],
        [{"path": ["profile"], "value": "paper"}],
        [{"path": ["models", "a", "prior"], "value": {}}],
        [{"path": ["models"], "value": None}],
        [{"path": ["models", 3, "input_price_per_m"], "value": 1}],
        [
            {"path": ["models", "a"], "value": 5},
            {"path": ["models", "a", "input_price_per_m"], "value": 1},
        ],
    ],
)
def test_only_budget_prices_and_models_can_be_changed_from_the_page(changes: Any) -> None:
    before = Declared({"router_id": "chat", "models": {"a": {}}, "profile": "live"}, 3)
    with pytest.raises(Problem):
        edited(before, {"changes": changes})


def test_a_change_leaves_all_else_as_it_was() -> None:
    model = {"input_price_per_m": 1.0, "output_price_per_m": 2.0, "onboarding_pulls": 5}
    before = Declared({"router_id": "chat", "models": {"a.b": model}, "later": 1}, 3)
    changes = [
        {"path": ["models", "a.b", "input_price_per_m"], "value": 3.0},
        {"path": ["budget_usd_per_request"], "value": 0.1},
    ]
    after = edited(before, {"changes": changes})
    assert after["models"] == {"a.b": {**model, "input_price_per_m": 3.0}}
    assert after["later"] == 1 and before.document["models"]["a.b"] == model
    gone = edited(before, {"changes": [{"path": ["models", "a.b"], "value": None}]})
    assert gone["models"] == {}


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_study_that_is_cancelled_while_its_process_starts_makes_room_for_the_next_one(
    steps: int,
) -> None:
    async def begin_and_cancel() -> list[str]:
        studies = Studies(load_settings())
        found = []
        for _ in range(2):
            study = studies.start("chat", {"kind": "frontier"}, decided=None, budget=1e-3)
            for _ in range(steps):
                await asyncio.sleep(0)
            await studies.cancel(study)
            found.append(study.status)
        return found

    assert asyncio.run(begin_and_cancel()) == ["cancelled", "cancelled"]


def test_what_all_routers_saved_leaves_out_those_of_which_it_is_not_known() -> None:
    played = [
        (name, event)
        for n in range(20)
        for name, event in (
            ("routes", route(f"r{n}")),
            ("costs", bill(f"r{n}", 1e-3)),
            ("rewards", label(f"r{n}", 0.8)),
        )
    ]
    fleet = seen(*played, ("lambda", state("unlabelled", spend_usd=1e6)))
    (row,) = (row for row in fleet.page(Asked(), now=NOW)[0] if row["router_id"] == "chat")
    total = fleet.total(lambda _: True, now=NOW)
    # 20 calls of c, the best model, are expected to cost $0.01 each.
    assert row["saved"] == pytest.approx(0.9)
    assert total["alone_usd"] == pytest.approx(0.2)
    assert total["saved_usd"] == pytest.approx(0.18)
