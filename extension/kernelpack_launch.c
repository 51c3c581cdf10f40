/* A call of C with its arguments, held ready for Python: what a prepared launch costs beside
 * cuLaunchKernelEx is then one Python frame or two. And calls of ops like earlier ones (calls.c).
 * Without this module kernelpack does the same in Python, and calls by ctypes.
 *
 * Only the stable ABI is used, so that one binary serves every CPython since 3.11. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include "calls.h"
#include "seen.h"

typedef int (*function)(void*, void*, void*, void*);

typedef struct {
  function call;
  void* arguments[3];
} bound;

#define BOUND "kernelpack_launch.bound"

static void forget(PyObject* capsule) { PyMem_Free(PyCapsule_GetPointer(capsule, BOUND)); }

/* The interpreter goes on meanwhile: a launch waits where the GPU's queue is full. */
static PyObject* make_call(PyObject* capsule, PyObject* unused) {
  const bound* held = PyCapsule_GetPointer(capsule, BOUND);
  int code;
  (void)unused;
  if (!held) return NULL;
  Py_BEGIN_ALLOW_THREADS code =
      held->call(held->arguments[0], held->arguments[1], held->arguments[2], NULL);
  Py_END_ALLOW_THREADS return PyLong_FromLong(code);
}

static PyMethodDef call_method = {"call", make_call, METH_NOARGS, "Make the call; its result."};

/* A function that keeps the capsule, which it takes over. */
static PyObject* function_of(PyObject* capsule) {
  PyObject* made = PyCFunction_New(&call_method, capsule);
  Py_DECREF(capsule);
  return made;
}

static PyObject* bind(PyObject* module, PyObject* arguments) {
  unsigned long long address, first, second, third;
  PyObject* capsule;
  bound* held;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "KKKK", &address, &first, &second, &third)) return NULL;
  held = PyMem_Malloc(sizeof *held);
  if (!held) return PyErr_NoMemory();
  *held = (bound){(function)(uintptr_t)address,
                  {(void*)(uintptr_t)first, (void*)(uintptr_t)second, (void*)(uintptr_t)third}};
  capsule = PyCapsule_New(held, BOUND, forget);
  if (capsule) return function_of(capsule);
  PyMem_Free(held);
  return NULL;
}

static PyMethodDef methods[] = {
    {"bind", bind, METH_VARARGS,
     "bind(function, a, b, c) -> callable\n\n"
     "The call `int function(void *a, void *b, void *c, NULL)`, all of them addresses. What they\n"
     "point to must live as long as the callable is called."},
    {"call", call, METH_VARARGS,
     "call(what, args, given, known, stream) -> outputs, [key, arrays, pointers] or "
     "NotImplemented\n\n"
     "Makes a call of an op whose launches `known` has; else says what it would be known by, or\n"
     "NotImplemented where an argument is of a type that was not learnt."},
    {"repeat", new_repeat, METH_VARARGS, "repeat(owner, driver, functions, *tables, made)"},
    {"learn_tensor", learn_tensor, METH_VARARGS, "learn_tensor(type, exchange_api) -> bool"},
    {"learn_operand", learn_operand, METH_VARARGS, "learn_operand(type, members)"},
    {"learn_plain", learn_plain, METH_O, "learn_plain(type)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "kernelpack_launch", NULL, 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_kernelpack_launch(void);
PyMODINIT_FUNC PyInit_kernelpack_launch(void) {
  return prepare_names() ? NULL : PyModule_Create(&module);
}
