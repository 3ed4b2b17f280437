"""The ways in and out: HTTP (`gateway`), other systems' events (`integrations`), and a person's
way to the topics (`console`).

`watching` and `commands` may import it. It imports `drawing`, `streams` and what lies below, but
not `studies`.
"""
