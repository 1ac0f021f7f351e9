"""Pictures of results: turns a result into figures. Nothing is verified here."""
