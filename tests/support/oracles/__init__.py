"""The truth by other means: exact rationals, plain definitions, torch. They share no code with the engines."""
