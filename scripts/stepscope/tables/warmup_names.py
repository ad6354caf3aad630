"""Names that the warm-up study's tables, figures and report share. Standard library only."""

# Parts of a profiled step -> the start of their columns, in the order in which they are shown.
PARTS = {
    "module loading": "module_loading",
    "memory allocation": "memory_allocation",
    "compilation and autotuning": "compilation_and_autotuning",
    "other API calls": "other_api_calls",
    "waiting for the device": "waiting_for_the_device",
    "the profiler itself": "the_profiler_itself",
    "operators": "operators",
    "Python and the rest": "python_and_the_rest",
}
SET_UP = tuple(PARTS)[:4]  # what only has to be done once
REST = tuple(PARTS)[-1]  # the profiled time less all other parts
# Column prefix -> the phases that are added up.
PHASES = {
    "forward": ("forward",),
    "backward": ("backward",),
    "optimizer": ("optimizer",),
    "forward_backward": ("forward", "backward"),
    "step": ("forward", "backward", "optimizer"),
}
