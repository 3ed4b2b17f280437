"""A history recorded from a real worker is decided again, decision for decision."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streams.settings import Settings
from studies.history.encoded import Contexts
from studies.history.folders import export
from studies.history.kafka_history import KafkaHistory
from studies.history.merge import Merge
from studies.history.records import History, JsonlHistory, refused_offsets
from studies.history.rerun import Rerun
from studies.history.skipped import Skipped
from studies.history.verify import Verdict, verify
from tests.integration.commands import new_service
from tests.integration.replay_recording import record_history

REQUESTS = 2000


@pytest.fixture(scope="module")
def recorded(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = new_service(kafka, "replay")
    record_history(settings, tmp_path_factory.mktemp("recording"), requests=REQUESTS, in_flight=100)
    return settings


def no_encoder(*_: Any) -> Any:
    raise AssertionError("the history has contexts")


def verified(history: History, rank_of: Callable[[str], int]) -> tuple[Verdict, Skipped]:
    skipped, verdict = Skipped(), Verdict()
    refused = refused_offsets(history)
    for partition in history.partitions():
        rerun = Rerun(
            contexts=Contexts(no_encoder), rank_of=rank_of, read_prior=no_encoder, skipped=skipped
        )
        verify(Merge(history, partition, refused=refused, skipped=skipped), rerun, verdict)
    return verdict, skipped


def test_every_decision_of_a_run_with_a_killed_worker_is_made_again(recorded: Settings) -> None:
    with KafkaHistory(recorded) as history:
        verdict, skipped = verified(history, recorded.source_rank)
    assert verdict.differences == {} and verdict.unprovable == {} and skipped.counts == {}
    assert verdict.compared == verdict.equal == REQUESTS
    assert verdict.identical == REQUESTS


def test_an_export_gives_the_same_verdict_and_the_same_bytes_every_time(
    recorded: Settings, tmp_path: Path
) -> None:
    with KafkaHistory(recorded) as history:
        export(history, tmp_path / "one")
        export(history, tmp_path / "two")
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    topics = ("costs", "dlq", "kin", "leases", "requests", "rewards", "routers", "routes")
    assert names == [f"{topic}-{n}.jsonl" for topic in topics for n in range(2)]
    assert all(
        (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
        for name in names
    )
    verdict, _ = verified(JsonlHistory(tmp_path / "one"), recorded.source_rank)
    assert verdict.holds and verdict.identical == REQUESTS
