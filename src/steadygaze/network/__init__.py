"""Classifiers: reads an ONNX file as a graph, as a chain of affine maps, and as a replay of the file itself."""
