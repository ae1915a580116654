# Sourced on a GPU machine without a network: PyTorch and JAX are there, small wheels lie in carry/, and TensorFlow for the
# CPU, where it was brought, is unpacked under /opt/tf.
site=/opt/site
if [ ! -d $site ]; then
    python3 -m pip install --quiet --no-index --no-deps --find-links carry --target $site carry/*.whl
fi
export PYTHONPATH="$PWD/src:$PWD:$site:/opt/tf/site" TF_CPP_MIN_LOG_LEVEL=3 PYTHONUNBUFFERED=1
