"""Price a dollar: λ_t, so that spend follows the budget.

`ema` is the paper's dual step, `dollar_dual` solves the Lagrangian dual over a window of recent
contexts (`dual`), with a target that pays debts back.
"""
