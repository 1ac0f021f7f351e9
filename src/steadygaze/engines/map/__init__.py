"""The whole map: all regions of the domain with their labels."""
