"""No module imports this one. An adversarial action contains code that does, which shows if an action was evaluated."""
