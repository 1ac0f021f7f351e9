"""Small networks, and questions about them: the inputs of tests."""
