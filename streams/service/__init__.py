"""One worker: its app, agents, metrics and web pages, from start to stop."""
