"""Names that OpenRLHF imports unconditionally, and calls only to pack samples."""

__version__ = "0"
