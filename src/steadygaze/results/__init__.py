"""What a verification delivers: the answer, witnesses, and how they are kept on disk."""
