"""Topic `costs`: what a routed request really cost.

Key: router_id, raw UTF-8. Version 1. Compatible: new optional fields.
Not compatible: a new required field, another unit.
"""

from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from schemas.event import Event, documented, optional
from schemas.fields import ModelName, RequestId, Revision, Tokens, refuse
from schemas.reasons import Reason
from schemas.verifiers import Attempt

TOPIC: Final = "costs"
KEY: Final = "router_id"
"""The topic behind its prefix, and the field that its records are keyed by."""
MAX_COST_USD: Final = 1000.0
"""Most dollars of one call: a higher bill is a mistake, such as a bill in another unit."""
MAX_RETRY_SECONDS: Final = 86_400.0
"""Most seconds of `retry_after_seconds`: a day."""
MAX_MILLISECONDS: Final = 86_400_000.0
"""Most milliseconds of one call: a day."""
Status = Literal["ok", "error", "timeout", "rate_limited", "refused", "cancelled", "gone"]
"""Ends of a call: `refused` is an answer that a provider withheld, `cancelled` an answer that the
caller did not wait for, or asked for in a way that no such model supports. `gone`: the provider no
longer has the model."""
Milliseconds = Annotated[float, Field(ge=0, le=MAX_MILLISECONDS)]


class CostReported(Event):
    """Report the bill of one request, in dollars or in tokens; `cost_usd` wins over tokens."""

    model_config = documented(
        TOPIC,
        valid=[
            {"router_id": "acme.chat", "request_id": "r-1", "cost_usd": 0.00031},
            {
                "router_id": "acme.chat",
                "request_id": "r-2",
                "input_tokens": 68,
                "output_tokens": 412,
            },
            {"router_id": "acme.chat", "request_id": "r-1", "cost_usd": 0.00029, "revision": 1},
            {
                "router_id": "acme.chat",
                "request_id": "r-3",
                "cost_usd": 2e-05,
                "model": "llama-3.1-8b",
                "latency_ms": 812,
                "first_token_ms": 190,
            },
            {
                "router_id": "acme.chat",
                "request_id": "r-4",
                "cost_usd": 0,
                "status": "rate_limited",
                "retry_after_seconds": 2,
            },
            {"router_id": "acme.code", "request_id": "r-5", "cost_usd": 0.004, "attempt": 1},
            {
                "router_id": "acme.chat",
                "request_id": "r-6",
                "cost_usd": 0.0004,
                "answered_by": "llama-3.3-8b",
            },
            {"router_id": "acme.chat", "request_id": "r-7", "cost_usd": 0, "status": "gone"},
        ],
        invalid={
            Reason.MISSING_FIELD: {
                "router_id": "acme.chat",
                "request_id": "r-1",
                "input_tokens": 68,
            },
            Reason.COST_OUT_OF_RANGE: {
                "router_id": "acme.chat",
                "request_id": "r-1",
                "cost_usd": -0.01,
            },
            Reason.INVALID_FIELD: {
                "router_id": "acme.chat",
                "request_id": "r-1",
                "cost_usd": "0.01",
            },
        },
    )

    request_id: RequestId
    cost_usd: Annotated[float, Field(ge=0, le=MAX_COST_USD)] | None = optional(
        "US dollars, as billed"
    )
    input_tokens: Tokens | None = optional("Priced as at the decision")
    output_tokens: Tokens | None = optional("Priced as at the decision")
    cached_input_tokens: Tokens | None = optional(
        "Those of the input tokens that were read from the model's cache"
    )
    model: ModelName | None = optional(
        "Which model was called, where that is known; absent: the decided one"
    )
    answered_by: ModelName | None = optional(
        "Which model answered, as the provider says it: another one than was called is a redirect, "
        "whose label counts for no model; the called one's dated snapshots are the called one"
    )
    revision: Revision = 0
    attempt: Attempt | None = optional(
        "Which call of the request's plan it is of, from 0; absent: the first"
    )
    status: Status | None = optional(
        "How the call ended; absent: with an answer. A bill of a call without one may be of nothing"
    )
    retry_after_seconds: Annotated[float, Field(ge=0, le=MAX_RETRY_SECONDS)] | None = optional(
        "For how long the model wants to be left alone"
    )
    latency_ms: Milliseconds | None = optional("From the call to the end of the answer")
    first_token_ms: Milliseconds | None = optional("From the call to the first token")

    @property
    def subject(self) -> str:
        """The id of the request that the bill is of."""
        return self.request_id

    @property
    def tokens(self) -> tuple[int, int] | None:
        """Input and output tokens, where both are known."""
        into, out = self.input_tokens, self.output_tokens
        return None if into is None or out is None else (into, out)

    @model_validator(mode="after")
    def _some_bill(self) -> Self:
        if self.cost_usd is None and self.tokens is None:
            raise refuse(
                Reason.MISSING_FIELD,
                "the bill has neither cost_usd nor both of input_tokens and output_tokens; a call "
                "that cost nothing has cost_usd 0",
            )
        cached, tokens = self.cached_input_tokens, self.input_tokens
        if cached is not None and tokens is not None and cached > tokens:
            raise refuse(Reason.INVALID_FIELD, "cached_input_tokens are more than input_tokens")
        return self
