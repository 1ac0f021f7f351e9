"""The paper's two searches exactly as printed: the baseline for speed claims, not reliable verifiers."""
