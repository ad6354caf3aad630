"""The report on measured ceilings."""
