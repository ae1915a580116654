#include <Python.h>

#if LIBRARY_VERSION == 1
/* at::native::scale(float) as the older release exported it */
extern float _ZN2at6native5scaleEf(float);
#define SCALE _ZN2at6native5scaleEf
#else
static float scale_by_two(float value) { return 2.0f * value; }
#define SCALE scale_by_two
#endif

static PyObject *scale(PyObject *self, PyObject *args) {
    double value;
    if (!PyArg_ParseTuple(args, "d", &value)) return NULL;
    return PyFloat_FromDouble(SCALE((float)value));
}

static PyMethodDef methods[] = {{"scale", scale, METH_VARARGS, "Scales a value."}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "fast_ops", NULL, -1, methods};
PyMODINIT_FUNC PyInit_fast_ops(void) { return PyModule_Create(&module); }
