"""Group requests into a few kinds by their contexts, to show where the money goes. Words of prompts
name the kinds if prompts are kept.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from ground.json_values import Document
from router_state.config import Matrix
from studies.history.happened import Decided, Happened
from studies.simulate.cases import Case

MOST_KINDS = 8
"""Most kinds of prompts, as many as a table can tell apart."""
LEAST_OF_A_KIND = 25
"""Fewest prompts of a kind; a smaller one would be chance."""
ROUNDS = 50
"""Most rounds of Lloyd's algorithm."""
WORDS = 5
"""Words that name a kind."""
LEAST_PROMPTS = 3
"""Fewest prompts of a kind that must hold a word before it names the kind; so no single prompt is
shown."""
LAST = 5000
"""Number of last prompts that are grouped."""
_WORD = re.compile(r"[^\W\d_]{3,20}")
"""Pattern of a word: letters alone. Numbers and shorter words name no kind, longer ones are no
words."""


class Words:
    """The words of the last prompts that pass by, by request; no prompt is kept."""

    def __init__(self) -> None:
        self.of: dict[str, frozenset[str]] = {}

    def heard(self, happened: Iterable[Happened]) -> Iterator[Happened]:
        """Pass events on, and keep the words of prompts."""
        for event in happened:
            if type(event) is Decided and event.request.prompt:
                words = _WORD.findall(event.request.prompt[:2000].casefold())
                self.of[event.request.request_id] = frozenset(words)
                if len(self.of) > LAST:
                    del self.of[next(iter(self.of))]
            yield event


def kinds(cases: list[Case], words: Words, *, seed: int = 0) -> list[Document]:
    """Return the kinds of requests, the dearest first: their share of requests and of dollars."""
    X = np.array([case.x[:-1] for case in cases])
    groups = clusters(X, min(MOST_KINDS, max(1, len(cases) // LEAST_OF_A_KIND)), seed=seed)
    spend = sum(case.cost_usd or 0.0 for case in cases)
    found = []
    for number in range(int(groups.max(initial=0)) + 1):
        members = [case for case, group in zip(cases, groups, strict=True) if group == number]
        if members:
            found.append(_kind(members, len(cases), spend, names(members, cases, words)))
    return sorted(found, key=lambda kind: -kind["spend_usd"])


def clusters(X: Matrix, count: int, *, seed: int) -> np.ndarray:
    """Return the group of each row by k-means (Lloyd), begun with rows far apart (k-means++)."""
    rng = np.random.default_rng(seed)
    # Scaled, because directions of a projection differ in spread and the first one would make all
    # groups.
    scale = X.std(axis=0)
    X = X / np.where(scale > 0.0, scale, 1.0)
    centres = X[rng.integers(len(X), size=1)]
    while len(centres) < count:
        apart = _squares(X, centres).min(axis=1)
        if apart.sum() <= 0.0:
            break
        centres = np.vstack([centres, X[rng.choice(len(X), p=apart / apart.sum())]])
    groups: np.ndarray = _squares(X, centres).argmin(axis=1)
    for _ in range(ROUNDS):
        centres = np.array(
            [
                X[groups == k].mean(axis=0) if (groups == k).any() else centres[k]
                for k in range(len(centres))
            ]
        )
        before, groups = groups, _squares(X, centres).argmin(axis=1)
        if (before == groups).all():
            break
    return groups


def names(members: list[Case], cases: list[Case], words: Words) -> list[str]:
    """Return the words that distinguish a kind of prompts from the others; none without prompts."""
    here = Counter(word for case in members for word in words.of.get(case.request_id, ()))
    everywhere = Counter(word for case in cases for word in words.of.get(case.request_id, ()))

    def weight(word: str) -> float:
        share = here[word] / len(members)
        # A term of the Kullback–Leibler divergence, large for words that are frequent here and
        # rarer elsewhere.
        return share * math.log(share * len(cases) / everywhere[word])

    told = [word for word, prompts in here.items() if prompts >= LEAST_PROMPTS]
    ordered = sorted(told, key=lambda word: (-weight(word), word))
    return [word for word in ordered[:WORDS] if weight(word) > 0.0]


def _kind(members: list[Case], requests: int, spend: float, named: list[str]) -> Document:
    bills = [case.cost_usd for case in members if case.cost_usd is not None]
    labels = [case.reward for case in members if case.reward is not None]
    calls = Counter(case.model for case in members)
    return {
        "words": named,
        "requests": len(members),
        "share": len(members) / requests,
        "spend_usd": sum(bills),
        "spend_share": sum(bills) / spend if spend else None,
        "cost_usd": sum(bills) / len(bills) if bills else None,
        "reward": sum(labels) / len(labels) if labels else None,
        "shares": {model: count / len(members) for model, count in calls.most_common()},
    }


def _squares(X: Matrix, centres: Matrix) -> Matrix:
    squares: Matrix = ((X[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    return squares
