"""Capabilities: what a model offers beside quality and price, and what a request needs of it."""

from typing import Annotated

from pydantic import Field

from schemas.event import Content, optional
from schemas.fields import Label, Tokens

Days = Annotated[float, Field(ge=0, le=36_500)]
Room = Annotated[Tokens, Field(ge=1)]


class Offers(Content):
    """Say what a model can do. A model with `offers` lacks every capability that it does not name;
    a limit that it does not name rules nothing out.
    """

    context_window: Room | None = optional("Most tokens of a call's input")
    max_output_tokens: Room | None = optional("Tokens of its longest answer")
    vision: bool = Field(default=False, description="It reads images")
    audio: bool = Field(
        default=False,
        description="It hears sound; where no model of a portfolio says so, it is known of none",
    )
    tools: bool = Field(default=False, description="It calls tools")
    json_output: bool = Field(default=False, description="It answers in JSON, by a schema or not")
    regions: Annotated[tuple[Label, ...], Field(max_length=100)] = Field(
        default=(), description="Where it may run"
    )
    retention_days: Days | None = optional(
        "Days that its provider keeps prompts; 0: not at all; absent: it does not say"
    )


class Needs(Content):
    """Say what a request needs: models that do not offer it are ruled out."""

    vision: bool = Field(default=False, description="The call sends images")
    audio: bool = Field(default=False, description="The call sends sound")
    tools: bool = Field(default=False, description="The call offers tools")
    json_output: bool = Field(default=False, description="The answer has to be JSON")
    output_tokens: Tokens | None = optional("Most tokens of the answer")
    region: Label | None = optional("Where the model has to run")
    max_retention_days: Days | None = optional("Most days that prompts may be kept")
