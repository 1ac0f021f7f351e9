"""Classifiers: an ONNX file becomes a graph, a chain of affine maps, and a replay of the file itself."""
