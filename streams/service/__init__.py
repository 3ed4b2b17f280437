"""One worker: the Faust app, its agents, leases, metrics and web pages."""
