"""What a measuring program is made of: clock, stopping rule, telemetry, lock, record."""
