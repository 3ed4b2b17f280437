"""A budget of labels: which requests are asked about, with which probability, and what is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.declaring.configuration import config_of, declaration_of
from agents.publishing.published_values import lambda_value, route_value
from benchmarks.played import Played
from router_state.asking.asking import Asking
from router_state.asking.label_budget import SECONDS, LabelBudget
from router_state.asking.label_traffic import PERIOD_PARTS, LabelTraffic
from router_state.config import RouterConfig
from router_state.errors import DamagedState
from router_state.events import Asked, Judged, Redeclared
from router_state.instants import utc
from router_state.sources.measured_sources import MeasuredSources
from router_state.state import invariants
from router_state.wanted import wanted_of
from schemas.event import MalformedEvent, decode
from schemas.lambdas import LambdaUpdated
from schemas.routers import RouterDeclared
from schemas.routes import RouteDecided
from studies.history.reading import READERS
from studies.history.verify import compare
from tests.router_state.core_reference import context, freeze, having, thaw

MODELS = {
    "small": {"input_price_per_m": 0.1, "output_price_per_m": 0.4},
    "large": {"input_price_per_m": 5.0, "output_price_per_m": 20.0},
}
DAY = SECONDS["day"]
MIDNIGHT = 20_000 * DAY


def config(offset: int = 1, **fields: Any) -> RouterConfig:
    document = {"router_id": "r", "models": MODELS, "dimensions": 4, **fields}
    return config_of(decode(RouterDeclared, orjson.dumps(document)), offset=offset, references={})


def engine(want: int = 50, **fields: Any) -> Played:
    return Played.start(config(labels={"want": want, "per": "day"}, **fields))


def ask(one: Played, request_id: str, at: float = MIDNIGHT) -> tuple[str, float, bool]:
    """Return the model, the probability of being asked about, and whether it was drawn."""
    decision = one.apply(Asked(request_id, context(1.0, 0.0, 0.0)), at).decision
    assert decision is not None
    wanted = wanted_of(decision)
    assert wanted is not None
    return decision.model, wanted.probability, wanted.drawn


def standing(one: Played) -> list[dict[str, Any]]:
    found: Any = having(one.state, MeasuredSources).lambda_fields(0.0)["sources"]
    return list(found)


class Asker:
    """The capability alone, asked about requests whose models are given."""

    def __init__(
        self, seed: int = 0, want: int = 50, models: Iterable[str] = MODELS, per: Any = "day"
    ) -> None:
        names = list(models)
        self.seed = seed
        self.engine = Played.start(config(models=dict.fromkeys(names, MODELS["small"])))
        self.asking = Asking(self.engine.state.arms, self.engine.state.journal)
        self.asking.declared = LabelBudget(want, per, "r", "human")
        self.n = 0

    def ask(self, at: float, model: str = "small") -> tuple[float, bool]:
        self.n += 1
        wanted = self.asking.draw(f"{self.seed} {self.n}", model, at=at)
        return wanted.probability, wanted.drawn


def times(draw: Random, n: int, day: int, weights: list[float]) -> list[float]:
    """Return the times of n requests of a day whose hours have these weights."""
    hours = draw.choices(range(24), weights, k=n)
    return sorted(MIDNIGHT + day * DAY + 3600.0 * (hour + draw.random()) for hour in hours)


OFFICE = [1.0] * 8 + [30.0] * 10 + [4.0] * 6
"""Weights of hours: nights, and days that are thirty times as busy."""


def test_no_more_labels_are_asked_for_than_are_wanted_and_hardly_fewer() -> None:
    for seed, n in ((1, 200), (2, 2_000), (3, 12_000)):
        asker, draw = Asker(seed), Random(seed)
        for day in range(4):
            asked = sum(asker.ask(at)[1] for at in times(draw, n, day, OFFICE))
            assert (45 if day else 40) <= asked <= 50, (n, day)


def test_traffic_below_the_wanted_number_is_asked_about_in_whole_from_the_first_day_on() -> None:
    for seed in range(40):
        asker, draw = Asker(seed), Random(seed)
        for day in range(3):
            n = draw.randint(1, 30)
            assert all(asker.ask(at)[1] for at in times(draw, n, day, [1.0] * 24)), (seed, day)


def test_a_known_day_is_asked_about_evenly_whatever_its_hours() -> None:
    shares: list[Counter[bool]] = []
    for seed in range(10):
        asker, draw = Asker(seed, want=300), Random(seed)
        for day in range(4):
            found = [(at, asker.ask(at)[1]) for at in times(draw, 3_000, day, OFFICE)]
            if day == 3:
                middle = found[len(found) // 2][0]
                shares.append(Counter(at < middle for at, drawn in found if drawn))
    first = sum(one[True] for one in shares)
    total = sum(one.total() for one in shares)
    # Of 3,000 labels, whose deviation is 27, in half of the traffic.
    assert 0.45 < first / total < 0.55


def test_a_day_of_ten_times_the_usual_traffic_leaves_labels_for_its_evening() -> None:
    evening = 0
    for seed in range(5):
        asker, draw = Asker(seed), Random(seed)
        for day in range(3):
            for at in times(draw, 1_000, day, OFFICE):
                asker.ask(at)
        for at in times(draw, 10_000, 3, OFFICE):
            evening += asker.ask(at)[1] and at > MIDNIGHT + 3 * DAY + 15 * 3600
    # A third of the traffic comes after 15:00.
    assert evening > 5 * 5


@pytest.mark.parametrize("usual", [500, 5_000])
def test_on_a_day_of_hardly_any_traffic_most_of_it_is_asked_about(usual: int) -> None:
    asked = 0
    for seed in range(5):
        asker, draw = Asker(seed), Random(seed)
        for day in range(2):
            for at in times(draw, usual, day, OFFICE):
                asker.ask(at)
        asked += sum(asker.ask(at)[1] for at in times(draw, 40, 2, OFFICE))
    # Some of 200 come before it is known what kind of day it is.
    assert asked > 150


def test_a_burst_does_not_take_the_labels_of_the_day() -> None:
    for seed in range(5):
        asker, draw = Asker(seed), Random(seed)
        for day in range(2):
            for at in times(draw, 2_000, day, OFFICE):
                asker.ask(at)
        quiet = times(draw, 2_000, 2, OFFICE)
        burst = [MIDNIGHT + 2 * DAY + 9 * 3600 + draw.random() * 60 for _ in range(2_000)]
        asked = [(at, asker.ask(at)[1]) for at in sorted(quiet + burst)]
        after = sum(drawn for at, drawn in asked if at > MIDNIGHT + 2 * DAY + 10 * 3600)
        assert after >= 8, seed


def test_traffic_that_comes_in_bursts_is_asked_about_as_often_as_is_wanted() -> None:
    for seed in range(5):
        asker, draw = Asker(seed), Random(seed)
        for day in range(4):
            begins = [MIDNIGHT + day * DAY + hour * 3600.0 + draw.random() for hour in (9, 14, 20)]
            found = [[asker.ask(at + 0.01 * n)[1] for n in range(100)] for at in begins]
            asked = [sum(one) for one in found]
            if day > 1:
                assert 30 <= sum(asked) <= 50, (seed, day, asked)
                assert min(asked) >= 4, (seed, day, asked)


@pytest.mark.parametrize("begin", [3 * 3600.0, DAY - 60.0])
@pytest.mark.parametrize("seconds", [0.0, 50.0, 600.0])
def test_a_batch_each_night_is_asked_about_evenly_and_as_often_as_is_wanted(
    begin: float, seconds: float
) -> None:
    thirds = [0, 0, 0]
    for seed in range(4):
        asker, draw = Asker(seed), Random(seed)
        for day in range(5):
            at = MIDNIGHT + day * DAY + begin - max(begin + seconds - DAY, 0.0)
            moments = sorted(at + seconds * draw.random() for _ in range(900))
            drawn = [asker.ask(moment)[1] for moment in moments]
            if day > 1:
                assert 40 <= sum(drawn) <= 50, (seed, day, sum(drawn))
                thirds = [n + sum(drawn[300 * k : 300 * k + 300]) for k, n in enumerate(thirds)]
    # About 190 each, of which the deviation is 11.
    assert min(thirds) > 0.7 * max(thirds), thirds


def test_batches_at_any_hour_are_asked_about() -> None:
    for seed in range(4):
        asker, draw = Asker(seed), Random(seed)
        for day in range(6):
            begin = MIDNIGHT + day * DAY + draw.random() * 23 * 3600
            drawn = [asker.ask(begin + n)[1] for n in range(300)]
            assert day < 2 or sum(drawn) >= 10, (seed, day, sum(drawn))


def test_a_model_that_is_hardly_ever_called_is_asked_about_with_the_probability_that_is_told() -> (
    None
):
    rare = asked = 0
    weighed = 0.0
    for seed in range(10):
        asker, draw = Asker(seed, want=300), Random(seed)
        for day in range(3):
            for at in times(draw, 5_000, day, OFFICE):
                model = "large" if draw.random() < 0.01 else "small"
                p, drawn = asker.ask(at, model)
                if day == 2 and drawn:
                    asked += 1
                    rare += model == "large"
                    weighed += (model == "large") / p
    # Its share of 0.25 ÷ 2 of the labels, in place of 1 %.
    assert 0.09 < rare / asked < 0.17
    # By the probabilities told, the labels add up to the model's 1 % of 50,000 requests.
    assert weighed == pytest.approx(0.01 * 50_000, rel=0.15)


def test_periods_begin_at_midnight_and_on_monday_and_a_pause_teaches_nothing() -> None:
    monday = 345_600.0
    for per, begin in (("hour", MIDNIGHT + 3600.0), ("day", MIDNIGHT), ("week", monday)):
        budget = LabelBudget(1, per, "r", "human")  # type: ignore[arg-type]
        assert budget.begins(begin) == begin
        assert budget.begins(begin + budget.seconds - 1.0) == begin
    asker, draw = Asker(), Random(1)
    for at in times(draw, 2_000, 0, OFFICE):
        asker.ask(at)
    for at in times(draw, 2_000, 1, OFFICE):
        asker.ask(at)
    state = asker.asking.state
    assert state is not None
    usual = sum(state.traffic.usual)
    asker.ask(MIDNIGHT + 9 * DAY)
    assert usual * 0.9 < sum(state.traffic.usual) < 2_400
    assert state.asked <= 1


@given(
    st.lists(st.floats(0, 40 * DAY, allow_nan=False), max_size=60),
    st.sampled_from(["hour", "day", "week"]),
    st.integers(1, 20),
)
def test_any_traffic_in_any_order_has_probabilities_and_keeps_the_budget(
    moments: list[float], per: str, want: int
) -> None:
    asker = Asker(want=want, per=per)
    by_period: Counter[float] = Counter()
    for at in moments:
        p, drawn = asker.ask(MIDNIGHT + at)
        assert 0.0 <= p <= 1.0
        state = asker.asking.state
        assert state is not None
        assert state.traffic.is_sound
        by_period[state.traffic.begins] += drawn
    assert max(by_period.values(), default=0) <= want


def test_a_repeat_a_restart_and_another_worker_draw_the_same() -> None:
    one, again = engine(want=3), engine(want=3)
    for number in range(60):
        name, at = f"r{number}", MIDNIGHT + 400.0 * number
        assert ask(one, name, at) == ask(again, name, at)
        if number % 7 == 0:
            again = thaw(freeze(again), {n: record.x for n, record in again.records.items()})
        first = one.records[name]
        said = orjson.loads(route_value("r", name, first, repeat=True))
        assert said["label_probability"] == ask(one, name, at)[1]
        assert decode(RouteDecided, orjson.dumps(said)).label_wanted == (
            True if ask(one, name, at)[2] else None
        )
        invariants.check(one.state, one.records)


def test_decisions_are_those_of_a_router_without_a_budget_of_labels() -> None:
    plain, asking = (
        Played.start(config(budget_usd_per_request=0.001)),
        engine(budget_usd_per_request=0.001),
    )
    draw = Random(3)
    for number in range(80):
        x = context(draw.gauss(0, 1), 0.0, 0.0)
        a = plain.apply(Asked(f"r{number}", x), float(number)).decision
        b = asking.apply(Asked(f"r{number}", x), float(number)).decision
        assert a is not None
        assert b is not None
        assert (a.model, a.propensity, a.lambda_t) == (b.model, b.propensity, b.lambda_t)
        reward = draw.random()
        for one in (plain, asking):
            one.apply(Judged(f"r{number}", reward, "judge"), float(number))
    assert [arm.rewards.kept.tobytes() for arm in plain.state.arms] == [
        arm.rewards.kept.tobytes() for arm in asking.state.arms
    ]


def test_another_routers_budget_draws_other_requests() -> None:
    drawn = [
        [LabelBudget(1, "day", salt, "human").place(f"r{n}") < 0.5 for n in range(200)]
        for salt in ("a", "b")
    ]
    both = sum(a and b for a, b in zip(*drawn, strict=True))
    assert 30 < both < 70


def test_sources_are_measured_on_labels_that_were_asked_for_and_both_are_counted() -> None:
    one = engine(want=2, sources={"gold": "human", "judges": ["judge-v2"]})
    wanted: dict[str, bool] = {}
    for number in range(30):
        name = f"r{number}"
        wanted[name] = ask(one, name, MIDNIGHT + 2_800.0 * number)[2]
        one.apply(Judged(name, 0.5, "judge-v2"), MIDNIGHT).accepted()
        one.apply(Judged(name, 0.7, "judge-v2", revision=1), MIDNIGHT).accepted()
        one.apply(Judged(name, 0.6, "human:anna"), MIDNIGHT).accepted()
        one.apply(Judged(name, 0.8, "human:ben"), MIDNIGHT).accepted()
    n = sum(wanted.values())
    assert n in (1, 2)
    gold, judge = standing(one)
    assert judge["pairs"] == gold["double_labels"] == n
    assert judge["judged_again"] == 30
    assert one.state.rewards_applied == 30
    value = lambda_value("r", one.state, observed_at=utc(0.0), applied={}, unbooked=None)
    shown = decode(LambdaUpdated, orjson.dumps({**orjson.loads(value), "applied": None})).labels
    assert shown is not None
    assert (shown.want, shown.per, shown.asked, shown.decided) == (2, "day", n, 30)
    models = shown.models or ()
    assert sum(model.asked for model in models) == sum(model.answered for model in models) == n
    assert sum(model.unasked for model in models) == 30 - n
    invariants.check(one.state, one.records)


@pytest.mark.parametrize("want", [50, 1])
@pytest.mark.parametrize("sources", [None, {"gold": "human", "judges": ["j"]}])
def test_an_answer_whose_labels_are_all_withdrawn_counts_as_labelled_no_more(
    want: int, sources: dict[str, Any] | None
) -> None:
    one = engine(want, sources=sources)
    for n in range(4):
        ask(one, f"r{n}")
        one.play(Judged(f"r{n}", 0.5, "j", 1))
        one.play(Judged(f"r{n}", 1.0, "human:anna", 2))
    counted = _given(one)
    for said in (
        Judged("r3", None, "human:ben", 2, revision=1),  # can't tell, and anna can
        Judged("r3", None, "human:anna", 2, revision=1),
        Judged("r3", None, "human:anna", 2, revision=2),
        Judged("r3", 0.0, "human:ben", 2, revision=2),
        Judged("r3", None, "human:ben", 2, revision=3),
    ):
        one.play(said)
        labelled = counted - (said.source == "human:anna" or said.revision == 3)
        assert _given(one) == labelled
    assert not list(invariants.faults(one.state))


def _given(one: Played) -> int:
    """Return how many answers people have labelled, asked or not."""
    models: Any = having(one.state, Asking).lambda_fields(MIDNIGHT)["labels"]
    return sum(model["answered"] + model["unasked"] for model in models["models"])


def test_without_a_budget_of_labels_all_labels_measure_and_after_one_the_old_requests_stay() -> (
    None
):
    sources = {"gold": "human", "judges": ["judge-v2"]}
    one = Played.start(config(sources=sources))
    one.apply(Asked("before", context(1.0, 0.0, 0.0)), MIDNIGHT)
    one.apply(Redeclared(config(2, sources=sources, labels={"want": 1, "per": "day"})), MIDNIGHT)
    assert ask(one, "asked")[2]
    assert not ask(one, "unasked", MIDNIGHT + 1.0)[2]
    one.apply(Redeclared(config(3, sources=sources)), MIDNIGHT + 2.0)
    for name in ("before", "asked", "unasked"):
        one.apply(Judged(name, 0.5, "judge-v2"), MIDNIGHT).accepted()
        one.apply(Judged(name, 0.5, "human"), MIDNIGHT).accepted()
    judge = standing(one)[1]
    assert judge["pairs"] == 2
    invariants.check(one.state, one.records)


def test_a_declaration_is_read_packed_and_written_back_and_a_wrong_one_is_refused() -> None:
    labels = {"want": 50, "per": "day", "steps": 3}
    url = "https://traces.acme.com/x/{request_id}?a=b"
    found = config(labels=labels, label_url=url)
    document = declaration_of(found, "r")
    assert (document["labels"], document["label_url"]) == (labels, url)
    one = thaw(freeze(Played.start(found)), {})
    assert having(one.state, Asking).declared == found.capabilities["labels"]
    one.apply(Redeclared(config(2)), 1.0)
    assert one.state.having(Asking) is None
    refused: list[dict[str, Any]] = [
        {"labels": {"want": 0, "per": "day"}},
        {"labels": {"want": 1, "per": "month"}},
        {"labels": {"want": 1, "per": "day", "steps": 1}},
        {"label_url": url},
        *(
            {"labels": labels, "label_url": address}
            for address in (
                "ftp://a/{request_id}",
                "javascript:alert({request_id})",
                "https://{request_id}.acme.com/",
                "https://a/x",
                "https://a/{request_id}/{request_id}",
                "https://a/ {request_id}",
                "https:///{request_id}",
                "{request_id}",
            )
        ),
    ]
    for wrong in refused:
        with pytest.raises(MalformedEvent):
            config(**wrong)


def test_another_period_begins_anew_and_another_number_goes_on() -> None:
    one = engine(want=1)
    assert ask(one, "a")[2]
    one.apply(Redeclared(config(2, labels={"want": 2, "per": "day"})), MIDNIGHT)
    assert ask(one, "b", MIDNIGHT + 43_201.0)[2]
    assert ask(one, "c", MIDNIGHT + 80_000.0)[1] == 0.0
    one.apply(Redeclared(config(3, labels={"want": 2, "per": "hour"})), MIDNIGHT + 80_000.0)
    assert ask(one, "d", MIDNIGHT + 80_001.0)[2]
    invariants.check(one.state, one.records)


def test_a_damaged_piece_is_refused() -> None:
    one = engine()
    ask(one, "a")
    asking = having(one.state, Asking)
    body = orjson.loads(asking.pack(asking.pieces[0]) or b"")
    body["traffic"]["seen"] = [1]
    with pytest.raises(DamagedState):
        asking.restore({}, lambda name: orjson.dumps(body))
    with pytest.raises(DamagedState):
        asking.restore({}, lambda name: b"[]")


def test_the_traffic_of_a_first_day_that_began_in_the_evening_is_not_that_of_whole_days() -> None:
    traffic = LabelTraffic.start(0.0, 0.75 * DAY)
    for minute in range(0, 360, 6):
        traffic.count(0.75 * DAY + 60.0 * minute, DAY)
    traffic.turn(DAY, DAY)
    # Ten an hour, as in the hours that were seen.
    assert sum(traffic.usual) == pytest.approx(10.0 * PERIOD_PARTS)


def test_a_verification_compares_who_was_asked_about_and_with_which_probability() -> None:
    one = engine()
    ask(one, "a")
    record = one.records["a"]
    said = orjson.loads(route_value("r", "a", record, repeat=False))
    changes: list[dict[str, Any]] = [
        {},
        {"label_wanted": None},
        {"label_probability": 0.5},
    ]
    found = [
        compare(READERS["routes"](orjson.dumps({**said, **change})), record)  # type: ignore[arg-type]
        for change in changes
    ]
    assert found[0] == ((), True)
    assert [fields for fields, _ in found[1:3]] == [("label_wanted",), ("label_probability",)]
