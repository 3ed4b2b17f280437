"""What is said between families and their members."""
