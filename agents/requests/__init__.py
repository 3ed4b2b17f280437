"""Requests with their bills and labels: each is decided or booked, or waits for what it needs."""
