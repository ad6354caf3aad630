"""snakemake, which looks at Slurm's queue every second: the plugin's own pauses grow by ten seconds
with each look."""

import sys

from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

if __name__ == "__main__":
    RemoteExecutor.next_seconds_between_status_checks = property(
        lambda self: 1, lambda self, seconds: None
    )
    sys.argv[0] = "snakemake"
    main()
