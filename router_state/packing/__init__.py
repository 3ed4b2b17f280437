"""Packing state as bytes: frames, the order of its numbers, and shared priors."""
