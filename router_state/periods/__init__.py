"""Budgets of a period: so many dollars an hour, a day, a week or a month, spread over the traffic
that is still expected.

`calendar` says when periods begin, `traffic` how many requests are still to come, `accounts` what
was charged, `ledger` what a request may cost, and `period_dual` paces it.
"""
