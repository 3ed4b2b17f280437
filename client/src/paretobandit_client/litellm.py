"""LiteLLM: a routing plugin that asks for the model, and a callback that reports what each call
cost. Two lines:

    bandit = ParetoBandit("chat", fallback="openai/gpt-4o-mini")
    router, litellm.callbacks = litellm.Router(model_list=…, plugins=[bandit]), [bandit]

The deployments to choose among share one `model_name`; their `litellm_params.model` are the
portfolio's names, with or without the provider before the slash. Only LiteLLM's asynchronous calls
run plugins.
"""

from __future__ import annotations

import asyncio
import logging
import math
import uuid
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import litellm
from litellm import token_counter
from litellm.integrations.custom_logger import CustomLogger

from paretobandit_client.answered import Answered
from paretobandit_client.answering import names_itself
from paretobandit_client.async_router import Counts, Router
from paretobandit_client.attempt_sums import Attempts
from paretobandit_client.calls import Message, last_user_message, needs_of, tokens_of
from paretobandit_client.client_errors import NoDecision, RouterError, Unreachable
from paretobandit_client.litellm_streams import Stream, Streams
from paretobandit_client.outage import Outage
from paretobandit_client.outcomes import retry_after_of, status_of
from paretobandit_client.side_numbers import fitting

log = logging.getLogger(__name__)
Told = Mapping[str, Any]
"""Facts of a call, as LiteLLM and its callers tell them: names with values of any type."""
REQUEST_ID = "pb_request_id"
"""Key of a call's `metadata` that gives it an id of your own, for rewards."""
NEEDS = "pb_needs"
"""Key of a call's `metadata` with what it needs beside what its messages show, see `Needs`: a
plugin is shown no tools and no response format."""


class ParetoBandit(CustomLogger):  # type: ignore[misc]
    """A plugin and callback for LiteLLM, which uses a `Router` and takes its options.

    If anything fails, the call goes to the fallback if that is a candidate, else to LiteLLM's own
    choice.

    Args:
        prompt_of: makes the prompt from a call's messages; by default the text of the last user
            message.
        context_of: features of a call's messages, shape (d,), the last one 1.0, in place of a
            prompt: then none leaves the process.
        variants: names of variants in the portfolio that are called with parameters, each with the
            name of the candidate that is called; its parameters come with the decision.
        count: how many tokens a call's messages are; by default as LiteLLM counts them for models
            that it has no tokenizer of.
        options: of `Router`, `fallback` and `timeout` above all.
    """

    def __init__(
        self,
        router_id: str,
        *,
        prompt_of: Callable[[Sequence[Message]], str] | None = None,
        context_of: Callable[[Sequence[Message]], Sequence[float]] | None = None,
        variants: Mapping[str, str] | None = None,
        count: Callable[[Sequence[Message]], int] | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.router_id = router_id
        # LiteLLM treats loggers with equal public attributes as the same one.
        self.instance = uuid.uuid4().hex
        self._arguments = (router_id, options)
        self._signal = f"paretobandit.{router_id}"
        self._prompt_of = prompt_of or last_user_message
        self._context_of = context_of
        self._variants = dict(variants or {})
        self._count = count or all_tokens
        self._opening: asyncio.Task[Router] | None = None
        self._reports: set[asyncio.Task[None]] = set()
        self._attempts = Attempts()
        self._portfolio: set[str] = set()
        self._answered = Answered()
        self._silence = Outage(f"decisions of router {router_id}")
        self._streams = Streams(self._abandoned)

    async def run(self, context: Any) -> Any:
        """Narrow a call's candidates to the model that the service chose; LiteLLM calls this before
        each attempt.
        """
        try:
            await self._narrow(context)
            self._silence.over()
        except (NoDecision, Unreachable) as error:
            self._silence.note(error)
        except RouterError as error:
            log.warning("no decision for this call: %s", error)
        except Exception:
            log.exception("no decision for this call")
        return context

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: Any, call_type: Any
    ) -> None:
        """Note the needs of a call; LiteLLM's proxy calls this first, with the whole request."""
        needs = needs_of(data)
        for name in ("metadata", "litellm_metadata"):
            if isinstance(metadata := data.get(name), dict) and needs:
                metadata[NEEDS] = {**needs, **(metadata.get(NEEDS) or {})}

    async def reward(
        self, request_id: str | None = None, value: float = math.nan, *, source: str, **more: Any
    ) -> None:
        """Report how good an answer was; `request_id` is the call's `metadata["pb_request_id"]`.
        With `session_id` alone it is the reward of a whole session, `metadata["session_id"]`.

        The model that answered is named as far as this process knows it, see `model_of`.
        """
        if request_id is not None:
            more.setdefault("model", self.model_of(request_id))
        await (await self._router()).reward(request_id, value, source=source, **more)

    def model_of(self, request_id: str) -> str | None:
        """Return the portfolio's name of the model to which a call was sent last: the one that
        answered. None if this process does not remember the call.
        """
        called = self._answered.by(self.router_id, request_id)
        return None if called is None else self._name_of(called)

    @property
    def counts(self) -> Counts:
        """Return the counts of outcomes since the connection was made."""
        opening = self._opening
        if opening is None or not opening.done() or opening.exception() is not None:
            return Counts()
        return opening.result().counts

    async def close(self) -> None:
        """Deliver what is on its way, and disconnect."""
        self._streams.give_up()
        while self._reports:
            await asyncio.gather(*self._reports, return_exceptions=True)
        if self._opening is not None:
            await (await self._opening).close()
            self._opening = None

    async def async_pre_call_deployment_hook(self, kwargs: Any, call_type: Any) -> Any:
        """Note which model an attempt of a call goes to, and return the call with the parameters of
        the chosen variant; LiteLLM calls this before each."""
        metadata = _metadata(kwargs)
        signal = self._signal_of(metadata)
        if signal is None:
            return None
        called = metadata.get("deployment") or signal["candidate"]
        name = self._named_in(signal, called)
        self._answered.note(self.router_id, signal["request_id"], name)
        params = (signal.get("params") or {}).get(name)
        call = {**kwargs, **params} if params else kwargs
        if kwargs.get("stream"):
            self._streams.begin(signal["request_id"], call)
        return call if params else None

    async def async_post_call_streaming_deployment_hook(
        self, request_data: Any, response_chunk: Any, call_type: Any
    ) -> None:
        """Take in a chunk of a stream, which may be its last one."""
        signal = self._signal_of(_metadata(request_data))
        if signal is not None:
            self._streams.hear(signal["request_id"], response_chunk)

    async def async_log_success_event(
        self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Report what a call cost; a stream comes here at its end, a cached answer with a cost of
        0.
        """
        took = _took(kwargs, start_time, end_time)
        self._report(kwargs, response_obj, revision=1, started=start_time, more=took)

    async def async_log_failure_event(
        self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Report what a failed call cost, mostly nothing, and how it failed."""
        more = {**_failed(kwargs), **_took({}, start_time, end_time)}
        self._report(kwargs, response_obj, revision=0, started=start_time, more=more)

    async def _narrow(self, context: Any) -> None:
        before = context.metadata.get("routing_plugin_signals") or {}
        candidates = list(dict.fromkeys(context.candidate_models))
        # Another attempt of the same call: the model that was chosen has failed.
        if self._signal in before:
            signal = context.signals[self._signal] = before[self._signal]
            failed = {*signal["failed"], signal["candidate"]}
            left = [candidate for candidate in candidates if candidate not in failed] or candidates
            next_best = [candidate for candidate in signal["fallbacks"] if candidate in left]
            candidate = (*next_best, self._fallback(left), left[0])[0] or left[0]
            signal |= {"failed": sorted(failed), "candidate": candidate}
            context.candidate_models = [signal["candidate"]]
            return
        forms = {
            form: candidate for candidate in reversed(candidates) for form in _forms(candidate)
        }
        forms |= {name: forms[base] for name, base in self._variants.items() if base in forms}
        fallback = named if (named := self._arguments[1].get("fallback")) in forms else None
        if fallback is not None:
            context.candidate_models = [forms[fallback]]  # unless a decision comes
        messages = context.structured_messages or context.raw_messages
        decision = await (await self._router()).route(
            self._prompt_of(messages) if self._context_of is None else None,
            context=None if self._context_of is None else self._context_of(messages),
            request_id=context.metadata.get(REQUEST_ID) or uuid.uuid4().hex,
            session=context.metadata.get("session_id")
            or context.metadata.get("litellm_session_id"),
            session_budget_usd=context.metadata.get("session_budget_usd"),
            allowed_models=forms,
            input_tokens=await self._counted(messages),
            needs=_needs(messages, context.metadata),
            fallback=fallback,
        )
        candidate = forms[decision.model]
        if decision.route is not None:
            self._portfolio |= {one.model for one in decision.route.candidates or ()}
            self._portfolio.add(decision.route.model)
        context.candidate_models = [candidate]
        named = [model for model in (decision.model, *decision.fallbacks) if model in forms]
        context.signals[self._signal] = {
            "request_id": decision.request_id,
            "candidate": candidate,
            "fallbacks": [forms[model] for model in named[1:]],
            "failed": [],
            # Variants share a candidate: the best of them stands for it.
            "names": {forms[model]: model for model in reversed(named)},
            "params": {model: decision.call_of(model).params for model in named},
        }

    async def _counted(self, messages: Sequence[Message]) -> int | None:
        try:
            # A long history takes a tokenizer tenths of a second.
            return await asyncio.to_thread(self._count, messages)
        except Exception:
            log.exception("the tokens of this call's messages could not be counted")
            return None

    def _fallback(self, candidates: Sequence[str]) -> str | None:
        named = self._arguments[1].get("fallback")
        return next((candidate for candidate in candidates if named in _forms(candidate)), None)

    async def _router(self) -> Router:
        if self._opening is None:
            router_id, options = self._arguments
            self._opening = asyncio.create_task(Router(router_id, **options).__aenter__())
        try:
            return await asyncio.shield(self._opening)
        except RouterError:
            self._opening = None  # the next call tries again
            raise

    def _report(
        self,
        kwargs: Told,
        response: Any,
        *,
        revision: int,
        started: object,
        more: Mapping[str, object],
    ) -> None:
        metadata = _metadata(kwargs)
        signal = self._signal_of(metadata)
        if signal is None:
            return
        self._streams.end(signal["request_id"])
        money = _cost(kwargs, response)
        if money is None and revision > 0:
            log.warning(
                "request %s: neither price nor usage is known: no bill", signal["request_id"]
            )
            return
        named = _answered_by(kwargs, response) if revision > 0 else {}
        bill = {**(money or {"cost_usd": 0.0}), **_cached(response), **named, **more}
        attempt = kwargs.get("litellm_call_id"), started, metadata.get("deployment"), revision
        self._bill(signal, metadata, bill, attempt=attempt, revision=revision)

    def _abandoned(self, request_id: str, stream: Stream) -> None:
        """Bill a stream that nobody reads any more for what it has delivered."""
        log.info("the stream of request %s was not read to its end", request_id)
        self._keep(asyncio.create_task(self._bill_unread(stream)))

    async def _bill_unread(self, stream: Stream) -> None:
        metadata = _metadata(stream.call)
        signal = self._signal_of(metadata)
        into = await self._counted(stream.call.get("messages") or ())
        out = await self._counted([{"role": "assistant", "content": "".join(stream.text)}])
        if signal is not None and into is not None and out is not None:
            tokens = {"input_tokens": into, "output_tokens": out if stream.text else 0}
            bill = {**tokens, "status": "cancelled"}
            attempt = stream.call.get("litellm_call_id"), metadata.get("deployment")
            self._bill(signal, metadata, bill, attempt=attempt, revision=0)

    def _bill(
        self,
        signal: Told,
        metadata: Told,
        bill: Told,
        *,
        attempt: Hashable,
        revision: int,
    ) -> None:
        request_id = signal["request_id"]
        called = metadata.get("deployment") or signal["candidate"]
        # Each bill is of all attempts so far; the service learns from each what is new in it.
        own = {**bill, "revision": revision}
        total, notes = fitting(self._attempts.add(request_id, attempt, own))
        for note in notes:
            log.warning("request %s: %s", request_id, note)
        name = self._named_in(signal, called)
        self._keep(asyncio.create_task(self._deliver(request_id, name, total)))

    def _keep(self, report: asyncio.Task[None]) -> None:
        self._reports.add(report)
        report.add_done_callback(self._reports.discard)

    async def _deliver(self, request_id: str, called: str, bill: Told) -> None:
        try:
            router = await self._router()
            await router.cost(request_id, model=self._name_of(called), **bill)
        except (RouterError, ValueError) as error:
            log.error("the bill of request %s is lost: %s: %s", request_id, bill, error)

    def _signal_of(self, metadata: Told) -> Told | None:
        found: Told | None = (metadata.get("routing_plugin_signals") or {}).get(self._signal)
        return found

    @staticmethod
    def _named_in(signal: Told, called: str) -> str:
        """Return the portfolio's name of a candidate, as the decision chose it."""
        name: str = (signal.get("names") or {}).get(called, called)
        return name

    def _name_of(self, called: str) -> str:
        """Return the portfolio's name of a model, as decisions have it, else as the fallback has
        it.
        """
        known = (self._portfolio, (self._arguments[1].get("fallback"),))
        return next((form for some in known for form in _forms(called) if form in some), called)


def _needs(messages: Sequence[Message], metadata: Told) -> Told | None:
    """Return a call's needs, from its messages and its metadata."""
    return {**needs_of({"messages": list(messages)}), **(metadata.get(NEEDS) or {})} or None


def all_tokens(messages: Sequence[Message]) -> int:
    """Return how many tokens all messages are together."""
    try:
        # The size of a picture it would else look up at the picture's address.
        counted: int = token_counter(
            model="", messages=list(messages), use_default_image_token_count=True
        )
    except ValueError:
        return tokens_of(messages)  # it counts neither sound nor files
    return counted


def _forms(candidate: str) -> list[str]:
    """Return a model's names with and without its provider: `openai/gpt-4o`, `gpt-4o`."""
    return [candidate, candidate.partition("/")[2]] if "/" in candidate else [candidate]


def _metadata(kwargs: Told) -> Told:
    """Return the metadata that LiteLLM keeps of a call; some of its paths name it otherwise."""
    parameters = kwargs.get("litellm_params") or {}
    found = (
        one.get(name) for one in (parameters, kwargs) for name in ("metadata", "litellm_metadata")
    )
    return next(
        (one for one in found if isinstance(one, Mapping) and "routing_plugin_signals" in one), {}
    )


def _cost(kwargs: Told, response: Any) -> dict[str, Any] | None:
    """Return a bill in dollars, or in tokens where LiteLLM knows no price; None where neither is
    known, which is not the same as free."""
    usd = _number(kwargs.get("response_cost"))
    # LiteLLM has computed costs below 0, and those that are no number: then the tokens count.
    if 0.0 < usd < math.inf or (usd == 0.0 and _is_free(kwargs)):
        return {"cost_usd": usd}
    tokens = _tokens(response)
    return None if not any(tokens) else {"input_tokens": tokens[0], "output_tokens": tokens[1]}


def _number(said: Any) -> float:
    try:
        return math.nan if said is None else float(said)
    except (TypeError, ValueError):
        return math.nan


def _tokens(response: object) -> list[Any]:
    """Return the input and output tokens of a call, by the names of chat completions or by those of
    the responses and messages APIs, which some of LiteLLM's paths hand over as they are."""
    usage = _held(response, "usage")
    names = ("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")
    return [_held(usage, chat) or _held(usage, other) or 0 for chat, other in names]


def _held(holder: object, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def _is_free(kwargs: Told) -> bool:
    """Tell whether a cost of 0 is one: of an answer from LiteLLM's own cache, or of a model whose
    price LiteLLM knows. A router registers models without a price as well, and they cost 0."""
    model, parameters = str(kwargs.get("model")), kwargs.get("litellm_params") or {}
    names = (
        (parameters.get("model_info") or {}).get("id"),
        _metadata(kwargs).get("deployment"),
        model,
        f"{kwargs.get('custom_llm_provider')}/{model}",
    )
    known = [one for name in names if name for one in (litellm.model_cost.get(name) or {}).items()]
    priced = any("_cost_per_" in field and price is not None for field, price in known)
    return priced or bool(kwargs.get("cache_hit"))


def _cached(response: object) -> dict[str, int]:
    """Return how many input tokens came from the provider's cache, if known."""
    usage = _held(response, "usage")
    cached = _held(_held(usage, "prompt_tokens_details"), "cached_tokens")
    tokens = _held(usage, "prompt_tokens")
    if not isinstance(cached, int) or not isinstance(tokens, int):
        return {}
    if not 0 <= cached <= tokens:
        log.warning("cached tokens are more than all input tokens, and were left out of the bill")
        return {}
    return {"cached_input_tokens": cached}


def _answered_by(kwargs: Told, response: object) -> dict[str, str]:
    """Return which model answered, if the provider says so."""
    parameters, name = kwargs.get("litellm_params") or {}, _held(response, "model")
    provider = kwargs.get("custom_llm_provider") or parameters.get("custom_llm_provider")
    told = names_itself(provider, parameters.get("api_base"))
    return {"answered_by": name} if told and isinstance(name, str) and name else {}


def _took(kwargs: Mapping[str, object], start: object, end: object) -> dict[str, float]:
    """Return how long a call took, and how long its first token; LiteLLM hands over the times."""
    times = {"latency_ms": end, "first_token_ms": kwargs.get("completion_start_time")}
    return {
        name: (time - start).total_seconds() * 1e3
        for name, time in times.items()
        if isinstance(start, datetime) and isinstance(time, datetime)
    }


def _failed(kwargs: Mapping[str, object]) -> dict[str, object]:
    """Return how a call failed, by the error that LiteLLM hands over."""
    error = kwargs.get("exception")
    limiter = getattr(error, "category", None)
    # LiteLLM's own limits are of the caller's key, and say nothing about the model.
    if str(getattr(limiter, "value", limiter)).startswith("litellm_"):
        return {"status": "cancelled"}
    status = status_of(type(error).__name__, getattr(error, "status_code", None))
    held = (getattr(error, "response", None), error)
    headers = [
        found
        for one in held
        for name in ("headers", "litellm_response_headers")
        if isinstance(found := getattr(one, name, None), Mapping)
    ]
    now = datetime.now(UTC)
    rests = (retry_after_of(one, now=now) for one in headers)
    rest = next((seconds for seconds in rests if seconds is not None), None)
    if rest is None or status == "cancelled":
        return {"status": status}
    return {"status": status, "retry_after_seconds": rest}
