"""What the tests share: oracles, small networks, readers of results, stand-ins. No test and no fixture."""
