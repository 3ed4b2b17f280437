"""What a call needs is found in the call itself."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from doors.gateway.called import of_call
from doors.gateway.http_events import asks
from doors.gateway.problems import Problem
from paretobandit_client import checks
from paretobandit_client.calls import last_user_message, needs_of, tokens_of
from paretobandit_client.sent_events import Needs

IMAGE = {
    "role": "user",
    "content": [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": "data:,"}},
    ],
}
TEXT = {"role": "user", "content": "Hello"}
SYSTEM = {"role": "system", "content": "You are kind."}


def alone(kind: str) -> dict[str, Any]:
    """Return a turn of one part that is no text."""
    return {"role": "user", "content": [{"type": kind, kind: {"url": "data:,"}}]}


@pytest.mark.parametrize(
    ("kind", "need"),
    [
        ("image_url", "vision"),
        ("input_image", "vision"),
        ("video_url", "vision"),
        ("input_audio", "audio"),
        ("audio_url", "audio"),
        ("file", "vision"),
        ("document", "vision"),
    ],
)
def test_a_turn_without_text_is_asked_for_by_its_needs(kind: str, need: str) -> None:
    for messages in ([alone(kind)], [SYSTEM, alone(kind)]):
        (ask,) = asks("r", [orjson.dumps({"messages": messages})])
        assert (ask.prompt, ask.needs) == (
            "",
            Needs(vision=need == "vision", audio=need == "audio"),
        )
    (ask,) = asks("r", [orjson.dumps({"messages": [TEXT, alone(kind)]})])
    assert ask.prompt == "Hello"


def test_a_document_beside_text_needs_nobody_who_sees() -> None:
    assert needs_of({"messages": [TEXT, alone("file")]}) == {}


@pytest.mark.parametrize(
    ("call", "needs"),
    [
        ({"messages": [TEXT]}, {}),
        ({"messages": [IMAGE, TEXT]}, {"vision": True}),
        ({"messages": [TEXT], "tools": [{"type": "function"}]}, {"tools": True}),
        ({"messages": [TEXT], "tools": []}, {}),
        ({"messages": [TEXT, {"role": "assistant", "tool_calls": [{}]}]}, {"tools": True}),
        ({"messages": [{"role": "tool", "content": "4"}]}, {"tools": True}),
        ({"messages": [], "response_format": {"type": "text"}}, {}),
        ({"messages": [], "response_format": {"type": "json_object"}}, {"json_output": True}),
        ({"messages": [], "response_format": str}, {"json_output": True}),
        ({"messages": [], "max_tokens": 100}, {"output_tokens": 100}),
        ({"messages": [], "max_tokens": 100, "max_completion_tokens": 7}, {"output_tokens": 7}),
        ({"messages": [], "max_tokens": True}, {}),
        ({"messages": [None, 1, "a", {"role": "user"}]}, {}),
        ({}, {}),
    ],
)
def test_what_a_call_needs(call: dict[str, Any], needs: dict[str, Any]) -> None:
    assert needs_of(call) == needs


def test_tokens_are_counted_by_the_length_of_all_messages() -> None:
    assert tokens_of([]) == 0
    assert tokens_of([{"role": "system", "content": "x" * 400}, TEXT]) == 102
    assert tokens_of([IMAGE]) > tokens_of([TEXT]) + 100
    assert last_user_message([TEXT, {"role": "assistant", "content": "Hi"}]) == "Hello"


def test_the_http_door_takes_a_call_for_a_request() -> None:
    call = {"messages": [TEXT, IMAGE], "tools": [{}], "request_id": "1", "max_tokens": 9}
    (ask,) = asks("r", [orjson.dumps(call)])
    assert (ask.prompt, ask.request_id) == ("What is it?", "1")
    assert ask.needs == Needs(vision=True, tools=True, output_tokens=9)
    assert ask.input_tokens == tokens_of([TEXT, IMAGE])


def test_what_a_request_says_of_itself_wins_over_its_call() -> None:
    own = {"context": [0.5, 1.0], "input_tokens": 5, "needs": {"vision": False, "region": "eu"}}
    (ask,) = asks("r", [orjson.dumps({"messages": [IMAGE], **own})])
    assert (ask.prompt, ask.context, ask.input_tokens) == (None, (0.5, 1.0), 5)
    assert ask.needs == Needs(region="eu")


@pytest.mark.parametrize(
    "body", [b'{"prompt":"p"}', b'{"messages":1}', b'{"messages":[1]}', b'{"messages":[', b"[]"]
)
def test_what_is_no_call_is_left_as_it_is(body: bytes) -> None:
    assert of_call(body) == body


def test_a_call_without_a_word_is_refused_as_an_empty_prompt() -> None:
    with pytest.raises(Problem):
        asks("r", [b'{"messages":[]}'])


def test_the_client_refuses_needs_that_are_none() -> None:
    assert checks.needs({"vision": True}) == Needs(vision=True)
    assert checks.needs(None) is None
    for wrong in (
        {"sight": True},
        {"output_tokens": -1},
        {"region": "\n"},
        {"max_retention_days": float("nan")},
    ):
        with pytest.raises(ValueError):
            checks.needs(wrong)
