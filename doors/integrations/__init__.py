"""Convert what other systems record of models, bills and labels into declarations and events of
this service.
"""
