"""verl's configuration with environments, as a package for Hydra."""
