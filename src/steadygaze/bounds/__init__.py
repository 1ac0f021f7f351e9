"""Sound bounds of the margin and of the attention inconsistency over boxes of thetas."""
