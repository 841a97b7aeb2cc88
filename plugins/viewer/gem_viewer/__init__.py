"""`gem-core view`: runs of training and evaluation in a browser."""
