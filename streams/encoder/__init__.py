"""Turn prompts into contexts."""
