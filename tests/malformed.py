"""Records that a service must refuse, with the reason of each: for schemas and for real workers
alike.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal

from schemas import Reason

ROUTER_ID = "acme.chat"

_WHOLE: dict[str, dict[str, Any]] = {
    "requests": {"request_id": "bad-1", "prompt": "Name the largest moon of Saturn."},
    "costs": {"request_id": "bad-1", "cost_usd": 0.001},
    "rewards": {
        "request_id": "bad-1",
        "reward": 0.5,
        "source": "judge",
        "observed_at": "2026-01-05T10:00:00Z",
    },
    "routers": {"models": {"m": {"input_price_per_m": 1.0, "output_price_per_m": 2.0}}},
}
_ABSENT = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """A record and the reason it is refused for, by its schema or only by a worker that knows the
    router.
    """

    name: str
    topic: Literal["requests", "costs", "rewards", "routers"]
    key: bytes | None
    value: bytes | None
    reason: Reason
    refused_by: Literal["schema", "worker"] = "schema"


def malformed(router_id: str = ROUTER_ID) -> list[Malformed]:
    """List the records, addressed to a router of 26 dimensions."""
    return [
        *_bytes(router_id),
        *_requests(router_id),
        *_money(router_id),
        *_rewards(router_id),
        *_routers(router_id),
    ]


def for_the_worker(router_id: str = ROUTER_ID) -> list[Malformed]:
    """List well-formed records that only a worker can refuse, which knows a router of 26 dimensions
    without free models.
    """

    def request(name: str, reason: Reason, **fields: Any) -> Malformed:
        fields.setdefault("request_id", name)
        return _record(name, "requests", router_id, reason, refused_by="worker", **fields)

    return [
        request("context_25", Reason.WRONG_CONTEXT, context=[0.1] * 24 + [1.0]),
        request("context_27", Reason.WRONG_CONTEXT, context=[0.1] * 26 + [1.0]),
        request("allowed_model_unknown", Reason.NO_ALLOWED_MODEL, allowed_models=["no such model"]),
        request("price_limit_zero", Reason.NO_AFFORDABLE_MODEL, max_price_per_1k=0),
        request("router_unknown", Reason.UNKNOWN_ROUTER, router_id="never.declared"),
        _record(
            "reward_from_the_future",
            "rewards",
            router_id,
            Reason.FROM_THE_FUTURE,
            refused_by="worker",
            observed_at="2999-01-01T00:00:00Z",
        ),
        _record(
            "cost_without_request", "costs", router_id, Reason.ORPHAN_COST, refused_by="worker"
        ),
        _record(
            "reward_without_request",
            "rewards",
            router_id,
            Reason.ORPHAN_REWARD,
            refused_by="worker",
        ),
    ]


def _record(
    name: str,
    topic: Any,
    addressee: str,
    reason: Reason,
    *,
    refused_by: Literal["schema", "worker"] = "schema",
    **changed: Any,
) -> Malformed:
    """Make a whole event of a topic with some fields changed, added or (_ABSENT) left out."""
    event = {"router_id": addressee, **_WHOLE[topic], **changed}
    value = json.dumps(
        {field: part for field, part in event.items() if part is not _ABSENT}
    ).encode()
    router_id = event["router_id"]
    key = (router_id if isinstance(router_id, str) else addressee).encode()
    return Malformed(
        name=name, topic=topic, key=key, value=value, reason=reason, refused_by=refused_by
    )


def _bytes(router_id: str) -> list[Malformed]:
    """Spoil the bytes themselves."""
    whole = json.dumps({"router_id": router_id, **_WHOLE["requests"]})

    def raw(
        name: str, value: bytes | None, reason: Reason = Reason.MALFORMED_JSON, **record: Any
    ) -> Malformed:
        return Malformed(
            **{
                "name": name,
                "topic": "requests",
                "key": router_id.encode(),
                "value": value,
                "reason": reason,
                **record,
            }
        )

    return [
        raw("null_value", None, Reason.MALFORMED_EVENT),
        raw("empty_value", b""),
        raw("white_space", b" \n"),
        raw("truncated", whole[:-1].encode()),
        raw("trailing_text", whole.encode() + b" x"),
        raw("two_documents", whole.encode() * 2),
        raw("trailing_comma", whole[:-1].encode() + b",}"),
        raw("comment", b"/* hi */" + whole.encode()),
        raw("single_quotes", whole.replace('"', "'").encode()),
        raw("utf8_bom", b"\xef\xbb\xbf" + whole.encode()),
        raw("utf16", whole.encode("utf-16")),
        raw("utf16_without_bom", whole.encode("utf-16-le")),
        raw("utf32", whole.encode("utf-32-be")),
        raw("latin1", whole.replace("Name", "Nam\u00e9").encode("latin-1")),
        raw("overlong_utf8", whole.encode().replace(b"Name", b"\xc0\xaf")),
        raw(
            "half_character_in_an_id",
            whole[:-1].encode() + b',"request_id":"\\ud800"}',
            Reason.INVALID_FIELD,
        ),
        raw("surrogate_bytes", whole.encode().replace(b"Name", b"\xed\xa0\x80")),
        raw("raw_control_character", whole.encode().replace(b"Name", b"Na\x00me")),
        raw("binary", bytes(range(256))),
        raw("gzip", b"\x1f\x8b\x08\x00" + bytes(20)),
        raw("schema_id_prefix", b"\x00\x00\x00\x00\x07" + whole.encode()),
        raw(
            "nested_too_deep",
            whole[:-1].encode() + b',"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        ),
        raw(
            "metadata_300_deep",
            whole[:-1].encode() + b',"metadata":' + b'{"x":' * 300 + b"1" + b"}" * 301,
        ),
        raw("integer_of_10000_digits", whole[:-1].encode() + b',"x":' + b"9" * 10_000 + b"}"),
        raw("array", b"[1, 2]", Reason.MALFORMED_EVENT),
        raw("string", b'"hello"', Reason.MALFORMED_EVENT),
        raw("number", b"42", Reason.MALFORMED_EVENT),
        raw("json_null", b"null", Reason.MALFORMED_EVENT),
        raw("nan_in_unknown_field", whole[:-1].encode() + b',"x":NaN}', Reason.NON_FINITE),
        raw(
            "infinity_in_metadata",
            whole[:-1].encode() + b',"metadata":{"x":[-Infinity]}}',
            Reason.NON_FINITE,
        ),
        raw(
            "overflow_in_metadata",
            whole[:-1].encode() + b',"metadata":{"x":1e999}}',
            Reason.NON_FINITE,
        ),
        raw("empty_object", b"{}", Reason.MISSING_FIELD),
        raw("key_of_another_router", whole.encode(), Reason.WRONG_KEY, key=b"another.router"),
        raw("key_as_json", whole.encode(), Reason.WRONG_KEY, key=json.dumps(router_id).encode()),
        raw("key_empty", whole.encode(), Reason.WRONG_KEY, key=b""),
        raw("key_not_utf8", whole.encode(), Reason.WRONG_KEY, key=b"\xff\xfe"),
    ]


def _requests(router_id: str) -> list[Malformed]:
    def bad(name: str, reason: Reason, **changed: Any) -> Malformed:
        return _record(name, "requests", router_id, reason, **changed)

    return [
        bad("router_id_absent", Reason.MISSING_FIELD, router_id=_ABSENT),
        bad("router_id_null", Reason.INVALID_FIELD, router_id=None),
        bad("router_id_empty", Reason.INVALID_FIELD, router_id=""),
        bad("router_id_129", Reason.INVALID_FIELD, router_id="r" * 129),
        bad("router_id_space", Reason.INVALID_FIELD, router_id="acme chat"),
        bad("router_id_newline", Reason.INVALID_FIELD, router_id="acme\n"),
        bad("router_id_umlaut", Reason.INVALID_FIELD, router_id="\u00e4cme"),
        bad("router_id_number", Reason.INVALID_FIELD, router_id=7),
        bad("request_id_absent", Reason.MISSING_FIELD, request_id=_ABSENT),
        bad("request_id_empty", Reason.INVALID_FIELD, request_id=""),
        bad("request_id_129", Reason.INVALID_FIELD, request_id="r" * 129),
        bad("request_id_nul", Reason.INVALID_FIELD, request_id="a\x00b"),
        bad("request_id_line_separator", Reason.INVALID_FIELD, request_id="a\u2028b"),
        bad("request_id_number", Reason.INVALID_FIELD, request_id=17),
        bad("prompt_absent", Reason.MISSING_PROMPT, prompt=_ABSENT),
        bad("prompt_null", Reason.MISSING_PROMPT, prompt=None),
        bad("prompt_empty", Reason.EMPTY_PROMPT, prompt=""),
        bad("prompt_blank", Reason.EMPTY_PROMPT, prompt=" \t\n\u3000"),
        bad("prompt_number", Reason.INVALID_FIELD, prompt=5),
        bad("prompt_array", Reason.INVALID_FIELD, prompt=["Hello"]),
        bad("prompt_over_1_mib", Reason.PROMPT_TOO_LARGE, prompt="a" * (1_048_576 + 1)),
        bad(
            "prompt_over_1_mib_of_umlauts", Reason.PROMPT_TOO_LARGE, prompt="\u00e4" * (524_288 + 1)
        ),
        bad("context_empty", Reason.WRONG_CONTEXT, context=[]),
        bad("context_number", Reason.WRONG_CONTEXT, context=1.0),
        bad("context_object", Reason.WRONG_CONTEXT, context={"0": 1.0}),
        bad("context_without_bias", Reason.WRONG_CONTEXT, context=[0.1] * 26),
        bad("context_text", Reason.WRONG_CONTEXT, context=["0.1"] * 25 + [1.0]),
        bad("context_true", Reason.WRONG_CONTEXT, context=[0.1] * 25 + [True]),
        bad("context_null", Reason.WRONG_CONTEXT, context=[None] * 25 + [1.0]),
        bad("context_nested", Reason.WRONG_CONTEXT, context=[[0.1] * 25 + [1.0]]),
        bad("context_1025", Reason.WRONG_CONTEXT, context=[0.1] * 1024 + [1.0]),
        bad("context_nan", Reason.NON_FINITE, context=[float("nan")] * 25 + [1.0]),
        bad("context_infinity", Reason.NON_FINITE, context=[float("inf")] + [0.1] * 24 + [1.0]),
        bad("allowed_models_empty", Reason.NO_ALLOWED_MODEL, allowed_models=[]),
        bad("allowed_models_text", Reason.INVALID_FIELD, allowed_models="m"),
        bad("allowed_models_empty_name", Reason.INVALID_FIELD, allowed_models=[""]),
        bad("price_limit_negative", Reason.INVALID_FIELD, max_price_per_1k=-1),
        bad("price_limit_text", Reason.INVALID_FIELD, max_price_per_1k="0.01"),
        bad("metadata_array", Reason.INVALID_FIELD, metadata=[1]),
        bad("metadata_over_64_kib", Reason.INVALID_FIELD, metadata={"x": "a" * 65_536}),
    ]


def _money(router_id: str) -> list[Malformed]:
    def bad(name: str, reason: Reason, **changed: Any) -> Malformed:
        return _record(name, "costs", router_id, reason, **changed)

    return [
        bad("cost_absent", Reason.MISSING_FIELD, cost_usd=_ABSENT),
        bad("cost_negative", Reason.COST_OUT_OF_RANGE, cost_usd=-0.000001),
        bad("cost_over_1000", Reason.COST_OUT_OF_RANGE, cost_usd=1000.01),
        bad("cost_nan", Reason.NON_FINITE, cost_usd=float("nan")),
        bad("cost_infinite", Reason.NON_FINITE, cost_usd=float("inf")),
        bad("cost_text", Reason.INVALID_FIELD, cost_usd="0.001"),
        bad("cost_true", Reason.INVALID_FIELD, cost_usd=True),
        bad("tokens_half", Reason.MISSING_FIELD, cost_usd=_ABSENT, input_tokens=10),
        bad(
            "tokens_negative",
            Reason.COST_OUT_OF_RANGE,
            cost_usd=_ABSENT,
            input_tokens=-1,
            output_tokens=5,
        ),
        bad(
            "tokens_fraction",
            Reason.INVALID_FIELD,
            cost_usd=_ABSENT,
            input_tokens=1.5,
            output_tokens=5,
        ),
        bad(
            "tokens_2_to_70",
            Reason.COST_OUT_OF_RANGE,
            cost_usd=_ABSENT,
            input_tokens=2**70,
            output_tokens=5,
        ),
        bad("cost_revision_negative", Reason.INVALID_FIELD, revision=-1),
        bad("cost_revision_text", Reason.INVALID_FIELD, revision="1"),
        bad("cost_request_id_absent", Reason.MISSING_FIELD, request_id=_ABSENT),
    ]


def _rewards(router_id: str) -> list[Malformed]:
    def bad(name: str, reason: Reason, **changed: Any) -> Malformed:
        return _record(name, "rewards", router_id, reason, **changed)

    return [
        bad("reward_absent", Reason.MISSING_FIELD, reward=_ABSENT),
        bad("reward_negative", Reason.REWARD_OUT_OF_RANGE, reward=-0.01),
        bad("reward_over_1", Reason.REWARD_OUT_OF_RANGE, reward=1.0000001),
        bad("reward_nan", Reason.NON_FINITE, reward=float("nan")),
        bad("reward_infinite", Reason.NON_FINITE, reward=float("-inf")),
        bad("reward_text", Reason.INVALID_FIELD, reward="good"),
        bad("reward_true", Reason.INVALID_FIELD, reward=True),
        bad("reward_null", Reason.INVALID_FIELD, reward=None),
        bad("source_absent", Reason.MISSING_FIELD, source=_ABSENT),
        bad("source_empty", Reason.INVALID_FIELD, source=""),
        bad("time_without_zone", Reason.INVALID_FIELD, observed_at="2026-01-05T10:00:00"),
        bad("time_of_another_zone", Reason.INVALID_FIELD, observed_at="2026-01-05T10:00:00+02:00"),
        bad("time_as_number", Reason.INVALID_FIELD, observed_at=1_767_607_200),
        bad("time_as_digits", Reason.INVALID_FIELD, observed_at="1767607200"),
        bad("time_is_a_date", Reason.INVALID_FIELD, observed_at="2026-01-05"),
        bad("time_not_in_the_calendar", Reason.INVALID_FIELD, observed_at="2026-02-30T10:00:00Z"),
        bad("time_is_a_week", Reason.INVALID_FIELD, observed_at="2026-W02-1T10:00:00Z"),
        bad("time_without_dashes", Reason.INVALID_FIELD, observed_at="20260105T100000Z"),
        bad("time_without_seconds", Reason.INVALID_FIELD, observed_at="2026-01-05T10:00Z"),
        bad("time_empty", Reason.INVALID_FIELD, observed_at=""),
    ]


def _routers(router_id: str) -> list[Malformed]:
    def bad(name: str, reason: Reason, **changed: Any) -> Malformed:
        return _record(name, "routers", router_id, reason, **changed)

    def model(**fields: Any) -> dict[str, Any]:
        return {"models": {"m": {"input_price_per_m": 1.0, "output_price_per_m": 2.0, **fields}}}

    identity, day = [[1.0, 0.0], [0.0, 1.0]], {"usd": 1, "per": "day"}
    too_many = {f"m{i}": {"input_price_per_m": 1.0, "output_price_per_m": 2.0} for i in range(1001)}
    return [
        bad("models_absent", Reason.MISSING_FIELD, models=_ABSENT),
        bad("models_array", Reason.INVALID_FIELD, models=[]),
        bad("models_1001", Reason.TOO_MANY_MODELS, models=too_many),
        bad(
            "model_without_name",
            Reason.INVALID_FIELD,
            models={"": {"input_price_per_m": 1, "output_price_per_m": 1}},
        ),
        bad("price_absent", Reason.MISSING_FIELD, models={"m": {"input_price_per_m": 1.0}}),
        bad("price_negative", Reason.INVALID_FIELD, **model(input_price_per_m=-1)),
        bad("price_nan", Reason.NON_FINITE, **model(input_price_per_m=float("nan"))),
        bad("price_over_1e6", Reason.INVALID_FIELD, **model(output_price_per_m=1_000_001)),
        bad("pulls_negative", Reason.INVALID_FIELD, **model(onboarding_pulls=-1)),
        bad("budget_zero", Reason.INVALID_FIELD, budget_usd_per_request=0),
        *(
            bad(f"zone_{zone}", Reason.INVALID_FIELD, budget={**day, "timezone": zone})
            for zone in ("localtime", "posixrules", "Factory", "right/Europe/Berlin", "Mars/Base")
        ),
        bad("carry_negative", Reason.INVALID_FIELD, budget={**day, "carry": -1}),
        bad("carry_unknown", Reason.INVALID_FIELD, budget={**day, "carry": "half"}),
        bad("budget_text", Reason.INVALID_FIELD, budget_usd_per_request="cheap"),
        bad("profile_unknown", Reason.INVALID_FIELD, profile="research"),
        bad("dimensions_1", Reason.INVALID_FIELD, dimensions=1),
        bad("dimensions_fraction", Reason.INVALID_FIELD, dimensions=26.0),
        bad("gamma_zero", Reason.INVALID_FIELD, gamma=0),
        bad("gamma_over_1", Reason.INVALID_FIELD, gamma=1.001),
        bad("ridge_zero", Reason.INVALID_FIELD, ridge=0),
        bad("epsilon_over_1", Reason.INVALID_FIELD, epsilon=1.5),
        bad("caps_without_period", Reason.INVALID_FIELD, caps={}),
        bad(
            "cap_mode_unknown", Reason.INVALID_FIELD, caps={"hour": {"usd": 1.0, "mode": "gentle"}}
        ),
        bad(
            "prior_of_two_forms",
            Reason.WRONG_PRIOR,
            **model(prior={"like": "x", "ref": "y", "sha256": "0" * 64}),
        ),
        bad("prior_of_no_form", Reason.WRONG_PRIOR, **model(prior={"n_eff": 5.0})),
        bad(
            "prior_of_2_dimensions",
            Reason.WRONG_PRIOR,
            **model(prior={"A": identity, "b": [0.5, 0.5]}),
        ),
        bad(
            "prior_not_square",
            Reason.WRONG_PRIOR,
            dimensions=2,
            **model(prior={"A": [[1.0]], "b": [0.5, 0.5]}),
        ),
        bad(
            "prior_ragged",
            Reason.WRONG_PRIOR,
            dimensions=2,
            **model(prior={"A": [[1, 0], [0]], "b": [1, 1]}),
        ),
        bad("prior_like_itself", Reason.WRONG_PRIOR, **model(prior={"like": "m"})),
        bad(
            "prior_checksum_cut",
            Reason.WRONG_PRIOR,
            **model(prior={"ref": "warm-up.npz", "sha256": "abc"}),
        ),
        bad("prior_n_eff_zero", Reason.WRONG_PRIOR, **model(prior={"like": "x", "n_eff": 0})),
        Malformed(
            name="gone_without_router_id",
            topic="routers",
            key=b"acme chat",
            value=None,
            reason=Reason.WRONG_KEY,
        ),
    ]
