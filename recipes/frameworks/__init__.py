"""The same tasks in TRL, verl, OpenRLHF, Oat and ROLL, each in its own environment."""
