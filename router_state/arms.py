"""The arms of a router: the models of its portfolio, their shared priors, and derived values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from router_state.changes import Journal
from router_state.choice import Choice
from router_state.config import Matrix, Price, Vector
from router_state.costs.input_tokens import PIECE as TOKENS
from router_state.costs.input_tokens import InputTokens
from router_state.kernel import SAMPLE_PIECE, Arm, Options, Portfolio, SharedPrior, Window
from router_state.kernel.learning.suspicion import Suspicion
from router_state.learning.guess import COSTS, REWARDS
from router_state.shared_numbers import Sharing


class Beside(Protocol):
    """A capability's dual, solved over the same window as the dual of dollars."""

    @property
    def adds_up(self) -> bool:
        """Tell whether calls that follow each other cost as much as the sum of them."""

    def solve(self, window: Window, *, per_dollar: float, target_usd: float, now: float) -> None:
        """Solve for this dual's price again.

        Args:
            per_dollar: price of a dollar, in reward; target_usd: mean cost per request, in
                dollars, that the dollar's price was solved for.
        """

    def costs(self, window: Window) -> Matrix | None:
        """Return the price, in reward, of calling each arm for each request of the window, shape
        (size, K); None: every call is free.
        """


class Planner(Protocol):
    """A capability that lets the requests in the window choose plans as well as single calls."""

    @property
    def weighs(self) -> bool:
        """Tell whether the planner sets the propensities of choices, as each choice may have a
        plan."""

    def planned(
        self, single: Options, rewards: Options | None = None, *, per_dollar: float = 0.0
    ) -> Options:
        """Return the options of the window's requests: their single calls, and plans.

        Args:
            rewards: the same requests' expected rewards, where the costs of `single` are other than
                dollars. per_dollar: price of a dollar then, which scores contain.
        """

    def share_of(self, debt: float) -> float:
        """Return the cost of requests as a share of the cost that solutions of the dollar dual
        expect.

        Args:
            debt: dollars charged beyond the budget so far, in budgets of a request.
        """

    def solved(self, mean: float, debt: float) -> None:
        """Note the cost of a request that a solution expects, and the debt; both in budgets of a
        request."""


class Slotted(Protocol):
    """A capability that stores something for each slot of the window; `Capability` names its
    hooks.
    """

    @property
    def slots(self) -> Iterable[int]: ...
    def placed(self, slot: int, choice: Choice) -> None: ...
    def expect_window(self, costs: Matrix) -> None: ...
    def begin_window(self) -> None: ...


class Arms(Portfolio):
    """The portfolio, and every change to it: which arms take part, their prices, and suspicions.

    Attributes:
        beside: the dual beside that of dollars, if there is one.
        planner: the capability that plans further calls, if there is one.
        sharing: the capabilities that share numbers with other routers, where one capability
            carries them (`Capability.carries`).
        slotted: the capabilities that store something for each slot of the window; expecting: those
            of them that change the expected dollars of the window's requests.
        window: the latest contexts, if any price is solved over them.
    """

    __slots__ = (
        "__weakref__",
        "beside",
        "expecting",
        "journal",
        "planner",
        "sharing",
        "slotted",
        "tokens",
        "window",
    )
    beside: Beside | None
    planner: Planner | None
    sharing: tuple[Sharing, ...]
    slotted: tuple[Slotted, ...]
    expecting: tuple[Slotted, ...]
    window: Window | None

    def __init__(self, d: int, journal: Journal) -> None:
        self.journal, self.beside, self.window, self.slotted = journal, None, None, ()
        self.planner, self.expecting, self.sharing = None, (), ()
        self.tokens = InputTokens(journal)
        rewards = SharedPrior("\x1frewards", d, REWARDS, journal)
        super().__init__(journal, rewards, SharedPrior("\x1fbills", d, COSTS, journal))

    def __len__(self) -> int:
        return len(self.all)

    def __iter__(self) -> Iterator[Arm]:
        return iter(self.all)

    def __getitem__(self, which: int | str) -> Arm:
        """Return an arm by its position or its name. Raises LookupError."""
        return self.all[self.row[which] if isinstance(which, str) else which]

    def add(self, name: str, *, price: Price, A: Matrix, b: Vector, now_t: int, pulls: int) -> Arm:
        """Append an arm that starts at clock `now_t` with statistics A (d, d), which include a
        prior, and b (d,).
        """
        arm = Arm(name, self.bills, price, self.journal, now_t=now_t, pulls=pulls)
        self.all.append(arm)
        self._changed()
        arm.rewards.start(A, b)
        arm.costs.begin()
        self.journal.pieces.update((SAMPLE_PIECE, self.rewards.name, self.bills.name))
        self.journal.jumped = True
        return arm

    def restore(self, arms: list[Arm]) -> None:
        """Set the arms of a restored state, whose arrays are filled in afterwards."""
        self.all = arms
        self._changed()

    def remove(self, name: str) -> None:
        """Drop an arm; the arms after the dropped one move up by one position."""
        k = self.row[name]
        gone = self.all.pop(k)
        self.journal.pieces.update((gone.rewards.piece, gone.costs.regression.piece, SAMPLE_PIECE))
        self._changed()

    def reprice(self, arm: Arm, price: Price) -> None:
        """Put a new list price in force; the learned tokens per request stay, unless the model was
        or becomes free."""
        # The ratio of a bill to a list price of 0 has no meaning.
        if (arm.per_1k == 0.0) != (price.per_1k == 0.0):
            arm.costs.start_over(price)
        arm.set_price(price)
        arm.costs.set_price(price)
        arm.costs.regression.changed()
        self._jump()

    def retire(self, arm: Arm, *, now: float) -> None:
        """Retire an arm: it gets no new traffic."""
        arm.retired_at, arm.pulls_left = now, 0
        self._jump()

    def reopen(self, arm: Arm) -> None:
        """Reopen a retired arm."""
        arm.retired_at = None
        self._jump()

    def suspect_of(self, arm: Arm, suspicion: Suspicion | None) -> None:
        """Set or end the suspicion of an arm."""
        arm.suspicion = suspicion
        arm.rewards.changed()
        self._jump()

    def begin_window(self, *, solved: bool) -> None:
        """Begin an empty window, if any price is solved over one; everything stored for the old
        one's slots is forgotten.
        """
        if self.window is not None:
            self.journal.pieces.update(self.window.pieces)
        self.window = None
        if solved:
            self.window, self.journal.jumped = Window(self.d, self.journal), True
        self.tokens.begin_window()
        for one in self.slotted:
            one.begin_window()

    def _jump(self) -> None:
        self.journal.jumped = True
        self.derive()

    def _changed(self) -> None:
        """Note a change of the portfolio, and compute its derived values again."""
        if self.tokens.count:
            self.journal.pieces.add(TOKENS)
        self.derive()
        self.sample.resize(len(self.all))
