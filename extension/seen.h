/* What a call's arguments are: a key that two calls share only if they differ in nothing but where
 * arrays lie, and where those lie. The same facts as kernelpack.ops.facts reads in Python. */
#pragma once
#include <Python.h>
#include "dlpack.h"

enum { MOST_ARRAYS = 64, MOST_BYTES = 8192, MOST_OBJECTS = 128 };

typedef struct {
  unsigned char bytes[MOST_BYTES]; /* of every argument its kind, and what of it is numbers */
  size_t size;
  PyObject* objects[MOST_OBJECTS]; /* the rest of the key, borrowed */
  int object_count;
  PyObject* arrays[MOST_ARRAYS]; /* borrowed */
  uint64_t pointers[MOST_ARRAYS];
  int array_count;
  PyObject* operands[MOST_ARRAYS]; /* members of operands, new arrays: owned until `forget_seen` */
  int operand_count;
  const dl_exchange* exchange; /* of the framework whose arrays these are; NULL: nobody's */
  int32_t device_id;
} seen;

/* 1: all of them were read; 0: one is of an unknown kind; -1: a Python error is set. */
int see(seen* s, PyObject* args, PyObject* given);
void forget_seen(seen* s);
PyObject* key_of(const seen* s, PyObject* what);

/* Before anything else: 0, or -1 with an error. */
int prepare_names(void);

/* Python's way to say which types there are. */
PyObject* learn_tensor(PyObject* module, PyObject* arguments);
PyObject* learn_operand(PyObject* module, PyObject* arguments);
PyObject* learn_plain(PyObject* module, PyObject* type);
