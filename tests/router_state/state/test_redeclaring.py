"""Any declaration after any other on a router that lives: it is put in force or refused with a
reason, and the router goes on either way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from agents.declaring.configuration import config_of
from router_state.changes import Changes, Outcome
from router_state.config import RouterConfig
from router_state.engine import Engine
from router_state.errors import InvalidConfig
from router_state.events import Asked, Charged, Event, Judged, Redeclared
from router_state.state import invariants, restoring, state_pieces
from schemas.event import MalformedEvent
from schemas.routers import decode_router

NOW = 1_800_000_000.0
D = 5
EXPECTED = {"cap_reached", "budget_spent", "no_affordable_model", "no_capable_model"}
"""Reasons for which a declaration itself lets a request be refused."""
CACHED = {"cached_input_price_per_m": 0.01}
MODELS: Mapping[str, dict[str, Any]] = {
    "small": {"input_price_per_m": 0.1, "output_price_per_m": 0.4, "onboarding_pulls": 0},
    "big": {"input_price_per_m": 2.0, "output_price_per_m": 10.0},
    "free": {"input_price_per_m": 0.0, "output_price_per_m": 0.0},
}


def one_of(name: str, *values: object) -> st.SearchStrategy[dict[str, Any]]:
    """Draw a field of a declaration, or leave it out."""
    return st.sampled_from([{}, *({name: value} for value in values)])


MODELS_CACHED = {name: MODELS[name] | CACHED for name in ("small", "big")}
models = st.dictionaries(
    st.sampled_from(sorted(MODELS)), st.sampled_from([{}, CACHED]), min_size=1
).map(
    lambda found: {
        name: MODELS[name] | (more if name != "free" else {}) for name, more in found.items()
    }
)
FORMS: tuple[dict[str, Any], ...] = (
    {},
    {"budget_usd_per_request": 5e-4},
    {"budget_usd_per_request": 4e-4, "latency_target": {"p95_ms": 900}},
    {"budget": [{"usd": 1.0, "per": "day"}]},
    {"budget": [{"usd": 1.0, "per": "day"}], "budget_usd_per_request": 5e-4},
    {"budget": [{"usd": 1.0, "per": "hour"}, {"usd": 9.0, "per": "month", "carry": "all"}]},
    {"pool": "p"},
    {"min_reward": 0.5},
    {"latency_target": {"mean_ms": 500, "of": "first_token"}},
    {"max_cost_per_request_usd": 1.0},
    {"profile": "paper"},
    {"profile": "paper", "budget_usd_per_request": 5e-4},
)
"""Whatever chooses another pacer or policy."""
FIELDS = (
    one_of("budget_usd_per_request", 5e-4, 4e-4, 1e-9, 10.0),
    one_of(
        "budget",
        [{"usd": 1.0, "per": "day"}],
        [{"usd": 5.0, "per": "hour", "carry": "all"}, {"usd": 1e-3, "per": "month"}],
        [{"usd": 0.0, "per": "week"}],
    ),
    one_of("pool", "p", "q"),
    one_of("when_spent", "refuse", "overrun"),
    one_of("max_cost_per_request_usd", 1e-5, 1.0),
    one_of("min_reward", 0.5, {"of_best": 0.9}),
    one_of("latency_target", {"p95_ms": 900}, {"mean_ms": 500, "of": "first_token"}),
    one_of("usd_per_second", 1e-3, {"first_token": 1e-3}),
    one_of("caps", {"hour": {"usd": 1e-4, "mode": "soft"}}, {"day": {"usd": 1.0, "mode": "hard"}}),
    one_of("profile", "paper", "live"),
    one_of("gamma", 1.0, 0.9),
    one_of("epsilon", 0.2),
    one_of("seed", 7),
    one_of("t_adapt", 50.0),
    one_of("error_reward", 0.0),
)


def config_or_none(declared: Mapping[str, Any], *, offset: int) -> RouterConfig | None:
    """Return a declaration as the core has it; None where it contradicts itself."""
    try:
        _, read = decode_router(key=b"r", value=json.dumps(declared).encode())
        assert read is not None
        return config_of(read, offset=offset, references={})
    except (InvalidConfig, MalformedEvent):
        return None


@st.composite
def declarations(draw: Any) -> dict[str, Any]:
    """Draw a declaration that the wire and the core accept by itself."""
    declared: dict[str, Any] = {"router_id": "r", "models": draw(models), "dimensions": D}
    for field in draw(st.lists(st.sampled_from(FIELDS), max_size=5, unique=True)):
        declared |= draw(field)
    assume(config_or_none(declared, offset=0) is not None)
    return declared


class Living:
    """A router that gets requests of sessions, and a log of what its changes say was changed."""

    def __init__(self, config: RouterConfig) -> None:
        self.engine, self.now, self.asked = Engine.start(config), NOW, 0
        self.rng, self.pieces = np.random.default_rng(1), dict[str, bytes]()
        self._write(self.engine.started())

    def apply(self, fed: Event) -> Changes:
        """Apply an event; its changes name all that has changed."""
        changes = self.engine.apply(fed, self.now)
        self._write(changes)
        return changes

    def _write(self, changes: Changes) -> None:
        for name in changes.pieces:
            piece = state_pieces.pack_piece(self.engine.state, name)
            if piece is None:
                self.pieces.pop(name, None)
            else:
                self.pieces[name] = piece

    def serve(self, requests: int) -> set[str]:
        """Send requests with bills and rewards; return the reasons of refusals."""
        reasons = set()
        for _ in range(requests):
            self.asked, self.now = self.asked + 1, self.now + 1.0
            request_id, tokens = f"q{self.asked}", 4000 + self.asked
            x = np.array([*self.rng.normal(size=D - 1), 1.0])
            session = f"s{self.asked % 3}"
            asked = Asked(request_id, x, input_tokens=tokens, session_id=session)
            decided = self.apply(asked)
            if decided.refusal is not None:
                reasons.add(decided.refusal.reason)
                continue
            bill = Charged(
                request_id, tokens=(tokens, 200), cached=2000, x=x, latency=1.0, first_token=0.5
            )
            for fed in (bill, Judged(request_id, float(self.rng.random()), x=x)):
                assert self.apply(fed).outcome is Outcome.APPLIED
            invariants.check(self.engine.state, self.engine.records)
        return reasons

    def restart(self) -> None:
        """Go on from what was written, which is all that there is."""
        state = self.engine.state
        assert self.pieces == state_pieces.pack_pieces(state)
        again = restoring.unpack(self.pieces.get, state.open_commitments)
        assert state_pieces.pack_pieces(again) == self.pieces
        self.engine = Engine(again, self.engine.records)


@example(
    # A refusal by one part of a declaration leaves no trace in another one.
    declared=[
        {"router_id": "r", "models": {"big": MODELS["big"]}, "dimensions": D},
        {
            "router_id": "r",
            "models": {"big": MODELS["big"]},
            "dimensions": D,
            "caps": {"hour": {"usd": 1e-4, "mode": "soft"}},
            "max_cost_per_request_usd": 1e-5,
        },
    ],
    requests=5,
)
@given(declared=st.lists(declarations(), min_size=2, max_size=3), requests=st.integers(5, 40))
@settings(suppress_health_check=list(HealthCheck), deadline=None)
def test_any_declaration_may_follow_any_other(
    declared: list[dict[str, Any]], requests: int
) -> None:
    follow(declared, requests=requests)


@pytest.mark.parametrize("before", range(len(FORMS)))
def test_any_form_of_a_budget_may_follow_any_other(before: int) -> None:
    for after in range(len(FORMS)):
        base = {"router_id": "r", "models": MODELS_CACHED, "dimensions": D}
        follow([base | FORMS[n] for n in (before, after, before)], requests=10)


def follow(declared: list[dict[str, Any]], *, requests: int) -> None:
    """Put one declaration after the other in force on a router that lives."""
    router: Living | None = None
    for offset, one in enumerate(declared):
        config = config_or_none(one, offset=offset)
        assert config is not None
        if router is None:
            router = Living(config)
        else:
            refusal = router.apply(Redeclared(config)).refusal
            assert refusal is None or isinstance(refusal, InvalidConfig)
            assert (router.engine.state.config is config) == (refusal is None)
        invariants.check(router.engine.state, router.engine.records)
        assert router.serve(requests) <= EXPECTED
        router.restart()
