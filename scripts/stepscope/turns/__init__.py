"""Two versions of the code, or two environments, measured in turns on one device: what `snakemake ab` does.

Standard library only, since it runs in the environment that measures.
"""


class TurnsError(Exception):
    """It cannot be measured so; the message is one line for the user."""
