"""Keep the times of calls within a target by a dual variable, or weigh them by a price of a second.

Times are learned from the prompt and the model, as costs are.
"""
