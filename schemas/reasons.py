"""Reasons of dead letters: the stable codes of header `pb.reason` and of metric labels."""

from enum import StrEnum


class Reason(StrEnum):
    """Name why an event was refused; codes are only ever added, never renamed or reused.

    Each member carries `meaning`: one sentence for operators, the table of docs/reference/wire.md.
    """

    meaning: str

    def __new__(cls, code: str, meaning: str) -> "Reason":
        member = str.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    # Any topic: the form of the event.
    MALFORMED_JSON = (
        "malformed_json",
        "The value is not JSON in strict UTF-8 (a BOM, UTF-16, cut off, nested too deep).",
    )
    MALFORMED_EVENT = (
        "malformed_event",
        "The value is null or JSON but not an object, or has more bytes than can be kept while it "
        "waits (half of `PB_CHANGELOG_BATCH_BYTES`), or a `pb.` header is unreadable.",
    )
    MISSING_FIELD = "missing_field", "A required field is absent."
    INVALID_FIELD = "invalid_field", "A field has the wrong type, length, characters or range."
    NON_FINITE = "non_finite", "A number is NaN, infinite or beyond a 64-bit float."
    WRONG_KEY = "wrong_key", "The record's key is not the `router_id` of its value."
    WRONG_PARTITION = (
        "wrong_partition",
        "Forwarded once and still not on its router's partition: partition counts differ.",
    )
    FROM_THE_FUTURE = (
        "from_the_future",
        "`observed_at` is more than 5 minutes ahead of the worker's clock.",
    )
    INTERNAL_ERROR = (
        "internal_error",
        "The worker failed on this event alone: a defect, to be reported.",
    )

    # Requests.
    UNKNOWN_ROUTER = (
        "unknown_router",
        "No router of this id was declared, or it is gone; a request waits 2 s for it.",
    )
    ROUTER_UNREADABLE = (
        "router_unreadable",
        (
            "The router's state is damaged, or another version of the worker wrote it; it is "
            "kept as it is."
        ),
    )
    EMPTY_PORTFOLIO = "empty_portfolio", "The router is declared without any model."
    MISSING_PROMPT = "missing_prompt", "Neither `prompt` nor `context` is given."
    EMPTY_PROMPT = (
        "empty_prompt",
        (
            "The prompt is empty or only white space, there is no `context`, and `needs` say "
            "neither `vision` nor `audio`."
        ),
    )
    PROMPT_TOO_LARGE = "prompt_too_large", "The prompt is over 1 MiB of UTF-8."
    WRONG_CONTEXT = (
        "wrong_context",
        "`context` is not `dimensions` numbers with 1.0 as the last one, or the norm of the others "
        "is above 10,000.",
    )
    NO_ALLOWED_MODEL = "no_allowed_model", "None of `allowed_models` is in the portfolio."
    NO_AFFORDABLE_MODEL = (
        "no_affordable_model",
        "No allowed model costs at most `max_price_per_1k` or `max_cost_per_request_usd`.",
    )
    NO_CAPABLE_MODEL = (
        "no_capable_model",
        "No allowed model offers what the request `needs`, or has room for its tokens.",
    )
    CAP_REACHED = "cap_reached", "A hard cap in dollars is used up for its period."
    BUDGET_SPENT = (
        "budget_spent",
        "Nothing is left of a period's budget, and the router refuses then (`when_spent`).",
    )
    SESSION_SPENT = (
        "session_spent",
        "Nothing is left of the session's budget, and the router refuses then (`sessions`).",
    )
    CHAIN_TOO_LONG = (
        "chain_too_long",
        "As many requests have followed each other as may (`follows`): 16.",
    )
    ENCODER_UNAVAILABLE = (
        "encoder_unavailable",
        "A prompt came to a worker without an encoder, or without the router's projection.",
    )

    # Costs and rewards.
    ORPHAN_COST = (
        "orphan_cost",
        "No decision of this request within 60 s; booked as `unmatched_cost_usd`.",
    )
    ORPHAN_REWARD = "orphan_reward", "No decision of this request within 60 s."
    COST_OUT_OF_RANGE = (
        "cost_out_of_range",
        "The cost is negative or above $1,000, or a token count is out of range.",
    )
    UNPRICED_MODEL = (
        "unpriced_model",
        "The bill is in tokens of a model that is not in the portfolio; dollars need no price.",
    )
    REWARD_OUT_OF_RANGE = "reward_out_of_range", "The reward is outside [0, 1]."
    VERDICT_OUT_OF_RANGE = "verdict_out_of_range", "The verdict is outside [0, 1]."
    UNKNOWN_VERIFIER = (
        "unknown_verifier",
        "The verdict names a verifier that the router does not declare.",
    )
    ATTEMPT_BEYOND_PLAN = (
        "attempt_beyond_plan",
        "The bill, verdict or reward is of an `attempt` that the request's plan does not have.",
    )

    # Declarations of routers.
    STALE_CONFIG = "stale_config", "`pb.based_on` is not the offset of the declaration in force."
    TOO_MANY_MODELS = "too_many_models", "The portfolio has more models than a router may have."
    TOO_MANY_ROUTERS = "too_many_routers", "The worker holds as many routers as it may."
    TOO_MANY_IN_FLIGHT = (
        "too_many_in_flight",
        "As many of the router's requests await their bill as may.",
    )
    CONTEXT_LOST = "context_lost", "The context of the reward's request is in no store any more."
    INVALID_CONFIG = (
        "invalid_config",
        "A declaration contradicts itself or the router's state; the message says how.",
    )
    STALE_GRANT = (
        "stale_grant",
        "A grant of a pool does not name the pool's owner (`pb.epoch`), or an earlier one.",
    )
    TOO_MANY_MEMBERS = (
        "too_many_members",
        "The pool has 5,000 members: let some of them share a pool whose `parent` it is.",
    )
    CORRUPT_SNAPSHOT = (
        "corrupt_snapshot",
        "The snapshot that a router starts from is damaged, foreign or newer than the worker.",
    )
    WRONG_PRIOR = (
        "wrong_prior",
        (
            "A prior has the wrong shape, is not positive definite, says what no rewards or bills "
            "can, or what it refers to is not there."
        ),
    )
    WRONG_FAMILY = (
        "wrong_family",
        "The router's contexts are not those of its family, or the family has 5,000 members.",
    )
    WRONG_PROJECTION = (
        "wrong_projection",
        (
            "The projection is not at hand as declared, does not fit, or would change the "
            "coordinates of a router that is there."
        ),
    )
