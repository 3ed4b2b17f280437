"""Offers of models beside quality and price, such as vision or a region, and needs of requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, structs

from router_state.choice import Excluded
from router_state.errors import NoCapableModel
from router_state.events import Needs


class Offers(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The offers of a model. A limit of None is unknown, and rules nothing out.

    Attributes:
        context_window: most tokens of a call's input.
        max_output_tokens: tokens of its longest answer.
        vision, audio, tools, json_output: whether the model reads images, takes sound, calls tools,
            answers in JSON. If no model of a portfolio takes sound, `audio` counts as unknown for
            all of them.
        regions: regions where the model may run.
        retention_days: days for which its provider keeps prompts; 0: not at all.
    """

    context_window: int | None = None
    max_output_tokens: int | None = None
    vision: bool = False
    audio: bool = False
    tools: bool = False
    json_output: bool = False
    regions: tuple[str, ...] = ()
    retention_days: float | None = None


NOTHING = Needs()
"""Needs of a request that states none."""


def lacking(offers: Offers, needs: Needs, input_tokens: int | None) -> dict[str, str]:
    """Return the needs that a model does not meet: {reason of exclusion: the need in words}."""
    found: dict[str, str] = {}
    for name in ("vision", "audio", "tools", "json_output"):
        if getattr(needs, name) and not getattr(offers, name):
            found[f"no_{name}"] = name
    window, tokens, out = offers.context_window, input_tokens or 0, needs.output_tokens or 0
    if window is not None and tokens > window:
        found["window_too_small"] = f"a context window of {tokens:,} tokens"
    if offers.max_output_tokens is not None and out > offers.max_output_tokens:
        found["output_too_short"] = f"an answer of {out:,} tokens"
    if needs.region is not None and needs.region not in offers.regions:
        found["not_in_region"] = f"region {needs.region}"
    most = needs.max_retention_days
    # A provider that does not say how long it keeps prompts may keep them for good.
    if most is not None and (offers.retention_days is None or offers.retention_days > most):
        found["retains_prompts"] = f"retention of at most {most:g} days"
    return found


def rule_out(
    names: Sequence[str],
    excluded: Excluded,
    offers: Mapping[str, Offers],
    needs: Needs | None,
    input_tokens: int | None,
) -> Excluded:
    """Rule out arms that do not meet a request's needs; a model that declares no offers meets all.

    Raises:
        NoCapableModel: nothing is left; the message names the needs.
    """
    if needs is not None and needs.audio and not any(one.audio for one in offers.values()):
        # Declarations and lists of prices seldom say which models take sound.
        needs = structs.replace(needs, audio=False)
    found = list(excluded)
    missing: list[dict[str, str]] = []
    for k, (name, why) in enumerate(zip(names, excluded, strict=True)):
        if why is None and name in offers:
            lacks = lacking(offers[name], needs or NOTHING, input_tokens)
            if lacks:
                found[k] = next(iter(lacks))
                missing.append(lacks)
    if None not in found:
        raise NoCapableModel(f"no eligible model offers {_need(missing)}")
    return found if missing else excluded


def _need(missing: Sequence[Mapping[str, str]]) -> str:
    """Return, in words, the needs that no model meets, and then those that no model meets
    together.
    """
    shared = {why for why in missing[0] if all(why in lacks for lacks in missing)}
    found = [text for why, text in missing[0].items() if why in shared]
    if all(lacks.keys() - shared for lacks in missing):
        each = (text for lacks in missing for why, text in lacks.items() if why not in shared)
        found.append(f"all of {', '.join(dict.fromkeys(each))} together")
    return " nor ".join(found)
