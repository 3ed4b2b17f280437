"""What the topics of the service are made like."""

import pytest

from streams.log.service_topics import topic_specs
from streams.settings import Settings

SPECS = {
    spec.name: spec for spec in topic_specs(Settings(partitions=12, context_ttl=30 * 86_400.0))
}
CHANGELOG = "paretobandit-router_states-changelog"
COMPACTED = {"pb.routers", "pb.pools", "pb.families", "pb.lambda", CHANGELOG}


def test_all_topics_have_the_same_number_of_partitions() -> None:
    assert {spec.partitions for spec in SPECS.values()} == {12}


def test_only_declarations_lambda_and_state_are_compacted() -> None:
    assert {spec.name for spec in SPECS.values() if spec.cleanup == "compact"} == COMPACTED


@pytest.mark.parametrize("name", sorted(COMPACTED))
def test_compacted_topics_never_delete(name: str) -> None:
    assert SPECS[name].config(1)["cleanup.policy"] == "compact"
    assert "retention.ms" not in SPECS[name].config(1)


def test_a_dead_letter_has_room_for_what_arrived() -> None:
    assert SPECS["pb.dlq"].max_bytes > SPECS["pb.requests"].max_bytes


def test_events_stay_as_long_as_their_contexts() -> None:
    assert SPECS["pb.rewards"].config(1)["retention.ms"] == str(30 * 86_400_000)


def test_three_copies_need_two_in_sync() -> None:
    assert SPECS["pb.routes"].config(2)["min.insync.replicas"] == "2"


def test_declarations_are_kept_for_an_hour_to_verify_decisions_with() -> None:
    # docs/explanation/replay.md says so; segments alone may be compacted within minutes.
    assert SPECS["pb.routers"].config(1)["min.compaction.lag.ms"] == str(3_600_000)
