"""The paper's searches, which visit regions one by one, and the boundary followed alone."""
