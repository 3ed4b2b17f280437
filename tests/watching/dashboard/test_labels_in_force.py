"""The label that the dashboard counts is the one that the core has in force."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from agents.declaring.configuration import config_of
from benchmarks.played import Played
from router_state.events import Asked, Judged
from router_state.sources.source_labels import SourceLabel
from schemas import RewardObserved, decode
from schemas.routers import RouterDeclared
from tests.router_state.core_reference import context
from tests.watching.dashboard.test_dashboard_folds import NOW, Record, label, route
from tests.watching.test_planned_requests import planned
from watching.dashboard.fleet import Fleet
from watching.dashboard.labels_in_force import sources_of, take_label
from watching.joined import Request

RANKS = {"human": 3, "human:anna": 3, "human:ben": 3, "judge-v2": 2, "judge-v1": 2, "user": 1}
SOURCES = {"gold": "human", "judges": ["judge-v2", "judge-v1"]}
LABELS = st.lists(
    st.tuples(st.sampled_from(sorted(RANKS)), st.none() | st.integers(0, 10), st.integers(0, 3)),
    max_size=12,
)


def document(declares: bool) -> bytes:
    models = {"b": {"input_price_per_m": 0.1, "output_price_per_m": 0.4}}
    sources = {"sources": SOURCES} if declares else {}
    return orjson.dumps({"router_id": "chat", "models": models, "dimensions": 4, **sources})


@given(LABELS, st.booleans())
def test_labels_in_any_order_leave_what_the_core_has(labels: list[Any], declares: bool) -> None:
    declared = decode(RouterDeclared, document(declares))
    engine = Played.start(config_of(declared, offset=1, references={}))
    engine.apply(Asked("a", context(1.0, 0.0, 0.0)), 0.0)
    request, sources = Request("chat", "b"), sources_of(declared.sources)
    for source, tenths, revision in labels:
        reward = None if tenths is None else tenths / 10.0
        if reward is None and not revision:
            continue  # refused by the schema
        event = Judged("a", reward, source, RANKS[source], revision=revision)
        engine.apply(event, 0.0).accepted()
        _, request.label, _ = take_label(
            request, source, SourceLabel(reward, RANKS[source], revision), sources
        )
        found = engine.records["a"].label
        assert request.label == (None if found is None else found.reward), (source, reward)


def declared_fleet() -> Fleet:
    """Return a fleet that has read the declaration of a router with sources."""
    fleet = Fleet(lambda source: RANKS.get(source, 0))

    class Declared:
        topic, partition, headers, offset = "any", 0, (), 0
        key, value, timestamp = b"chat", document(True), int(1000 * NOW)

    made: Any = Declared()
    fleet.observe("routers", made, now=NOW)
    return fleet


def test_a_label_that_does_not_count_leaves_the_one_in_force_at_its_call() -> None:
    fleet = declared_fleet()
    events = [
        ("routes", planned("r-0")),
        ("rewards", label("r-0", 1.0, source="human").model_copy(update={"attempt": 1})),
        ("rewards", label("r-0", 1.0, source="judge-v2").model_copy(update={"attempt": 0})),
    ]
    for name, event in events:
        said: Any = Record(event, key="chat")
        fleet.observe(name, said, now=NOW)
    models = fleet.routers["chat"].tally.models
    assert {name: one.labels.total for name, one in models.items() if one.labels.n} == {"b": 1.0}


def test_the_tally_follows_gold_their_mean_and_withdrawals() -> None:
    fleet = declared_fleet()
    record: Any = Record(route("a"), key="chat")
    fleet.observe("routes", record, now=NOW)
    quality = fleet.routers["chat"].tally.labels
    for source, reward, revision, mean in (
        ("judge-v2", 0.9, 0, 0.9),
        ("human:anna", 0.2, 0, 0.2),
        ("human:ben", 0.6, 0, 0.4),
        ("judge-v2", 0.8, 1, 0.4),
        ("human:ben", None, 1, 0.2),
        ("human:anna", None, 1, 0.8),
        ("judge-v2", None, 2, None),
    ):
        event = RewardObserved(
            router_id="chat", request_id="a", reward=reward, source=source, revision=revision
        )
        said: Any = Record(event, key="chat")
        fleet.observe("rewards", said, now=NOW)
        value = quality.value
        assert (value is None) == (mean is None), source
        assert mean is None or value is None or abs(value - mean) < 1e-9, source
