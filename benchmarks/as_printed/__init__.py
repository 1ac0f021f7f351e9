"""The paper's breadth-first search exactly as printed: the baseline of speed claims, not a verifier to rely on."""
