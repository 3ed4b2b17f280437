"""The words beside the numbers: notes, reasons of disagreement, and what cannot
be run.
"""

from __future__ import annotations

from paper.compare import Row

NOT_RUN = (
    "F, calls of the models themselves (6–10 s each): they need the providers. The times printed "
    "are of another machine.",
    (
        "A, budgets from the training split: the split is in neither the wheel nor the "
        "repository; its budgets are constants here."
    ),
    (
        "D, priors of training subsets: as fitted in the repository; without it near ones are "
        "fitted to validation prompts."
    ),
    (
        "E, each judge's scores of single answers: the repository's merged splits are used, "
        "which are made of them."
    ),
)

NOTES: dict[str, tuple[str, ...]] = {
    "E4": (
        "The paper's script registers a dear newcomer and then reprices it; the library (0.1.1) "
        "then books the *input* price as "
        "the blended one for its ceiling, $3.0 per million tokens in place of $14.0, while its "
        "penalty goes by both prices. So in "
        "'good dear' the ceiling lets the newcomer pass more often than its price allows, here "
        "too and for all three; "
        "'good dear, full list price' is registered at $14.0 from the start, and gives what the "
        "ceiling was meant to.",
        "Forced pulls tick the clock after the update in the paper's script and at the decision "
        "in the engine, so after "
        "them the two can part.",
    ),
    "A": (
        "The grid (6 α × 7 γ, three horizons, warm and cold, 10 budgets each) is run by a "
        "stacked copy of the paper's policy, "
        "which a test holds to the engine choice for choice; the chosen setting is measured with "
        "the engine and with the library.",
    ),
    "B": (
        "Over the 1,766 prompts that all four models answered, as in the paper; without "
        "`PB_DATA` over all 1,785, three models.",
    ),
    "E": (
        "'reference' and 'paper': a cold start with α .05; 'live': its own cold start, 20 pulls "
        "of each model.",
    ),
    "F": (
        "Times of the machine that made this page, on shared cores: medians say more than 95th "
        "percentiles. The paper: Apple M.",
    ),
}


def reason_of(row: Row) -> str:
    """Return why a number does not agree, as far as it is known."""
    reference = row.found.get("reference")
    if reference is not None and row.agrees("reference") is False and row.ours is not None:
        if abs(reference.mean - row.ours.mean) <= max(1e-9, (row.ours.high - row.ours.low) / 2.0):
            return (
                "the reference library, run here, gives the same as the paper profile: data or "
                "rounding, not the policy"
            )
        return "neither the library, run here, nor the paper profile reaches it"
    if row.ours_to_explain:
        return "the library, run here, reaches it and the paper profile does not"
    return "a number without a policy; the cause is not established"
