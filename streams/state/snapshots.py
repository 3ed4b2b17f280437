"""What a snapshot says in words and numbers, and how two differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from router_state.arms import Arms
from router_state.export import Exported

COUNTS = (
    "decided",
    "settled",
    "rewards_applied",
    "spend_usd",
    "committed_usd",
    "lambda_t",
    "debt_usd",
    "window",
    "budget_usd_per_request",
)


def summary(exported: Exported, data: bytes) -> dict[str, Any]:
    """Return a snapshot for people and programs; `evidence` is the bias entry of A: rewards weighed by age, and the ridge."""
    state = exported.state
    terms = state.pacing_terms()
    return {
        "about": exported.about,
        "format": exported.layout,
        "bytes": len(data),
        "profile": state.config.profile,
        "dimensions": state.arms.d,
        "budget_usd_per_request": state.config.budget_usd_per_request,
        "lambda_t": state.lambda_t,
        "debt_usd": terms.get("debt_usd"),
        "window": int(terms.get("window", 0)),
        "decided": state.seq,
        "settled": state.settled,
        "rewards_applied": state.rewards_applied,
        "spend_usd": state.spend_usd,
        "committed_usd": state.committed_usd,
        "models": {name: _model(state.arms, k) for k, name in enumerate(state.arms.names)},
    }


def difference(before: Exported, after: Exported) -> dict[str, Any]:
    """Return what differs: {"models": {name: ...}, "router": {what: [before, after]}}; what is equal is left out.

    Of a model: `change` joined, left or moved; `theta` the length of the difference of θ; `evidence` and `cost_ratio` differences;
    `other` {what: [before, after]}.
    """
    old, new = summary(before, b""), summary(after, b"")
    router = {name: [old[name], new[name]] for name in (*COUNTS, "profile", "dimensions") if old[name] != new[name]}
    models: dict[str, Any] = {}
    for name in {**old["models"], **new["models"]}:
        if name not in new["models"] or name not in old["models"]:
            models[name] = {"change": "joined" if name in new["models"] else "left"}
        elif found := _moved(before, after, name, old["models"][name], new["models"][name]):
            models[name] = found
    return {"models": models, "router": router}


def _model(arms: Arms, k: int) -> dict[str, Any]:
    price = arms.price[k]
    state = "retired" if arms.retired_at[k] is not None else "suspect" if arms.suspicion[k] is not None else "in traffic"
    if arms.pulls_left[k]:
        state = f"onboarding, {arms.pulls_left[k]} to go"
    return {
        "input_price_per_m": price.input_price_per_m,
        "output_price_per_m": price.output_price_per_m,
        "evidence": float(arms.A(k)[-1, -1]),
        "cost_ratio": arms.ratio[k],
        "expected_cost_usd": arms.mean_cost_usd[k],
        "state": state,
    }


def _moved(before: Exported, after: Exported, name: str, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any] | None:
    theta = [exported.state.arms.theta[exported.state.arms.index(name)] for exported in (before, after)]
    if theta[0].shape == theta[1].shape and (theta[0] == theta[1]).all() and old == new:
        return None
    comparable = theta[0].shape == theta[1].shape
    shown = ("input_price_per_m", "output_price_per_m", "state")
    return {
        "change": "moved",
        "theta": float(np.linalg.norm(theta[1] - theta[0])) if comparable else float("inf"),
        "evidence": new["evidence"] - old["evidence"],
        "cost_ratio": new["cost_ratio"] - old["cost_ratio"],
        "other": {what: [old[what], new[what]] for what in shown if old[what] != new[what]},
    }
