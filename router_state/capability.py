"""Define the capability: what a router may have beside plain routing. The core knows its hooks
alone.

A capability is a folder of `router_state` with one class derived from this one, and stands in
`registered.KINDS`. CONTRIBUTING.md says how to add one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, TypeAlias
from weakref import ref

from msgspec import Struct
from numpy.random import Generator

from router_state.arms import Arms
from router_state.billing import Billing
from router_state.changes import Journal
from router_state.choice import Choice
from router_state.config import Matrix, Price, Vector
from router_state.events import Judged, OfCapability, Verified
from router_state.kernel import Chance
from router_state.pacing.pacer import Pacer
from router_state.packing.framing import Json
from router_state.plan import Plan, Taught, Verdict
from router_state.record import Records, RequestRecord
from router_state.since import Since

Heard: TypeAlias = tuple[Verdict, Taught | None]
"""What a plan keeps of a verdict, and what the model learns of it."""
Shared: TypeAlias = tuple[dict[str, RequestRecord], list[Judged]]
"""Requests by their ids, and a reward of each."""


class Capability:
    """One capability of a router; a plain router has none.

    No hook does anything unless a capability says so.

    Attributes:
        name: of its declaration in `RouterConfig.capabilities`, for good.
        undeclared: whether a router that declares nothing of it may need it. It has it from the
            first request on that names a session or says something of a capability, or the first
            call that fails or that something is kept of.
        offset: of the router's declaration that is in force, on its topic.
    """

    __slots__ = ("_arms", "journal", "offset")
    name: ClassVar[str]
    undeclared: ClassVar[bool] = False

    def __init__(self, arms: Arms, journal: Journal) -> None:
        # Arms know who keeps something by the slots of their window, and a circle would not be
        # freed at once when its router leaves.
        self._arms, self.journal, self.offset = ref(arms), journal, -1

    @property
    def arms(self) -> Arms:
        """The router's arms."""
        found = self._arms()
        assert found is not None
        return found

    # Its declaration.

    @classmethod
    def read(cls, said: Any) -> object | None:
        """Return its declaration of a router's on the wire, see `schemas.routers`; None: none.

        Raises:
            InvalidConfig: it contradicts itself.
        """
        return None

    @classmethod
    def document(cls, declared: Any) -> dict[str, object]:
        """Invert `read`: the fields of a declaration on the wire."""
        return {}

    @classmethod
    def document_model(cls, declared: Any, model: str) -> dict[str, object]:
        """Invert `read`: the fields of one of its models."""
        return {}

    @classmethod
    def pack_declared(cls, declared: Any) -> Json | None:
        """Return its declaration as JSON keeps it, under its name; None: nothing is kept."""
        return None

    @classmethod
    def unpack_declared(cls, kept: Json | None) -> object | None:
        """Invert `pack_declared`. Raises DamagedState, and InvalidConfig as `read`."""
        return None

    @classmethod
    def asked(cls, said: Any) -> object | None:
        """Return what a request on the wire says of it, see `schemas.requests`; None: nothing. It
        stands in `Asked.said`."""
        return None

    @classmethod
    def told(cls, kept: Json) -> dict[str, object]:
        """Return the fields of `pb.routes` about what it kept of a call, under its name in
        `Call.kept`."""
        return {}

    def declare(self, declared: Any, *, now: float) -> None:
        """Put a declaration in force, None if there is none (`undeclared`); what was learned and
        what is owed stays."""

    def dropped(self) -> None:
        """Note that it is declared no more: its pieces are to be deleted."""
        self.journal.pieces.update(self.pieces)

    def pacer(self, before: Pacer, budget_usd: float | None) -> Pacer | None:
        """Return the pacer from now on, `before` if it can go on, where the capability sets the
        price of a dollar; None: it does not. Its declaration then `paces`, see `RouterConfig`.

        Args:
            budget_usd: budget per request as declared beside it, or None.
        """
        return None

    # A decision, in its order.

    def expect(self, choice: Choice) -> None:
        """Change what is expected of a request's calls. It is called again if what the arms expect
        changes."""

    def rule_out(self, choice: Choice) -> None:
        """Rule out models by `choice.limit`: whatever a dollar is worth, they can't be called.

        Raises:
            RouterStateError: no model may be called. What it notes of that is written.
        """

    def afford(self, choice: Choice) -> None:
        """Rule out models by `choice.cap`, for which no money is left. Raises as `rule_out`."""

    def weigh(self, choice: Choice) -> None:
        """Add to `choice.beside` what calls cost beside dollars; a dollar has its price by then."""

    def follow(self, choice: Choice, chance: Chance | Generator, budget_usd: float | None) -> None:
        """Set `choice.plan`, and what is called first, once the best draw is known.

        Args:
            chance: draws what is left to it; budget_usd: per request, None: there is none.
        """

    def instead(self, choice: Choice, chance_of: Callable[[int], float]) -> None:
        """Answer with another model than the policy chose, and set why, and with which probability
        a request like this one gets that model.

        Args:
            chance_of: returns the probability with which the policy chooses the k-th arm, which it
                did not choose.
        """

    @property
    def slots(self) -> Iterable[int]:
        """Slots of the window beside which it keeps something."""
        return ()

    def placed(self, slot: int, choice: Choice) -> None:
        """Note that the window of the dual took a request in, at this slot."""

    def expect_window(self, costs: Matrix) -> None:
        """Change the expected dollars of the window's requests, shape (size, K)."""

    def begin_window(self) -> None:
        """Forget what is kept by slot of a window that another one replaces."""

    def decided(self, choice: Choice, record: RequestRecord) -> None:
        """Note a decision."""

    # What follows it.

    def billed(self, billing: Billing) -> None:
        """Note a bill, or a later revision of it; `record.bill` is still the one before."""

    def discount_usd(
        self, record: RequestRecord, price: Price, *, called: str, tokens: int, cached: int | None
    ) -> float:
        """Return by how many dollars a bill in tokens is below its list price.

        Args:
            called: the model that it is of.
            tokens: of input; cached: how many of them were billed as cached, None: not known.
        """
        return 0.0

    def shared(self, event: Judged, records: Records) -> Shared | None:
        """Return the requests that a reward is of, and the reward of each, where it is not of one
        request alone. Raises UnknownRequest, ContextLost."""
        return None

    def moved(self, record: RequestRecord, usd: float) -> None:
        """Note that a request is charged with so many dollars more, or less, without a bill."""

    def judged(self, record: RequestRecord, x: Vector, reward: float) -> Taught | None:
        """Note a request's first reward, and return what the called model learns of it, None:
        nothing; `record.label` is not set yet."""
        return Taught(x, reward)

    def verified(
        self, event: Verified, record: RequestRecord, plan: Plan, x: Vector | None
    ) -> Heard | None:
        """Learn a verdict on an answer of a plan, which does not have it yet; return what the plan
        is to keep of it, and what the model learns. None: the verifier is not its own."""
        return None

    def expired(self, record: RequestRecord) -> None:
        """Note that a request's bill is awaited no longer."""

    def forgotten(self, record: RequestRecord) -> None:
        """Note that a request is remembered no longer."""

    def applied(self, event: OfCapability, since: Since, *, now: float) -> bool:
        """Apply an event of its own, and note in `since` what a replay needs of it; tell whether it
        was its own, and news."""
        return False

    def without(self, model: str) -> None:
        """Forget a model that has left the portfolio for good."""

    def start_over(self) -> None:
        """Keep what was learned, and drop what belongs to the router that was exported."""

    # Its state.

    @classmethod
    def head(cls, one: Any) -> dict[str, Json]:
        """Return what the head keeps of it, of a router that has it or of another (None)."""
        return {}

    @property
    def pieces(self) -> tuple[str, ...]:
        """Names of its own pieces, which begin with `\\x1f`."""
        return ()

    def pack(self, piece: str) -> bytes | None:
        """Return the body of a piece; None if the piece is not its own, or there is nothing."""
        return None

    def restore(self, head: Mapping[str, Json], piece: Callable[[str], bytes]) -> None:
        """Invert `head` and `pack`; `piece` returns a body by its name, b"" where there is none.

        Raises:
            DamagedState: what was kept is not what these return. Anything else is a defect.
        """

    def faults(self) -> Iterator[str]:
        """Yield the faults of a state that can't be true."""
        yield from ()

    def standing(self, now: float) -> dict[str, object]:
        """Return the fields of `pb.lambda` about it."""
        return {}


class Hooks(Struct, frozen=True, gc=False):
    """The hooks that events call: those that a router's capabilities override, in their order.

    `complete`: whether those that need no declaration are among its capabilities.
    """

    complete: bool = False
    expect: tuple[Callable[[Choice], None], ...] = ()
    rule_out: tuple[Callable[[Choice], None], ...] = ()
    afford: tuple[Callable[[Choice], None], ...] = ()
    weigh: tuple[Callable[[Choice], None], ...] = ()
    follow: tuple[Callable[[Choice, Chance | Generator, float | None], None], ...] = ()
    instead: tuple[Callable[[Choice, Callable[[int], float]], None], ...] = ()
    decided: tuple[Callable[[Choice, RequestRecord], None], ...] = ()
    billed: tuple[Callable[[Billing], None], ...] = ()
    shared: tuple[Callable[[Judged, Records], Shared | None], ...] = ()
    judged: tuple[Callable[[RequestRecord, Vector, float], Taught | None], ...] = ()
    verified: tuple[
        Callable[[Verified, RequestRecord, Plan, Vector | None], Heard | None], ...
    ] = ()
    moved: tuple[Callable[[RequestRecord, float], None], ...] = ()
