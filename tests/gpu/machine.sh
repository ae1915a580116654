# Sourced on a GPU machine without a network: PyTorch and JAX are there, small wheels lie in carry/, and TensorFlow for the
# CPU, where it was brought, is unpacked under /opt/tf. Installed for good, since tests set a PYTHONPATH of their own.
if [ ! -d /opt/site ]; then
    python3 -m pip install --quiet --no-index --no-deps --find-links carry --target /opt/site carry/*.whl
fi
printf '%s\n' /opt/site /opt/tf/site "$PWD/src" > "$(python3 -c 'import site; print(site.getsitepackages()[0])')/holdfast-lab.pth"
export TF_CPP_MIN_LOG_LEVEL=3 PYTHONUNBUFFERED=1
