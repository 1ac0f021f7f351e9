"""Small networks and questions about them. Inputs alone, no expectations."""
