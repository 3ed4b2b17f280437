"""Write what is known of sources of labels into `pb.lambda`."""

from __future__ import annotations

from collections.abc import Mapping

from router_state.learning.intervals import Interval
from router_state.sources.declared_sources import OFFSET, ON, DeclaredSources
from router_state.sources.label_pairs import ITSELF
from router_state.sources.learned_labels import LearnedLabels, Of
from router_state.sources.pair_sums import PARTS, Moments, Within
from router_state.sources.parting import Cell
from router_state.sources.uninformative import is_uninformative

MOST_MODELS_SHOWN = 64
"""Most models of a judge that are published: those with the most pairs."""
Cells = Mapping[tuple[str, str], Cell]


def standings(
    declared: DeclaredSources, cells: Cells, labels: Mapping[Of, LearnedLabels]
) -> list[dict[str, object]]:
    """Return what is known of each source, gold first; see `schemas.label_sources`.

    Args:
        labels: the judges' labels as models have learned them.
    """
    assert declared.gold is not None
    gold: dict[str, object] = {"source": declared.gold, "gold": True}
    people = cells.get((declared.gold, ITSELF))
    if people is not None and people.all.n:
        both = people.all
        squares = (both.yy - 2 * both.yr + both.rr) / both.n / PARTS**2
        gold |= {"double_labels": both.n, "apart": round(squares**0.5, 4)}
    return [gold, *(_judge(judge, declared, cells, labels) for judge in declared.judges)]


def _judge(
    judge: str, declared: DeclaredSources, cells: Cells, labels: Mapping[Of, LearnedLabels]
) -> dict[str, object]:
    own = {model: cell for (name, model), cell in cells.items() if name == judge}
    itself = own.pop(ITSELF, None)
    measured = {model: cell for model, cell in own.items() if cell.all.n}
    sums = [cell.all for cell in measured.values()]
    within = Within.of(sums)
    found: dict[str, object] = {"source": judge, "gold": False, "pairs": sum(s.n for s in sums)}
    for name, interval in (("agreement", within.agreement), ("slope", within.slope)):
        if interval is not None:
            found[name] = interval.rounded()
    if itself is not None and itself.all.n:
        found["judged_again"] = itself.all.n
        found["since_then"] = itself.all.offset().rounded()
    if judge in declared.calibrate:
        found["calibrate"] = declared.calibrate[judge]
    if (advice := _advice(measured, within, declared.calibrate.get(judge))) is not None:
        found["advice"] = advice
    most = sorted(measured, key=lambda model: (-measured[model].all.n, model))[:MOST_MODELS_SHOWN]
    learned = {model: labels.get((judge, model)) for model in most}
    if any(one is not None and one.aside for one in learned.values()):
        found["set_aside"] = True
    found["models"] = [_model(model, measured, learned[model]) for model in sorted(most)]
    return found


def _advice(measured: Mapping[str, Cell], within: Within, mode: str | None) -> str | None:
    """Return the `calibrate` that is recommended; None: none.

    `on` from the start (lab/docs/sources.md); where something else is declared, what the pairs say.
    """
    if mode is None or is_uninformative(within):
        return ON
    offsets = [cell.all.offset() for cell in measured.values()]
    return OFFSET if any(one.low > 0.0 or one.high < 0.0 for one in offsets) else None


def _model(
    model: str, measured: Mapping[str, Cell], learned: LearnedLabels | None
) -> dict[str, object]:
    cell = measured[model]
    offset = cell.all.offset()
    found = {"model": model, "pairs": cell.all.n, "offset": offset.rounded()}
    if learned is not None and learned.offset != 0.0:
        found["taken_off"] = round(learned.offset, 4)
    others = Moments()
    for name, other in measured.items():
        if name != model:
            others = others.plus(other.all)
    if others.n:
        found["favour"] = _favour(cell.all, others).rounded()
    recent = cell.recent_offset()
    if recent is not None:
        found["lately"] = recent.rounded()
    return found


def _favour(own: Moments, others: Moments) -> Interval:
    """Return by how much a judge is kinder to a model than to the others.

    Each offset's interval is wrong with half of the probability, so both hold at once.
    """
    a, b = own.offset(alpha=EACH_WRONG), others.offset(alpha=EACH_WRONG)
    value = a.value - b.value
    return Interval(value, max(a.low - b.high, -2.0), min(a.high - b.low, 2.0))


EACH_WRONG = 0.025
"""Probability with which each of the two intervals behind a favour is ever wrong."""
