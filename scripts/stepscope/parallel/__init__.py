"""The training step on several devices of one machine: a process (a rank) for each, strategies in
turns, collectives by themselves, and the step taken apart for every rank."""
