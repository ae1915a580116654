"""Numbers of a PyTorch run: what is not finite, where it came from, and how the run goes on."""
