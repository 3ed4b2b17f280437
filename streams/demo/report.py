"""What remains of a play: a table, a plot, a page, and the figures as JSON."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.table import Table

from streams.console.alerts import sentence
from streams.console.output import table, usd
from streams.demo.player import Play
from streams.demo.plot import inline_charts, legend, save_picture
from streams.demo.scenario import Scenario
from streams.demo.series import Series, series_of
from streams.demo.yardsticks import ALWAYS, BEST_MIX, Yardstick, yardsticks
from streams.drawing.page import page

TEMPLATE = Path(__file__).with_name("report.html")
COLUMNS = ("", "mean reward", "cost ÷ budget", "cost per request")


@dataclass(frozen=True, slots=True)
class Report:
    """A play, measured."""

    scenario: Scenario
    play: Play
    profile: str
    shock: str
    seed: int = 0
    in_flight: int = 100

    @property
    def ours(self) -> Yardstick:
        """Return what the router reached on the requests that it answered."""
        outcomes = self.play.outcomes
        rewards, costs = [one.reward for one in outcomes], [one.cost_usd for one in outcomes]
        return Yardstick(
            f"this router ({self.profile})", float(np.mean(rewards)), float(np.mean(costs))
        )

    @property
    def cost_per_budget(self) -> float | None:
        """Return mean cost ÷ budget."""
        budget = self.scenario.budget_usd
        return None if budget is None else self.ours.cost_usd / budget

    @property
    def shares(self) -> dict[str, float]:
        """Return each model's share of all decisions."""
        counts = Counter(outcome.decision.model for outcome in self.play.outcomes)
        return {model: counts[model] / len(self.play.outcomes) for model in self.scenario.models}

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return the table: name, mean reward, cost ÷ budget, cost per request; ours first."""
        budget = self.scenario.budget_usd
        return [
            (
                one.name,
                f"{one.reward:.3f}",
                "–" if budget is None else f"{one.cost_usd / budget:.2f}",
                usd(one.cost_usd),
            )
            for one in (self.ours, *yardsticks(self.scenario))
        ]

    def table(self) -> Table:
        """Return the table for a terminal."""
        shown = table(*COLUMNS, title=self.title)
        for at, row in enumerate(self.rows()):
            shown.add_row(*row, style="bold" if at == 0 else "")
        return shown

    @property
    def title(self) -> str:
        """Return what was played, in one line."""
        budget = self.scenario.budget_usd
        what = (
            f"{len(self.scenario):,} prompts, budget {usd(budget)} per request, profile "
            f"{self.profile}"
        )
        return what if self.shock == "none" else f"{what}, {self.shock}"

    @property
    def result(self) -> str | None:
        """Return in a sentence what the budget bought, beside the best fixed mix; None where no
        model was there all along.
        """
        ours, told = self.ours, {one.name: one for one in yardsticks(self.scenario)}
        fixed = [one for one in told.values() if one.name.startswith(ALWAYS)]
        mix = told.get(BEST_MIX)
        if not fixed or mix is None:
            return None
        best = max(fixed, key=lambda one: one.reward)
        return (
            f"{ours.reward / best.reward:.1%} of the quality of "
            f"{short(best.name.removeprefix(ALWAYS))}, the best model, at "
            f"{ours.cost_usd / best.cost_usd:.1%} of its price: {usd(ours.cost_usd)} instead of "
            f"{usd(best.cost_usd)} per request. "
            "The best fixed mix of models within the budget would get "
            f"{mix.reward / best.reward:.1%}."
        )

    @property
    def why(self) -> str | None:
        """Return what its choice between the two models that it called most was worth; None where
        it called one alone.
        """
        most = Counter(outcome.decision.model for outcome in self.play.outcomes).most_common(2)
        if len(most) < 2:
            return None
        names = [model for model, _ in most]
        columns = [self.scenario.models.index(model) for model in names]
        means = {
            model: float(self.scenario.costs[:, k].mean())
            for model, k in zip(names, columns, strict=True)
        }
        cheap, dear = sorted(names, key=means.__getitem__)
        gains = [self._gain(of=called, by=dear, over=cheap) for called in (cheap, dear)]
        return (
            f"Why: on the prompts that it gave to {short(dear)}, that earned {gains[1]:+.3f} "
            f"against {short(cheap)}; "
            f"on those that it gave to {short(cheap)}, {short(dear)} would have earned "
            f"{gains[0]:+.3f}."
        )

    def _gain(self, *, of: str, by: str, over: str) -> float:
        """Return how much more one model earns than another, on average over the prompts that went
        to model `of`.
        """
        rows = [outcome.position for outcome in self.play.outcomes if outcome.decision.model == of]
        rewards, models = self.scenario.rewards, self.scenario.models
        return float((rewards[rows, models.index(by)] - rewards[rows, models.index(over)]).mean())

    @property
    def summary(self) -> str:
        """Return how it went, in two sentences."""
        play, state = self.play, self.play.state
        answered, applied = play.seconds
        shares = ", ".join(f"{short(model)} {share:.0%}" for model, share in self.shares.items())
        return (
            f"{len(play.outcomes):,} of {len(self.scenario):,} requests were decided in "
            f"{answered:.1f} s "
            f"({len(play.outcomes) / answered:.0f}/s); all bills and rewards were applied "
            f"{applied - answered:.1f} s later. "
            f"Spend in the service's books: {usd(state.spend_usd)}; shares: {shares}."
        )

    def figures(self) -> dict[str, object]:
        """Return the figures for programs."""
        play, ours = self.play, self.ours
        return {
            "requests": len(self.scenario),
            "decided": len(play.outcomes),
            "refused": dict(Counter(play.refused.values())),
            "dead_letters": len(play.dead_letters),
            "alerts": [alert.model_dump(mode="json") for alert in play.alerts],
            "profile": self.profile,
            "shock": self.shock,
            "seed": self.seed,
            "in_flight": self.in_flight,
            "result": self.result,
            "why": self.why,
            "budget_usd_per_request": self.scenario.budget_usd,
            "cost_per_budget": self.cost_per_budget,
            "mean_reward": ours.reward,
            "mean_cost_usd": ours.cost_usd,
            "spend_usd": play.state.spend_usd,
            "shares": self.shares,
            "yardsticks": {
                one.name: {"reward": one.reward, "cost_usd": one.cost_usd}
                for one in yardsticks(self.scenario)
            },
            "seconds": play.seconds[0],
            "decisions_per_second": len(play.outcomes) / play.seconds[0],
        }

    def save(self, folder: Path) -> None:
        """Write demo.png, demo.html and demo.json into the folder."""
        series, figures = series_of(self.scenario, self.play), self.figures()
        (folder / "demo.json").write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
        save_picture(series, folder / "demo.png", title=self.title)
        (folder / "demo.html").write_text(self._page(series, figures), encoding="utf-8")

    def _page(self, series: Series, figures: dict[str, object]) -> str:
        curves = {
            "lambda_t": series.lambda_t.tolist(),
            "cost_per_budget": series.spend_per_budget.tolist(),
        }
        return page(
            TEMPLATE,
            {
                "title": self.title,
                "result": self.result,
                "why": self.why,
                "summary": self.summary,
                "head": COLUMNS,
                "rows": [
                    {"cells": row, "over": (), "kind": "" if at else "ours"}
                    for at, row in enumerate(self.rows())
                ],
                "marks": series.events,
                "colours": legend(series),
                "charts": inline_charts(series),
                "alerts": [sentence(alert) for alert in self.play.alerts],
                "figures": {**figures, "curves": curves},
            },
        )


def short(model: str) -> str:
    """Return a model's name without its maker's."""
    return model.rpartition("/")[2]
