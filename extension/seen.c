#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include "seen.h"
#include <string.h>

enum { MOST_TYPES = 16 };

/* Types that were learnt, which live for ever: classes of tensors with their tables, operands with
 * what gives their members, and plain values. */
static struct {
  PyObject* type;
  const dl_exchange* exchange;
} tensors[MOST_TYPES];
static struct {
  PyObject *type, *members;
} operands[MOST_TYPES];
static PyObject* plains[MOST_TYPES];
static int tensor_count, operand_count, plain_count;

/* Interned, as every name in a program's text is: compared by where they lie. */
static PyObject* names[4];
enum { STREAM, LIBRARY, DEBUG_, REQUIRES_GRAD };

int prepare_names(void) {
  static const char* const words[] = {"stream", "library", "debug", "requires_grad"};
  int i;
  for (i = 0; i < 4; ++i)
    if (!names[i] && !(names[i] = PyUnicode_InternFromString(words[i]))) return -1;
  return 0;
}

static int full(int count) {
  if (count < MOST_TYPES) return 0;
  PyErr_SetString(PyExc_ValueError, "too many types");
  return 1;
}

/* learn_tensor(type, capsule) -> whether tensors of the type can be read */
PyObject* learn_tensor(PyObject* module, PyObject* arguments) {
  PyObject *type, *capsule;
  const dl_exchange* exchange;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "OO", &type, &capsule)) return NULL;
  exchange = PyCapsule_GetPointer(capsule, DL_EXCHANGE_CAPSULE);
  if (!exchange || full(tensor_count)) return NULL;
  if (exchange->major != 1 || !exchange->read || !exchange->current_stream) Py_RETURN_FALSE;
  Py_INCREF(type);
  tensors[tensor_count].type = type;
  tensors[tensor_count++].exchange = exchange;
  Py_RETURN_TRUE;
}

/* learn_operand(type, members): `members(value)` is the tuple of what it holds */
PyObject* learn_operand(PyObject* module, PyObject* arguments) {
  PyObject *type, *members;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "OO", &type, &members) || full(operand_count)) return NULL;
  Py_INCREF(type);
  Py_INCREF(members);
  operands[operand_count].type = type;
  operands[operand_count++].members = members;
  Py_RETURN_NONE;
}

/* learn_plain(type): values of it are compared as they are */
PyObject* learn_plain(PyObject* module, PyObject* type) {
  (void)module;
  if (full(plain_count)) return NULL;
  Py_INCREF(type);
  plains[plain_count++] = type;
  Py_RETURN_NONE;
}

static int put(seen* s, const void* data, size_t size) {
  if (s->size + size > MOST_BYTES) return 0;
  memcpy(s->bytes + s->size, data, size);
  s->size += size;
  return 1;
}

static int put_tag(seen* s, char tag) { return put(s, &tag, 1); }

static int put_object(seen* s, char tag, PyObject* object) {
  if (s->object_count == MOST_OBJECTS) return 0;
  s->objects[s->object_count++] = object;
  return put_tag(s, tag);
}

/* A tensor that asks for a gradient is another one: the whole way refuses it. */
static int put_gradient(seen* s, PyObject* tensor) {
  PyObject* found = PyObject_GetAttr(tensor, names[REQUIRES_GRAD]);
  int asks;
  if (!found) return -1;
  asks = PyObject_IsTrue(found);
  Py_DECREF(found);
  return asks < 0 ? -1 : put_tag(s, asks ? 'G' : 'g');
}

static int put_tensor(seen* s, PyObject* tensor, const dl_exchange* exchange) {
  dl_tensor t;
  size_t sides;
  if (s->array_count == MOST_ARRAYS) return 0;
  if (exchange->read(tensor, &t)) { /* it cannot be shared: the whole way says why */
    PyErr_Clear();
    return 0;
  }
  if (t.device_type != DL_CUDA || (s->exchange && s->device_id != t.device_id)) return 0;
  sides = sizeof(int64_t) * (size_t)t.rank;
  s->exchange = exchange;
  s->device_id = t.device_id;
  s->arrays[s->array_count] = tensor;
  s->pointers[s->array_count++] = (uint64_t)(uintptr_t)t.data + t.byte_offset;
  if (!put_tag(s, t.strides ? 't' : 'T') || !put(s, &t.device_id, 4) || !put(s, &t.rank, 4) ||
      !put(s, &t.code, 1) || !put(s, &t.bits, 1) || !put(s, &t.lanes, 2) ||
      !put(s, t.shape, sides) || (t.strides && !put(s, t.strides, sides)))
    return 0;
  return put_gradient(s, tensor);
}

static int put_value(seen* s, PyObject* value);

static int put_operand(seen* s, PyObject* value, PyObject* members) {
  PyObject* held = PyObject_CallFunctionObjArgs(members, value, NULL);
  Py_ssize_t count, i;
  int read = held ? 1 : -1;
  if (!held) return -1;
  if (!PyTuple_Check(held) || s->operand_count == MOST_ARRAYS) {
    Py_DECREF(held);
    return 0;
  }
  s->operands[s->operand_count++] = held;
  for (i = 0, count = PyTuple_Size(held); i < count && read == 1; ++i)
    read = put_value(s, PyTuple_GetItem(held, i));
  return read;
}

static int put_integer(seen* s, PyObject* value) {
  int overflow;
  long long found = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow) return put_object(s, 'I', value);
  return put_tag(s, 'i') && put(s, &found, sizeof found);
}

static int put_value(seen* s, PyObject* value) {
  PyObject* type = (PyObject*)Py_TYPE(value);
  int i;
  if (value == Py_None) return put_tag(s, 'n');
  for (i = 0; i < tensor_count; ++i)
    if (tensors[i].type == type) return put_tensor(s, value, tensors[i].exchange);
  if (value == Py_True || value == Py_False) return put_tag(s, value == Py_True ? '1' : '0');
  if (PyLong_CheckExact(value)) return put_integer(s, value);
  if (PyFloat_CheckExact(value)) {
    double found = PyFloat_AsDouble(value);
    return put_tag(s, 'f') && put(s, &found, sizeof found);
  }
  if (PyUnicode_CheckExact(value)) return put_object(s, 's', value);
  for (i = 0; i < operand_count; ++i)
    if (operands[i].type == type)
      return put_object(s, 'o', type) ? put_operand(s, value, operands[i].members) : 0;
  for (i = 0; i < plain_count; ++i)
    if (plains[i] == type) return put_object(s, 'p', value);
  return 0;
}

/* A name that was made at run time may be missed: then its value counts, and nothing is wrong. */
static int is_of_a_launch(PyObject* name) {
  return name == names[STREAM] || name == names[LIBRARY] || name == names[DEBUG_];
}

int see(seen* s, PyObject* args, PyObject* given) {
  PyObject *name, *value;
  Py_ssize_t count = PyTuple_Size(args), i, at = 0;
  int read = 1;
  s->size = 0;
  s->object_count = s->array_count = s->operand_count = 0;
  s->exchange = NULL;
  s->device_id = -1;
  for (i = 0; i < count && read == 1; ++i) read = put_value(s, PyTuple_GetItem(args, i));
  while (read == 1 && PyDict_Next(given, &at, &name, &value))
    if (!is_of_a_launch(name)) read = put_object(s, 'k', name) ? put_value(s, value) : 0;
  return read;
}

void forget_seen(seen* s) {
  while (s->operand_count) Py_DECREF(s->operands[--s->operand_count]);
}

PyObject* key_of(const seen* s, PyObject* what) {
  PyObject *key = PyTuple_New(2 + s->object_count), *bytes;
  int i;
  if (!key) return NULL;
  bytes = PyBytes_FromStringAndSize((const char*)s->bytes, (Py_ssize_t)s->size);
  if (!bytes) {
    Py_DECREF(key);
    return NULL;
  }
  Py_INCREF(what);
  PyTuple_SetItem(key, 0, what);
  PyTuple_SetItem(key, 1, bytes);
  for (i = 0; i < s->object_count; ++i) {
    Py_INCREF(s->objects[i]);
    PyTuple_SetItem(key, 2 + i, s->objects[i]);
  }
  return key;
}
