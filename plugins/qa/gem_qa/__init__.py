"""Questions that a few words answer."""
