echo "starting the night's run"
python train.py
code=$?
echo "exit code $code"
exit $code
