"""Write what is known of sources of labels as sentences: which models a judge favours, and how far
it agrees with gold.
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas.label_asking import LabelsStanding
from schemas.label_sources import Estimate, ModelMeasured, SourceStanding

CLOSE = 0.005
"""Half of an interval below which two digits say all."""


def source_lines(sources: tuple[SourceStanding, ...]) -> list[str]:
    """Return the sentences of a router's sources, gold first."""
    return [line for one in sources for line in (_gold(one) if one.gold else _judge(one))]


def asked_lines(labels: LabelsStanding) -> list[str]:
    """Return the sentences about a router's budget of labels."""
    if labels.asked is None:
        return [f"{labels.want} labels are wanted each {labels.per}; no request has come yet"]
    models = labels.models or ()
    asked, answered, alone = (
        sum(getattr(model, name) for model in models) for name in ("asked", "answered", "unasked")
    )
    lines = [
        f"{labels.asked} of the {labels.want} labels of this {labels.per} are asked for, of "
        f"{labels.decided} requests",
        f"People have given {answered} of {asked} labels that were asked for",
    ]
    if alone:
        lines[-1] += f", and {alone} that came by themselves, which measure no judge"
    return lines


def _gold(one: SourceStanding) -> Iterator[str]:
    if one.double_labels:
        yield (
            f"People of {one.source} part by {one.apart or 0.0:.2f}, {_count(one.double_labels)} "
            "of the same answer"
        )


def _judge(one: SourceStanding) -> Iterator[str]:
    if not one.pairs:
        yield f"{one.source} has no pair with gold yet"
    elif one.agreement is not None:
        yield f"{one.source} agrees with gold at {text_of(one.agreement)}, {_count(one.pairs)}"
    for model in one.models or ():
        yield from _model(one.source, model)
    if one.set_aside:
        yield f"{one.source} says nothing of an answer, and its labels are not learned"
    yield from _advice(one)
    if one.since_then is not None and _is_clear(one.since_then):
        yield (
            f"{one.source} has changed what it said of {one.judged_again} answers by "
            f"{text_of(one.since_then)}"
        )


def _advice(one: SourceStanding) -> Iterator[str]:
    """Say what is recommended, and why, where it is not declared."""
    switch = f"declare calibrate: {{{one.source}: {one.advice}}} under sources"
    off = [model for model in one.models or () if _is_clear(model.offset)]
    if one.advice is None or one.calibrate in ("on", one.advice):
        return
    if off and one.calibrate != "offset":
        most = max(off, key=lambda model: abs(model.offset.value))
        yield (
            f"{one.source} is off by {text_of(most.offset)} on {most.model}: {switch}, and its "
            "labels count without that"
        )
    elif one.calibrate is None:
        yield (
            f"{one.source} is not calibrated: where people label {LEAST_LABELLED:.0%} of the "
            f"requests or more, drawn at random, {switch}"
        )
    elif one.advice == "on":
        yield (
            f"{one.source} says nothing of an answer, {_count(one.pairs or 0)}: {switch}, and "
            "its labels are not learned until it does"
        )


LEAST_LABELLED = 0.01
"""Share of the requests that people label from which calibration was measured to pay
(lab/docs/sources.md)."""


def _model(source: str, model: ModelMeasured) -> Iterator[str]:
    favour = model.favour
    if favour is not None and _is_clear(favour):
        how = "favours" if favour.value > 0.0 else "disfavours"
        yield f"{source} {how} {model.model} by {text_of(favour)}, {_count(model.pairs)}"
    elif _is_clear(model.offset):
        where = "above" if model.offset.value > 0.0 else "below"
        yield (
            f"{source} is {where} gold on {model.model} by {text_of(model.offset)}, "
            + _count(model.pairs)
        )
    if model.taken_off is not None:
        less = f"{abs(model.taken_off):.2f} {'less' if model.taken_off > 0.0 else 'more'}"
        yield f"labels of {source} for {model.model} count {less}"
    if model.lately is not None and _differs(model.lately, model.offset):
        yield f"{source} has lately been off by {text_of(model.lately)} on {model.model}"


def text_of(one: Estimate) -> str:
    """Write an estimate with half of its interval, or with both ends where the interval is not
    centred on the estimate.
    """
    half = (one.high - one.low) / 2.0
    if abs(one.low + one.high - 2.0 * one.value) < CLOSE:
        return f"{one.value:+.2f} ± {half:.2f}"
    return f"{one.value:+.2f} ({one.low:+.2f} to {one.high:+.2f})"


def _is_clear(one: Estimate) -> bool:
    return one.low > 0.0 or one.high < 0.0


def _differs(one: Estimate, other: Estimate) -> bool:
    return one.low > other.high or one.high < other.low


def _count(pairs: int) -> str:
    return f"{pairs} pair" + ("" if pairs == 1 else "s")
