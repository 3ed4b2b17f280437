"""Policies of a simulation: the product's engine, always one model, random choice, or history's
choices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from router_state.changes import Alert, Changes
from router_state.engine import Engine
from router_state.errors import RouterStateError
from router_state.events import Asked, Charged, Event, Follows, Judged, Redeclared, Waited
from schemas.routers import RouterDeclared
from studies.history.rerun import ReadPrior, Remembered, configuration
from studies.simulate.cases import Case
from studies.simulate.scenario import Policy
from studies.simulate.times import Seconds
from studies.simulate.world import uniform

REMEMBERED = 2_000
"""Most requests that a policy remembers."""
TIDY_EVERY = 64
"""Decisions between two sweeps."""
KEPT = frozenset(("router_id", "models", "budget_usd_per_request", "caps", "dimensions", "seed"))
"""Fields of the declaration in force that a policy of the profile `paper` keeps: it only paces a
budget per request.
"""
LEFT_OUT = frozenset(
    (
        *("profile", "gamma", "alpha", "lambda_c", "t_adapt", "ridge", "v_max", "epsilon"),
        *("incumbent", "mode", "share", "by", "holdout", "ramp", "margin"),
        *("pool", "family", "sources", "labels", "label_url", "error_reward"),
        *("projection", "snapshot"),
    )
)
"""Fields of it that a policy of the profile `live` does not keep: knobs of another profile, who
answers in its place, and what comes from outside the router.
"""


class Decider(Protocol):
    """A policy in a simulation."""

    def declare(self, router: RouterDeclared, *, at: float) -> None:
        """Put a declaration in force."""
        ...

    def decide(self, request_id: str, case: Case, *, at: float) -> tuple[str, float]:
        """Return the model and λ_t. Raises RouterStateError where no model may be called."""
        ...

    def bill(self, request_id: str, cost_usd: float, times: Seconds) -> None:
        """Take a bill in."""
        ...

    def reward(self, request_id: str, reward: float) -> None:
        """Take a reward in."""
        ...

    def take_alerts(self) -> list[Alert]:
        """Return what was raised since the last call."""
        ...


class Finished(Remembered):
    """The records of the latest requests of a simulation; older ones are forgotten."""

    def trim(self, engine: Engine) -> None:
        """Forget the oldest requests that have bill and reward; a request that waits forever is
        kept until its commitment has expired.
        """
        while len(self) > self._keep:
            request_id, oldest = next(iter(self.items()))
            # Forgetting a request with an open commitment would leave dollars that nobody settles.
            if request_id in engine.state.open_commitments or (
                oldest.label is None and len(self) <= 10 * self._keep
            ):
                return
            del self[request_id]


class EngineDecider:
    """The engine with a profile's settings, or the router's own, and knobs over them."""

    def __init__(self, policy: Policy, *, read_prior: ReadPrior) -> None:
        self._policy = policy
        self._read_prior = read_prior
        self._versions = 0
        self._records = Finished(REMEMBERED)
        self._engine: Engine | None = None
        self._alerts: list[Alert] = []
        self._verifiers: frozenset[str] = frozenset()

    def declare(self, router: RouterDeclared, *, at: float) -> None:
        """Put a declaration in force under this policy's profile."""
        profile = self._policy.profile
        if profile is not None and profile != "declared":
            names = RouterDeclared.model_fields.keys() - LEFT_OUT if profile == "live" else KEPT
            kept = {name: getattr(router, name) for name in names}
            # Other knobs belong to the declared profile; this profile is tried with its defaults.
            router = RouterDeclared.model_construct(**kept, profile=profile)
        self._verifiers = frozenset(router.verifiers or ())
        config = configuration(router, offset=self._versions, read_prior=self._read_prior)
        if self._policy.knobs:
            config = replace(config, knobs=replace(config.knobs, **self._policy.knobs))  # type: ignore[arg-type]
        self._versions += 1
        if self._engine is None:
            self._engine = Engine.start(config, self._records)
        else:
            self._apply(Redeclared(config), at)

    @property
    def engine(self) -> Engine:
        assert self._engine is not None
        return self._engine

    def decide(self, request_id: str, case: Case, *, at: float) -> tuple[str, float]:
        """Let the engine decide a request."""
        engine = self.engine
        if engine.state.seq % TIDY_EVERY == 0:
            self._apply(Waited(), at)
            self._records.trim(engine)
        session, copy = case.session_id, request_id.removeprefix(case.request_id)
        asked = Asked(
            request_id,
            case.x,
            allowed_models=case.allowed_models,
            max_price_per_1k=case.max_price_per_1k,
            input_tokens=case.input_tokens,
            needs=case.needs,
            # A copy of a request belongs to a copy of its session.
            session_id=None if session is None else session + copy,
            follows=self._seen(case, copy),
            fields=case.fields,
        )
        record = self._apply(asked, at).decision
        assert record is not None
        return record.model, record.lambda_t

    def _seen(self, case: Case, copy: str) -> Follows | None:
        """Return the request that a case follows, and what history saw of its answer, if the answer
        came from the same model here.
        """
        if case.follows is None:
            return None
        request_id = case.follows.request_id + copy
        before = self._records.get(request_id)
        if before is None or before.called != case.followed:
            return Follows(request_id)
        verdicts = case.follows.verdicts.items()
        known = {name: verdict for name, verdict in verdicts if name in self._verifiers}
        return Follows(request_id, known, case.follows.signals)

    def bill(self, request_id: str, cost_usd: float, times: Seconds) -> None:
        """Settle a bill; a bill of a forgotten request changes nothing."""
        if request_id in self._records:
            bill = Charged(
                request_id, cost_usd, latency=times.answer, first_token=times.first_token
            )
            self._apply(bill, self.engine.state.latest)

    def reward(self, request_id: str, reward: float) -> None:
        """Learn a reward; a reward of a forgotten request changes nothing."""
        if request_id in self._records:
            self._apply(Judged(request_id, reward), self.engine.state.latest)

    def take_alerts(self) -> list[Alert]:
        """Return what the engine has raised since the last call."""
        taken, self._alerts = self._alerts, []
        return taken

    def _apply(self, event: Event, now: float) -> Changes:
        changes = self.engine.apply(event, now)
        self._alerts += changes.alerts
        return changes.accepted()


class NoModel(RouterStateError):
    """The policy has no model for this request."""

    reason = "no_model"


class StaticDecider:
    """A policy that learns nothing: `choose` maps the request, its case and the models in force to
    a model or None.
    """

    def __init__(self, choose: Callable[[str, Case, list[str]], str | None]) -> None:
        self._choose = choose
        self._models: list[str] = []

    def declare(self, router: RouterDeclared, *, at: float) -> None:
        """Note which models there are."""
        self._models = list(router.models)

    def decide(self, request_id: str, case: Case, *, at: float) -> tuple[str, float]:
        """Choose without a budget."""
        model = self._choose(request_id, case, self._models)
        if model is None:
            raise NoModel("no model to choose")
        return model, 0.0

    def bill(self, request_id: str, cost_usd: float, times: Seconds) -> None:
        """Learn nothing."""

    def reward(self, request_id: str, reward: float) -> None:
        """Learn nothing."""

    def take_alerts(self) -> list[Alert]:
        """Raise nothing."""
        return []


def decider_of(policy: Policy, *, seed: int, read_prior: ReadPrior) -> Decider:
    """Return the decider of a scenario's policy."""
    if policy.profile is not None:
        return EngineDecider(policy, read_prior=read_prior)
    if policy.model is not None:
        model = policy.model
        return StaticDecider(lambda request_id, case, models: model)
    if policy.recorded:
        return StaticDecider(lambda request_id, case, models: case.model)

    def at_random(request_id: str, case: Case, models: list[str]) -> str | None:
        allowed = [m for m in models if case.allowed_models is None or m in case.allowed_models]
        # Drawn from the case's index, so that other policies in the study do not change the draw.
        return allowed[int(uniform(seed, case.index) * len(allowed))] if allowed else None

    return StaticDecider(at_random)
