"""Endings: what providers do with old models. They announce a day, take the model away, or let
another one answer."""
