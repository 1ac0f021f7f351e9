"""The paper's two searches exactly as printed: the baseline of speed claims, not verifiers to rely on."""
