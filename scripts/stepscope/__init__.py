"""StepScope's library: everything that the programs in scripts/ share."""
