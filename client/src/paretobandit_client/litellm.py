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
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from litellm import token_counter
from litellm.integrations.custom_logger import CustomLogger

from paretobandit_client.answered import Answered
from paretobandit_client.async_router import Counts, Router
from paretobandit_client.calls import Message, last_user_message, needs_of, tokens_of
from paretobandit_client.client_errors import NoDecision, Refused, RouterError, Unreachable
from paretobandit_client.litellm_bills import Facts, Theirs, failed_of, metadata_of, took_of
from paretobandit_client.litellm_plans import Plans, is_checked, step_of, text_of
from paretobandit_client.litellm_reports import PluginReports
from paretobandit_client.litellm_signals import by_form, forms_of, named_in, next_best, signal_of
from paretobandit_client.litellm_streams import Stream, Streams
from paretobandit_client.outage import Outage
from paretobandit_client.verifying import Verifier, Verify, verifiers_of

log = logging.getLogger(__name__)
REQUEST_ID = "pb_request_id"
"""Key of a call's `metadata` that gives it an id of your own, for rewards."""
NEEDS = "pb_needs"
"""Key of a call's `metadata` with needs that its messages do not show, see `Needs`: a plugin is
shown no tools and no response format."""
NARROWED = "_routing_plugin_candidate_models"
"""Key of a call's metadata under which LiteLLM keeps the candidates that its plugins left."""
SESSION_BUDGET = "session_budget_usd"
"""Key of a call's `metadata` with the dollars that its session may spend."""
SEEN = ("follows", "verdicts", "signals")
"""Fields of `Router.route` that a call's `metadata` may have, with `pb_` before each."""


LIMITS = frozenset(
    ("session_spent", "budget_spent", "cap_reached", "no_affordable_model", "chain_too_long")
)
"""Reasons of refusals that keep a limit: the call would break it, whichever model answered."""


class BeyondLimit(Refused):
    """A limit of the router refuses this call, so that it is not made."""

    # LiteLLM tries a call again unless its error has such a code, and its proxy answers with it.
    status_code = 400


class ParetoBandit(CustomLogger):  # type: ignore[misc]
    """A plugin and callback for LiteLLM, which uses a `Router` and takes its options.

    A call beyond a limit that the router has declared raises `BeyondLimit`. If anything else fails,
    the call goes to the fallback if that is a candidate, else to LiteLLM's own choice.

    Args:
        prompt_of: makes the prompt from a call's messages; by default the text of the last user
            message.
        context_of: returns features of a call's messages, shape (d,), the last one 1.0. They are
            sent in place of the prompt, which then does not leave the process.
        variants: the candidate to call for each variant in the portfolio that has parameters. The
            parameters come with the decision.
        count: returns the number of tokens in a call's messages. By default LiteLLM counts them as
            it does for models whose tokenizer it lacks.
        verifiers: callables that look at answers, by the names of the router's verifiers; see
            `Verifier`, and `follow`.
        answer_of: returns what verifiers look at, from a response and the messages that it answers;
            by default the response's text. With None, verifiers do not look at this response.
        options: options of `Router`, above all `fallback` and `timeout`.
    """

    def __init__(
        self,
        router_id: str,
        *,
        prompt_of: Callable[[Sequence[Message]], str] | None = None,
        context_of: Callable[[Sequence[Message]], Sequence[float]] | None = None,
        variants: Mapping[str, str] | None = None,
        count: Callable[[Sequence[Message]], int] | None = None,
        verifiers: Mapping[str, Verify | Verifier] | None = None,
        answer_of: Callable[[Theirs, Sequence[Message]], object] | None = None,
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
        self._reports = PluginReports(self._router, self._name_of)
        judge = self._reports.judge
        self._plans = Plans(verifiers_of(verifiers or {}), answer_of or text_of, judge)
        self._portfolio: set[str] = set()
        self._answered = Answered()
        self._silence = Outage(f"decisions of router {router_id}")
        self._streams = Streams(self._abandoned)

    def follow(self, router: Theirs) -> Theirs:
        """Run plans in the calls of LiteLLM's router, and return that router:

            router = bandit.follow(litellm.Router(model_list=…, plugins=[bandit]))

        An answer that a verifier checks is collected before it is returned; a caller who wants a
        stream gets it as one chunk. The answer of the last attempt is streamed as it comes. Only
        `acompletion` follows plans; other calls ask for one model.
        """
        self._plans.follow(router)
        return router

    async def run(self, context: Theirs) -> Theirs:
        """Narrow a call's candidates to the model that the service chose; LiteLLM calls this before
        each attempt.

        Raises:
            BeyondLimit: the call is not to be made.
            ValueError: the call's metadata has a budget of its session that can't be kept.
        """
        try:
            await self._narrow(context)
            self._silence.over()
        except (NoDecision, Unreachable) as error:
            self._silence.note(error)
        except Refused as error:
            if error.reason in LIMITS:
                raise BeyondLimit(
                    error.reason,
                    error.message,
                    router_id=error.router_id,
                    request_id=error.request_id,
                ) from None
            log.warning("no decision for this call: %s", error)
        except RouterError as error:
            log.warning("no decision for this call: %s", error)
        except Exception as error:
            if isinstance(error, ValueError) and SESSION_BUDGET in context.metadata:
                raise
            log.exception("no decision for this call")
        if isinstance(before := context.metadata.get(NARROWED), list):
            # Of a group of fallbacks with a single candidate, LiteLLM takes the list of the group
            # before, in which no deployment of this group stands.
            before[:] = context.candidate_models
        return context

    async def async_pre_call_hook(
        self, user_api_key_dict: Theirs, cache: Theirs, data: Theirs, call_type: Theirs
    ) -> None:
        """Note the needs of a call; LiteLLM's proxy calls this first, with the whole request."""
        needs = needs_of(data)
        for name in ("metadata", "litellm_metadata"):
            if isinstance(metadata := data.get(name), dict) and needs:
                metadata[NEEDS] = {**needs, **(metadata.get(NEEDS) or {})}
        proxy = sys.modules.get("litellm.proxy.proxy_server")
        if self._plans.verifiers and (router := getattr(proxy, "llm_router", None)) is not None:
            self.follow(router)

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
        await self._reports.finish()
        if self._opening is not None:
            await (await self._opening).close()
            self._opening = None

    async def async_pre_call_deployment_hook(self, kwargs: Theirs, call_type: Theirs) -> Theirs:
        """Note which model an attempt of a call goes to, add the parameters of the chosen variant,
        and collect an answer that a verifier looks at. LiteLLM calls this before each attempt.
        """
        metadata = metadata_of(kwargs)
        signal = self._signal_of(metadata)
        if signal is None:
            return None
        called = metadata.get("deployment") or signal["candidate"]
        name = named_in(signal, called)
        self._answered.note(self.router_id, signal["request_id"], name)
        params = (signal.get("params") or {}).get(name) or {}
        call = {**kwargs, **params}
        if call.get("stream") and is_checked(signal):
            whole = {name: one for name, one in call.items() if name != "stream_options"}
            return {**whole, "stream": False}
        if call.get("stream"):
            self._streams.begin(signal["request_id"], call)
        return call if params else None

    async def async_post_call_streaming_deployment_hook(
        self, request_data: Theirs, response_chunk: Theirs, call_type: Theirs
    ) -> None:
        """Take in a chunk of a stream, which may be its last one."""
        signal = self._signal_of(metadata_of(request_data))
        if signal is not None:
            self._streams.add(signal["request_id"], response_chunk)

    async def async_log_success_event(
        self, kwargs: Theirs, response_obj: Theirs, start_time: Theirs, end_time: Theirs
    ) -> None:
        """Report what a call cost; a stream comes here at its end, a cached answer with a cost of
        0.
        """
        took = took_of(kwargs, start_time, end_time)
        signal = self._report(kwargs, response_obj, revision=1, started=start_time, more=took)
        if signal is not None and not is_checked(signal) and step_of(signal).get("verify"):
            messages = kwargs.get("messages") or ()
            looking = self._plans.look(signal, response_obj, messages)
            self._reports.keep(asyncio.create_task(looking))

    async def async_log_failure_event(
        self, kwargs: Theirs, response_obj: Theirs, start_time: Theirs, end_time: Theirs
    ) -> None:
        """Report what a failed call cost, mostly nothing, and how it failed."""
        more = {**failed_of(kwargs), **took_of({}, start_time, end_time)}
        self._report(kwargs, response_obj, revision=0, started=start_time, more=more)

    async def _narrow(self, context: Theirs) -> None:
        before = (context.metadata.get("routing_plugin_signals") or {}).get(self._signal)
        candidates = list(dict.fromkeys(context.candidate_models))
        followed = self._plans.followed
        if before is not None:
            signal = next_best(before, candidates, self._arguments[1].get("fallback"))
        elif followed is not None and followed.is_next and followed.signal is not None:
            signal = followed.signal
        else:
            signal = await self._decide(context, candidates)
        if followed is not None:
            followed.signal = signal
        context.candidate_models = [signal["candidate"]]
        context.signals[self._signal] = signal

    async def _decide(self, context: Theirs, candidates: Sequence[str]) -> Facts:
        forms = by_form(candidates, self._variants)
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
            session_budget_usd=context.metadata.get(SESSION_BUDGET),
            allowed_models=forms,
            input_tokens=await self._counted(messages),
            needs=_needs(messages, context.metadata),
            verifiers=self._plans.asked,
            **{name: context.metadata.get(f"pb_{name}") for name in SEEN},
            fallback=fallback,
        )
        route = decision.route
        if route is not None:
            named = (route, *route.plan, *(route.candidates or ()))
            self._portfolio |= {one.model for one in named}
        plan = () if route is None else route.plan
        if plan and self._plans.followed is None:
            self._plans.not_followed(self.router_id)
            plan = ()
        return signal_of(decision, forms, plan)

    async def _counted(self, messages: Sequence[Message]) -> int | None:
        try:
            # A long history takes a tokenizer tenths of a second.
            return await asyncio.to_thread(self._count, messages)
        except Exception:
            log.exception("the tokens of this call's messages could not be counted")
            return None

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
        self, kwargs: Facts, response: Theirs, *, revision: int, **more: Any
    ) -> Facts | None:
        """Bill a call that this plugin decided; return its signal."""
        signal = self._signal_of(metadata_of(kwargs))
        if signal is not None:
            self._streams.end(signal["request_id"])
            self._reports.report(signal, kwargs, response, revision=revision, **more)
        return signal

    def _abandoned(self, request_id: str, stream: Stream) -> None:
        """Bill a stream that nobody reads any more for what it has delivered."""
        log.info("the stream of request %s was not read to its end", request_id)
        signal = self._signal_of(metadata_of(stream.call))
        if signal is not None:
            billing = self._reports.bill_unread(signal, stream, self._counted)
            self._reports.keep(asyncio.create_task(billing))

    def _signal_of(self, metadata: Facts) -> Facts | None:
        found: Facts | None = (metadata.get("routing_plugin_signals") or {}).get(self._signal)
        return found

    def _name_of(self, called: str) -> str:
        """Return the portfolio's name of a model, as decisions have it, else as the fallback has
        it.
        """
        known = (self._portfolio, (self._arguments[1].get("fallback"),))
        return next((form for some in known for form in forms_of(called) if form in some), called)


def _needs(messages: Sequence[Message], metadata: Facts) -> Facts | None:
    """Return a call's needs, from its messages and its metadata."""
    return {**needs_of({"messages": list(messages)}), **(metadata.get(NEEDS) or {})} or None


def all_tokens(messages: Sequence[Message]) -> int:
    """Return the number of tokens of all messages together."""
    try:
        # The size of a picture it would else look up at the picture's address.
        counted: int = token_counter(
            model="", messages=list(messages), use_default_image_token_count=True
        )
    except ValueError:
        return tokens_of(messages)  # it counts neither sound nor files
    return counted
