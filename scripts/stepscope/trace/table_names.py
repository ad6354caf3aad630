"""The tables of an analysis. Standard library only: the workflow's rules and the tidy tables name them too."""

TABLES = (
    "phases",
    "kernels",
    "categories",
    "ranges",
    "attention",
    "busy",
    "api_gaps",
    "api_calls",
    "modules",
    "lines",
    "os_calls",
    "checks",
    "timeline",
)
