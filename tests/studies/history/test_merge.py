"""History back in the order in which the worker applied it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiokafka.partitioner import DefaultPartitioner

from studies.history.folders import BadFolder, export, open_folder
from studies.history.happened import Billed, Decided, Declared, Rewarded
from studies.history.merge import Merge
from studies.history.parquet import MissingPyArrow, ParquetHistory
from studies.history.records import JsonlHistory, Record, partitions_of, refused_offsets
from studies.history.skipped import Skipped

ROUTER = "r"
X = [0.5, 1.0]
AT = "2026-01-01T00:00:{:09.6f}Z"
EPOCH = 1767225600.0


class Memory:
    """A history of one partition, in memory."""

    def __init__(self) -> None:
        self.topics: dict[str, list[Record]] = {}

    def partitions(self, topic: str = "requests") -> list[int]:
        return [0]

    def read(self, topic: str, partition: int) -> Iterator[Record]:
        return iter(self.topics.get(topic, []))

    def add(
        self, topic: str, at: float = 0.0, headers: dict[str, str] | None = None, **value: Any
    ) -> int:
        records = self.topics.setdefault(topic, [])
        body = orjson.dumps({"router_id": ROUTER, **value})
        records.append(Record(len(records), EPOCH + at, ROUTER.encode(), body, headers or {}))
        return len(records) - 1

    def request(self, request_id: str, **fields: Any) -> None:
        self.add("requests", request_id=request_id, context=X, **fields)

    def decided(
        self,
        request_id: str,
        seq: int,
        *,
        at: float = 0.0,
        applied: tuple[int, ...] | None = None,
        **fields: Any,
    ) -> None:
        names = ("costs", "rewards", "expired", "declared_costs", "declared_rewards")
        body = {} if applied is None else {"applied": dict(zip(names, applied, strict=True))}
        defaults = {
            "model": "m",
            "reason": "ucb",
            "propensity": 1.0,
            "expected_reward": 0.5,
            "expected_cost_usd": 0.0,
        }
        defaults |= {
            "lambda_t": 0.0,
            "config_offset": 0,
            "decided_at": AT.format(at),
            "repeat": False,
        }
        self.add("routes", at, request_id=request_id, seq=seq, **{**defaults, **body, **fields})

    def bill(self, request_id: str, at: float = 0.0, **fields: Any) -> None:
        self.add("costs", at, **{"request_id": request_id, "cost_usd": 0.1, **fields})

    def reward(self, request_id: str, at: float = 0.0) -> None:
        self.add("rewards", at, request_id=request_id, reward=0.5, source="judge")

    def merged(self, **options: Any) -> tuple[list[str], Skipped]:
        skipped = Skipped()
        events = Merge(self, 0, refused=refused_offsets(self), skipped=skipped, **options)
        return [name(event) for event in events], skipped


def name(event: Any) -> str:
    match event:
        case Declared():
            return f"declared {event.offset}"
        case Decided():
            return f"decided {event.decision.request_id}"
        case Billed():
            return f"bill {event.bill.request_id}"
        case Rewarded():
            return f"reward {event.reward.request_id}"
    raise AssertionError(event)


@pytest.fixture
def history() -> Memory:
    memory = Memory()
    memory.add(
        "routers", models={"m": {"input_price_per_m": 1.0, "output_price_per_m": 1.0}}, dimensions=2
    )
    for request_id in "abc":
        memory.request(request_id)
    return memory


def test_what_a_decision_contained_comes_before_it_and_nothing_else(history: Memory) -> None:
    history.bill("a")
    history.bill("b")
    history.reward("a")
    history.decided("a", 1, applied=(-1, -1, 0, -1, -1))
    history.decided("b", 2, applied=(0, -1, 0, -1, -1))
    history.decided("c", 3, applied=(1, 0, 0, -1, -1))
    events, skipped = history.merged()
    assert events == [
        "declared 0",
        "decided a",
        "bill a",
        "decided b",
        "bill b",
        "reward a",
        "decided c",
    ]
    assert skipped.counts == {}


def test_without_positions_records_go_by_their_time(history: Memory) -> None:
    history.bill("a", at=1.5)
    history.reward("a", at=2.5)
    for seq, request_id in enumerate("abc", 1):
        history.decided(request_id, seq, at=float(seq))
    events, _ = history.merged()
    assert events == ["declared 0", "decided a", "bill a", "decided b", "reward a", "decided c"]


def test_feedback_that_overtook_its_request_follows_the_decision(history: Memory) -> None:
    history.bill("b")
    history.decided("a", 1, applied=(0, -1, 0, -1, -1))
    history.decided("b", 2, applied=(0, -1, 0, -1, -1))
    assert history.merged()[0] == ["declared 0", "decided a", "decided b", "bill b"]


def test_a_declaration_takes_its_place_between_the_bills(history: Memory) -> None:
    history.add("routers", models={}, dimensions=2)
    history.decided("a", 1, applied=(-1, -1, 0, -1, -1))
    history.bill("a")
    history.bill("a", revision=1)
    history.decided("b", 2, applied=(1, -1, 0, 0, -1), config_offset=1)
    assert history.merged()[0] == [
        "declared 0",
        "decided a",
        "bill a",
        "declared 1",
        "bill a",
        "decided b",
    ]


def test_answers_given_again_after_a_crash_count_once(history: Memory) -> None:
    history.decided("a", 1)
    history.decided("a", 1)
    history.decided("a", 1, repeat=True)
    history.decided("b", 2)
    assert history.merged()[0] == ["declared 0", "decided a", "decided b"]


def test_decisions_out_of_order_are_put_in_order(history: Memory) -> None:
    history.decided("b", 2)
    history.decided("a", 1)
    assert history.merged()[0] == ["declared 0", "decided a", "decided b"]


def test_what_was_refused_is_left_out(history: Memory) -> None:
    history.bill("a")
    head = "__connect.errors."
    history.add(
        "dlq", headers={f"{head}topic": "pb.costs", f"{head}partition": "0", f"{head}offset": "0"}
    )
    history.decided("a", 1, applied=(0, -1, 0, -1, -1))
    assert history.merged()[0] == ["declared 0", "decided a"]


def test_holes_and_damage_are_counted_with_their_place(history: Memory) -> None:
    history.decided("b", 5)
    history.decided("lost", 6)
    history.bill("nobody")
    history.bill("b", cost_usd=-1)
    events, skipped = history.merged()
    assert events == ["declared 0", "decided b"]
    assert skipped.counts == {
        "decisions are missing": 1,
        "decisions whose request is gone": 1,
        "feedback of a request that has no decision": 1,
        "malformed (cost_out_of_range)": 1,
    }
    assert skipped.first["malformed (cost_out_of_range)"] == "costs-0 offset 1"


def test_another_router_is_left_out(history: Memory) -> None:
    history.decided("a", 1)
    assert history.merged(router_id="other")[0] == []


def test_an_export_reads_back_equal(history: Memory, tmp_path: Path) -> None:
    history.decided("a", 1)
    history.topics["costs"] = [
        Record(0, 1.0, None, b"\xff not json", {}),
        Record(1, 2.5, b"r", None, {"x": "y"}),
    ]
    export(history, tmp_path)
    read = JsonlHistory(tmp_path)
    assert read.partitions() == [0]
    assert list(read.read("costs", 0)) == history.topics["costs"]
    assert list(read.read("routes", 0)) == history.topics["routes"]


def test_a_folder_without_requests_is_no_history(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        JsonlHistory(tmp_path)


def test_a_parquet_export_gives_every_record_back_and_the_same_events(
    history: Memory, tmp_path: Path
) -> None:
    history.decided("a", 1)
    history.topics["costs"] = [
        Record(0, 1.001, None, b"\xff not json", {}),
        Record(7, 2.5, b"r", None, {"x": "y", "z": ""}),
    ]
    written = export(history, tmp_path / "one", form="parquet")
    assert written == sum(map(len, history.topics.values()))
    read = open_folder(tmp_path / "one")
    assert isinstance(read, ParquetHistory) and read.partitions() == [0]
    for topic, records in history.topics.items():
        assert list(read.read(topic, 0)) == records
    assert list(read.read("rewards", 0)) == []
    merged = [name(event) for event in Merge(read, 0, refused={}, skipped=Skipped())]
    assert merged == history.merged()[0]
    export(read, tmp_path / "two", form="parquet")
    export(read, tmp_path / "lines")
    export(open_folder(tmp_path / "lines"), tmp_path / "three", form="parquet")
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
        assert path.read_bytes() == (tmp_path / "three" / path.name).read_bytes()


def test_an_export_of_a_range_keeps_declarations(history: Memory, tmp_path: Path) -> None:
    for at in (1.0, 2.0, 3.0):
        history.reward("a", at=at)
    export(history, tmp_path, since=EPOCH + 2.0, until=EPOCH + 3.0)
    read = JsonlHistory(tmp_path)
    assert [record.offset for record in read.read("rewards", 0)] == [1]
    assert len(list(read.read("routers", 0))) == 1


def test_an_export_never_overwrites_one_and_two_formats_in_a_folder_are_refused(
    history: Memory, tmp_path: Path
) -> None:
    export(history, tmp_path)
    with pytest.raises(BadFolder, match="choose another"):
        export(history, tmp_path, form="parquet")
    (tmp_path / "requests-0.parquet").touch()
    with pytest.raises(BadFolder, match="keep one"):
        open_folder(tmp_path)
    with pytest.raises(BadFolder, match="not an export"):
        open_folder(tmp_path.parent)


def test_without_pyarrow_the_error_says_what_to_install(
    history: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPyArrow, match=r"uv pip install \./client '\.\[replay\]'"):
        export(history, tmp_path, form="parquet")


def test_a_router_is_looked_for_on_its_own_partition() -> None:
    class Eight:
        def partitions(self, topic: str = "requests") -> list[int]:
            return list(range(8))

        def read(self, topic: str, partition: int) -> Iterator[Record]:
            return iter(())

    assert partitions_of(Eight(), None) == list(range(8))
    assert len({tuple(partitions_of(Eight(), f"router-{n}")) for n in range(100)}) == 8
    assert partitions_of(Eight(), "default") == [
        DefaultPartitioner()(b"default", list(range(8)), list(range(8)))
    ]
