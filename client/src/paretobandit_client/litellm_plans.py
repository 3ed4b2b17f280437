"""Run the plans of decisions for LiteLLM's calls: answers before the last one are collected and
checked, and only the last one is streamed.

LiteLLM shows a plugin one call at a time. So this stands around `Router.acompletion`, which it
calls once for each attempt; each call has LiteLLM's own retries and fallbacks.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from litellm import ModelResponse
from litellm.llms.base_llm.base_model_iterator import MockResponseIterator

from paretobandit_client.calls import Message
from paretobandit_client.litellm_bills import Facts, Theirs, failed_of
from paretobandit_client.verifying import Verifier, verdict_of

log = logging.getLogger(__name__)
Call = Callable[..., Awaitable[Theirs]]
ANEW = ("litellm_logging_obj", "litellm_call_id")
"""Arguments of a call that LiteLLM makes anew for each: with the same ones it would bill two calls
as one."""

HIDDEN = "_hidden_params"
"""The attribute in which LiteLLM keeps what its own callbacks read of an answer."""


@dataclass(slots=True)
class Followed:
    """An attempt under way.

    Attributes:
        plans: the plans that it belongs to.
        signal: signal of its call, see `ParetoBandit.run`; None: nothing is decided yet.
        is_next: whether `signal` is of an attempt that is still to be begun.
    """

    plans: Plans
    signal: Facts | None = None
    is_next: bool = False


class Collected(MockResponseIterator):  # type: ignore[misc]
    """An answer as a stream of one chunk."""

    async def aclose(self) -> None:
        """End the stream, as readers of LiteLLM's other streams may do before its end."""
        self.is_done = True


FOLLOWED: ContextVar[Followed | None] = ContextVar("followed", default=None)


class Plans:
    """The plans of one plugin.

    Args:
        answer_of: returns the part of a response that verifiers look at, given the messages that it
            answers; None: there is no such part.
        report: called with the request, the attempt, the verifier and its verdict.
    """

    def __init__(
        self,
        verifiers: Mapping[str, Verifier],
        answer_of: Callable[[Theirs, Sequence[Message]], object],
        report: Callable[[str, int, str, float], None],
    ) -> None:
        self.verifiers, self._answer_of, self._report = verifiers, answer_of, report
        self._are_made = bool(verifiers)
        self._is_warned = not verifiers

    def follow(self, router: Theirs) -> None:
        """Let all of a router's calls of `acompletion` follow their plans."""
        plain: Call = router.acompletion
        if getattr(plain, "follows", None) is self:
            return

        async def acompletion(
            model: str, messages: Theirs, stream: bool | None = False, **call: Theirs
        ) -> Theirs:
            return await self._attempts(
                plain, {"model": model, "messages": messages, **call}, stream
            )

        self._is_warned = True
        acompletion.follows = self  # type: ignore[attr-defined]
        router.acompletion = acompletion

    @property
    def followed(self) -> Followed | None:
        """Return the attempt that is under way; None: no attempt can follow this call."""
        found = FOLLOWED.get()
        return found if found is not None and found.plans is self else None

    @property
    def asked(self) -> tuple[str, ...] | None:
        """Return the verifiers that the request of a call names, see `Router.route`."""
        if self.followed is not None:
            return tuple(self.verifiers)
        if not self._is_warned:
            log.warning("verifiers look at nothing until bandit.follow(router) was called")
            self._is_warned = True
        # A router without verifiers is not told that there are none.
        return () if self._are_made else None

    def not_followed(self, router_id: str) -> None:
        """Note that a plan came that nobody follows; from now on requests ask for one model."""
        if not self._are_made:
            log.warning(
                "router %s plans attempts, and this plugin has no verifiers: "
                "ParetoBandit(verifiers={…}) and bandit.follow(router) run them",
                router_id,
            )
        self._are_made = True

    async def look(
        self, signal: Facts, response: Theirs, messages: Sequence[Message]
    ) -> float | None:
        """Return the verdict on the answer of an attempt, and report it; None: there is none."""
        name = step_of(signal).get("verify")
        answer = self._answer_of(response, messages)
        if name is None or name not in self.verifiers or answer is None:
            return None
        # A verifier may make calls of its own, which are no attempts of this one.
        token = FOLLOWED.set(None)
        try:
            found = await verdict_of(name, self.verifiers[name], answer)
        finally:
            FOLLOWED.reset(token)
        # An answer from LiteLLM's cache may be another model's.
        if found is not None and not (getattr(response, HIDDEN, None) or {}).get("cache_hit"):
            self._report(signal["request_id"], signal["attempt"], name, found)
        return found

    async def _attempts(self, plain: Call, call: dict[str, Theirs], stream: bool | None) -> Theirs:
        """Return the answer of the first attempt that passes, or of the last one."""
        # LiteLLM writes into the metadata that it is given.
        metadata = {
            name: dict(call[name]) for name in ("metadata", "litellm_metadata") if call.get(name)
        }
        followed, before = Followed(self), None
        while True:
            token = FOLLOWED.set(followed)
            try:
                found = await plain(stream=stream, **call)
            except Exception as error:
                following = _after(followed.signal, error)
                if following is None and before is None:
                    raise
                if following is None:
                    log.warning("an attempt failed: the answer before it counts")
                    return before
            else:
                signal = followed.signal
                if signal is None or not is_checked(signal) or not isinstance(found, ModelResponse):
                    return found
                before = Collected(found) if stream else found
                setattr(before, HIDDEN, getattr(found, HIDDEN, None))
                verdict = await self.look(signal, found, call["messages"])
                following = following_of(signal)
                if verdict is None or verdict >= step_of(signal)["accept_at"] or following is None:
                    return before
            finally:
                FOLLOWED.reset(token)
            followed = Followed(self, following, is_next=True)
            # The cache has the answer before under the same key.
            anew = {"cache": {**(call.get("cache") or {}), "no-cache": True}}
            call = {name: one for name, one in call.items() if name not in ANEW} | metadata | anew


def step_of(signal: Facts) -> Facts:
    """Return the step of the plan that a call is."""
    plan: Sequence[Facts] = signal.get("plan") or ()
    return plan[signal["attempt"]] if plan else {}


def is_checked(signal: Facts) -> bool:
    """Tell whether an answer has to pass before it is returned."""
    return step_of(signal).get("accept_at") is not None


def following_of(signal: Facts) -> Facts | None:
    """Return the plugin's signal, as LiteLLM's metadata hold it, for the next attempt of the plan;
    None: the plan has no further attempt."""
    plan = signal.get("plan") or ()
    number = signal.get("attempt", 0) + 1
    if number >= len(plan):
        return None
    failed = sorted({*signal["failed"], signal["candidate"]})
    step = plan[number]
    called = {"candidate": step["candidate"], "model": step.get("model")}
    return {**signal, **called, "attempt": number, "failed": failed}


def _after(signal: Facts | None, error: Exception) -> Facts | None:
    """Return the signal of the attempt after one that LiteLLM gave up; None: there is none, or the
    caller erred."""
    if signal is None or failed_of({"exception": error})["status"] == "cancelled":
        return None
    return following_of(signal)


def text_of(response: Theirs, messages: Sequence[Message]) -> str | None:
    """Return the text of an answer; None for one that has none, such as a call of a tool."""
    choices = getattr(response, "choices", None) or ()
    found = next((getattr(choice, "message", None) for choice in choices), None)
    text = getattr(found, "content", None)
    is_other = getattr(found, "tool_calls", None) or getattr(found, "function_call", None)
    return None if found is None or (not text and is_other) else str(text or "")
