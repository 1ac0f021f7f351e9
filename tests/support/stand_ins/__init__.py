"""Stand-ins: made-up results, false maps, unsound bounds, failing workers."""
