"""Made-up results, unsound bounds, failing workers: what tests give in place of the real thing."""
