"""Presets: lists of questions about one image (`lists`), run one after another (`run`), and their files."""
