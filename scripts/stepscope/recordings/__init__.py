"""What reading of traces and of memory snapshots have in common: limits, names as people write
them, text, files."""
