"""verl's configuration with environments; Hydra finds it as a package."""
