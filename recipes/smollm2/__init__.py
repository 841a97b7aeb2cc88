"""A real language model in TRL, verl, OpenRLHF, Oat and ROLL."""
