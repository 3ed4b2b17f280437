"""A router that is declared, kept and read again: its portfolio, its pieces, its checks."""
