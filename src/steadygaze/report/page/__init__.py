"""The report: turns a result into one HTML file that needs nothing else. Nothing is verified here."""
