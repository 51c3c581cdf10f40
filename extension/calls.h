/* Calls of ops, made again: see calls.c. */
#pragma once
#include <Python.h>

/* repeat(owner, driver, (context, five functions), seven tables, makers) -> capsule */
PyObject* new_repeat(PyObject* module, PyObject* arguments);
/* call(what, args, given, known, stream) -> the outputs, [key, arrays, pointers], NotImplemented */
PyObject* call(PyObject* module, PyObject* arguments);
