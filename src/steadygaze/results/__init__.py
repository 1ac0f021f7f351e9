"""The results of a verification: answers, witnesses, and their files on disk."""
