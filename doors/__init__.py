"""The ways in and out: HTTP (`gateway`), other systems' events (`integrations`), a person's
commands (`console`), and pools of budgets (`pools`).

`watching` and `commands` may import it. It imports `drawing`, `streams` and what lies below, but
not `studies`.
"""
