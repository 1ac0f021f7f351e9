"""Properties of regions: where the label is kept, where the attention is kept."""
