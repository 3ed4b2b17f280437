"""Topic `routers`: one record declares a whole router; a null value says that it is gone.

Key: router_id, raw UTF-8, never absent. Version 1. Compatible: new optional fields and knobs
(absent: as before). Not compatible: a new required field, another default, another unit.
"""

from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from schemas.budgets import Budgets, Floor, TrafficExpected, WhenSpent
from schemas.capabilities import Offers
from schemas.event import Content, Event, decode_declared, documented, optional
from schemas.families import Membership
from schemas.fields import (
    LARGEST_INT,
    Label,
    ModelName,
    PricePerM,
    RouterId,
    Tokens,
    UnitInterval,
    refuse,
)
from schemas.label_asking import LabelsWanted, LabelUrl
from schemas.label_sources import Sources
from schemas.latency import LatencyTarget, SecondPriced
from schemas.model_calls import Aliases, Day, Params, PriceAbove, canonical
from schemas.modes import Holdout, Incumbent, Mode, Ramp, Unit
from schemas.priors import CostPrior, InlinePrior, LikePrior, Prior, Reference
from schemas.reasons import Reason
from schemas.requests import MAX_DIMENSIONS, SessionUsd
from schemas.verifiers import MAX_VERIFIERS, VerifierDeclared

TOPIC: Final = "routers"
KEY: Final = "router_id"
"""The topic behind its prefix, and the field that its records are keyed by."""
MAX_MODELS: Final = 1000
"""Most models of one declaration; a worker may take fewer (PB_MODELS_PER_ROUTER)."""


def _named(value: object) -> object:
    """Return a family that is declared by its name alone as one that gives and takes."""
    return {"name": value} if isinstance(value, str) else value


class ModelDeclared(Content):
    """Declare one model of a portfolio: its list prices and how it starts."""

    input_price_per_m: PricePerM
    output_price_per_m: PricePerM
    prior: Prior | None = optional("What is known of the model before its first reward")
    expected_cost_usd: Annotated[float, Field(ge=0, le=1000)] | None = optional(
        "US dollars that a request to the model costs on average, from earlier bills; absent: "
        "learned, from a high first guess"
    )
    cost_prior: CostPrior | None = optional(
        "What earlier bills say of its costs by prompt; expected_cost_usd wins for the mean"
    )
    onboarding_pulls: Annotated[int, Field(ge=0, le=10_000)] | None = optional(
        "Requests sent to the model as it joins, paced by the budget; absent: 20 without a "
        "prior, none with one"
    )
    cached_input_price_per_m: PricePerM | None = optional(
        "US dollars per million input tokens that are read from the model's cache; at most the "
        "input price"
    )
    cache_write_price_per_m: PricePerM | None = optional(
        "US dollars per million input tokens that are written to it; absent: the input price"
    )
    cache_ttl_seconds: Annotated[float, Field(gt=0, le=86_400)] | None = optional(
        "How long a cached prefix lasts after its last use; absent: 300"
    )
    cache_min_tokens: Tokens | None = optional("Least length of a cached prefix; absent: 1,024")
    offers: Offers | None = optional("What the model can do; absent: whatever a request needs")
    variant_of: ModelName | None = optional(
        "The model that it is a variant of, by effort, tier or region; called in its place, with "
        "params, where it has any"
    )
    params: Params | None = optional(
        "JSON object that goes with each call, such as reasoning_effort; stands on the decision"
    )
    price_above: PriceAbove | None = optional(
        "Prices of calls with a longer input, all of their tokens, in place of the two prices; "
        "the last one that fits holds"
    )
    retires_at: Day | None = optional(
        "When its provider retires it, a date or a time in UTC: an alert comes 14 days before"
    )
    answers_as: Aliases | None = optional(
        "Names by which the model itself answers (`answered_by` of a bill), with * for any text, "
        "beside its own and dated snapshots of that"
    )

    def call_of(self, name: str) -> tuple[str, str]:
        """Return what is called, and with which params: different for different models.

        A variant without params is called by its own name.
        """
        called = name if self.params is None else self.variant_of or name
        return called, canonical(self.params or {})

    @model_validator(mode="after")
    def _cache_makes_cheaper(self) -> Self:
        cached = self.cached_input_price_per_m
        if cached is not None and cached > self.input_price_per_m:
            raise refuse(
                Reason.INVALID_FIELD, "cached_input_price_per_m is above input_price_per_m"
            )
        others = (self.cache_write_price_per_m, self.cache_ttl_seconds, self.cache_min_tokens)
        if cached is None and others != (None, None, None):
            raise refuse(Reason.INVALID_FIELD, "has a cache without cached_input_price_per_m")
        return self

    @model_validator(mode="after")
    def _long_inputs_have_a_price_to_compare(self) -> Self:
        if self.price_above is not None and self.input_price_per_m + self.output_price_per_m <= 0:
            raise refuse(Reason.INVALID_FIELD, "price_above needs input and output prices above 0")
        return self


class Cap(Content):
    """Limit the spend of one period in dollars: a token bucket that refills evenly over the
    period.
    """

    usd: Annotated[float, Field(gt=0, le=1e9, description="US dollars per period")]
    mode: Annotated[
        Literal["soft", "hard"],
        Field(description="When used up: the cheapest model (soft), or refusal (hard)"),
    ]


class Caps(Content):
    """Limit spend absolutely, per hour, per day, or both."""

    hour: Cap | None = optional()
    day: Cap | None = optional()

    @model_validator(mode="after")
    def _some_period(self) -> Self:
        if self.hour is None and self.day is None:
            raise refuse(Reason.INVALID_FIELD, "must name hour or day, or both")
        return self


class SessionBudget(Content):
    """Limit what the calls of one session may cost together."""

    budget_usd: SessionUsd | None = optional(
        "US dollars of each session whose requests say none; absent: such a session has no limit"
    )
    when_spent: Literal["cheapest", "refuse"] | None = optional(
        "What follows when no model costs as little as is left: the cheapest answers (default), or "
        "the request is refused with session_spent"
    )


class RouterDeclared(Event):
    """Declare the whole router. A knob that is absent follows the profile's default."""

    model_config = documented(
        TOPIC,
        valid=[
            {
                "router_id": "acme.chat",
                "models": {
                    "llama-3.1-8b": {"input_price_per_m": 0.02, "output_price_per_m": 0.05},
                    "mistral-large": {
                        "input_price_per_m": 0.4,
                        "output_price_per_m": 2.0,
                        "prior": {"like": "llama-3.1-8b", "n_eff": 50.0},
                        "onboarding_pulls": 10,
                        "cached_input_price_per_m": 0.04,
                        "cache_ttl_seconds": 300,
                        "offers": {"context_window": 128000, "tools": True, "regions": ["eu"]},
                    },
                },
                "budget_usd_per_request": 0.000662,
                "caps": {
                    "hour": {"usd": 5.0, "mode": "soft"},
                    "day": {"usd": 60.0, "mode": "hard"},
                },
            },
            {
                "router_id": "acme.search",
                "models": {
                    "free": {
                        "input_price_per_m": 0,
                        "output_price_per_m": 0,
                        "prior": {"A": [[2.0, 0.5], [0.5, 4.0]], "b": [0.3, 3.1], "n_eff": 100.0},
                    },
                    "billed": {
                        "input_price_per_m": 0.5,
                        "output_price_per_m": 1.5,
                        "cost_prior": {
                            "A": [[2.0, 0.5], [0.5, 4.0]],
                            "b": [-3.0, -31.0],
                            "mean_usd": 0.0005,
                        },
                    },
                },
                "profile": "paper",
                "dimensions": 2,
                "gamma": 0.997,
                "seed": 7,
            },
            {"router_id": "acme.idle", "models": {}},
            {
                "router_id": "acme.shop",
                "models": {"m": {"input_price_per_m": 0.4, "output_price_per_m": 2.0}},
                "budget": [
                    {"usd": 20000, "per": "month", "timezone": "Europe/Berlin", "carry": "none"},
                    {"usd": 1200, "per": "day", "timezone": "Europe/Berlin"},
                ],
                "when_spent": "cheapest",
                "traffic": {"per_week": 250000},
                "max_cost_per_request_usd": 0.5,
                "min_reward": {"of_best": 0.98},
                "usd_per_second": 0.001,
            },
            {
                "router_id": "acme.voice",
                "models": {"m": {"input_price_per_m": 0.4, "output_price_per_m": 2.0}},
                "latency_target": {"p95_ms": 1200, "of": "first_token"},
            },
            {
                "router_id": "acme.mail",
                "models": {
                    "s": {"input_price_per_m": 0.1, "output_price_per_m": 0.4},
                    "m": {"input_price_per_m": 0.4, "output_price_per_m": 2.0},
                },
                "incumbent": {"s": 0.8, "m": 0.2},
                "mode": "route",
                "share": 0.1,
                "by": "session",
                "holdout": 0.02,
            },
            {
                "router_id": "acme.desk",
                "models": {"m": {"input_price_per_m": 0.4, "output_price_per_m": 2.0}},
                "family": {"name": "support", "gives": False},
            },
            {
                "router_id": "acme.think",
                "models": {
                    "gpt-x": {"input_price_per_m": 1.25, "output_price_per_m": 10.0},
                    "gpt-x-high": {
                        "input_price_per_m": 1.25,
                        "output_price_per_m": 10.0,
                        "variant_of": "gpt-x",
                        "params": {"reasoning_effort": "high"},
                    },
                    "long": {
                        "input_price_per_m": 1.25,
                        "output_price_per_m": 10.0,
                        "price_above": [
                            {
                                "input_tokens": 200000,
                                "input_price_per_m": 2.5,
                                "output_price_per_m": 15.0,
                            }
                        ],
                        "retires_at": "2027-03-31",
                        "answers_as": ["gemini-*"],
                    },
                },
            },
            {
                "router_id": "acme.help",
                "models": {"m": {"input_price_per_m": 0.4, "output_price_per_m": 2.0}},
                "sources": {"gold": "human", "judges": ["judge-v2"]},
                "labels": {"want": 50, "per": "day", "steps": 5},
                "label_url": "https://traces.acme.com/{request_id}",
            },
            {
                "router_id": "acme.code",
                "models": {
                    "small": {"input_price_per_m": 0.1, "output_price_per_m": 0.3},
                    "large": {"input_price_per_m": 3.0, "output_price_per_m": 15.0},
                },
                "budget_usd_per_request": 0.002,
                "verifiers": {
                    "tests": {"usd": 0, "exact": True},
                    "judge": {"usd": 0.00004, "bins": 3},
                },
                "max_attempts": 2,
            },
            {
                "router_id": "acme.law",
                "models": {"m": {"input_price_per_m": 0.4, "output_price_per_m": 2.0}},
                "dimensions": 17,
                "projection": {"ref": "law", "sha256": "0" * 64},
            },
        ],
        invalid={
            Reason.MISSING_FIELD: {"router_id": "acme.chat"},
            Reason.INVALID_FIELD: {
                "router_id": "acme.chat",
                "models": {"m": {"input_price_per_m": -1.0, "output_price_per_m": 1.0}},
            },
            Reason.WRONG_PRIOR: {
                "router_id": "acme.chat",
                "models": {
                    "m": {
                        "input_price_per_m": 1.0,
                        "output_price_per_m": 1.0,
                        "prior": {"A": [[1.0, 0.0]], "b": [1.0]},
                    }
                },
            },
        },
    )

    models: Annotated[
        dict[ModelName, ModelDeclared],
        Field(fail_fast=True, description="The portfolio, by name; may be empty"),
    ]
    budget_usd_per_request: Annotated[float, Field(gt=0, le=1000)] | None = optional(
        "Mean US dollars per request; absent: λ_t is 0 and spend is only counted"
    )
    budget: Budgets | None = optional(
        "Dollars of a period, paced over the traffic that is still expected; of several the "
        "tightest binds"
    )
    pool: RouterId | None = optional(
        "The pool whose grants limit what the router spends, beside its own budgets"
    )
    when_spent: WhenSpent | None = optional(
        "What follows when nothing is left: the cheapest model (default), refusal, or as before"
    )
    traffic: TrafficExpected | None = optional("What traffic is expected; absent: learned")
    max_cost_per_request_usd: Annotated[float, Field(gt=0, le=1000)] | None = optional(
        "No model is called that is expected to cost more US dollars than this"
    )
    min_reward: Floor | None = optional(
        "Least expected reward on average, or as a share of what the best models would earn; the "
        "cheapest choice above it is made, within the budget"
    )
    latency_target: LatencyTarget | None = optional(
        "How long calls may take; kept beside the budget, which wins where both can't be"
    )
    usd_per_second: SecondPriced | None = optional(
        "US dollars that a second of waiting is worth, in the choice and not on the bill; in place "
        "of latency_target, beside a budget"
    )
    caps: Caps | None = optional()
    sessions: SessionBudget | None = optional(
        "What an agent's run may spend: all calls of a session together"
    )
    family: Annotated[Membership, BeforeValidator(_named)] | None = optional(
        "Routers that learn from each other: the family's name, or name, gives and takes"
    )
    sources: Sources | None = optional(
        "Whose labels are gold, and which judges are measured by them; absent: labels rank as "
        "workers are set"
    )
    labels: LabelsWanted | None = optional(
        "How many labels people can give: the router says which requests they are asked about"
    )
    label_url: LabelUrl | None = optional(
        "Where the team keeps a request's answer, with {request_id} in it; beside labels"
    )
    incumbent: Incumbent | None = optional(
        "What was used before the router: one of its models, or a mix of them with shares; it "
        "answers what is not routed"
    )
    mode: Mode | None = optional(
        "observe: the incumbent answers everything, and the router says what it would have done; "
        "absent: route"
    )
    share: UnitInterval | None = optional("Share of the requests that is routed; absent: all")
    by: Unit | None = optional(
        "What is drawn for the share and the hold-out: a session, or each request (default)"
    )
    holdout: Holdout | None = optional(
        "Share of the requests that the incumbent keeps for good; absent: none"
    )
    verifiers: (
        Annotated[dict[Label, VerifierDeclared], Field(min_length=1, max_length=MAX_VERIFIERS)]
        | None
    ) = optional(
        "What looks at answers, by name: where it pays, a cheap model answers first, and a "
        "dearer one only if the answer does not pass"
    )
    max_attempts: Annotated[int, Field(ge=1, le=3)] | None = optional(
        "Most calls of one request; absent: 2 where there are verifiers"
    )
    ramp: Ramp | None = optional(
        "Shares in place of one, rising: the next is in force once the router is shown not to be "
        "worse than the incumbent by more than margin, and on its budget"
    )
    margin: UnitInterval | None = optional(
        "Reward by which the router may be worse than the incumbent, on a ramp; absent: 0"
    )
    profile: Literal["live", "paper"] = "live"
    dimensions: Annotated[
        int, Field(ge=2, le=MAX_DIMENSIONS, description="d of contexts and priors")
    ] = 26
    projection: Reference | None = optional(
        "What makes contexts of prompts, chosen when the router is created; absent: the workers' "
        "own projection"
    )
    gamma: Annotated[float, Field(gt=0, le=1)] | None = optional(
        "Forgetting per step; 1 never forgets"
    )
    alpha: Annotated[float, Field(ge=0, le=100)] | None = optional(
        "Weight of the exploration bonus"
    )
    lambda_c: Annotated[float, Field(ge=0, le=100)] | None = optional("Weight of cost beside λ_t")
    t_adapt: Annotated[float, Field(gt=0, le=1e6)] | None = optional(
        "Rewards after which new evidence outweighs a prior; n_eff = (γ^(-t_adapt) - 1) ÷ (1 - γ)"
    )
    ridge: Annotated[float, Field(gt=0, le=1e6)] | None = optional("λ_0 of A = λ_0·I + Σ xxᵀ")
    v_max: Annotated[float, Field(ge=1, le=1e6)] | None = optional(
        "Largest growth of the variance by staleness"
    )
    epsilon: UnitInterval | None = optional(
        "Share of requests routed at random, for propensities below 1"
    )
    seed: Annotated[int, Field(ge=0, le=LARGEST_INT)] | None = optional(
        "Seed of ties and exploration"
    )
    error_reward: UnitInterval | None = optional(
        "Reward that a call which failed counts as; absent: nothing is learned of it"
    )
    snapshot: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]+={0,2}$")] | None = optional(
        "What `pbstream snapshot export` wrote, in base64: the router goes on from it when it "
        "starts; ignored afterwards"
    )

    @field_validator("models")
    @classmethod
    def _portfolio_is_bounded(cls, models: dict[str, ModelDeclared]) -> dict[str, ModelDeclared]:
        if len(models) > MAX_MODELS:
            raise refuse(Reason.TOO_MANY_MODELS, "has more than 1,000 models")
        return models

    @model_validator(mode="after")
    def _incumbent_is_known(self) -> Self:
        said = (self.mode, self.share, self.by, self.holdout, self.ramp, self.margin)
        models = self.incumbent
        if models is None and any(one is not None for one in said):
            raise refuse(
                Reason.MISSING_FIELD, "mode, share, by, holdout, ramp and margin need an incumbent"
            )
        if self.ramp is not None and self.share is not None:
            raise refuse(Reason.INVALID_FIELD, "a ramp has the shares: leave share out")
        if self.margin is not None and self.ramp is None:
            raise refuse(Reason.MISSING_FIELD, "margin needs a ramp")
        for name in (models,) if isinstance(models, str) else models or ():
            if name not in self.models:
                raise refuse(Reason.INVALID_FIELD, "incumbent names a model that is not declared")
        return self

    @model_validator(mode="after")
    def _variants_are_of_models(self) -> Self:
        calls = set[tuple[str, str]]()
        for name, model in self.models.items():
            base = model.variant_of
            if base == name:
                raise refuse(Reason.INVALID_FIELD, "a model is declared a variant of itself")
            if base in self.models and self.models[base].variant_of is not None:
                raise refuse(
                    Reason.INVALID_FIELD,
                    "a variant is declared of a variant: name the model that both are variants of",
                )
            if (call := model.call_of(name)) in calls:
                raise refuse(
                    Reason.INVALID_FIELD,
                    "two models are the same call: give variants params that no other one has",
                )
            calls.add(call)
        return self

    @model_validator(mode="after")
    def _times_are_said_once(self) -> Self:
        if self.latency_target is not None and self.usd_per_second is not None:
            raise refuse(
                Reason.INVALID_FIELD, "the router has latency_target and usd_per_second: give one"
            )
        return self

    @model_validator(mode="after")
    def _labels_have_a_budget(self) -> Self:
        if self.label_url is not None and self.labels is None:
            raise refuse(Reason.MISSING_FIELD, "label_url needs labels")
        return self

    @model_validator(mode="after")
    def _attempts_have_verifiers(self) -> Self:
        if self.max_attempts is not None and self.verifiers is None:
            raise refuse(Reason.MISSING_FIELD, "max_attempts needs verifiers")
        return self

    @model_validator(mode="after")
    def _priors_fit(self) -> Self:
        for name, model in self.models.items():
            if isinstance(model.prior, InlinePrior) and len(model.prior.b) != self.dimensions:
                raise refuse(Reason.WRONG_PRIOR, "a prior does not have the router's dimensions")
            if model.cost_prior is not None and len(model.cost_prior.b) != self.dimensions:
                raise refuse(
                    Reason.WRONG_PRIOR, "a cost prior does not have the router's dimensions"
                )
            if isinstance(model.prior, LikePrior) and model.prior.like == name:
                raise refuse(Reason.WRONG_PRIOR, "a model is declared to be like itself")
        return self


def decode_router(*, key: bytes | None, value: bytes | None) -> tuple[str, RouterDeclared | None]:
    """Return the router's id and its declaration; None instead of a declaration: the router is
    gone. See `decode_declared`."""
    return decode_declared(RouterDeclared, key=key, value=value)
