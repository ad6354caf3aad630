"""The write-up: reads the tables in results/tables, writes report.md and index.html."""
