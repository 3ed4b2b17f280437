"""Run several workers on one machine as one."""
