"""As `flash_attn`."""
