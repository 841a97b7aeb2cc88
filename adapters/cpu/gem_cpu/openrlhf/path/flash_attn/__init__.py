"""Names that OpenRLHF imports unconditionally but calls only to pack samples."""

__version__ = "0"
