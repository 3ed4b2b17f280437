"""All capabilities, in the order in which their hooks are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from router_state.asking.asking import Asking
from router_state.attempts.verdicts import Attempts
from router_state.capability import Capability, Hooks
from router_state.caps.caps import Caps
from router_state.config import RouterConfig
from router_state.endings.endings import Endings
from router_state.families.family_member import Family
from router_state.incumbents.incumbents import Incumbents
from router_state.latency.latency_target import Latency
from router_state.long_inputs.long_inputs import LongInputs
from router_state.needs.needs import Needed
from router_state.outages.outages import Outages
from router_state.packing.framing import Json
from router_state.periods.period_budgets import Periods
from router_state.record import RequestRecord
from router_state.router import RouterState
from router_state.runs.runs import Runs
from router_state.sessions.sessions import Sessions
from router_state.sources.measured_sources import MeasuredSources
from router_state.variants.variants import Variants

KINDS: tuple[type[Capability], ...] = (
    Needed,
    Caps,
    Periods,
    Latency,
    Outages,
    Endings,
    LongInputs,
    Sessions,
    Runs,
    Incumbents,
    Attempts,
    MeasuredSources,
    Family,
    Variants,
    Asking,
)
"""The classes of capabilities. If two change the same thing, the later one overrides the
earlier.
"""
_UNDECLARED = frozenset(kind.name for kind in KINDS if kind.undeclared)
"""Names of the capabilities that a router may need without declaring them."""
_WITH_REQUEST_FIELD = tuple(kind for kind in KINDS if "request_field" in vars(kind))
"""Capabilities that read fields of a request."""
_PUBLISHING = tuple(kind for kind in KINDS if "published" in vars(kind))
"""Capabilities that publish fields of a request beside what they keep of it."""
_HEADED = tuple(kind for kind in KINDS if "head" in vars(kind))
"""Capabilities that store fields in the head."""
_FIRST_ANSWERS = frozenset({"shared", "weighed", "verified"})
"""Hooks of which the first answer that is not None counts."""


def read(wire: Any) -> dict[str, object]:
    """Return the declarations of capabilities in a router's declaration on the wire, by name."""
    found = {kind.name: kind.read(wire) for kind in KINDS}
    return {name: declared for name, declared in found.items() if declared is not None}


def request_fields(wire: Any) -> dict[str, object] | None:
    """Return the fields of capabilities in a request on the wire, by capability; None: none."""
    found: dict[str, object] | None = None
    for kind in _WITH_REQUEST_FIELD:
        if (one := kind.request_field(wire)) is not None:
            found = found or {}
            found[kind.name] = one
    return found


def route_fields(record: RequestRecord) -> dict[str, object]:
    """Return the fields of `pb.routes` for what capabilities stored of a call."""
    found: dict[str, object] = {}
    if record.call is not None and record.call.kept:
        for kind in KINDS:
            if kind.name in record.call.kept:
                found |= kind.route_fields(record.call.kept[kind.name])
    return found


def published(record: RequestRecord) -> dict[str, object]:
    """Return all fields of `pb.routes` that capabilities have for a decided request."""
    found: dict[str, object] = {}
    if record.call is not None or record.noted is not None:
        for kind in _PUBLISHING:
            found |= kind.published(record)
    return found | route_fields(record)


def candidate_fields(record: RequestRecord) -> dict[str, Sequence[object]]:
    """Return the fields that capabilities add to a decision's candidates, by arm."""
    found: dict[str, Sequence[object]] = {}
    if record.noted is not None:
        for kind in KINDS:
            if kind.name in record.noted:
                found |= kind.candidate_fields(record.noted[kind.name])
    return found


def document(config: RouterConfig) -> dict[str, object]:
    """Return the capabilities' fields of a declaration: what `read` takes."""
    found: dict[str, object] = {}
    for kind in KINDS:
        if kind.name in config.capabilities:
            found |= kind.document(config.capabilities[kind.name])
    return found


def document_model(config: RouterConfig, model: str) -> dict[str, object]:
    """Return the capabilities' fields of one model of a declaration."""
    found: dict[str, object] = {}
    for kind in KINDS:
        if kind.name in config.capabilities:
            found |= kind.document_model(config.capabilities[kind.name], model)
    return found


def pack(config: RouterConfig) -> dict[str, Json]:
    """Return the declarations of capabilities for the piece with the configuration."""
    found = {kind.name: kind.pack_declared(config.capabilities.get(kind.name)) for kind in KINDS}
    return {name: kept for name, kept in found.items() if kept is not None}


def unpack(body: Mapping[str, Json]) -> dict[str, object]:
    """Return the declarations of capabilities that `pack` has packed. Raises DamagedState,
    InvalidConfig.
    """
    found = {kind.name: kind.unpack_declared(body.get(kind.name)) for kind in KINDS}
    return {name: declared for name, declared in found.items() if declared is not None}


def declare(state: RouterState, config: RouterConfig, *, now: float) -> None:
    """Add the declared capabilities to a router and remove all others, except those that began
    without a declaration.
    """
    before = {one.name: one for one in state.capabilities}
    found: list[Capability] = []
    for kind in KINDS:
        one, declared = before.pop(kind.name, None), kind.name in config.capabilities
        if declared and one is None:
            one = kind(state.arms, state.journal)
        if one is not None and (declared or kind.undeclared):
            one.offset = config.offset
            one.declare(config.capabilities.get(kind.name), now=now)
            found.append(one)
        elif one is not None:
            one.dropped()
    _give(state, found)


def is_undeclared(said: Mapping[str, Json]) -> bool:
    """Tell whether a request concerns a capability that needs no declaration."""
    return not _UNDECLARED.isdisjoint(said)


def begin(state: RouterState) -> None:
    """Add the capabilities that need no declaration to a router, as an event concerns one of
    them.
    """
    there = {one.name: one for one in state.capabilities}
    for kind in KINDS:
        if kind.undeclared and kind.name not in there:
            one = there[kind.name] = kind(state.arms, state.journal)
            one.offset = state.config.offset
            one.declare(None, now=state.latest)
    _give(state, [there[kind.name] for kind in KINDS if kind.name in there])


def end(state: RouterState) -> None:
    """Remove from a restored router the undeclared capabilities without any state."""
    declared = state.config.capabilities
    _give(state, [one for one in state.capabilities if one.name in declared or one.pieces])


def _give(state: RouterState, found: list[Capability]) -> None:
    state.capabilities = tuple(found)
    state.arms.slotted = tuple(one for one in found if _overrides(one, "placed"))
    state.arms.sharing = (
        tuple(one for one in found if _overrides(one, "shares"))
        if any(one.carries for one in found)
        else ()
    )
    state.arms.expecting = tuple(one for one in found if _overrides(one, "expect_window"))
    there = {one.name for one in found}
    complete = all(kind.name in there for kind in KINDS if kind.undeclared)
    _, _, *names = Hooks.__struct_fields__
    called = partial(_called, found, complete)
    limits = _together(called("rule_out") + called("afford"))
    hooks = (_together(called(name), first=name in _FIRST_ANSWERS) for name in names)
    state.hooks = Hooks(complete, limits, *hooks)


def _called(found: list[Capability], complete: bool, hook: str) -> tuple[Any, ...]:
    """Return a hook of the capabilities that override it, and have something to do in it."""
    return tuple(
        getattr(one, hook)
        for one in found
        if _overrides(one, hook) and (complete or hook not in one.undeclared_hooks)
    )


def _together(hooks: tuple[Any, ...], *, first: bool = False) -> Callable[..., Any] | None:
    """Return one function that calls all of these hooks, None if there are none. It returns the
    last answer, or the `first` one that is not None, and calls no hook after that.
    """
    if len(hooks) < 2:
        return hooks[0] if hooks else None

    def call(*given: Any) -> Any:
        found = None
        for hook in hooks:
            found = hook(*given)
            if first and found is not None:
                break
        return found

    return call


def _overrides(one: Capability, hook: str) -> bool:
    return getattr(type(one), hook) is not getattr(Capability, hook)


def head(state: RouterState) -> dict[str, Json]:
    """Return the fields of the head that capabilities store."""
    there = {one.name: one for one in state.capabilities}
    found: dict[str, Json] = {}
    for kind in _HEADED:
        found |= kind.head(there.get(kind.name))
    return found
