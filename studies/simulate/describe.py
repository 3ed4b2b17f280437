"""A scenario's events in a few words."""

from __future__ import annotations

from studies.simulate.scenario import (
    Added,
    Budget,
    Delay,
    Duplication,
    Latency,
    Loss,
    Outage,
    PriceChange,
    Quality,
    Removed,
    ScenarioEvent,
    Slower,
    Traffic,
)


def describe(event: ScenarioEvent) -> str:  # noqa: PLR0911
    """Return an event in a few words."""
    match event:
        case PriceChange(model=model, factor=factor, announced=announced):
            return f"{short(model)}: price × {factor:.3g}{'' if announced else ', silently'}"
        case Quality(model=model, to=to, shift=shift, factor=factor):
            return f"{short(model)}: quality " + (
                f"to {to:g}"
                if to is not None
                else f"{shift:+g}"
                if shift is not None
                else f"× {factor:g}"
            )
        case Outage(model=model):
            return f"{short(model)}: outage"
        case Added(model=model):
            return f"{short(model)} joins"
        case Removed(model=model):
            return f"{short(model)} leaves"
        case Traffic(factor=factor):
            return f"traffic × {factor:g}"
        case Delay(what=what, by=by, to=to):
            return f"{what}: " + (
                f"{to} requests late" if to is not None else f"{by} requests later"
            )
        case Loss(what=what, share=share):
            return f"{what}: {share:.0%} lost"
        case Duplication(what=what, share=share):
            return f"{what}: {share:.0%} twice"
        case Budget():
            return _budget(event)
        case Latency():
            return _latency(event)
        case Slower(model=model, factor=factor):
            return f"{short(model)}: times × {factor:.3g}"


def _latency(event: Latency) -> str:
    of = " to the first token" if event.of == "first_token" else ""
    if event.usd_per_second is not None:
        return f"${event.usd_per_second:.3g} a second{of}"
    limit = event.p95_ms or event.mean_ms
    if limit is None:
        return "no target of latency"
    return f"{'p95' if event.p95_ms else 'mean'}{of} ≤ {limit / 1e3:.3g} s"


def _budget(event: Budget) -> str:
    floor = "" if event.min_reward is None else f", rewards from {event.min_reward:g}"
    if event.usd is not None:
        return f"budget ${event.usd:,.10g} per {event.per}{floor}"
    if event.factor is not None:
        return f"budget × {event.factor:g}{floor}"
    if event.usd_per_request is not None:
        return f"budget ${event.usd_per_request:.3g}{floor}"
    return "no budget" if not floor else f"rewards from {event.min_reward:g}"


def short(model: str) -> str:
    """Return a model's name without its maker."""
    return model.rpartition("/")[2]
