"""What a router saved: intervals hold at every look, each bill and label counts once, and a proof
is repeated from its records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from commands.cli import main, proof_command
from router_state.incumbents.anytime import half_width
from studies.history.encoded import Contexts
from studies.history.folders import export
from studies.history.records import Record
from studies.history.skipped import Skipped
from studies.proof.against import compare
from studies.proof.compared_requests import Requests
from studies.proof.difference import LEAST_UNITS, Difference
from studies.proof.proof_file import Noted, differences, filled
from studies.proof.saved import prove, sentence
from studies.simulate.cases import Cases
from studies.simulate.past import happened
from tests.studies.history.test_merge import EPOCH, ROUTER, X

MODELS = {name: {"input_price_per_m": 1.0, "output_price_per_m": 1.0} for name in ("a", "b")}
DAY = 86_400.0
LATER = 40 * DAY


def rank_of(source: str) -> int:
    return {"judge": 1, "human": 2}.get(source, 0)


class History:
    """A history of one router that routes half of its requests, in memory."""

    def __init__(self, **declared: Any) -> None:
        self.topics: dict[str, list[Record]] = {}
        self.seq = 0
        fields = {"models": MODELS, "incumbent": "b", "share": 0.5, **declared}
        self.add("routers", 0.0, dimensions=2, **fields)

    def partitions(self, topic: str = "requests") -> list[int]:
        return [0]

    def read(self, topic: str, partition: int) -> Iterator[Record]:
        return iter(list(self.topics.get(topic, [])))

    def add(self, topic: str, at: float, **value: Any) -> None:
        records = self.topics.setdefault(topic, [])
        body = orjson.dumps({"router_id": ROUTER, **value})
        records.append(Record(len(records), EPOCH + at, ROUTER.encode(), body, {}))

    def decide(
        self,
        request_id: str,
        *,
        routed: bool,
        share: float = 0.5,
        at: float = 0.0,
        said: dict[str, Any] | None = None,
        **asked: Any,
    ) -> None:
        self.seq += 1
        self.add("requests", at, **{"request_id": request_id, "context": X, **asked})
        decided: dict[str, Any] = {
            "request_id": request_id,
            "model": "a" if routed else "b",
            "seq": self.seq,
            "reason": "ucb" if routed else "incumbent",
            "propensity": 0.5,
            "expected_reward": 0.5,
            "expected_cost_usd": 0.0,
            "lambda_t": 0.0,
            "config_offset": 0,
            "decided_at": f"2026-01-{1 + int(at // DAY):02d}T00:00:00Z",
            "repeat": False,
            "routed_by": "router" if routed else "incumbent",
            "routed_share": share,
        }
        self.add("routes", at, **decided | (said or {}))

    def bill(self, request_id: str, usd: float, **more: Any) -> None:
        self.add("costs", LATER, request_id=request_id, cost_usd=usd, **more)

    def judge(self, request_id: str, value: float, source: str = "judge", **more: Any) -> None:
        self.add("rewards", LATER, request_id=request_id, reward=value, source=source, **more)

    def requests(self) -> Requests:
        found = Requests(rank_of)
        found.read(happened(self, ROUTER, Skipped()))
        return found

    def figures(self) -> Any:
        return prove(self.requests())


def lived(n: int = 400, *, seed: int = 0, **fields: Any) -> History:
    """Return a history in which the router costs half as much and answers as well."""
    rng, history = np.random.default_rng(seed), History(**fields)
    for i in range(n):
        routed = bool(rng.random() < 0.5)
        kind = {"kind": "letter" if i % 2 else "code"}
        would = {"would_route": {"model": "a", "reason": "ucb", "propensity": 1.0}}
        said = None if routed else would
        history.decide(str(i), routed=routed, at=(i % 20) * DAY, metadata=kind, said=said)
        history.bill(str(i), float(rng.lognormal(0.0, 0.3)) * (0.001 if routed else 0.002))
        history.judge(str(i), float(rng.random() < 0.8))
    return history


def test_what_was_saved_is_shown_with_its_interval() -> None:
    figures = lived().figures()
    whole = figures["whole"]
    saved = whole["saved_usd_per_request"]
    assert saved["low"] < 0.001 * np.exp(0.045) < saved["high"] and saved["low"] > 0.0
    assert whole["saved_usd"]["low"] == pytest.approx(saved["low"] * whole["routed"])
    assert whole["reward_gain"]["low"] < 0.0 < whole["reward_gain"]["high"]
    assert set(figures["kinds"]) == {"code", "letter"}
    assert [*figures["weeks"]] == ["2025-12-29", "2026-01-05", "2026-01-12", "2026-01-19"]
    for part in ("weeks", "kinds"):
        assert sum(one["routed"] for one in figures[part].values()) == whole["routed"]
    assert sentence(figures).startswith("The router saved $")
    assert "no difference in reward is shown" in sentence(figures)


def test_it_is_said_when_it_is_too_early_and_when_nothing_is_compared() -> None:
    assert "too early" in sentence(lived(20).figures())
    assert "Nothing can be compared" in sentence(History().figures())
    observed = History()
    for n in range(10):
        observed.decide(str(n), routed=False, share=0.0)
        observed.bill(str(n), 0.1)
    assert "Nothing can be compared" in sentence(observed.figures())
    assert observed.requests().others == 10


def test_each_bill_and_each_label_counts_once_as_it_was_revised_last() -> None:
    history = History()
    history.decide("1", routed=True)
    history.bill("1", 0.3)
    history.bill("1", 0.3)
    history.bill("1", 0.2, revision=2)
    history.bill("1", 0.9, revision=1)
    history.judge("1", 0.1)
    history.judge("1", 0.7, "human")
    history.judge("1", 0.2, revision=5)
    history.bill("never decided", 0.5)
    (one,) = history.requests()
    assert one.cost_usd == 0.2 and one.reward is not None and one.reward[0] == 0.7


def test_bills_in_tokens_and_of_two_calls_and_verdicts_count() -> None:
    history = History(verifiers={"tests": {"usd": 0.25}})
    history.decide("1", routed=True)
    history.add("costs", LATER, request_id="1", input_tokens=1_000_000, output_tokens=500_000)
    history.bill("1", 0.75, attempt=1)
    history.add("rewards", LATER, request_id="1", verifier="tests", verdict=0.2)
    history.add("rewards", LATER, request_id="1", verifier="tests", verdict=0.1, revision=1)
    (one,) = history.requests()
    assert one.cost_usd == 1.5 + 0.75 + 0.25 and one.reward is None


def test_a_session_is_one_unit_and_its_reward_is_that_of_its_requests() -> None:
    history = History(by="session")
    for n in range(6):
        session = f"s{n % 2}"
        history.decide(str(n), routed=n % 2 == 0, session_id=session)
        history.bill(str(n), 0.1)
    history.judge("0", 1.0)
    history.add("rewards", LATER, session_id="s0", reward=0.5, source="user")
    figures = history.figures()
    assert figures["whole"]["bills"] == {"router": 3, "incumbent": 3}
    assert figures["whole"]["units"] == {"router": 1, "incumbent": 1}
    rewards = [one.reward and one.reward[0] for one in history.requests()]
    assert rewards == [1.0, None, 0.5, None, 0.5, None]


@given(
    share=st.floats(0.05, 0.95),
    gap=st.floats(-1.0, 1.0),
    sessions=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_a_difference_is_found_whatever_the_share(
    share: float, gap: float, sessions: bool, seed: int
) -> None:
    rng, found = np.random.default_rng(seed), Difference()
    for unit in range(800):
        routed = bool(rng.random() < share)
        for _ in range(1 + unit % 3 if sessions else 1):
            outcome = float(rng.normal()) + gap * routed
            session = f"s{unit}" if sessions else None
            found.add(outcome, routed=routed, share=share, session=session)
    shown = found.shown()
    assert shown.value is not None
    if min(shown.units) >= LEAST_UNITS:
        assert shown.low is not None and shown.high is not None
        assert abs(shown.value - gap) < 1.5 * (shown.high - shown.low) / 2.0


def test_intervals_hold_at_every_look() -> None:
    """A twentieth may be missed; ordinary intervals miss several times as many."""
    missed, ordinary, worlds = 0, 0, 150
    for seed in range(worlds):
        rng, found, ever, often = np.random.default_rng(seed), Difference(), False, False
        share = (0.1, 0.5, 0.98)[seed % 3]
        for n in range(1, 4001):
            routed = bool(rng.random() < share)
            found.add(float(rng.lognormal()), routed=routed, share=share, session=None)
            if n % 100 == 0:
                shown = found.shown()
                if shown.low is not None and shown.high is not None and shown.value is not None:
                    ever |= not shown.low <= 0.0 <= shown.high
                    wide = (shown.high - shown.low) / 2.0
                    often |= abs(shown.value) > wide * 1.96 / (half_width(n, 1.0) * n**0.5)
        missed, ordinary = missed + ever, ordinary + often
    assert missed <= 0.05 * worlds < ordinary


def test_a_proof_is_repeated_from_its_records_whatever_came_later() -> None:
    history = lived(150)

    def made(before: Any = None) -> Any:
        noted = Noted(history, None if before is None else before["read"])
        found = Requests(rank_of)
        found.read(happened(noted, ROUTER, Skipped()))
        figures = prove(found)
        return filled(ROUTER, "pb.", figures, sentence(figures), noted.places)

    before = json.loads(json.dumps(made()))
    history.decide("later", routed=True)
    history.bill("later", 5.0)
    assert made()["figures"] != before["figures"]
    assert differences(before, json.loads(json.dumps(made(before)))) == []
    bills = history.topics["costs"]
    value = (bills[3].value or b"").replace(b"0.00", b"0.01")
    bills[3] = Record(bills[3].offset, bills[3].timestamp, bills[3].key, value, {})
    found = differences(before, json.loads(json.dumps(made(before))))
    assert found[0] == "costs-0: records are others than they were"
    assert any("saved_usd" in one for one in found)
    del bills[:10]
    assert differences(before, made(before))[0] == "costs-0: records are gone"


def test_the_command_writes_a_proof_and_verifies_it(tmp_path: Path) -> None:
    assert main.commands["proof"] is proof_command.proof
    folder, file = tmp_path / "export", tmp_path / "proof.json"
    export(lived(), folder)
    ran = ("--router", ROUTER, "--from", str(folder))
    run = CliRunner().invoke(main, ["proof", *ran, "--file", str(file)])
    assert run.exit_code == 0, run.output
    assert run.output.startswith("The router saved $")
    again = CliRunner().invoke(main, ["proof", *ran, "--verify", str(file)])
    assert again.exit_code == 0 and "The proof was repeated" in again.output, again.output
    against = ("--against", "b", "--against", "a=0.5,b=0.5", "--against", "incumbent")
    also = CliRunner().invoke(main, ["proof", *ran, *against, "--file", str(tmp_path / "also")])
    assert also.exit_code == 0 and "Against a=0.5,b=0.5: saved a request $" in also.output
    again = CliRunner().invoke(main, ["proof", *ran, "--verify", str(tmp_path / "also")])
    assert again.exit_code == 0, again.output
    wrong = CliRunner().invoke(main, ["proof", *ran, "--against", "a=0.5,b=0.4"])
    assert wrong.exit_code == 2 and "add up to 1" in wrong.output
    said = CliRunner().invoke(main, ["proof", *ran, "--json"])
    assert json.loads(said.output)["figures"] == json.loads(file.read_text())["figures"]
    lines = (folder / "costs-0.jsonl").read_text().splitlines(keepends=True)
    (folder / "costs-0.jsonl").write_text("".join(lines[:-5]))
    broken = CliRunner().invoke(main, ["proof", *ran, "--verify", str(file)])
    assert broken.exit_code == 1 and "records are gone" in broken.output
    file.write_text("{}")
    assert (
        "not the file of a proof"
        in CliRunner().invoke(main, ["proof", *ran, "--verify", str(file)]).output
    )


MEANS = {"a": (0.0004, 0.6), "b": (0.002, 0.75), "c": (0.006, 0.85)}
"""Dollars and reward of each model's call for a usual prompt."""


def drawn_world(seed: int, n: int = 3000) -> tuple[History, dict[str, tuple[float, float]]]:
    """Return a history of a router that chooses at random by the prompt, beside an incumbent; and
    by how much each model, and the incumbent's mix, costs and earns more than the router."""
    rng = np.random.default_rng(seed)
    share = float(rng.choice([0.3, 0.6, 0.9]))
    mix = {"b": 0.3, "c": 0.7}
    models = {name: {"input_price_per_m": 1.0, "output_price_per_m": 1.0} for name in MEANS}
    history = History(incumbent=mix, share=share, models=models)
    gaps = {name: np.zeros(2) for name in (*MEANS, "incumbent")}
    for i in range(n):
        x = float(rng.normal())
        scores = np.array([0.5 + 0.5 * x, 0.0, -0.5 * x])
        chances = np.exp(scores) / np.exp(scores).sum()
        own = "abc"[rng.choice(3, p=chances)]
        routed = bool(rng.random() < share)
        model = own if routed else str(rng.choice(["b", "c"], p=[0.3, 0.7]))
        k = "abc".index(model)
        propensity = share * chances[k] + (1.0 - share) * mix.get(model, 0.0)
        said: dict[str, Any] = {"model": model, "propensity": float(propensity)}
        if not routed:
            would = {"model": own, "reason": "ucb", "propensity": float(chances["abc".index(own)])}
            said["would_route"] = would
        history.decide(str(i), routed=routed, share=share, said=said, context=[x, 1.0])
        expected = {
            name: np.array([usd * np.exp(0.3 * x), min(r - 0.05 * x, 1.0)])
            for name, (usd, r) in MEANS.items()
        }
        usd, reward = expected[model]
        history.bill(str(i), float(usd * rng.lognormal(-0.02, 0.2)))
        if rng.random() < 0.5:
            history.judge(str(i), float(rng.random() < reward))
        router = sum(p * expected[m] for p, m in zip(chances, MEANS, strict=True))
        for name in MEANS:
            gaps[name] += (expected[name] - router) / n
        gaps["incumbent"] += (0.3 * expected["b"] + 0.7 * expected["c"] - router) / n
    return history, {name: (float(gap[0]), float(gap[1])) for name, gap in gaps.items()}


@pytest.mark.parametrize("seed", range(6))
def test_estimates_from_the_log_agree_with_the_hold_out_and_with_the_truth(seed: int) -> None:
    history, truth = drawn_world(seed)
    skipped = Skipped()
    with closing(Contexts(no_encoder)) as contexts:
        cases = Cases(happened(history, ROUTER, skipped), contexts=contexts, skipped=skipped)
        found = compare(cases, {"incumbent": None, **{name: {name: 1.0} for name in MEANS}})
    for name, (usd, reward) in truth.items():
        one = found[name]
        assert "not_supported" not in one, one
        saved, gain = one["saved_usd_per_request"], one["reward_gain"]
        assert saved["low"] <= usd <= saved["high"], name
        assert gain["low"] <= -reward <= gain["high"], name
    whole = history.figures()["whole"]
    for name in ("saved_usd_per_request", "reward_gain"):
        by_log, by_holdout = found["incumbent"][name], whole[name]
        assert by_log["low"] <= by_holdout["high"] and by_holdout["low"] <= by_log["high"]
        # Whoever reads the log in full knows more.
        assert by_log["high"] - by_log["low"] < by_holdout["high"] - by_holdout["low"]


def test_a_model_that_had_no_chance_gets_no_estimate() -> None:
    history = lived(200)
    skipped = Skipped()
    with closing(Contexts(no_encoder)) as contexts:
        cases = Cases(happened(history, ROUTER, skipped), contexts=contexts, skipped=skipped)
        found = compare(cases, {"c": {"c": 1.0}})
        nobody = compare([], {"a": {"a": 1.0}})
    assert "not_supported" in found["c"]
    assert "no request" in nobody["a"]["not_supported"]


def no_encoder(*_: Any) -> Any:
    raise AssertionError("the history has contexts")
