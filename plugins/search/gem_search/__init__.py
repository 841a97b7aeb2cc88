"""Search over a corpus of passages: the tool and its server."""
