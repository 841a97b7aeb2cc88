"""Mathematical questions whose answer stands in a box."""
