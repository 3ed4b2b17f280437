"""What others say of models, bills and labels, as declarations and events of this service."""
