"""What the environments over data sets share: the questions, their order, and an episode of one answer."""
