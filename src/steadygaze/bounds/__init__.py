"""Proved bounds on the margin and the inconsistency over boxes of thetas."""
