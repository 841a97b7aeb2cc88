"""Training on one size of a task, on another, or on a mixture, and playing all sizes (Table 2 of GEM, in small)."""
