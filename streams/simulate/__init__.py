"""What would have happened: policies, scenarios and tuning over a recorded history."""
