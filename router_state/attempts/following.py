"""Decide a request that follows another one: by verdicts and signals on the earlier answers, among
the models that were not tried.

The answers of one prompt form a chain. The verdict on an answer, or signals about it, tell how much
worse the answer is than expected. `kernel.Failures` estimates from this what another model's answer
is worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from router_state.arms import Arms
from router_state.attempts.verdict_tables import Tables
from router_state.choice import Choice
from router_state.errors import RouterStateError, UnknownVerifier, VerdictOutOfRange
from router_state.events import Follows
from router_state.kernel import Failures, VerdictTable
from router_state.packing.framing import Json, converted
from router_state.record import RequestRecord

TRIED = "tried"
"""Reason why a model that has already answered in the chain is ruled out."""
MOST_REQUESTS = 16
"""Most requests of a chain. An agent that goes round in circles is to be stopped by its owner."""


class ChainTooLong(RouterStateError):
    """A chain of requests that follow each other has the largest allowed number of requests."""

    reason = "chain_too_long"


class Chain(Struct, frozen=True, omit_defaults=True):
    """A request's place in its chain, as its record keeps it.

    Attributes:
        follows: the request before this one; empty: it follows none. number: number of this
            request, from 1.
        known: whether the router remembers the request before this one; otherwise a chain begins
            here.
        tried: models that have answered earlier in the chain.
        count, sum: the failures earlier in the chain, see `kernel.Failures`.
        by: the verifier, or the signal, that showed the last failure.
        unknown: verifiers that the request named and the router does not declare.
    """

    follows: str = ""
    number: int = 1
    known: bool = True
    tried: tuple[str, ...] = ()
    count: int = 0
    sum: float = 0.0
    by: str = ""
    unknown: tuple[str, ...] = ()

    @property
    def failures(self) -> Failures:
        """Return the failures before the request."""
        return Failures(self.count, self.sum)


def chain_of(record: RequestRecord, name: str) -> Chain | None:
    """Return the place of a decided request in its chain; None: it follows no request.

    Args:
        name: name of the capability, under which the record has the place.
    """
    chain = record.kept_by(name, Chain)
    return chain if chain is not None and chain.follows else None


def check(follows: Follows, tables: Tables) -> None:
    """Raise an error for verdicts or signals about an earlier answer that can't be used.

    Raises:
        UnknownVerifier: the router does not declare a verifier that the request names.
        VerdictOutOfRange: a verdict or a signal is not in its range.
    """
    for name, verdict in follows.verdicts.items():
        if name not in tables.tables:
            raise UnknownVerifier(f"the router declares no verifier {name!r}: add it to verifiers")
        if not 0.0 <= verdict <= 1.0:
            raise VerdictOutOfRange("a verdict must be between 0 and 1")
    if not all(0.0 <= scored(*signal) <= 1.0 for signal in follows.signals.items()):
        raise VerdictOutOfRange("a signal is not in its range")


def begin(choice: Choice, tables: Tables, arms: Arms, name: str) -> Chain | None:
    """Return the place of a request in its chain, with the failures of the answers before it. None:
    the request follows no other request.

    Raises:
        ChainTooLong: the chain has `MOST_REQUESTS` requests already.
    """
    follows, followed = choice.request.follows, choice.followed
    if follows is None:
        return None
    if followed is None:
        return Chain(follows.request_id, known=False)
    before = chain_of(followed, name) or Chain(follows.request_id)
    if before.number >= MOST_REQUESTS:
        raise ChainTooLong(
            f"{MOST_REQUESTS} requests have followed each other: ask a person, or begin anew "
            "without follows"
        )
    failures, by = before.failures, before.by
    tried = list(before.tried)
    for model, seen in _answers(follows, followed):
        if model not in tried:
            tried.append(model)
        surprise = _surprise(model, seen, tables, arms, choice)
        if surprise is not None:
            reward, given, by = surprise
            failures = failures.and_one(reward, given)
    return Chain(
        follows.request_id,
        before.number + 1,
        tried=tuple(tried),
        count=failures.count,
        sum=failures.sum,
        by=by,
    )


def _answers(
    follows: Follows, followed: RequestRecord
) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Yield the models that have answered the followed request, and what was seen of each answer:
    verdicts by verifier, and signals by name.
    """
    plan = followed.plan
    # A caller who does not follow plans has made the first call alone.
    last = 0 if plan is None else plan.answered
    for number in range(last + 1):
        seen: dict[str, float] = {}
        if number == last:
            seen |= {name: scored(name, value) for name, value in follows.signals.items()}
            seen |= follows.verdicts
        if plan is not None:
            seen |= {name: verdict.verdict for name, verdict in plan.made[number].verdicts.items()}
        yield followed.called if plan is None else plan.steps[number].model, seen


def _surprise(
    model: str, seen: Mapping[str, float], tables: Tables, arms: Arms, choice: Choice
) -> tuple[float, float, str] | None:
    """Return the expected reward of an answer without and with the verdict or signal that changes
    it most, and the name of that one; None: nothing that was seen has a table.

    The expectation is that for the present request: the prompt of a followed one is not kept.
    """
    arm = arms.find(model)
    if arm is None:
        return None
    k = arms.row[model]
    reward, found = choice.seen.reward(k), None
    for name, verdict in seen.items():
        table = tables.table_of(name)
        if table is None:
            continue
        given = table.given(k, min(int(verdict * table.J), table.J - 1), reward)
        if found is None or abs(given - reward) > abs(found[1] - reward):
            found = reward, given, name
    return found


def rule_out(choice: Choice, chain: Chain, arms: Arms) -> None:
    """Rule out the models that were tried, while there are others."""
    tried = [arms.row[name] for name in chain.tried if name in arms.row]
    left = any(why is None and k not in tried for k, why in enumerate(choice.excluded))
    if left and any(choice.excluded[k] is None for k in tried):
        excluded = [why or (TRIED if k in tried else None) for k, why in enumerate(choice.excluded)]
        choice.limit(excluded, arms.names)


def expect(choice: Choice, chain: Chain, tables: Tables) -> None:
    """Lower the expected reward of every model, by the failures earlier in the chain."""
    table, failures = tables.table_of(chain.by), chain.failures
    if table is None or not failures.count:
        return
    alike, mean = table.alike, choice.seen.mean
    choice.seen.mean = [reward - alike * failures.gap(reward, alike) for reward in mean]


def gap_of(chain: Chain | None, reward: float, tables: Tables) -> tuple[VerdictTable, float] | None:
    """Return the table of the verifier that found the failures before an answer, and the reward
    that the answer loses at ρ = 1 (`kernel.Failures`); None: no failure is known.
    """
    table = None if chain is None else tables.table_of(chain.by)
    if chain is None or table is None or not chain.count:
        return None
    if chain.by not in tables.tables:
        table = tables.signal(chain.by)  # it may learn
    return table, chain.failures.gap(reward, table.alike)


def route_fields(stored: Json) -> dict[str, object]:
    """Return the fields of `pb.routes`, see `schemas.routes.Chain`."""
    chain = converted(stored, Chain, "chain of a request")
    unknown: dict[str, object] = {}
    if chain.unknown:
        unknown["unknown_verifiers"] = list(chain.unknown)
    if not chain.follows:
        return unknown
    found: dict[str, object] = {"follows": chain.follows, "number": chain.number}
    if not chain.known:
        found["known"] = False
    if chain.tried:
        found["tried"] = list(chain.tried)
    return {"chain": found} | unknown


def scored(name: str, value: float) -> float:
    """Return a signal as a number from 0, bad, to 1, good.

    >>> scored("tests_passed", 0.8), scored("repeats", 3), scored("severity", 1.0)
    (0.8, 0.25, 0.0)
    """
    match name:
        case "repeats":
            return 1.0 / (1.0 + value) if value >= 0.0 else -1.0
        case "severity":
            return 1.0 - value
        case _:
            return value


def count_signals(choice: Choice, tables: Tables, arms: Arms) -> bool:
    """Count the signals of a decided request in their tables; return whether there were any."""
    follows, followed = choice.request.follows, choice.followed
    if follows is None or followed is None or not follows.signals:
        return False
    model, _ = list(_answers(follows, followed))[-1]
    k = arms.row.get(model)
    if k is None:
        return False
    for name, value in follows.signals.items():
        if name in tables.tables:
            continue
        table = tables.signal(name)
        table.see(k, min(int(scored(name, value) * table.J), table.J - 1), choice.seen.reward(k))
    return True
