"""Let the router of a demo take over from one model step by step, and prove what that saved."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from schemas import RouterDeclared
from schemas.event import decode, encode
from streams.settings import Settings
from studies.history.kafka_history import KafkaHistory
from studies.proof.proof import proof_of
from studies.proof.proof_file import Noted
from studies.simulate.past import contexts_of

SHARES = (0.2, 0.5, 1.0)
"""Shares of the requests that are routed, step by step."""
HOLDOUT = 0.05
"""Share that the incumbent keeps, so that the comparison goes on after the last step."""
MARGIN = 0.08
"""Reward by which the router may be worse on the way. Chosen on these prompts: with it, 1,824
labels lead through all steps in each of 12 drawn orders; a margin of 0.05 takes up to 5,000."""
BUDGET_USD = 6.62e-4
"""Dollars of a request, unless others are given: the paper's middle budget."""


def on_a_ramp(declared: RouterDeclared) -> RouterDeclared:
    """Return the declaration with its dearest model as incumbent, and with a ramp."""
    dearest = max(declared.models, key=lambda name: declared.models[name].output_price_per_m)
    ramp = {
        "incumbent": dearest,
        "ramp": SHARES,
        "holdout": HOLDOUT,
        "margin": MARGIN,
    }
    # Decoded, so that it is checked as everybody's is.
    return decode(RouterDeclared, encode(declared.model_copy(update=ramp)))


def proved(router_id: str, settings: Settings, folder: Path) -> str:
    """Write proof.json into the folder, and return the sentence of the proof."""
    with KafkaHistory(settings) as history:
        proof = proof_of(
            router_id,
            Noted(history),
            settings,
            mixes={},
            contexts=lambda: closing(contexts_of(settings)),
        )
    text = json.dumps(proof, indent=1) + "\n"
    (folder / "proof.json").write_text(text, encoding="utf-8")
    return str(proof["says"])
