"""Search over a corpus of passages: the tool, and the server that it asks."""
