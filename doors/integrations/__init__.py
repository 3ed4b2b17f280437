"""Convert other systems' records of models, bills and labels into declarations and events of this
service.
"""
