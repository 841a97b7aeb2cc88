"""Tasks that are drawn on the spot: questions about a picture, and a maze that is seen as one."""
