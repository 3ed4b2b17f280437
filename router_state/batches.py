"""Many decisions or rewards at once, with the outcome of one by one (to rounding) at a fraction of
the price.

Between the decisions of a batch no bill and no reward arrives: θ, A⁻¹, prices and λ_t stand still,
and one product scores all contexts. Only the clock and who was played last move; they enter through
the staleness in the bonus, and are found by repetition. Whatever is out of the ordinary is left to
the caller, to be done one by one: both functions then have changed nothing.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from functools import lru_cache
from itertools import repeat

import numpy as np
import numpy.typing as npt

from router_state import eligibility
from router_state.arms import Arms
from router_state.config import Knobs, Matrix, Vector
from router_state.pacing import EmaPacer, Unpaced
from router_state.record import Candidates, Label, RequestRecord
from router_state.scoring import MAX_NORM, MAX_STALE_STEPS, MIN_VARIANCE, TIE
from router_state.state import RouterState

Rows = npt.NDArray[np.intp]
NEVER = np.iinfo(np.intp).min // 2
"""Decision at which an arm was made fresh that never was; half of the range, so that a difference
of two does not overflow."""


def decide(
    state: RouterState,
    records: MutableMapping[str, RequestRecord],
    request_ids: Sequence[str],
    contexts: Sequence[Vector],
    *,
    now: float,
    offsets: Sequence[int],
) -> list[RequestRecord] | None:
    """Choose a model for each of n new, unrestricted requests and commit their costs; None: decide
    one by one.

    Args:
        contexts: n of shape (d,), last entry 1.0.
    """
    arms, knobs = state.arms, state.config.knobs
    known = len(set(request_ids)) < len(request_ids) or any(map(records.__contains__, request_ids))
    if (
        known
        or not _is_plain(state)
        or not arms.taking
        or (x := _stacked(contexts, arms.d)) is None
    ):
        return None
    lambda_t, costs = state.lambda_t, arms.mean_costs()
    excluded, forced = state.pacer.admit(
        arms, arms.open or eligibility.exclude(arms, None, None), costs
    )
    penalties = arms.penalties(knobs.lambda_c + lambda_t)
    mean, variance = _project(arms, x)
    if variance.min() < MIN_VARIANCE:
        return None
    hurdles = [np.inf if why else penalty for penalty, why in zip(penalties, excluded, strict=True)]
    bonus, chosen = _choose(arms, mean - hurdles, np.sqrt(variance) * knobs.alpha, state.t, knobs)
    if chosen is None:
        return None
    # From here on nothing is refused: the state changes only once the whole batch is chosen.
    terms = np.empty((*mean.shape, 3))
    terms[:, :, 0], terms[:, :, 1], terms[:, :, 2] = mean, bonus, costs
    listed, rows = terms.reshape(len(x), -1).tolist(), chosen.tolist()
    seqs, expected = (
        range(state.seq + 1, state.seq + 1 + len(rows)),
        terms[np.arange(len(x)), chosen].T.tolist(),
    )
    decided = list(
        map(
            RequestRecord,
            seqs,
            map(arms.names.__getitem__, rows),
            repeat(forced or "ucb"),
            repeat(1.0),
            expected[0],
            expected[2],
            repeat(lambda_t),
            repeat(state.config.offset),
            repeat(now),
            offsets,
            (arms[k].price for k in rows),
            contexts,
            map(Candidates, repeat(arms.names), listed, repeat(penalties), repeat(excluded)),
        )
    )
    # Of the decisions for one arm only the last is kept: the clock of an arm is when it was last
    # played.
    for k, number in dict(
        zip(rows, range(state.t + 1, state.t + 1 + len(rows)), strict=True)
    ).items():
        arms.played(k, t=number, pulled=False)
    state.t += len(rows)
    state.latest = max(state.latest, now)
    for request_id, record in zip(request_ids, decided, strict=True):
        state.commit(request_id, record)
    records.update(zip(request_ids, decided, strict=True))
    return decided


def _is_plain(state: RouterState) -> bool:
    """Tell whether nothing but the clock moves from one decision to the next, and no draw is
    made."""
    arms, knobs = state.arms, state.config.knobs
    drawn = arms.onboarding or arms.suspect or knobs.epsilon > 0.0
    moved = (
        state.buckets or knobs.commit_and_settle or knobs.feedback_clock or arms.stack.prompt_costs
    )
    return not (drawn or moved) and isinstance(state.pacer, Unpaced | EmaPacer)


def _stacked(contexts: Sequence[Vector], d: int) -> Matrix | None:
    """Return contexts as one matrix, shape (n, d), or None if one of them does not fit."""
    try:
        if set(map(len, contexts)) != {d} or (flat := np.concatenate(contexts)).ndim != 1:
            return None
    except (TypeError, ValueError):  # numbers or matrices among them
        return None
    x = flat.reshape(-1, d)
    fits = (
        (x[:, -1] == 1.0).all()
        and np.abs(x).max() <= MAX_NORM
        and np.einsum("nd,nd->n", x, x).max() <= MAX_NORM**2
    )
    return x if fits else None


def _project(arms: Arms, x: Matrix) -> tuple[Matrix, Matrix]:
    """Return θᵀx and xᵀA⁻¹x of every arm for every context, shape (n, K)."""
    projected = x.dot(arms.stack.flat.T).reshape(len(x), len(arms), -1)
    variance = np.einsum("nkd,nd->nk", projected[:, :, : arms.d], x)
    # A_inv lags behind by the rewards that are pending: each takes (xᵀu)² off the variance, as
    # the one-by-one path does.
    for k, belief in enumerate(arms.beliefs):
        if belief.pending:
            tails = x.dot(belief.tails[: belief.pending].T)
            variance[:, k] -= np.einsum("nj,nj->n", tails, tails)
    variance /= [belief.decay for belief in arms.beliefs]
    return projected[:, :, arms.d], variance


@lru_cache(maxsize=64)
def _staleness(gamma: float, v_max: float) -> Vector:
    """Return 1/√max(γ^dt, 1/V_max) for dt from 0 to the last one that counts."""
    stale: Vector = 1.0 / np.sqrt(
        np.maximum(gamma ** np.arange(MAX_STALE_STEPS + 1.0), 1.0 / v_max)
    )
    return stale


def _choose(
    arms: Arms, value: Matrix, root: Matrix, t: int, knobs: Knobs
) -> tuple[Matrix, Rows | None]:
    """Return the bonuses and the best row of every decision, None if one has a tie.

    A choice makes its arm fresh for the decisions after it, so it depends on the choices before.
    Starting from a guess, each repetition makes at least one more of them right; as bonuses are
    small, two or three make all.

    Args:
        value: the scores without their bonuses, shape (n, K).
        root: α·√(xᵀA⁻¹x), shape (n, K).
    """
    n, K = value.shape
    stale, each = _staleness(knobs.gamma, knobs.v_max), np.arange(n)
    fresh = np.empty(
        (n + 1, K), dtype=np.intp
    )  # by decision: which arms the one before it has made fresh, and when
    since = [max(belief.last_update, belief.last_played) - t for belief in arms.beliefs]
    guess = (value + root).argmax(1)
    # Ends after n rounds at most: round i has the first i choices right, whatever came before.
    while True:
        fresh.fill(NEVER)
        fresh[0] = since
        fresh[each + 1, guess] = each + 1
        steps = each[:, None] - np.maximum.accumulate(fresh[:n], axis=0)
        bonus = root * stale.take(steps, mode="clip")
        score = value + bonus
        chosen = score.argmax(1)
        if (chosen == guess).all():
            break
        guess = chosen
    best = score[each, chosen]
    # A tie is broken by the generator, one draw each: its order belongs to the one-by-one path.
    score[each, chosen] = -np.inf
    return bonus, None if K > 1 and (best - score.max(1) < TIE).any() else chosen


def learn(
    state: RouterState,
    records: MutableMapping[str, RequestRecord],
    rewards: Sequence[tuple[str, float]],
    *,
    source: str,
    rank: int,
    revision: int,
) -> bool:
    """Learn (request_id, reward) pairs, a block per arm, if each is the first one of its request;
    False: learn one by one."""
    arms, knobs = state.arms, state.config.knobs
    if arms.suspect or knobs.feedback_clock or knobs.drift_alarms:
        return False
    labelled: dict[str, RequestRecord] = {}
    blocks: dict[str, tuple[list[RequestRecord], list[float]]] = {}
    for request_id, reward in rewards:
        record, reward = records.get(request_id), float(reward)
        if (
            record is None
            or record.label is not None
            or record.x is None
            or not 0.0 <= reward <= 1.0
        ):
            return False
        labelled[request_id] = record
        block = blocks.get(record.called)
        if block is None:
            block = blocks[record.called] = ([], [])
        block[0].append(record)
        block[1].append(reward)
    if len(labelled) < len(rewards) or not blocks.keys() <= arms.row.keys():
        return False
    for model, (learned, values) in blocks.items():
        belief = arms[model].belief
        contexts = np.concatenate([record.x for record in learned if record.x is not None]).reshape(
            -1, arms.d
        )
        belief.forget(t=state.t, gamma=knobs.gamma, ridge=knobs.ridge)
        belief.observe_many(contexts, np.array(values))
        for record, reward in zip(learned, values, strict=True):
            record.label = Label(reward, source, rank, revision, belief.forgotten)
    state.rewards_applied += len(labelled)
    records.update(labelled)
    return True
