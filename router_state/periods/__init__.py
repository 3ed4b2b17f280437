"""Budgets of a period: dollars an hour, a day, a week or a month, spread over the traffic that is
still expected.

`calendar` says when periods begin, `hourly_traffic` how many requests are still to come,
`accounts` which dollars were charged, `ledger` which budget a request has. `period_dual` is the
pacer.
"""
