"""Pools as a person sees them: their declarations, and what routers say of their leases."""
