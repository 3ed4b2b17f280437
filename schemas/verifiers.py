"""Verifiers, which look at answers before they are returned, and the plans that rest on them."""

from typing import Annotated

from pydantic import Field

from schemas.event import Content, optional
from schemas.fields import Count, Label, ModelName, NonNegative, UnitInterval
from schemas.label_sources import Estimate

MAX_VERIFIERS = 8
"""Most verifiers of a router."""
MAX_BINS = 8
"""Most bins of a verdict."""
MAX_ATTEMPT = 15
"""Largest number of a call: more than any plan has."""

Attempt = Annotated[int, Field(ge=0, le=MAX_ATTEMPT)]
Verifiers = Annotated[tuple[Label, ...], Field(max_length=MAX_VERIFIERS, fail_fast=True)]


class VerifierDeclared(Content):
    """Declare a verifier: tests, a schema, a judge. Its verdict is a number from 0 to 1."""

    usd: Annotated[float, Field(ge=0, le=1000, description="US dollars that a verdict costs")]
    exact: bool = Field(
        default=False, description="Its verdicts are the truth, as those of complete tests"
    )
    bins: Annotated[int, Field(ge=2, le=MAX_BINS)] | None = optional(
        "Into how many bins as wide as each other verdicts are put; absent: 2, passed or not"
    )


class PlanStep(Content):
    """Show one call of a plan, and whether its answer is good enough."""

    model: ModelName
    expected_cost_usd: NonNegative
    probability: UnitInterval | None = optional(
        "Probability with which the call is made; absent: it surely is"
    )
    verify: Label | None = optional("The verifier that looks at the answer; absent: nobody does")
    accept_at: UnitInterval | None = optional(
        "The answer is returned where the verdict is at least this, else the next call is made; "
        "absent: it is returned whatever the verdict"
    )
    verdict_usd: NonNegative | None = optional("US dollars that the verdict costs")


class VerifierMeasured(Content):
    """Say what a verifier's verdicts on one model's answers mean. Intervals hold with a probability
    of 95 %."""

    model: ModelName
    passes_right: Annotated[Estimate, Field(description="Share of right answers that it passes")]
    stops_wrong: Annotated[Estimate, Field(description="Share of wrong answers that it stops")]
    verdicts: Annotated[Count, Field(description="Verdicts on the model's answers; old ones fade")]
    labels: Annotated[Count, Field(description="Labels of answers that have a verdict")]
    family_verdicts: Count | None = optional(
        "Verdicts that count beside, as the router's family told of them; absent: it told nothing"
    )
    family_labels: Count | None = optional(
        "Labels that count beside: what the family told counts for as many; absent: it told nothing"
    )


class VerifierStanding(Content):
    """Say what is known of a verifier."""

    verifier: Label
    usd: Annotated[NonNegative, Field(description="US dollars that a verdict costs")]
    exact: bool
    accept_at: Annotated[
        UnitInterval, Field(description="Least verdict that counts as passed in these shares")
    ]
    models: Annotated[
        tuple[VerifierMeasured, ...], Field(description="By model, the 64 with the most verdicts")
    ]
