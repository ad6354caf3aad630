"""What benchmarks/attack.py tries: a module for each sort of input, and how one is tried."""
