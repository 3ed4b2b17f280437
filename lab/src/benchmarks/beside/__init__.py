"""The router beside others, on tables that anybody can repeat: `python -m benchmarks.beside`.

`field` holds judged prompts, `entrants` who plays them, `curve` what is measured, and `page` the
table of `lab/docs/beside.md`.
"""
