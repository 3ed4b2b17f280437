"""Families: routers that learn from each other, though each has models, prompts and labels of its
own."""
