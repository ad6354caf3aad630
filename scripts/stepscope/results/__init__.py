"""From records to tables: series with intervals, verdicts between variants, and what is no time."""
