"""How long calls take: learned by prompt and model as costs are, and kept within a target by a dual
variable of its own, or weighed by a price of a second."""
