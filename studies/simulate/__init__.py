"""Play policies, scenarios and tuning over a recorded history."""
