"""Define a scenario: a YAML file of events and policies, checked before anything runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    WrapValidator,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from ground.files.yaml_text import BadYaml, read_yaml
from router_state.config import Knobs
from schemas.fields import innermost

CLOSED = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
"""Rules of a scenario: a misspelt field is an error, not left out."""

Model = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        description="Name of a model of the router; or $cheapest, $middle, $dearest of them",
    ),
]
Index = Annotated[int, Field(ge=0, description="Index of a request, from 0")]
Percent = Annotated[
    str, Field(pattern=r"^\d{1,3}(\.\d+)?%$", description='Share of the history, as "33%"')
]


def _or(message: str) -> WrapValidator:
    """Say this where a value has none of several forms, instead of what each form would need."""

    def check(value: object, handler: Callable[[object], object]) -> object:
        try:
            return handler(value)
        except ValidationError:
            raise ValueError(message) from None

    return WrapValidator(check)


Point = Annotated[
    Index | Percent | datetime,
    Field(description='When: index of a request, share ("33%") or RFC 3339 time'),
    _or('must be the index of a request, a share such as "33%", or an RFC 3339 time'),
]
Share = Annotated[float, Field(ge=0, le=1)]
Milliseconds = Annotated[float, Field(gt=0, le=86_400_000)]
Kind = Literal["costs", "rewards", "both"]


ROLES = {"$cheapest": 0.0, "$middle": 0.5, "$dearest": 1.0}
"""Names that stand for a model of any history, by its place among list prices."""


class BadScenario(Exception):
    """The scenario can't be run; the message has one line a problem."""

    reason = "bad_scenario"
    retriable = False


class Happening(BaseModel):
    """An event of a scenario: it begins at the point `at` and, if `until` is given, ends there."""

    model_config = CLOSED

    at: Point = 0
    until: Point | None = None
    label: str | None = Field(
        default=None, max_length=80, description="What the report writes at the mark"
    )

    @field_validator("at", "until", mode="after")
    @classmethod
    def _utc(cls, value: object) -> object:
        return (
            # YAML reads a time without a zone as a naive one; the topics have none but UTC.
            value.replace(tzinfo=UTC)
            if isinstance(value, datetime) and value.tzinfo is None
            else value
        )


class PriceChange(Happening):
    """A model's price changes: bills by `factor` and, if announced, its list prices too; `over`
    requests make it a ramp.
    """

    kind: Literal["price"]
    model: Model
    factor: Annotated[float, Field(gt=0, le=1e6)]
    announced: bool = Field(
        default=True, description="False: bills change, the declaration does not"
    )
    over: Annotated[int, Field(ge=0)] = Field(
        default=0, description="Requests over which the price moves, in 20 steps"
    )


class Quality(Happening):
    """A change of what a model's answers are worth: every reward becomes `to`, or is moved by
    `shift`, or multiplied by `factor`.
    """

    kind: Literal["quality"]
    model: Model
    to: Share | None = None
    shift: Annotated[float, Field(ge=-1, le=1)] | None = None
    factor: Annotated[float, Field(ge=0, le=10)] | None = None
    over: Annotated[int, Field(ge=0)] = Field(default=0, description="Requests over which it moves")

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if sum(value is not None for value in (self.to, self.shift, self.factor)) != 1:
            raise ValueError("say one of to, shift, factor")
        return self


class Outage(Happening):
    """Calls of a model fail: reward 0, no bill. If announced, its operator removes it from the
    declaration meanwhile.
    """

    kind: Literal["outage"]
    model: Model
    announced: bool = False


class Added(Happening):
    """A model joins the declaration. Its prices are the history's unless they are given."""

    kind: Literal["add"]
    model: Model
    input_price_per_m: Annotated[float, Field(ge=0, le=1e6)] | None = None
    output_price_per_m: Annotated[float, Field(ge=0, le=1e6)] | None = None
    onboarding_pulls: Annotated[int, Field(ge=0, le=10_000)] | None = None


class Removed(Happening):
    """A model leaves the declaration; `until`: it comes back."""

    kind: Literal["remove"]
    model: Model


class Traffic(Happening):
    """The number of requests in the same time is multiplied; requests are evenly repeated or left
    out.
    """

    kind: Literal["traffic"]
    factor: Annotated[float, Field(gt=0, le=1000)]


class Delay(Happening):
    """Bills or rewards come this many requests later than recorded or, with `to`, this many
    requests after their decision.
    """

    kind: Literal["delay"]
    what: Kind = "both"
    by: Annotated[int, Field(ge=0)] | None = None
    to: Annotated[int, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if (self.by is None) == (self.to is None):
            raise ValueError("say one of by, to")
        return self


class Loss(Happening):
    """A share of bills or rewards never comes."""

    kind: Literal["lose"]
    what: Kind = "both"
    share: Share


class Duplication(Happening):
    """A share of bills or rewards comes twice."""

    kind: Literal["duplicate"]
    what: Kind = "both"
    share: Share


class Budget(Happening):
    """The budget or the floor of rewards changes. A budget is either per request (null: no budget),
    or in dollars of a period, which replaces all budgets.
    """

    kind: Literal["budget"]
    usd_per_request: Annotated[float, Field(gt=0)] | None = None
    factor: Annotated[float, Field(gt=0, le=1e6)] | None = Field(
        default=None, description="Times the budget per request that the router has"
    )
    usd: Annotated[float, Field(ge=0, le=1e9)] | None = Field(
        default=None, description="Dollars of the period `per`"
    )
    per: Literal["hour", "day", "week", "month"] | None = None
    timezone: Annotated[str, Field(max_length=64)] = "UTC"
    min_reward: Share | None = None

    @model_validator(mode="after")
    def _says_one(self) -> Self:
        of_period = self.usd is not None
        if of_period != (self.per is not None):
            raise ValueError("a budget of a period needs usd and per")
        of_request = "usd_per_request" in self.model_fields_set
        if not (of_period or of_request or self.factor) and self.min_reward is None:
            raise ValueError("say one of usd_per_request, factor, usd and per, min_reward")
        if of_period + of_request + (self.factor is not None) > 1:
            raise ValueError("say one of usd_per_request, factor, usd and per")
        return self


class Latency(Happening):
    """The target of calls' times, or the price of a second, changes. If neither is given, the
    router has neither from then on.

    A recorded call keeps its time. A call of another model takes the time that is expected of that
    model from the history.
    """

    kind: Literal["latency"]
    p95_ms: Milliseconds | None = Field(
        default=None, description="At most one call in twenty takes longer"
    )
    mean_ms: Milliseconds | None = Field(
        default=None, description="So long does a call take on average at most"
    )
    usd_per_second: Annotated[float, Field(gt=0, le=1000)] | None = None
    of: Literal["answer", "first_token"] = "answer"

    @model_validator(mode="after")
    def _at_most_one(self) -> Self:
        if sum(v is not None for v in (self.p95_ms, self.mean_ms, self.usd_per_second)) > 1:
            raise ValueError("say one of p95_ms, mean_ms, usd_per_second")
        return self


class Slower(Happening):
    """Calls of a model take longer by this factor."""

    kind: Literal["slower"]
    model: Model
    factor: Annotated[float, Field(gt=0, le=1000)]


ScenarioEvent = Annotated[
    PriceChange
    | Quality
    | Outage
    | Added
    | Removed
    | Traffic
    | Delay
    | Loss
    | Duplication
    | Budget
    | Latency
    | Slower,
    Field(discriminator="kind"),
]


class Policy(BaseModel):
    """A policy to be played: a profile of the engine, of which `knobs` may change single knobs, one
    model for every request, a random model (`random`), or the recorded decisions (`recorded`).
    """

    model_config = CLOSED

    name: Annotated[str, Field(min_length=1, max_length=60)]
    profile: Literal["paper", "live", "declared"] | None = None
    model: Model | None = None
    random: bool = False
    recorded: bool = False
    knobs: dict[str, Annotated[bool | int | float, _or("must be a number, or true or false")]] = (
        Field(default_factory=dict, description="Any field of the engine's knobs")
    )

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if sum((self.profile is not None, self.model is not None, self.random, self.recorded)) != 1:
            raise ValueError("say one of profile, model, random, recorded")
        if unknown := sorted(self.knobs.keys() - set(Knobs.__slots__)):
            raise ValueError(
                f"unknown knobs {', '.join(unknown)}; there are {', '.join(Knobs.__slots__)}"
            )
        if self.knobs and self.profile is None:
            raise ValueError("knobs need a profile")
        return self


SHORT = {
    "paper": {"name": "paper", "profile": "paper"},
    "live": {"name": "live", "profile": "live"},
    "declared": {"name": "declared", "profile": "declared"},
    "recorded": {"name": "recorded", "recorded": True},
    "random": {"name": "random", "random": True},
}
"""Policies that a name describes completely; any other name is that of a model that is always
called."""


class Scenario(BaseModel):
    """A scenario: events, and the policies to play. A policy is `paper`, `live`, `declared` (the
    router's own declaration), `recorded`, `random`, the name of a model, or a `Policy`.
    """

    model_config = CLOSED

    name: Annotated[str, Field(min_length=1, max_length=120)] = "as recorded"
    seed: Annotated[int, Field(ge=0)] = 0
    policies: tuple[Policy, ...] = Field(
        default=(Policy(name="declared", profile="declared"),), min_length=1, max_length=12
    )
    events: tuple[ScenarioEvent, ...] = Field(default=(), max_length=200)

    @field_validator("policies", mode="before")
    @classmethod
    def _by_name(cls, value: object) -> object:
        if not isinstance(value, list | tuple):
            return value
        return [
            # A misspelt name becomes a model here, and `World` refuses unknown models.
            SHORT.get(one, {"name": one, "model": one}) if isinstance(one, str) else one
            for one in value
        ]

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [policy.name for policy in self.policies]
        if len(set(names)) < len(names):
            raise ValueError("policies need different names")
        return self


def named(scenario: Scenario, ranked: Sequence[str]) -> Scenario:
    """Return a scenario with the names of `ROLES` replaced by models, the cheapest of them first.

    Raises:
        BadScenario: there is no model that a name could stand for.
    """

    def model(name: str | None) -> str | None:
        place = ROLES.get(name or "")
        if place is None:
            return name
        if not ranked:
            raise BadScenario(f"{name}: no model is both declared and called in this history")
        return ranked[math.ceil(place * (len(ranked) - 1))]

    events = [
        event.model_copy(update={"model": model(getattr(event, "model", None))})
        if hasattr(event, "model")
        else event
        for event in scenario.events
    ]
    policies = {
        one.name: one.model_copy(
            update={"model": model(one.model), "name": model(one.name) or one.name}
        )
        for one in scenario.policies
    }
    # Two names may stand for one model.
    alike = {one.name: one for one in policies.values()}
    return scenario.model_copy(update={"events": tuple(events), "policies": tuple(alike.values())})


def load_scenario(path: Path) -> Scenario:
    """Read a scenario.

    Raises:
        BadScenario: it is not YAML or not valid; one line a problem.
    """
    try:
        body = read_yaml(path)
    except BadYaml as error:
        raise BadScenario(f"{path}: no YAML: {error}") from None
    try:
        return Scenario.model_validate({} if body is None else body)
    except ValidationError as error:
        raise BadScenario("\n".join(_lines(path, error))) from None


def _lines(path: Path, error: ValidationError) -> list[str]:
    found = {}
    for problem in error.errors(include_url=False):
        place = problem["loc"]
        # Pydantic puts an event's kind between its number and its field.
        place = place[:2] + place[3:] if place[:1] == ("events",) else place
        found[".".join(map(str, place)) or "scenario"] = _said(problem)
    return [f"{path}: {where}: {said}" for where, said in innermost(found).items()]


def _said(problem: ErrorDetails) -> str:
    if problem["type"] == "union_tag_not_found":
        return "kind is missing"
    if problem["type"] == "union_tag_invalid":
        return f"kind must be one of {problem['ctx']['expected_tags']}"
    return problem["msg"].removeprefix("Value error, ")
