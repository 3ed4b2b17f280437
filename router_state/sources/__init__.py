"""Sources of labels: people's labels, and judges that are measured by them."""
