"""Summarize a snapshot, and compare two."""

from __future__ import annotations

import numpy as np

from ground.json_values import Document
from router_state.kernel import Arm
from router_state.state.portable import Exported

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
"""Numbers of a router that are compared one by one."""


def summary(exported: Exported, data: bytes) -> Document:
    """Return a snapshot for people and programs; `evidence` is the bias entry of A: rewards weighed
    by age, and the ridge.
    """
    state = exported.state
    terms, window = state.pacer.terms(), state.arms.window
    return {
        "about": exported.about,
        "format": exported.layout,
        "bytes": len(data),
        "profile": state.config.profile,
        "dimensions": state.arms.d,
        "budget_usd_per_request": state.config.budget_usd_per_request,
        "lambda_t": state.lambda_t,
        "debt_usd": terms.get("debt_usd"),
        "window": 0 if window is None else window.size,
        "decided": state.seq,
        "settled": state.settled,
        "rewards_applied": state.rewards_applied,
        "spend_usd": state.spend_usd,
        "committed_usd": state.committed_usd,
        "models": {arm.name: _model(arm) for arm in state.arms},
    }


def difference(before: Exported, after: Exported) -> Document:
    """Return the differences: {"models": {name: ...}, "router": {field: [before, after]}}; equal
    fields are left out.

    Of a model: `change` joined, left or moved; `theta` the length of the difference of θ;
    `evidence` and `cost_ratio` differences; `other` {what: [before, after]}.
    """
    old, new = summary(before, b""), summary(after, b"")
    router = {
        name: [old[name], new[name]]
        for name in (*COUNTS, "profile", "dimensions")
        if old[name] != new[name]
    }
    models: Document = {}
    for name in {**old["models"], **new["models"]}:
        if name not in new["models"] or name not in old["models"]:
            models[name] = {"change": "joined" if name in new["models"] else "left"}
        elif found := _moved(before, after, name, old["models"][name], new["models"][name]):
            models[name] = found
    return {"models": models, "router": router}


def _model(arm: Arm) -> Document:
    state = (
        "retired"
        if arm.retired_at is not None
        else "suspect"
        if arm.suspicion is not None
        else "in traffic"
    )
    if arm.pulls_left:
        state = f"onboarding, {arm.pulls_left} to go"
    return {
        "input_price_per_m": arm.price.input_price_per_m,
        "output_price_per_m": arm.price.output_price_per_m,
        "evidence": float(arm.rewards.A()[-1, -1]),
        "cost_ratio": arm.costs.ratio,
        "expected_cost_usd": arm.costs.mean_usd,
        "state": state,
    }


def _moved(
    before: Exported, after: Exported, name: str, old: Document, new: Document
) -> Document | None:
    theta = [exported.state.arms[name].rewards.theta for exported in (before, after)]
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
