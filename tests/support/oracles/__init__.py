"""The truth in exact rationals, by plain definitions, and by torch. Oracles share no code with the engines."""
