"""What tests of several distributions share; never published."""
