"""Gymnasium's environments as `gym:<Gymnasium id>`, played in text: https://gymnasium.farama.org."""
