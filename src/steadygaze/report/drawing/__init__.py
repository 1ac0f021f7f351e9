"""The parts that all figures share: the sheet and its files, colours, marks, pictures of sections, exhibits."""
