"""Rewards of whole sessions: who is credited, what wins, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.played import Played
from router_state import errors
from router_state.changes import Outcome
from router_state.events import Asked, Judged
from router_state.record import RequestRecord
from router_state.sessions.credit import CREDITED, WHOLE
from router_state.state import invariants, record_bytes
from schemas.event import MalformedEvent, decode, decode_keyed
from schemas.quick import Reward, read
from schemas.reasons import Reason
from schemas.rewards import RewardObserved
from tests.router_state.core_reference import context, declaration, freeze, thaw

X = context(1.0, 0.0, 0.0)
SESSION = WHOLE + "s"


def engine(turns: int = 3, *, profile: str = "live", session: str | None = "s") -> Played:
    one = Played.start(declaration(profile=profile))
    for n in range(turns):
        one.apply(Asked(str(n), X, session_id=session), float(n))
    return one


def rewards(one: Played) -> dict[str, float | None]:
    return {
        name: None if record.label is None else record.label.reward
        for name, record in one.records.items()
    }


@pytest.mark.parametrize("profile", ["live", "paper"])
def test_each_request_of_a_session_gets_its_reward_once(profile: str) -> None:
    one = engine(profile=profile)
    one.apply(Asked("other", X, session_id="t"), 5.0)
    one.apply(Asked("alone", X), 6.0)
    changes = one.apply(Judged(SESSION, 0.8, "user", offset=7), 9.0)
    assert changes.outcome is Outcome.APPLIED
    assert changes.records.keys() == {"0", "1", "2"}
    assert rewards(one) == {"0": 0.8, "1": 0.8, "2": 0.8, "other": None, "alone": None}
    assert one.state.rewards_applied == 3
    assert one.state.since.text().endswith("r7")
    before = freeze(one)
    assert one.apply(Judged(SESSION, 0.8, "user", offset=8), 9.0).outcome is Outcome.DUPLICATE
    assert freeze(one) == before
    invariants.check(one.state, one.records)


class Packed(dict[str, RequestRecord]):
    """Records of which each look-up unpacks one anew."""

    looked_up = 0

    def get(self, key: str, default: Any = None) -> Any:
        return default if super().get(key) is None else self[key]

    def __getitem__(self, key: str) -> RequestRecord:
        self.looked_up += 1
        record = super().__getitem__(key)
        again = record_bytes.unpack_record(record_bytes.pack_record(record))
        again.x = record.x
        return again


def test_each_request_of_a_session_is_looked_up_once() -> None:
    one = engine(turns=5)
    records = Packed(one.records)
    again = Played(one.state, records)
    changes = again.apply(Judged(SESSION, 0.8), 9.0)
    assert (records.looked_up, len(changes.records)) == (5, 5)
    assert rewards(again) == dict.fromkeys("01234", 0.8)


def test_it_teaches_what_so_many_rewards_of_their_own_teach() -> None:
    one, other = engine(), engine()
    one.apply(Judged(SESSION, 0.8), 9.0)
    for name in ("0", "1", "2"):
        other.apply(Judged(name, 0.8), 9.0)
    for ours, theirs in zip(one.state.arms, other.state.arms, strict=True):
        assert ours.rewards.kept.tolist() == theirs.rewards.kept.tolist()


def test_a_reward_of_its_own_wins_whichever_comes_first() -> None:
    one = engine()
    one.apply(Judged("1", 0.2, "metric", 0), 9.0)
    one.apply(Judged(SESSION, 0.8, "human", 5, revision=9), 9.0)
    assert rewards(one) == {"0": 0.8, "1": 0.2, "2": 0.8}
    assert one.apply(Judged("2", 0.4, "metric", 0), 9.0).outcome is Outcome.REVISED
    assert rewards(one) == {"0": 0.8, "1": 0.2, "2": 0.4}
    assert one.state.rewards_applied == 3
    # A later one of the session moves what has no other.
    assert one.apply(Judged(SESSION, 0.6, "human", 5, revision=10), 9.0).outcome is Outcome.REVISED
    assert rewards(one) == {"0": 0.6, "1": 0.2, "2": 0.4}
    # One of lower rank does not, but a request that came since gets it.
    one.apply(Asked("3", X, session_id="s"), 10.0)
    assert one.apply(Judged(SESSION, 0.1, "metric", 0), 11.0).outcome is Outcome.APPLIED
    assert rewards(one) == {"0": 0.6, "1": 0.2, "2": 0.4, "3": 0.1}
    invariants.check(one.state, one.records)


def test_it_goes_as_far_back_as_requests_are_remembered_and_no_further_than_a_bound() -> None:
    one = engine(CREDITED + 5)
    one.apply(Judged(SESSION, 1.0), 999.0)
    assert [name for name, reward in rewards(one).items() if reward is None] == list("01234")
    one = engine(6)
    for name in ("0", "1", "2"):
        one.settle(name, cost_usd=0.001)
    one.forget(before=2.5)
    one.apply(Judged(SESSION, 1.0), 9.0)
    assert rewards(one) == {"3": 1.0, "4": 1.0, "5": 1.0}
    one.forget(before=100.0)
    with pytest.raises(errors.UnknownRequest, match="no request of session 's' is remembered"):
        one.learn(SESSION, reward=1.0)


@pytest.mark.parametrize("reward", [-0.1, 1.1, float("nan"), float("inf")])
def test_what_is_no_reward_changes_nothing(reward: float) -> None:
    one = engine()
    before = freeze(one)
    assert one.apply(Judged(SESSION, reward), 9.0).refusal is not None
    assert one.apply(Judged(WHOLE + "nobody's", 0.5), 9.0).refusal is not None
    assert freeze(one) == before


def test_sessions_are_known_after_a_stop_without_cached_prices() -> None:
    one = engine()
    again = thaw(freeze(one), dict.fromkeys(one.records, X))
    assert freeze(again) == freeze(one)
    again.apply(Judged(SESSION, 0.8), 9.0)
    one.apply(Judged(SESSION, 0.8), 9.0)
    assert freeze(again) == freeze(one)
    # A router that is told of no session keeps nothing of one.
    assert not [name for name in freeze(engine(session=None)) if "session" in name]


def test_contexts_that_another_store_keeps_are_handed_in() -> None:
    one = engine()
    for record in one.records.values():
        record.x = None
    lost = one.apply(Judged(SESSION, 0.5), 9.0)
    assert isinstance(lost.refusal, errors.ContextLost)
    changes = one.apply(Judged(SESSION, 0.5, contexts={"0": X, "2": X}), 9.0)
    assert changes.records.keys() == {"0", "2"}


@pytest.mark.parametrize(
    ("body", "subject"),
    [
        ({"request_id": "r"}, "r"),
        ({"session_id": "s"}, WHOLE + "s"),
        ({"request_id": "r", "session_id": "s"}, "r"),
    ],
)
def test_both_readers_say_the_same_of_what_was_judged(body: dict[str, Any], subject: str) -> None:
    import orjson

    value = orjson.dumps({"router_id": "a", "reward": 0.5, "source": "user", **body})
    quick = read(Reward, key=b"a", value=value)
    slow = decode_keyed(RewardObserved, key=b"a", value=value)
    assert quick.subject == slow.subject == subject


@pytest.mark.parametrize(
    "body", [b"", b'"request_id": "", ', b'"session_id": "", ', b'"session_id": "a\\u0000", ']
)
def test_a_reward_of_nothing_is_refused(body: bytes) -> None:
    value = b'{"router_id": "a", ' + body + b'"reward": 0.5, "source": "user"}'
    with pytest.raises(MalformedEvent) as caught:
        read(Reward, key=b"a", value=value)
    assert caught.value.reason in (Reason.MISSING_FIELD, Reason.INVALID_FIELD)
    with pytest.raises(MalformedEvent):
        decode(RewardObserved, value)
