"""The arms of a router: every model of its portfolio, and what follows from all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from router_state.arm import Arm
from router_state.change.detector import Suspicion
from router_state.config import Matrix, Price, Vector
from router_state.costs.cost_model import CostModel, Rescaled
from router_state.costs.input_tokens import PIECE as TOKENS
from router_state.costs.input_tokens import PromptTokens
from router_state.journal import Journal
from router_state.learning.estimating import Conclusion, Part, conclude_from, estimate, estimated
from router_state.learning.regression import RIDGE_FLOOR
from router_state.learning.sample import PIECE as DRAW
from router_state.learning.sample import Doubt
from router_state.learning.shared_prior import COSTS, REWARDS, Pool
from router_state.learning.stack import Stack
from router_state.state.framing import Json

NOTHING_FORESEEN: tuple[tuple[int, int, int], Sequence[Conclusion]] = (-1, -1, -1), ()


class Arms:
    """K arms of dimension d, in the order in which they joined. Who takes part, at which price, and
    who is suspected changes here.

    Attributes:
        stack: the arrays of all of them.
        names, row: by position, and {name: position}.
        beliefs, costs: of the arms, by position: what the hot path walks over.
        rewards, bills: what the arms' rewards, and their bills, have in common.
        doubt: the draw that scores use.
        tokens: how long prompts are.

    Not kept: `foreseen`, what was estimated ahead, and clock and counts of observations at which it
    holds.

    Derived: `open`, a None per arm while every arm takes traffic, else None; `highest_per_1k` of
        those that do; whether any arm is
    `onboarding` or a `suspect`. `_penalties` holds what `penalties` last returned, and for which
    weight.
    """

    __slots__ = (
        "_arms",
        "_journal",
        "_penalties",
        "beliefs",
        "bills",
        "costs",
        "d",
        "doubt",
        "foreseen",
        "highest_per_1k",
        "names",
        "onboarding",
        "open",
        "rewards",
        "row",
        "stack",
        "suspect",
        "tokens",
    )

    def __init__(self, d: int, journal: Journal) -> None:
        self.d, self._journal = d, journal
        self._arms: list[Arm] = []
        self.rewards, self.bills = (
            Pool("\x1frewards", d, REWARDS, journal),
            Pool("\x1fbills", d, COSTS, journal),
        )
        self.doubt = Doubt(d, journal)
        self.tokens = PromptTokens(journal)
        self._penalties: tuple[float, list[float]] = (0.0, [])
        self.foreseen = NOTHING_FORESEEN
        self._bind(Stack(d))

    def __len__(self) -> int:
        return len(self._arms)

    def __iter__(self) -> Iterator[Arm]:
        return iter(self._arms)

    def __getitem__(self, which: int | str) -> Arm:
        """Return an arm by its position or its name. Raises LookupError."""
        return self._arms[self.row[which] if isinstance(which, str) else which]

    def find(self, name: str) -> Arm | None:
        """Return an arm by its name, or None."""
        k = self.row.get(name)
        return None if k is None else self._arms[k]

    @property
    def taking(self) -> list[Arm]:
        """Return the arms that take traffic."""
        return [arm for arm in self._arms if arm.retired_at is None]

    @property
    def pools(self) -> tuple[Pool, Pool]:
        """Return what the arms share: of rewards, and of bills."""
        return self.rewards, self.bills

    def mean_costs(self) -> list[float]:
        """Return what a request costs on average at each arm, in dollars."""
        return [costs.mean_usd for costs in self.costs]

    def penalties(self, weight: float) -> list[float]:
        """Return weight times each arm's price on the logarithmic scale; to be read only."""
        known, penalties = self._penalties
        if known != weight:
            penalties = [weight * arm.log_price for arm in self._arms]
            self._penalties = (weight, penalties)
        return penalties

    def add(self, name: str, *, price: Price, A: Matrix, b: Vector, now_t: int, pulls: int) -> Arm:
        """Append an arm with statistics A (d, d), a ridge in it, and b (d,), known at clock
        `now_t`."""
        arm = Arm(name, self.bills, price, self._journal, now_t=now_t, pulls=pulls)
        self._arms.append(arm)
        self.stack.grow()
        self._bind(self.stack)
        arm.belief.start(A, b)
        self._journal.pieces.update((DRAW, self.rewards.name, self.bills.name))
        self._journal.jumped = True
        return arm

    def restore(self, name: str, price: Price, scalars: Sequence[Json]) -> Arm:
        """Append an arm whose arrays are about to be filled in; `restored` when all are there."""
        arm = Arm(name, self.bills, price, self._journal)
        arm.restore(scalars)
        self._arms.append(arm)
        return arm

    def make_room(self) -> None:
        """Give the restored arms their rows."""
        self._bind(Stack(self.d, len(self._arms)))

    def remove(self, name: str) -> None:
        """Drop an arm; those after it move up."""
        k = self.row[name]
        gone = self._arms.pop(k)
        self._journal.pieces.update((gone.belief.name, gone.costs.name, DRAW))
        self.stack.drop(k)
        self._bind(self.stack)

    def reprice(self, arm: Arm, price: Price) -> None:
        """Put a new list price in force; what bills say of the tokens per request stays, but for
        one that was free, or gets so."""
        # A ratio of bill to list price means nothing where the price is 0.
        if (arm.per_1k == 0.0) != (price.per_1k == 0.0):
            arm.costs.start_over(price)
            if self.tokens.count:
                self._journal.pieces.add(TOKENS)
        arm.set_price(price)
        arm.costs.reprice(price)
        self._jump()

    def retire(self, arm: Arm, *, now: float) -> None:
        """Let an arm take no new traffic from now on."""
        arm.retired_at, arm.pulls_left = now, 0
        self._jump()

    def reopen(self, arm: Arm) -> None:
        """Let a retired arm take traffic again."""
        arm.retired_at = None
        self._jump()

    def suspect_of(self, arm: Arm, suspicion: Suspicion | None) -> None:
        """Assume that an arm has drifted, or that it has not."""
        arm.suspicion = suspicion
        self._journal.pieces.add(arm.name)
        self._jump()

    def count_anew(self) -> None:
        """Take it that decisions are counted anew: all of them are after any alarm."""
        for arm in self._arms:
            if arm.suspicion is not None:
                arm.suspicion.after = 0
                self._journal.pieces.add(arm.name)

    def played(self, k: int, *, t: int, pulled: bool) -> None:
        """Note that the k-th arm was chosen at clock t, for an onboarding pull or not."""
        self.beliefs[k].last_played = t
        self.costs[k].awaited += 1
        if pulled:
            self._arms[k].pulls_left -= 1
            self.onboarding = any(arm.pulls_left for arm in self._arms)

    def learn_reward(
        self, arm: Arm, x: Vector, reward: float, *, t: int, gamma: float
    ) -> tuple[float, float]:
        """Let an arm learn a reward, and all arms what it says of what they share; see
        `Belief.observe`."""
        belief, pool = arm.belief, self.rewards
        belief.forget(t=t, gamma=gamma, ridge=None)
        # The ridge fades with every reward; below its floor A would lose rank where no reward
        # came.
        if belief.decay < RIDGE_FLOOR:
            self.estimate_rewards(t=t, gamma=gamma)
        residual, variance = belief.observe(x, reward)
        pool.observe(residual, variance)
        if pool.overdue:
            self.estimate_rewards(t=t, gamma=gamma)
        return residual, variance

    def estimate_rewards(self, *, t: int, gamma: float) -> None:
        """Estimate anew what the arms share of their rewards. One that is under suspicion forgets
        nothing meanwhile."""
        self._forget(t=t, gamma=gamma)
        estimate(Part(self.rewards, self.beliefs))

    def _forget(self, *, t: int, gamma: float) -> None:
        for arm in self._arms:
            if arm.suspicion is None:
                arm.belief.forget(t=t, gamma=gamma, ridge=None)

    def learn_bill(
        self,
        arm: Arm,
        ratio: float,
        x: Vector | None,
        *,
        known: float | None = None,
        budgets: float,
        now: float,
        watched: bool,
    ) -> Rescaled | None:
        """Let an arm learn a bill, and all arms what it says of what they share; see
        `CostModel.observe`."""
        rescaled = arm.costs.observe(
            ratio, x, known=known, budgets=budgets, now=now, watched=watched
        )
        if known is not None:
            self._journal.pieces.add(TOKENS)
        if self.bills.overdue or arm.costs.faded:
            self._estimate_bills()
        return rescaled

    def catch_up(self, *, t: int, gamma: float, shared: bool) -> bool:
        """Estimate what is due before a decision, and tell whether anything was: what comes in
        between two decisions changes the estimate that the second one needs, so one is enough.

        Args:
            shared: whether rewards are learned jointly.
        """
        rewards = shared and self.rewards.due
        if not rewards and not self.bills.due:
            return False
        known, conclusions = self.foreseen
        if known != (t, self.rewards.seen, self.bills.seen):
            conclusions = estimated(self.due(t=t, gamma=gamma, shared=shared))
        if rewards:
            self._forget(t=t, gamma=gamma)
        for conclusion in conclusions:
            conclusion.take()
        return True

    def due(self, *, t: int, gamma: float, shared: bool) -> list[Part]:
        """Return what a decision at clock t has to estimate first."""
        parts: list[Part] = []
        if shared and self.rewards.due:
            left = [
                arm.belief.left_at(t, gamma) if arm.suspicion is None else arm.belief.decay
                for arm in self._arms
            ]
            parts.append(Part(self.rewards, self.beliefs, left))
        if self.bills.due:
            parts.append(Part(self.bills, self._priced()))
        return parts

    def foresee(self, t: int, conclusions: Sequence[Conclusion]) -> None:
        """Keep what was estimated of `due` for the next decision, if nothing is learned before
        it."""
        self.foreseen = (t, self.rewards.seen, self.bills.seen), conclusions

    def forget_foreseen(self) -> None:
        """Keep nothing of `foresee`: what is learned from now on need not show in the counts that
        it is known by."""
        self.foreseen = NOTHING_FORESEEN

    def _estimate_bills(self) -> None:
        estimate(Part(self.bills, self._priced()))

    def _priced(self) -> list[CostModel]:
        return [costs for costs in self.costs if not costs.free]

    def take_tokens(self, tokens: int | None) -> bool:
        """Take in how many input tokens a request says it has, None: it does not say. Once enough
        have, what is expected of whole bills is split; tell whether it was."""
        began = (tokens is not None or self.tokens.count > 0) and self.tokens.take(tokens)
        if began:
            priced = self._priced()
            if priced:
                A, b = self.bills.evidence(priced)
                b += [
                    costs.left(self.tokens.mean) * sums[-1]
                    for costs, sums in zip(priced, A, strict=True)
                ]
                conclude_from(self.bills, priced, A, b, rescaled=False)
            for costs in priced:
                costs.be_split()
            self._journal.jumped = True
        return began

    def unsure(self, x: Vector, variances: list[float]) -> list[float]:
        """Return the doubt about a context x, shape (d,): the mean reward that all arms share; then
        of each arm the variance of its mean, that of the logarithm of a bill, and the share of
        bills that are not of nothing.

        Args:
            variances: xᵀÂ⁻¹x by position, not decayed.
        """
        noise, bills = self.rewards.noise, self.bills.noise
        found = [float(self.rewards.mean.dot(x))]
        for v, belief, costs in zip(variances, self.beliefs, self.costs, strict=True):
            level = costs.inverse.item(-1) / costs.decay
            found += (noise * v / belief.decay, bills * (1.0 + level), costs.paid)
        return found

    def share_rewards(self) -> None:
        """Let what newcomers were declared to know tell of the others, the scales being as they
        are."""
        estimate(Part(self.rewards, self.beliefs), rescaled=False)

    def draw(self, rng: np.random.Generator, *, unbound: bool) -> None:
        """Draw from the doubt about the rewards, see `Doubt.renew`."""
        noise = self.rewards.noise
        self.doubt.renew(self.stack, self.beliefs, noise=noise, rng=rng, unbound=unbound)

    def _jump(self) -> None:
        self._journal.jumped = True
        self.derive()

    def _bind(self, stack: Stack) -> None:
        self.stack = stack
        # Beliefs and cost models hold views into the stack: when a row is added or dropped, every
        # view points to memory that is no longer read.
        for k, arm in enumerate(self._arms):
            arm.belief.bind(stack, k)
            arm.costs.bind(stack, k)
        if self.tokens.count:
            self._journal.pieces.add(TOKENS)
        self.derive()
        self.doubt.resize(len(self._arms))

    def derive(self) -> None:
        """Derive what the hot path reads."""
        arms = self._arms
        self.names = tuple(arm.name for arm in arms)
        self.row = {name: k for k, name in enumerate(self.names)}
        self.beliefs, self.costs = [arm.belief for arm in arms], [arm.costs for arm in arms]
        taking = self.taking
        self.open: list[str | None] | None = (
            [None] * len(arms) if arms and len(taking) == len(arms) else None
        )
        self.highest_per_1k = max((arm.per_1k for arm in taking), default=0.0)
        self.onboarding = any(arm.pulls_left for arm in arms)
        self.suspect = any(arm.suspicion is not None for arm in arms)
        self._penalties = (0.0, [0.0] * len(arms))
