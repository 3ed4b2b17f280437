"""Write the results of a play: a table, a page, and the figures as JSON."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
from rich.table import Table as RichTable

from commands.demo.demo_clients import Outcome
from commands.demo.demo_play import Scenario
from commands.demo.player import Play
from commands.demo.series import WINDOW, Series, path_of, series_of
from commands.demo.yardsticks import ALWAYS, BEST_MIX, Yardstick, yardsticks
from doors.console.output import table
from drawing.alert_words import sentence
from drawing.numbers import usd
from drawing.page import Report as Page
from drawing.page import Table, page
from drawing.pareto import Pareto, Point, short

YARDSTICKS = "Means on the same requests; the mix is the best one in hindsight"
"""Caption of the table of other policies."""
COLUMNS = ("", "mean reward", "cost ÷ budget", "cost per request")
"""Heads of that table."""


@dataclass(frozen=True, slots=True)
class Report:
    """The measured results of a play.

    Attributes:
        proof: what the router saved against its incumbent, in a sentence; None: it was played
            without an incumbent.
    """

    scenario: Scenario
    play: Play
    profile: str
    shock: str
    seed: int = 0
    in_flight: int = 100
    proof: str | None = None

    @property
    def answer(self) -> str:
        """Return what the play showed, in a sentence."""
        return self.proof or self.pareto.sentence()

    @property
    def routed(self) -> list[Outcome]:
        """Return the requests that the router answered, and not its incumbent; all of them if it
        answered none."""
        outcomes = self.play.outcomes
        found = [one for one in outcomes if one.decision.routed_by in (None, "router")]
        return found or outcomes

    @property
    def ours(self) -> Yardstick:
        """Return the router's results on the requests that it answered."""
        outcomes = self.routed
        rewards, costs = [one.reward for one in outcomes], [one.cost_usd for one in outcomes]
        return Yardstick(
            f"this router ({self.profile})", float(np.mean(rewards)), float(np.mean(costs))
        )

    @property
    def pareto(self) -> Pareto:
        """Return the picture that the dashboard and `pbstream watch` show of these requests."""
        return replace(self.play.picture, tail=path_of(self.play.outcomes))

    @property
    def truth(self) -> Pareto:
        """Return the picture of costs and rewards from the outcomes of all models on every request,
        which only the demo knows. Models that joined later are left out.
        """
        scenario = self.scenario
        models = [
            Point(model, float(scenario.costs[:, k].mean()), float(scenario.rewards[:, k].mean()))
            for k, model in enumerate(scenario.models)
            if scenario.available[:, k].all()
        ]
        ours = Point("this router", self.ours.cost_usd, self.ours.reward)
        basis = "with all models' outcomes, which are known here"
        return Pareto(models, ours, budget_usd=scenario.budget_usd, basis=basis)

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
        """Return the table: name, mean reward, cost ÷ budget, cost per request; the router comes
        first."""
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

    def table(self) -> RichTable:
        """Return the table for a terminal."""
        shown = table(*COLUMNS, title=self.title)
        for at, row in enumerate(self.rows()):
            shown.add_row(*row, style="bold" if at == 0 else "")
        return shown

    @property
    def title(self) -> str:
        """Return the played scenario in one line."""
        budget = self.scenario.budget_usd
        what = (
            f"{len(self.scenario):,} prompts, budget {usd(budget)} per request, profile "
            f"{self.profile}"
        )
        return what if self.shock == "none" else f"{what}, {self.shock}"

    @property
    def result(self) -> str | None:
        """Return in words what the budget bought, beside the best fixed mix; None if no model was
        there all the time.
        """
        beside = self.beside
        return None if beside is None else f"{self.truth.sentence()} {beside}"

    @property
    def beside(self) -> str | None:
        """Return the dollars of the result, and the best fixed mix within the budget."""
        told = {one.name: one for one in yardsticks(self.scenario)}
        # A model that joined later has no mean over all requests, so it can't be compared.
        fixed = [one for one in told.values() if one.name.startswith(ALWAYS)]
        mix = told.get(BEST_MIX)
        if not fixed or mix is None:
            return None
        best = max(fixed, key=lambda one: one.reward)
        return (
            f"That is {usd(self.ours.cost_usd)} instead of {usd(best.cost_usd)} a request. "
            "The best fixed mix of models within the budget gets "
            f"{mix.reward / best.reward:.1%}."
        )

    @property
    def why(self) -> str | None:
        """Return what the router's choices between its two most called models were worth; None if
        it called only one model.
        """
        most = Counter(outcome.decision.model for outcome in self.routed).most_common(2)
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
        rows = [outcome.position for outcome in self.routed if outcome.decision.model == of]
        rewards, models = self.scenario.rewards, self.scenario.models
        return float((rewards[rows, models.index(by)] - rewards[rows, models.index(over)]).mean())

    @property
    def summary(self) -> str:
        """Return the outcome of the play, in two sentences."""
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
            "estimated": self.pareto.sentence(),
            "proof": self.proof,
            "result": self.result,
            "lead": self.lead,
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

    @property
    def lead(self) -> str | None:
        """Return a sentence on how much more the router earned than the best fixed mix of models
        would have earned on the same requests. None: there is no such mix.
        """
        mix = next((one for one in yardsticks(self.scenario) if one.name == BEST_MIX), None)
        outcomes = self.routed
        if mix is None or len(outcomes) < 2:
            return None
        weights = dict(mix.mix)
        shares = [weights.get(f"{ALWAYS}{model}", 0.0) for model in self.scenario.models]
        mixed = self.scenario.rewards[[outcome.position for outcome in outcomes]] @ shares
        gain = self.ours.reward - float(mixed.mean())
        return (
            f"Against the best fixed mix within the budget: {gain:+.3f} reward per request, as it "
            "happened."
        )

    @property
    def over(self) -> str:
        """Return the requests, the time and the version of the results."""
        times = [outcome.decision.decided_at for outcome in self.play.outcomes]
        return (
            f"Over {len(times):,} requests, {min(times):%Y-%m-%d %H:%M:%S} to "
            f"{max(times):%H:%M:%S} UTC. Made by pbstream {version('paretobandit-streams')}; ± is "
            "a 95 % interval of what is estimated."
        )

    def save(self, folder: Path) -> None:
        """Write demo.html and demo.json into the folder."""
        packed = json.dumps(self.figures(), indent=2) + "\n"
        (folder / "demo.json").write_text(packed, encoding="utf-8")
        (folder / "demo.html").write_text(self._page(), encoding="utf-8")

    def _page(self) -> str:
        series = series_of(self.scenario, self.play)
        return page(
            Page(
                title=f"Demo: {self.title}",
                answer=self.answer,
                others=[text for text in (self.result, self.lead, self.why) if text],
                notes=[
                    self.over,
                    self.summary,
                    f"A point of a line is the mean of the last {WINDOW} decisions, or of all so "
                    "far; λ_t is as used at that one.",
                ],
                over="decision",
                marks=self._marks(series),
                pareto=self.pareto.document(),
                facts=self.pareto.facts(len(self.play.outcomes)),
                charts=series.charts(),
                tables=[Table("What others would have reached", YARDSTICKS, COLUMNS, self.rows())],
                lists={"Alerts": [sentence(alert) for alert in self.play.alerts]},
            )
        )

    def _marks(self, series: Series) -> list[tuple[float, str]]:
        """Return the scenario's events and the service's alerts, each by the number of decisions
        before it.
        """
        times = [outcome.decision.decided_at for outcome in self.play.outcomes]
        told = [
            # Alerts have a time and the charts an order of decisions.
            (float(sum(at <= alert.observed_at for at in times)), sentence(alert))
            for alert in self.play.alerts
        ]
        events = [(float(position), label) for position, label in series.events]
        return sorted([*events, *told], key=lambda one: one[0])
