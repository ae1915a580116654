"""Numbers of a training by Keras on TensorFlow: noticed, traced to their origin, gone on from."""
