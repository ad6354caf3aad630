"""The machine at hand and the machines of a run: identity, GPUs, cores, locks, labels, Slurm.
Standard library only."""
