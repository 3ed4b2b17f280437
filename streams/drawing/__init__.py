"""Charts and pages, all by one hand: that of the dashboard, which serves the same files."""
