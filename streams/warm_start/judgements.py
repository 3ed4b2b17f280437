"""Prompts that were judged or billed offline, one JSON object a line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_SHOWN_ERRORS = 10
"""Lines that are told to be wrong; the others are counted."""
_MOST_USD = 1000.0
"""As on the wire, see `schemas.costs`."""
_COSTS = ("cost", "cost_usd")
"""Columns that may hold dollars."""


class UnusableJudgements(ValueError):
    """The prompts cannot be fitted; where lines are to blame, the message names them."""

    reason = "unusable_judgements"
    retriable = False


@dataclass(frozen=True, slots=True)
class JudgedPrompt:
    """One prompt, the reward in [0, 1] and the cost in dollars of each model's answer, as far as
    they are known.
    """

    prompt: str
    rewards: Mapping[str, float]
    costs: Mapping[str, float]


def read_judgements(path: Path) -> list[JudgedPrompt]:
    """Read judged prompts, one a line; blank lines are passed over.

    Raises:
        UnusableJudgements: no file, no prompts, or bad lines: the first ten are named with their
        number and what is wrong.
    """
    judged: list[JudgedPrompt] = []
    errors: list[str] = []
    for number, line in _lines(path):
        try:
            judged.append(_parse(line))
        # All of them are collected: who mends a file wants to mend it once.
        except UnusableJudgements as wrong:
            errors.append(f"{path}, line {number}: {wrong}")
    if errors:
        more = len(errors) - _SHOWN_ERRORS
        raise UnusableJudgements(
            "\n".join(errors[:_SHOWN_ERRORS] + ([f"… and {more} more"] if more > 0 else []))
        )
    if not judged:
        raise UnusableJudgements(f"{path} holds no prompts")
    return judged


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line
    except OSError as unreadable:
        raise UnusableJudgements(f"{path} cannot be read: {unreadable.strerror}") from unreadable


def _parse(line: bytes) -> JudgedPrompt:
    try:
        row = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as wrong:
        raise UnusableJudgements("is not UTF-8") from wrong
    except (ValueError, RecursionError) as wrong:
        raise UnusableJudgements(f"is not JSON ({wrong})") from wrong
    if (
        not isinstance(row, dict)
        or not isinstance(row.get("prompt"), str)
        or not row["prompt"].strip()
    ):
        raise UnusableJudgements('needs "prompt", a text that is not blank')
    arms = {
        model: arm if isinstance(arm, dict) else {"reward": arm}
        for model, arm in _by_model(row, "arms").items()
    }
    rewards = _by_model(row, "rewards") | {
        model: arm["reward"] for model, arm in arms.items() if "reward" in arm
    }
    costs = _by_model(row, "costs") | {
        model: arm[name] for model, arm in arms.items() for name in _COSTS if name in arm
    }
    if not rewards and not costs:
        raise UnusableJudgements(
            'needs "rewards" or "costs", as {"model": 0.9}, or "arms", as {"model": {"reward": '
            '0.9, "cost": 0.0004}}'
        )
    return JudgedPrompt(
        row["prompt"],
        {
            model: _number(f"the reward of {model!r}", value, 1.0)
            for model, value in rewards.items()
        },
        {
            model: _number(f"the cost of {model!r}", value, _MOST_USD)
            for model, value in costs.items()
        },
    )


def _by_model(row: dict[str, object], field: str) -> dict[str, object]:
    found = row.get(field, {})
    if not isinstance(found, dict):
        raise UnusableJudgements(f'"{field}" must be an object, by model')
    return found


def _number(what: str, value: object, most: float) -> float:
    if (
        not isinstance(value, int | float)
        or isinstance(value, bool)
        or not math.isfinite(value)
        or not 0.0 <= value <= most
    ):
        raise UnusableJudgements(f"{what} must be a number from 0 to {most:g}, not {value!r}")
    return float(value)
