"""Families over workers in memory: members on other workers learn from each other, whatever comes
late, twice, or after a crash."""

from __future__ import annotations

import asyncio
import json
import string
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from agents.members import exchange_priors
from agents.members.kin_notes import report_notes
from agents.table import keys
from agents.table.family_records import Families
from router_state.families.family_member import Family
from router_state.families.family_reports import Model, Report
from router_state.families.family_sums import Sums, bytes_of
from router_state.families.sum_bytes import most_size
from router_state.shared_numbers import ByModel, Numbers, packed
from router_state.state import state_pieces
from schemas.event import encode
from schemas.verifiers import MAX_BINS, MAX_VERIFIERS
from streams.partitioner import partition_of
from tests.granting_world import MODELS, PARTITIONS, PRICES, World

ROUTERS = [f"desk-{k}" for k in range(5)]


class KinWorld(World):
    """Workers whose records between families and members come at once, unless an owner is away.

    Attributes:
        away: the worker that reads nothing of `pb.kin`.
    """

    away = -1

    def declare_member(self, router_id: str, family: Any = "support", **fields: Any) -> None:
        """Declare a router of a family."""
        self.worth[router_id] = fields.pop("worth", 0.4)
        given = {"router_id": router_id, "models": MODELS, "dimensions": 2, "family": family}
        self.write("routers", router_id, json.dumps(given | fields).encode())

    def write(
        self,
        topic: str,
        key: str,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> None:
        """Write a record; those of families come at once."""
        super().write(topic, key, value, headers)
        if topic == "kin":
            self.logs[topic, partition_of(key, PARTITIONS)][-1].since = -1

    async def _deliver(self, topic: str, number: int) -> None:
        if topic == "kin" and number % len(self.workers) == self.away:
            return
        if topic != "routers":
            await super()._deliver(topic, number)
            return
        # A declaration waits for what its family says.
        task = asyncio.create_task(super()._deliver(topic, number))
        while not task.done():
            await asyncio.sleep(0)
            self._collect()
            for other in range(PARTITIONS):
                await self._deliver("kin", other)
        await task

    async def live(self, routers: list[str], rounds: int, *, requests: int = 3) -> None:
        """Let routers answer requests."""
        for _ in range(rounds):
            for name in routers:
                for _ in range(requests):
                    self.ask(name)
            await self.step()

    def member(self, router_id: str) -> Family:
        """Return a router's membership."""
        found = self.engine(router_id).state.having(Family)
        assert found is not None
        return found

    def taken(self, router_id: str) -> dict[str, float]:
        """Return by model for how many requests the family's prior counted."""
        held = self.member(router_id).outside_sums
        return {name: one.taken[0].count for name, one in held.items() if one.taken[0] is not None}

    def families(self, name: str) -> Families:
        """Return the families of a family's partition."""
        return self.partition(name).families

    def said(self, topic: str) -> list[tuple[str, Any]]:
        """Return what was sent to a topic, by key."""
        found = [one for worker in self.workers for one in worker.said if one[0] == topic]
        return [
            ((key or b"").decode(), None if value is None else json.loads(value))
            for _, key, value, _ in found
        ]

    def letters(self) -> list[str]:
        """Return the reasons of dead letters."""
        found = [one for worker in self.workers for one in worker.said if one[0] == "pb.dlq"]
        return [dict(headers)["pb.reason"].decode() for _, _, _, headers in found]


async def world(seed: int = 0, *, members: int = 3) -> KinWorld:
    """Return routers of a family that have learned something."""
    found = KinWorld(seed=seed)
    await found.start()
    for name in ROUTERS[:members]:
        found.declare_member(name)
    await found.live(ROUTERS[:members], 25)
    await found.live([], 3)
    return found


async def test_members_on_other_workers_learn_from_each_other() -> None:
    found = await world()
    for name in ROUTERS[:3]:
        assert found.taken(name)["large"] > 5.0
        assert found.member(name).place.members == 2
    assert not found.letters()


async def test_a_newcomer_knows_the_models_before_its_first_request() -> None:
    found = await world()
    found.declare_member("newcomer")
    found.ask("newcomer")
    await found.step()
    (first,) = [one for key, one in found.said("pb.routes") if key == "newcomer"]
    assert first["seq"] == 1 and " p" in first["applied"]["since"]
    assert first["family"]["requests"] > 5.0


async def test_a_newcomer_does_not_wait_for_an_owner_that_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exchange_priors, "WELCOME_SECONDS", 0.05)
    found = await world()
    owner = found.owner("support")
    found.away = found.workers.index(owner)
    found.declare_member("newcomer")
    found.ask("newcomer")
    await found.step()
    assert found.engine("newcomer").state.seq == 1
    assert not found.taken("newcomer")
    found.away = -1
    await found.live([], 3)
    assert found.taken("newcomer")["large"] > 5.0


async def test_a_dead_owner_comes_back_with_what_it_had_heard() -> None:
    found = await world()
    owner = found.families("support").owner("support")
    before = {name: one.seen for name, one in owner.members.items()}
    levels = owner.sides[0].levels
    await found.kill(found.workers.index(found.owner("support")))
    again = found.families("support").owner("support")
    assert {name: one.seen for name, one in again.members.items()} == before
    assert again.sides[0].levels == pytest.approx(levels, abs=1e-5) and not again.is_due
    found.declare_member("newcomer")
    await found.step()
    assert found.taken("newcomer")["large"] > 5.0


@pytest.mark.parametrize("piece", ["head", "member", "sums"])
async def test_a_damaged_record_of_a_family_is_forgotten_and_nothing_stops(piece: str) -> None:
    found = await world()
    table = found.partition("support").table
    raws = [raw for raw in table.records if raw[:1] == keys.FAMILY]
    parts = {"head": "", "member": ROUTERS[0], "sums": f"{ROUTERS[0]}\x1flarge"}
    (at,) = [raw for raw in raws if keys.split(raw)[2] == parts[piece]]
    for worker in found.workers:
        worker.changelog = [
            (number, key, value[:-1] + b"?" if key == at and value else value, epoch, time)
            for number, key, value, epoch, time in worker.changelog
        ]
    await found.kill(found.workers.index(found.owner("support")))
    await found.live(ROUTERS[:3], 20)
    assert not found.letters()
    alerts = [
        (name, one["evidence"]["why"])
        for name, one in found.said("pb.alerts")
        if one["kind"] == "family_unreadable"
    ]
    assert [name for name, _ in alerts] == ["support"] and "checksum" in alerts[0][1]
    found.declare_member("newcomer")
    await found.step()
    assert found.taken("newcomer")["large"] > 2.0


async def test_a_members_state_is_the_same_after_a_crash() -> None:
    found = await world()
    name = ROUTERS[0]
    before = state_pieces.pack_pieces(found.engine(name).state)
    await found.kill(found.workers.index(found.owner(name)))
    assert state_pieces.pack_pieces(found.engine(name).state) == before
    await found.live(ROUTERS[:3], 20)
    assert found.engine(name).state.seq > 100


async def test_who_dies_or_leaves_changes_nothing_for_who_stays() -> None:
    found = await world()
    found.write("routers", ROUTERS[2], None)
    await found.live(ROUTERS[:2], 3)
    assert found.families("support").owner("support").members.keys() == set(ROUTERS[:2])
    found.write("routers", ROUTERS[0], None)
    found.declare_member(ROUTERS[1], None)
    await found.live([ROUTERS[1]], 3)
    assert "support" not in found.families("support").names
    assert found.said("pb.families")[-1] == ("support", None)
    assert not found.letters()


async def test_another_projection_is_refused_with_its_reason() -> None:
    found = await world()
    found.declare_member("wide", dimensions=3)
    await found.step()
    assert found.letters() == ["wrong_family"]
    assert "wide" not in found.partition("wide").routers
    assert "wide" not in found.families("support").owner("support").members


async def test_a_member_may_learn_and_not_tell_or_tell_and_not_learn() -> None:
    found = await world(members=2)
    found.declare_member(ROUTERS[2], {"name": "support", "gives": False})
    found.declare_member(ROUTERS[3], {"name": "support", "takes": False})
    await found.live(ROUTERS[2:4], 25)
    assert found.taken(ROUTERS[2]) and not found.taken(ROUTERS[3])
    seen = found.families("support").owner("support").members
    assert not seen[ROUTERS[2]].models and seen[ROUTERS[3]].models


async def test_a_model_that_one_member_has_tried_is_known_to_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(PRICES, "new", PRICES["small"])
    found = await world(members=2)
    models = {**MODELS, "new": MODELS["small"]}
    found.declare_member(ROUTERS[0], models={"new": MODELS["small"]})
    await found.live([ROUTERS[0]], 20)
    found.declare_member(ROUTERS[1], models=models)
    await found.live([], 3)
    assert found.taken(ROUTERS[1])["new"] > 1.0


async def test_reports_hold_no_prompt_and_leave_after_twenty_requests() -> None:
    found = await world()
    reports = [one for _, one in found.said("pb.kin") if one["kind"] == "report"]
    told = [one for one in reports if one.get("models")]
    assert told and len(told) < len(reports)
    assert all(max(one["seen"]) >= 20 for one in told)
    for one in told:
        for sums in one["models"].values():
            for text in sums.values():
                assert len(b64decode(text)) <= most_size(2)


def test_a_report_is_small() -> None:
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=(500, 25)), np.ones(500)])
    sums = bytes_of(Sums(X.T @ X, X.sum(0)))
    names = tuple(f"provider/model-{k:02d}-instruct" for k in range(20))
    report = Report(
        "support",
        "a" * 60,
        10**6,
        10**4,
        26,
        "f" * 64,
        seen=(10**5, 10**5),
        noise=(0.0812345678901, 0.31234567890123),
        names=names,
        models={name: Model(sums, sums) for name in names},
    )
    notes = list(report_notes(report, now=1e9))
    sizes = [len(note.model_dump_json(exclude_none=True)) for _, note in notes if note is not None]
    assert max(sizes[1:]) < 3000


@dataclass
class Telling:
    """A capability that shares these numbers."""

    numbers: ByModel
    name: ClassVar[str] = "attempts"

    def shares(self) -> ByModel:
        """Return them."""
        return self.numbers

    def take_shared(self, numbers: ByModel | None) -> None:
        """Take nothing."""


@given(
    st.lists(
        st.text(string.ascii_letters + '"\\é😀', min_size=1, max_size=128),
        min_size=MAX_VERIFIERS,
        max_size=MAX_VERIFIERS,
        unique=True,
    ),
    st.integers(2, MAX_BINS),
)
@example([f"judge-{k}" for k in range(MAX_VERIFIERS)], 2)
@example([f"judge-{k}" for k in range(MAX_VERIFIERS)], MAX_BINS)
def test_a_record_with_the_largest_sums_and_all_verifiers_is_small(
    verifiers: list[str], bins: int
) -> None:
    name, sums = "m" * 200, b"\xff" * most_size(26)
    numbers = {one: Numbers(np.ones(2 * bins), np.ones(2 * bins)) for one in verifiers}
    shared = packed([Telling({name: numbers})])[name]
    assert shared
    model = Model(sums, sums, shared)
    largest, noise = 2**53 - 1, (0.0812345678901, 0.31234567890123)
    report = Report("f" * 128, "a" * 128, largest, largest, 26, "f" * 64, noise=noise)
    report = replace(report, seen=(largest, largest), models={name: model})
    ((_, note),) = report_notes(report, now=1e9 + 0.123456)
    assert note is not None and len(encode(note)) < 3000


async def test_a_forged_prior_is_a_dead_letter_and_changes_nothing() -> None:
    found = await world()
    name = ROUTERS[0]
    member, before = found.member(name), state_pieces.pack_pieces(found.engine(name).state)
    note = {
        "kind": "prior",
        "router_id": name,
        "family": "support",
        "member_id": name,
        "born": member.place.born,
        "n": member.place.n + 100,
        "models": {"small": {"rewards": "AAAA", "bills": ""}},
        "observed_at": "2027-01-01T00:00:00Z",
    }
    found.write("kin", name, json.dumps(note).encode())
    await found.step()
    assert found.letters() == ["wrong_prior"]
    assert state_pieces.pack_pieces(found.engine(name).state) == before


async def test_what_comes_twice_or_late_changes_nothing() -> None:
    found = await world()
    kin = [(key, one) for key, one in found.said("pb.kin") if one["kind"] == "prior"]
    before = {name: state_pieces.pack_pieces(found.engine(name).state) for name in ROUTERS[:3]}
    for key, one in kin:
        found.write("kin", key, json.dumps(one).encode())
    await found.step()
    for name in ROUTERS[:3]:
        assert state_pieces.pack_pieces(found.engine(name).state) == before[name]


async def test_a_family_is_published_with_its_members_and_what_it_knows() -> None:
    found = await world()
    key, family = found.said("pb.families")[-1]
    assert key == "support" and {one["router_id"] for one in family["listed"]} == set(ROUTERS[:3])
    models = {one["model"]: one for one in family["models"]}
    assert models["large"]["rewards"]["requests"] > 3.0
    assert models["large"]["rewards"]["expected"] == pytest.approx(0.8, abs=0.1)


async def test_what_another_family_knows_may_be_brought() -> None:
    found = await world()
    _, family = found.said("pb.families")[-1]
    other = await KinWorld(seed=3).start()
    assert isinstance(other, KinWorld)
    note = {
        "kind": "brought",
        "router_id": "sales",
        "family": "sales",
        "member_id": "sales",
        "born": 0,
        "n": 0,
        "brought": family,
        "observed_at": "2027-01-01T00:00:00Z",
    }
    other.write("kin", "sales", json.dumps(note).encode())
    await other.step()
    await other.kill(other.workers.index(other.owner("sales")))
    other.declare_member("first", "sales")
    await other.step()
    assert other.taken("first")["large"] > 3.0
    assert not other.letters()
