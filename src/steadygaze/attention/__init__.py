"""Attention maps: gradients of the logits with respect to the image, and how far they are from the expected ones."""
