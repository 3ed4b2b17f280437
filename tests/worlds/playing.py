"""Play a world to an engine as a worker would, and hold what comes out against the contract."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from router_state.caps.bucket import Cap
from router_state.changes import Changes, Outcome
from router_state.config import ModelConfig, Price, RouterConfig
from router_state.engine import Engine
from router_state.events import Aged, Asked, Charged, Crowded, Event, Judged, Redeclared, Waited
from router_state.profiles import knobs_for
from router_state.state import invariants, portable, record_bytes, state_pieces
from tests.router_state.core_reference import freeze, named, thaw
from tests.worlds.drawing import World

SETTLED_FROM = 300
"""Requests after which the budget is to hold."""
OVERSPEND = 1.1
SLOWEST_SECONDS = 5.0
"""Of one event, on a machine that does other things too: a hang, not a measurement."""
CHECK_EVERY = 97


@dataclass
class Game:
    """An engine in a world.

    Attributes:
        written: the pieces that a log would hold; the engine is started again from them now and
            then.
        broken: promises that were not kept, in words.
    """

    world: World
    now: float = 1e9
    events: int = 0
    written: dict[str, bytes] = field(default_factory=dict)
    contexts: dict[str, Any] = field(default_factory=dict)
    decided: dict[int, tuple[str, int]] = field(default_factory=dict)
    spent: list[float] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng([13, self.world.seed])
        self.models = {name: ModelConfig(price) for name, price in self.world.prices.items()}
        self.column = {name: k for k, name in enumerate(self.models)}
        self.budget = self.world.budget
        self.caps: tuple[Cap, ...] = ()
        self.engine = Engine.start(self._declared())
        self._write(self.engine.started())

    def _declared(self) -> RouterConfig:
        knobs = knobs_for(self.world.profile, self.world.knobs)
        d = self.world.contexts.shape[1]
        return RouterConfig(
            self.models,
            self.budget,
            d,
            self.world.profile,
            knobs,
            {"caps": self.caps} if self.caps else {},
            offset=self.events,
        )

    def play(self) -> None:
        """Play all of it."""
        n, due = len(self.world.contexts), _Due()
        for i in range(n):
            self.now += float(self.rng.exponential(1.0))
            for j in due.bills.pop(i, ()):
                self._bill(j)
            for j in due.rewards.pop(i, ()):
                self._reward(j)
            if self.world.eventful and self.rng.random() < 0.03:
                self._happen()
            if self._ask(i):
                due.add(i, int(self.world.bill_delay[i]), int(self.world.reward_delay[i]))
            if i % CHECK_EVERY == 0:
                self._apply(Waited())
                self._check()
        self._check()
        self._restart()
        self._hold_to_the_budget()

    def _apply(self, event: Event) -> Changes:
        started = time.perf_counter()
        changes = self.engine.apply(event, self.now)
        taken = time.perf_counter() - started
        self.events += 1
        if taken > SLOWEST_SECONDS:
            self.broken.append(f"{type(event).__name__} took {taken:.1f} s")
        self._write(changes)
        return changes

    def _write(self, changes: Changes) -> None:
        packed = {
            named(name): state_pieces.pack_piece(self.engine.state, name) for name in changes.pieces
        }
        for request_id, record in changes.records.items():
            packed[f"request {request_id}"] = (
                None if record is None else record_bytes.pack_record(record)
            )
        for name, piece in packed.items():
            if piece is None:
                self.written.pop(name, None)
            else:
                self.written[name] = piece

    def _ask(self, i: int) -> bool:
        allowed = None
        if self.world.eventful and self.rng.random() < 0.1:
            allowed = [str(name) for name in self.rng.choice(list(self.column), size=2)]
        request_id, x = str(i), self.world.contexts[i]
        changes = self._apply(Asked(request_id, x, allowed_models=allowed))
        record = changes.decision
        if record is None:
            return False
        self.contexts[request_id] = x
        numbers = [
            record.propensity,
            record.expected_reward,
            record.expected_cost_usd,
            record.lambda_t,
        ]
        if record.candidates is not None:
            numbers += record.candidates.terms
        if not all(map(math.isfinite, numbers)) or not 0.0 < record.propensity <= 1.0:
            self.broken.append(f"request {i}: {numbers}")
        if record.model not in self.models or (allowed is not None and record.model not in allowed):
            self.broken.append(f"request {i}: {record.model} may not be called")
        k = self.column[record.model]
        self.decided[i] = record.model, k
        self.spent.append(float(self.world.costs[i, k]))
        return True

    def _bill(self, i: int) -> None:
        cost = float(self.world.costs[i, self.decided[i][1]])
        self._settle(Charged(str(i), cost))
        if self.rng.random() < 0.02:
            self._settle(Charged(str(i), cost, revision=int(self.rng.integers(2))))

    def _reward(self, i: int) -> None:
        reward = float(self.world.rewards[i, self.decided[i][1]])
        self._settle(Judged(str(i), reward))
        if self.rng.random() < 0.02:
            self._settle(Judged(str(i), float(self.rng.random()), "human", 3))

    def _settle(self, event: Charged | Judged) -> None:
        changes = self._apply(event)
        if changes.outcome is Outcome.REFUSED and event.request_id in self.engine.records:
            self.broken.append(f"{event}: {changes.refusal}")

    def _happen(self) -> None:
        """Let something happen that operators and time do."""
        match int(self.rng.integers(8)):
            case 0:  # a price changes, from or to nothing at times
                name = str(self.rng.choice(list(self.models)))
                factor = float(self.rng.choice([0.0, 0.1, 3.0]))
                price = self.world.prices[name]
                priced = Price(price.input_price_per_m * factor, price.output_price_per_m * factor)
                self.models = {**self.models, name: replace(self.models[name], price=priced)}
            case 1 if len(self.models) > 1:  # a model goes
                gone = str(self.rng.choice(list(self.models)))
                self.models = {name: model for name, model in self.models.items() if name != gone}
            case 2:  # all are back
                self.models = {
                    name: ModelConfig(price) for name, price in self.world.prices.items()
                } | self.models
            case 3:
                self.budget = (
                    None
                    if self.budget is None or self.rng.random() < 0.2
                    else self.budget * float(self.rng.uniform(0.3, 3.0))
                )
            case 4:
                usd = float(10.0 ** self.rng.uniform(-6, 2))
                self.caps = (
                    () if self.caps else (Cap(usd, 3600.0, hard=bool(self.rng.random() < 0.5)),)
                )
            case 5:
                self.now += float(self.rng.choice([-3600.0, 1000.0, 90_000.0]))
                return
            case 6:
                self._apply(Aged(self.now - 500.0, 50))
                self._apply(Crowded(200, 20))
                return
            case _:
                self._restart()
                return
        changes = self._apply(Redeclared(self._declared()))
        if changes.refusal is not None:
            self.broken.append(f"a declaration was refused: {changes.refusal}")

    def _restart(self) -> None:
        """Start again from what was written: nothing may be lost, and nothing too much."""
        frozen = freeze(self.engine)
        if frozen != self.written:
            differ = sorted(
                name
                for name in frozen.keys() | self.written.keys()
                if frozen.get(name) != self.written.get(name)
            )
            self.broken.append(f"written is not what is: {differ[:5]}")
            self.written = frozen
        self.engine = thaw(self.written, self.contexts)
        again = freeze(self.engine)
        if again != frozen:
            self.broken.append(
                "started again as another: "
                f"{sorted(name for name in again if again[name] != frozen.get(name))[:5]}"
            )
        data = portable.pack(self.engine.state, {})
        if portable.pack(portable.unpack(data).state, {}) != data:
            self.broken.append("exported and imported as another")

    def _check(self) -> None:
        try:
            invariants.check(self.engine.state, self.engine.records)
        except AssertionError as error:
            self.broken.append(f"after {self.events} events: {error}")

    def _hold_to_the_budget(self) -> None:
        later = self.spent[SETTLED_FROM:]
        if (
            self.world.is_affordable
            and self.world.budget is not None
            and len(later) >= 2 * SETTLED_FROM
        ):
            ratio = float(np.mean(later)) / self.world.budget
            if ratio > OVERSPEND:
                self.broken.append(
                    f"spent {ratio:.3f} budgets a request from request {SETTLED_FROM} on"
                )


class _Due:
    """Bills and rewards on their way, by the request before which they come."""

    def __init__(self) -> None:
        self.bills: dict[int, list[int]] = {}
        self.rewards: dict[int, list[int]] = {}

    def add(self, i: int, bill: int, reward: int) -> None:
        """Send the bill and the reward of request i on their way, −1: never."""
        if bill >= 0:
            self.bills.setdefault(i + 1 + bill, []).append(i)
        if reward >= 0:
            self.rewards.setdefault(i + 1 + reward, []).append(i)


def play(world: World) -> Game:
    """Return a world played; what escapes the engine is a broken promise too."""
    game = Game(world)
    try:
        game.play()
    except Exception as error:
        game.broken.append(f"after {game.events} events: {type(error).__name__}: {error}")
    return game
