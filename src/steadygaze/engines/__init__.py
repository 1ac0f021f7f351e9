"""Ways to answer a question: each package here turns a problem into a result, within a budget."""
