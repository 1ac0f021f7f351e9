"""Presets: lists of questions about one image (`lists`), run one after another and stored (`answering`)."""
