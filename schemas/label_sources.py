"""Sources of labels: how a router declares them, and how judges compare with gold."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from schemas.event import Content, optional
from schemas.fields import Count, Label, ModelName, NonNegative, refuse
from schemas.reasons import Reason

MOST_JUDGES = 8
"""Most judges of a router: each keeps sums for each model."""
PERSON = ":"
"""Stands between a source and the name of who labelled, as in the core."""

Calibrate = Literal["off", "offset", "on"]
"""Names of the corrections of a judge's labels."""


class Sources(Content):
    """Say which labels are gold, and which judges are measured by them.

    The name of a source includes its version: a new version is a new source, of which nothing is
    known yet.
    """

    gold: Annotated[
        Label,
        Field(
            description="The source whose labels count: human; a person's are human:NAME, and of "
            "several people's labels of one answer the mean counts"
        ),
    ]
    judges: Annotated[
        tuple[Label, ...],
        Field(max_length=MOST_JUDGES, description="Sources that rank below gold, the best first"),
    ] = ()

    calibrate: dict[Label, Calibrate] | None = optional(
        "By judge what is learned of its labels: off, by default, what they say; offset: less its "
        "offset on the model; on: nothing, moreover, once the judge says nothing of answers"
    )

    @model_validator(mode="after")
    def _each_is_another(self) -> Self:
        if len(set(self.judges)) < len(self.judges):
            raise refuse(Reason.INVALID_FIELD, "names a judge twice")
        if any(name == self.gold or name.startswith(self.gold + PERSON) for name in self.judges):
            raise refuse(Reason.INVALID_FIELD, "names gold as a judge, too")
        if unknown := sorted(set(self.calibrate or {}) - set(self.judges)):
            raise refuse(Reason.INVALID_FIELD, f"calibrates {unknown[0]!r}, which is not a judge")
        return self


class Estimate(Content):
    """Give an estimate, and the ends of its 95 % interval, which holds at every look."""

    value: float
    low: float
    high: float


class ModelMeasured(Content):
    """Say how a judge's labels of one model differ from gold."""

    model: ModelName
    pairs: Annotated[Count, Field(description="Requests with a gold label and the judge's")]
    offset: Annotated[Estimate, Field(description="Mean of the judge's label less the gold one")]
    favour: Estimate | None = optional("Offset less the mean offset of the other models")
    taken_off: float | None = optional("What is taken off the judge's labels of the model")
    lately: Estimate | None = optional(
        "Offset over the last pairs, 128 at most; absent: there are no others"
    )


class SourceStanding(Content):
    """Say what is known of a source of labels."""

    source: Label
    gold: bool
    pairs: Count | None = optional("Requests with a gold label and the judge's")
    agreement: Estimate | None = optional(
        "Correlation of both labels within models; absent: too little is known"
    )
    slope: Estimate | None = optional("By how much gold grows with the judge's label within models")
    calibrate: Calibrate | None = optional("As it is declared; absent: off")
    advice: Calibrate | None = optional("The `calibrate` that is recommended; absent: none")
    set_aside: bool | None = optional(
        "True: the judge says nothing of an answer, so its labels are not learned"
    )
    judged_again: Count | None = optional("Answers that the judge has judged more than once")
    since_then: Estimate | None = optional("Its last label of those less its first one, on average")
    models: tuple[ModelMeasured, ...] | None = optional("By model, the 64 with the most pairs")
    double_labels: Count | None = optional("Pairs of people who labelled the same answer")
    apart: NonNegative | None = optional("How far two people part, the root of the mean square")
