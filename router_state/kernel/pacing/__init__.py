"""Hold a budget: the debt, the window of contexts, and the dual price of a dollar."""
