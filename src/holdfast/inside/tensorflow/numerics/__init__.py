"""Numbers of TensorFlow: states that are put back, finiteness, and where in a step something non-finite began."""
