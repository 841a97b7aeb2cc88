"""Tasks that are drawn on the spot: questions about an image, and a maze that is seen as one."""
