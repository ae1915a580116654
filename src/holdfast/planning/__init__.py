"""What fits: measurements of a training step at a few batch sizes become a plan. Pure; measuring is `inside/plan`'s."""
