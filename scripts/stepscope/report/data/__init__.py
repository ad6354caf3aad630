"""What the tables say, as typed rows: read by findings, tables and figures alike; nothing here writes."""
