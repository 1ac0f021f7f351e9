"""Sound bounds on the margin and the attention inconsistency over boxes of thetas."""
