"""The kernel's numbers: types of C, elementary functions, sums in a fixed order, and chance."""
