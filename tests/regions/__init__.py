"""What the tests of the region engine share. A package, so that `regions` is this folder wherever it is imported."""
