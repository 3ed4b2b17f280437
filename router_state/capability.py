"""Define the capability: what a router may have beside plain routing. The core knows only the
hooks of a capability.

A capability is a folder of `router_state` with one class derived from this one, and stands in
`registered.KINDS`. CONTRIBUTING.md says how to add one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias
from weakref import ref

from msgspec import Struct, to_builtins
from numpy.random import Generator

from router_state.arms import Arms
from router_state.billing import Billing
from router_state.changes import Journal
from router_state.choice import Choice
from router_state.config import Matrix, Price, Vector
from router_state.events import Judged, OfCapability, Verified
from router_state.kernel import Chance
from router_state.pacing.pacer import Pacer
from router_state.packing.framing import Framed, Json, converted
from router_state.plan import Plan, Taught, Verdict
from router_state.record import Label, Records, RequestRecord, Weighed
from router_state.shared_numbers import ByModel
from router_state.since import Since

VerdictEffect: TypeAlias = tuple[Verdict, Taught | None]
"""The verdict that a plan keeps, and the observation that its model learns from the verdict."""
Shared: TypeAlias = tuple[dict[str, RequestRecord], list[Judged]]
"""Records by request_id, and one reward for each of these requests."""


class Capability:
    """One capability of a router; a plain router has none.

    No hook does anything unless a capability says so.

    Attributes:
        name: of its declaration in `RouterConfig.capabilities`, for good.
        declaration: type of what `read` returns, by which it is stored.
        undeclared: whether a router that does not declare the capability may need it. Such a
            router has the capability from its first request that names a session or a capability's
            field, or from its first failed call.
        undeclared_hooks: hooks that do nothing before the router has every such capability.
        carries: whether it carries numbers that capabilities share to other routers and back.
        offset: of the router's declaration that is in force, on its topic.
    """

    __slots__ = ("_arms", "journal", "offset")
    name: ClassVar[str]
    declaration: ClassVar[type[object]] = object
    undeclared: ClassVar[bool] = False
    carries: ClassVar[bool] = False
    undeclared_hooks: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, arms: Arms, journal: Journal) -> None:
        # Arms refer to the capability that uses the slots of their window. A strong reference back
        # would close a circle, which is not freed at once when the router leaves.
        self._arms, self.journal, self.offset = ref(arms), journal, -1

    @property
    def arms(self) -> Arms:
        """The router's arms."""
        found = self._arms()
        assert found is not None
        return found

    # Its declaration.

    @classmethod
    def read(cls, wire: Any) -> object | None:
        """Return this capability's part of a router's declaration on the wire (`schemas.routers`);
        None: the router does not declare the capability.

        Raises:
            InvalidConfig: the declaration contradicts itself.
        """
        return None

    @classmethod
    def document(cls, declared: Any) -> dict[str, object]:
        """Return the capability's fields of a declaration on the wire: what `read` takes."""
        return {}

    @classmethod
    def document_model(cls, declared: Any, model: str) -> dict[str, object]:
        """Return the capability's fields of one model of a declaration."""
        return {}

    @classmethod
    def pack_declared(cls, declared: Any) -> Json | None:
        """Return the declaration as JSON, to be stored under the capability's name; None: nothing
        is stored.
        """
        return None if declared is None else to_builtins(declared)

    @classmethod
    def unpack_declared(cls, kept: Json | None) -> object | None:
        """Return the declaration that `pack_declared` has packed. Raises DamagedState, and
        InvalidConfig as `read`.
        """
        return None if kept is None else converted(kept, cls.declaration, cls.name)

    @classmethod
    def request_field(cls, wire: Any) -> object | None:
        """Return this capability's part of a request on the wire (`schemas.requests`), to be kept
        in `Asked.fields`; None: the request has no such part.
        """
        return None

    @classmethod
    def route_fields(cls, kept: Json) -> dict[str, object]:
        """Return the fields of `pb.routes` for what this capability stored of a call, which stands
        under its name in `Call.kept`.
        """
        return {}

    @classmethod
    def published(cls, record: RequestRecord) -> dict[str, object]:
        """Return further fields of `pb.routes` for a decided request, beside `route_fields`."""
        return {}

    @classmethod
    def candidate_fields(cls, noted: Any) -> Mapping[str, Sequence[object]]:
        """Return fields of the candidates on `pb.routes`, each by arm, for what this capability
        noted of the request (`Choice.note`).
        """
        return {}

    def declare(self, declared: Any, *, now: float) -> None:
        """Put a declaration in force; None: there is none (`undeclared`). Learned state and debts
        stay.
        """

    def dropped(self) -> None:
        """Note that the capability is no longer declared: its pieces are to be deleted."""
        self.journal.pieces.update(self.pieces)

    def pacer(self, before: Pacer, budget_usd: float | None) -> Pacer | None:
        """Return the pacer to be used from now on: `before` if that can go on. None: the
        capability does not set the price of a dollar. One that sets the price has a declaration
        that `paces`, see `RouterConfig`.

        Args:
            budget_usd: budget per request as declared beside it, or None.
        """
        return None

    # A decision, in its order.

    def expect(self, choice: Choice) -> None:
        """Change the expectations of a request's calls. The hook runs again if the arms'
        expectations change. It may refuse the request (RouterStateError), and changes no state.
        """

    def rule_out(self, choice: Choice) -> None:
        """Rule out models by `choice.limit`: models that can't be called, whatever a dollar is
        worth.

        Raises:
            RouterStateError: no model may be called. Changes that the hook made before are written.
        """

    def afford(self, choice: Choice) -> None:
        """Rule out by `choice.cap` the models for which no money is left. Raises as `rule_out`."""

    def weigh(self, choice: Choice) -> None:
        """Set `choice.beside`, the cost of calls other than dollars, in reward. The price of a
        dollar is set by then.
        """

    def follow(self, choice: Choice, chance: Chance | Generator, budget_usd: float | None) -> None:
        """Set `choice.plan` and the model that is called first, once the best draw is known.

        Args:
            chance: the random generator; budget_usd: budget per request, None: there is none.
        """

    def instead(self, choice: Choice, chance_of: Callable[[int], float]) -> None:
        """Answer with another model than the policy chose, and set why, and with which probability
        a request like this one gets that model.

        Args:
            chance_of: returns the probability with which the policy would have chosen the k-th arm;
                k is another arm than the chosen one.
        """

    @property
    def slots(self) -> Iterable[int]:
        """Return the slots of the window for which this capability stores something."""
        return ()

    def placed(self, slot: int, choice: Choice) -> None:
        """Note that the dual's window has stored a request in this slot."""

    def expect_window(self, costs: Matrix) -> None:
        """Change the expected dollars of the window's requests, shape (size, K)."""

    def begin_window(self) -> None:
        """Forget what is stored by slot, as another window replaces the present one."""

    def decided(self, choice: Choice, record: RequestRecord) -> None:
        """Note a decision."""

    # What follows it.

    def billed(self, billing: Billing) -> None:
        """Note a bill or its revision; `record.bill` is still the earlier bill."""

    def discount_usd(
        self, record: RequestRecord, price: Price, *, called: str, tokens: int, cached: int | None
    ) -> float:
        """Return by how many dollars a bill in tokens is below its list price.

        Args:
            called: the model that was billed.
            tokens: number of input tokens; cached: how many of them were billed as cached, None:
                not known.
        """
        return 0.0

    def shared(self, event: Judged, records: Records) -> Shared | None:
        """Return the requests among which a reward is shared, and the reward of each; None: the
        reward is of one request. Raises UnknownRequest, ContextLost.
        """
        return None

    def weighed(self, record: RequestRecord, event: Judged) -> Weighed | None:
        """Return the labels that a reward puts in force, where this does not depend on its rank
        alone. Nothing is changed yet, see `taken`.
        """
        return None

    def worth(self, record: RequestRecord, label: Label, learned: bool) -> float | None:
        """Return what a model learns of a label; None: nothing.

        Args:
            learned: whether the model has learned the label; then the result is the value that it
                holds.
        """
        return label.reward

    def learned(self, record: RequestRecord, x: Vector, before: Label | None) -> None:
        """Note that `record.label` is in force in place of the label `before`, and that the model
        has learned it. Either may be None: there is no label."""

    def shifted(self, model: str, offset: float) -> None:
        """Note that all that a model has learned of rewards counts as this much higher."""

    def taken(self, record: RequestRecord, event: Judged, labels: object, now: float) -> None:
        """Note a reward that says anything new; `record.label` is the one in force.

        Args:
            labels: all labels of the request (`Weighed.labels`), if a capability has weighed the
                reward.
        """

    def moved(self, record: RequestRecord, usd: float) -> None:
        """Note that the charge of a request has changed by `usd` dollars without a bill."""

    def judged(self, record: RequestRecord, x: Vector, reward: float) -> Taught | None:
        """Note a request's first reward, and return the observation that the called model learns;
        None: nothing. `record.label` is not set yet.
        """
        return Taught(x, reward)

    def verified(
        self, event: Verified, record: RequestRecord, plan: Plan, x: Vector | None, now: float
    ) -> VerdictEffect | None:
        """Learn a new verdict on an answer of a plan. Return the verdict in the form in which the
        plan keeps it, and the observation that the model learns. None: the verifier belongs to
        another capability.
        """
        return None

    def overdue(
        self, opened: Mapping[str, float], records: Records, now: float, longest: float
    ) -> Sequence[str]:
        """Return requests with a plan whose verdict should have come by now, after a decision. Each
        is returned once; a restored state returns the same ones. Only called from the journal's
        `overdue_at` on, which the capability sets.

        Args:
            opened: {request_id: decided_at} of requests whose bill is awaited, in order of seq.
            longest: seconds for which a bill is awaited.
        """
        return ()

    def expired(self, record: RequestRecord) -> None:
        """Note that a request's bill is no longer awaited."""

    def forgotten(self, record: RequestRecord) -> None:
        """Note that a request is no longer remembered."""

    def applied(self, event: OfCapability, since: Since, *, now: float) -> bool:
        """Apply an event of this capability, and note in `since` what a replay needs. Return
        whether the event was one of this capability and changed anything.
        """
        return False

    def shares(self) -> ByModel:
        """Return what other routers may learn from this one beside its regressions, by model and
        subject. Nothing of fewer than 20 requests leaves a router.
        """
        return {}

    def take_shared(self, numbers: ByModel | None) -> None:
        """Put other routers' numbers on some models in place of their earlier ones; None: take all
        of them back.
        """

    def without(self, model: str) -> None:
        """Forget a model that has left the portfolio for good."""

    def start_over(self) -> None:
        """Keep what was learned, and drop what belongs only to the router that was exported."""

    # Its state.

    @classmethod
    def head(cls, one: Any) -> dict[str, Json]:
        """Return the fields of the head for a router's capability; for None, those of a router
        that does not have the capability.
        """
        return {}

    @property
    def pieces(self) -> tuple[str, ...]:
        """Names of its own pieces, which begin with `\\x1f`."""
        return ()

    def pack(self, piece: str) -> bytes | Framed | None:
        """Return the body of a piece; None if the piece belongs to something else, or is empty."""
        return None

    def restore(self, head: Mapping[str, Json], piece: Callable[[str], bytes]) -> None:
        """Invert `head` and `pack`; `piece` returns a body by its name, b"" where there is none.

        Raises:
            DamagedState: the stored bytes are not what `head` and `pack` return. Any other
            exception is a defect.
        """

    def faults(self) -> Iterator[str]:
        """Yield a description of each part of the state that is impossible."""
        yield from ()

    def lambda_fields(self, now: float) -> dict[str, object]:
        """Return this capability's fields of `pb.lambda`."""
        return {}


class Hooks(Struct, frozen=True, gc=False):
    """The hooks that events call, each for all capabilities that override it, in the order of the
    capabilities. None: no capability does, so that an event has nothing to call.

    `complete`: whether the capabilities that need no declaration are included. `limits`: all hooks
        `rule_out`, then all hooks `afford`. Of `shared`, `weighed` and `verified` the first answer
        that is not None counts, of `worth` and `judged` the last one.
    """

    complete: bool = False
    limits: Callable[[Choice], None] | None = None
    expect: Callable[[Choice], None] | None = None
    weigh: Callable[[Choice], None] | None = None
    follow: Callable[[Choice, Chance | Generator, float | None], None] | None = None
    instead: Callable[[Choice, Callable[[int], float]], None] | None = None
    decided: Callable[[Choice, RequestRecord], None] | None = None
    billed: Callable[[Billing], None] | None = None
    shared: Callable[[Judged, Records], Shared | None] | None = None
    weighed: Callable[[RequestRecord, Judged], Weighed | None] | None = None
    worth: Callable[[RequestRecord, Label, bool], float | None] | None = None
    learned: Callable[[RequestRecord, Vector, Label | None], None] | None = None
    shifted: Callable[[str, float], None] | None = None
    taken: Callable[[RequestRecord, Judged, object, float], None] | None = None
    judged: Callable[[RequestRecord, Vector, float], Taught | None] | None = None
    verified: (
        Callable[[Verified, RequestRecord, Plan, Vector | None, float], VerdictEffect | None] | None
    ) = None
    overdue: Callable[[Mapping[str, float], Records, float, float], Sequence[str]] | None = None
    moved: Callable[[RequestRecord, float], None] | None = None
