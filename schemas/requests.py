"""Topic `requests`: one prompt, or its context, that wants a model.

Key: router_id, raw UTF-8. Version 1. Compatible: new optional fields; a wider range of a field.
Not compatible: a new required field, a new meaning.
"""

from typing import Annotated, ClassVar, Final, Self

from pydantic import Field, field_validator, model_validator

from schemas.capabilities import Needs
from schemas.event import Content, Event, documented, optional
from schemas.fields import (
    Count,
    JsonObject,
    Label,
    ModelName,
    RequestId,
    Tokens,
    UnitInterval,
    refuse,
)
from schemas.prompt_length import input_tokens, is_wordless
from schemas.reasons import Reason
from schemas.verifiers import MAX_VERIFIERS, Verifiers

TOPIC: Final = "requests"
KEY: Final = "router_id"
"""The topic behind its prefix, and the field that its records are keyed by."""
MAX_PROMPT_BYTES: Final = 1_048_576
"""Largest prompt, in bytes of UTF-8; a worker may take less (PB_PROMPT_BYTES)."""
MAX_DIMENSIONS: Final = 1024
"""Most numbers of a context, the bias included."""

MIN_SESSION_USD: Final = 1e-6
MAX_SESSION_USD: Final = 1e6
"""Least and most US dollars that the budget of a session may be."""
MAX_REPEATS: Final = 1000
"""Largest value of the signal `repeats`."""
SessionUsd = Annotated[float, Field(ge=MIN_SESSION_USD, le=MAX_SESSION_USD)]

Context = Annotated[
    tuple[float, ...],
    Field(
        min_length=2,
        max_length=MAX_DIMENSIONS,
        fail_fast=True,
        description="Features of the prompt, shape (d,), the last one 1.0",
    ),
]
AllowedModels = Annotated[
    tuple[ModelName, ...],
    Field(
        max_length=1000, fail_fast=True, description="The only models that may answer; at least one"
    ),
]

_CONTEXT = [0.25] * 25 + [1.0]
"""Context of the examples: 25 features, and the bias 1.0."""


class Signals(Content):
    """Give signals about an answer, besides verdicts."""

    tests_passed: UnitInterval | None = optional("Share of the tests that passed")
    repeats: Annotated[Count, Field(le=MAX_REPEATS)] | None = optional(
        "How often the agent has done the same thing again since"
    )
    severity: UnitInterval | None = optional("How bad an error is, from 0 to 1")


class RequestNamed(Event):
    """Identify a request whose body is wrong: if the request has its answer already, it gets the
    same answer again.
    """

    request_id: RequestId


class RequestSubmitted(Event):
    """Ask for a decision; `context` wins over `prompt`, and the encoder is skipped."""

    model_config = documented(
        TOPIC,
        valid=[
            {
                "router_id": "acme.chat",
                "request_id": "r-1",
                "prompt": "Name the largest moon of Saturn.",
            },
            {
                "router_id": "acme.chat",
                "request_id": "r-2",
                "context": _CONTEXT,
                "input_tokens": 68,
                "allowed_models": ["llama-3.1-8b", "mistral-large"],
                "max_price_per_1k": 0.01,
                "needs": {"tools": True, "region": "eu"},
                "metadata": {"tenant": "blue", "trace": ["a", 1]},
            },
        ],
        invalid={
            Reason.MISSING_FIELD: {"router_id": "acme.chat", "prompt": "Hello"},
            Reason.INVALID_FIELD: {
                "router_id": "acme chat",
                "request_id": "r-1",
                "prompt": "Hello",
            },
            Reason.MISSING_PROMPT: {"router_id": "acme.chat", "request_id": "r-1"},
            Reason.EMPTY_PROMPT: {"router_id": "acme.chat", "request_id": "r-1", "prompt": " "},
            Reason.WRONG_CONTEXT: {
                "router_id": "acme.chat",
                "request_id": "r-1",
                "context": [0.5, 0.5],
            },
            Reason.NO_ALLOWED_MODEL: {
                "router_id": "acme.chat",
                "request_id": "r-1",
                "prompt": "Hello",
                "allowed_models": [],
            },
        },
    )

    written_by_people: ClassVar[frozenset[str]] = frozenset({"prompt", "metadata"})

    request_id: RequestId
    prompt: str | None = optional(
        "Text to be routed, up to 1 MiB of UTF-8; it may be absent or empty where `needs` says "
        "that the call sends an image or sound"
    )
    context: Context | None = optional()
    allowed_models: AllowedModels | None = optional()
    max_price_per_1k: Annotated[float, Field(ge=0, le=1e6)] | None = optional(
        "US dollars per 1,000 tokens, mean of input and output price; dearer models are excluded"
    )
    input_tokens: Tokens | None = optional(
        "Tokens that the call sends, as far as they are known before it: only what it costs on top "
        "is then guessed"
    )
    metadata: JsonObject | None = optional()
    session_id: Label | None = optional("The conversation that the request belongs to")
    session_budget_usd: SessionUsd | None = optional(
        "US dollars that all calls of this session may cost together; in place of the router's "
        "`sessions.budget_usd`, for the session's later requests, too"
    )
    verifiers: Verifiers | None = optional(
        "Which of the router's verifiers can look at this answer, or none; absent: all"
    )
    needs: Needs | None = optional("What the model must offer; absent: nothing in particular")
    follows: RequestId | None = optional(
        "The request that this one tries again: it is decided given what was seen of that one's "
        "answer, from the models that were not tried"
    )
    verdicts: Annotated[dict[Label, UnitInterval], Field(max_length=MAX_VERIFIERS)] | None = (
        optional("Verdicts on the last answer of the request that it follows, by verifier")
    )
    signals: Signals | None = optional(
        "What else was seen of the answer of the request that it follows"
    )

    @property
    def tokens_before(self) -> int | None:
        """The input tokens as far as they are known before the call: as stated in the request, else
        by the prompt's length."""
        return input_tokens(self.input_tokens, self.prompt)

    @property
    def is_wordless(self) -> bool:
        """True for an image or sound without text: it is routed on the mean context."""
        return self.context is None and is_wordless(self.prompt, self.needs)

    @field_validator("context")
    @classmethod
    def _bias_is_one(cls, context: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if context is not None and context[-1] != 1.0:
            raise refuse(Reason.WRONG_CONTEXT, "must end with the bias 1.0")
        return context

    @field_validator("allowed_models")
    @classmethod
    def _some_model_is_allowed(cls, models: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if models is not None and not models:
            raise refuse(Reason.NO_ALLOWED_MODEL, "is empty; it must name a model")
        return models

    @model_validator(mode="after")
    def _a_budget_has_a_session(self) -> Self:
        if self.session_budget_usd is not None and self.session_id is None:
            raise refuse(Reason.MISSING_FIELD, "session_budget_usd needs session_id")
        return self

    @model_validator(mode="after")
    def _what_was_seen_is_of_another_request(self) -> Self:
        if self.follows is None and not (self.verdicts is None and self.signals is None):
            raise refuse(Reason.MISSING_FIELD, "verdicts and signals need follows")
        if self.follows == self.request_id:
            raise refuse(Reason.INVALID_FIELD, "a request can't follow itself")
        return self

    @model_validator(mode="after")
    def _something_to_route(self) -> Self:
        prompt = self.prompt
        if self.context is None and not is_wordless(prompt, self.needs):
            if prompt is None:
                raise refuse(Reason.MISSING_PROMPT, "the request has neither prompt nor context")
            if not prompt or prompt.isspace():
                raise refuse(Reason.EMPTY_PROMPT, "the prompt is empty")
            # A character has at most 4 bytes, so that almost no prompt is encoded to be measured.
            if 4 * len(prompt) > MAX_PROMPT_BYTES and len(prompt.encode()) > MAX_PROMPT_BYTES:
                raise refuse(Reason.PROMPT_TOO_LARGE, "the prompt is over 1 MiB of UTF-8")
        return self
