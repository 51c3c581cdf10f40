/* A call like an earlier one, whole: what kernelpack.ops.repeat and .again do in Python. Rules are
 * that module's; here are its numbers. Whatever does not fit is left to Python. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include "calls.h"
#include <string.h>
#include "seen.h"

typedef int (*of_one)(void*);
typedef int (*of_two)(void*, void*);
typedef int (*of_four)(void*, void*, void*, void*);

/* libcuda's CUlaunchConfig: what lies before its stream, and that. */
typedef struct {
  uint32_t grid[3], block[3], shared_bytes;
  void* stream;
} launch_config;

typedef struct {
  uint64_t array, offset, where; /* a parameter that points into an array */
} place;
typedef struct {
  uint64_t array, bits, low; /* the low bits of an array's address that count */
} alignment;
typedef struct {
  int64_t first, second, low, high; /* arrays overlap where low < first - second < high */
} apart;
typedef struct {
  uint64_t config, function, parameters;
} launch;

/* The tables of a call, each of so many entries. In one piece of memory. */
typedef struct {
  PyObject *owner, *driver; /* a kernelpack.ops.again.Repeat, and its driver */
  PyObject* makers;         /* a tuple: of each array that the call makes what makes it, or None */
  uint64_t context, start, get_current, stream_context, is_capturing, replace_address;
  size_t launches, words, maps, alignments, aparts, sames, returned;
  launch* launch;
  place *word, *map;
  alignment* aligned;
  apart* far;
  uint64_t (*same)[2], *give;
  int made, is_placed;
  uint64_t pointers[MOST_ARRAYS];
} repeat;

#define REPEAT "kernelpack_launch.repeat"

static void forget(PyObject* capsule) {
  repeat* r = PyCapsule_GetPointer(capsule, REPEAT);
  Py_DECREF(r->owner);
  Py_DECREF(r->driver);
  Py_DECREF(r->makers);
  PyMem_Free(r->launch);
  PyMem_Free(r->word);
  PyMem_Free(r->map);
  PyMem_Free(r->aligned);
  PyMem_Free(r->far);
  PyMem_Free(r->same);
  PyMem_Free(r->give);
  PyMem_Free(r);
}

/* A table: numbers of 8 bytes, packed by Python, in memory of our own. */
static void* copied(PyObject* numbers, size_t each, size_t* count) {
  char* data;
  Py_ssize_t size;
  void* made;
  if (PyBytes_AsStringAndSize(numbers, &data, &size)) return NULL;
  *count = (size_t)size / each;
  made = PyMem_Malloc(size ? (size_t)size : 1);
  if (made)
    memcpy(made, data, (size_t)size);
  else
    PyErr_NoMemory();
  return made;
}

PyObject* new_repeat(PyObject* module, PyObject* arguments) {
  PyObject *owner, *driver, *launches, *words, *maps, *aligned, *far, *same, *give, *makers;
  PyObject* capsule;
  unsigned long long context, start, current, of_stream, capturing, replace;
  repeat* r;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "OO(KKKKKK)SSSSSSSO!", &owner, &driver, &context, &start,
                        &current, &of_stream, &capturing, &replace, &launches, &words, &maps,
                        &aligned, &far, &same, &give, &PyTuple_Type, &makers))
    return NULL;
  r = PyMem_Calloc(1, sizeof *r);
  if (!r) return PyErr_NoMemory();
  Py_INCREF(owner);
  Py_INCREF(driver);
  r->owner = owner;
  r->driver = driver;
  r->context = context;
  r->start = start;
  r->get_current = current;
  r->stream_context = of_stream;
  r->is_capturing = capturing;
  r->replace_address = replace;
  Py_INCREF(makers);
  r->makers = makers;
  r->made = (int)PyTuple_Size(makers);
  capsule = PyCapsule_New(r, REPEAT, forget);
  if (!capsule) return NULL;
  if ((r->launch = copied(launches, sizeof *r->launch, &r->launches)) &&
      (r->word = copied(words, sizeof *r->word, &r->words)) &&
      (r->map = copied(maps, sizeof *r->map, &r->maps)) &&
      (r->aligned = copied(aligned, sizeof *r->aligned, &r->alignments)) &&
      (r->far = copied(far, sizeof *r->far, &r->aparts)) &&
      (r->same = copied(same, sizeof *r->same, &r->sames)) &&
      (r->give = copied(give, sizeof *r->give, &r->returned)))
    return capsule;
  Py_DECREF(capsule);
  return NULL;
}

/* 0, 1 and 2 are default streams, which are the current context's: that must be the device's. */
static int is_of_device(const repeat* r, uint64_t stream) {
  void* context = NULL;
  int code = stream > 2 ? ((of_two)(uintptr_t)r->stream_context)((void*)(uintptr_t)stream, &context)
                        : ((of_one)(uintptr_t)r->get_current)(&context);
  return !code && (uint64_t)(uintptr_t)context == r->context;
}

static int may_be_captured(const repeat* r, uint64_t stream) {
  int status = 0;
  int code = ((of_two)(uintptr_t)r->is_capturing)((void*)(uintptr_t)stream, &status);
  return code || status;
}

/* The framework's own stream, where there is one, else that of the call: -1 with an error, else 0.
 */
static int current(const seen* s, uint64_t stream, uint64_t* producer) {
  void* found = (void*)(uintptr_t)stream;
  if (s->exchange && s->exchange->current_stream(DL_CUDA, s->device_id, &found)) return -1;
  *producer = (uint64_t)(uintptr_t)found;
  return 0;
}

static int is_same(uint64_t a, uint64_t b) { return (a ? a : 1) == (b ? b : 1); }

/* Let the stream wait for the framework's own, where that is another: -1 with an error, else 0. */
static int order(const repeat* r, uint64_t stream, uint64_t producer) {
  PyObject* done;
  if (is_same(producer, stream)) return 0;
  done = PyObject_CallMethod(r->owner, "order", "KK", (unsigned long long)stream,
                             (unsigned long long)producer);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

/* A new array, which the caller owns, and its address; NULL with an error. On the framework's own
 * stream its maker does; else Python, which turns to the other stream. */
static PyObject* new_array(const repeat* r, const seen* s, int number, uint64_t stream, int is_own,
                           uint64_t* pointer) {
  PyObject *maker = PyTuple_GetItem(r->makers, number), *array, *pair;
  unsigned long long address;
  dl_tensor t;
  if (is_own && maker != Py_None && s->exchange) {
    array = PyObject_CallFunctionObjArgs(maker, NULL);
    if (!array || !s->exchange->read(array, &t)) {
      if (array) *pointer = (uint64_t)(uintptr_t)t.data + t.byte_offset;
      return array;
    }
    Py_DECREF(array);
    return NULL;
  }
  pair = PyObject_CallMethod(r->owner, "make", "iK", number, (unsigned long long)stream);
  if (!pair || !PyArg_ParseTuple(pair, "OK", &array, &address)) {
    Py_XDECREF(pair);
    return NULL;
  }
  Py_INCREF(array);
  Py_DECREF(pair);
  *pointer = address;
  return array;
}

/* Make what a call makes, after the arrays given: -1 with an error, else 0. */
static int make(const repeat* r, seen* s, uint64_t stream, int is_own) {
  int i;
  for (i = 0; i < r->made; ++i) {
    uint64_t pointer = 0;
    PyObject* array = new_array(r, s, i, stream, is_own, &pointer);
    if (!array) return -1;
    s->operands[s->operand_count++] = array; /* until the call ends */
    s->arrays[s->array_count] = array;
    s->pointers[s->array_count++] = pointer;
  }
  return 0;
}

static int may_be(const repeat* r, const seen* s) {
  size_t i;
  for (i = 0; i < r->sames; ++i)
    if (s->arrays[r->same[i][0]] != s->arrays[r->same[i][1]]) return 0;
  for (i = 0; i < r->alignments; ++i) {
    const uint64_t pointer = s->pointers[r->aligned[i].array];
    if (!pointer || (pointer & r->aligned[i].bits) != r->aligned[i].low) return 0;
  }
  for (i = 0; i < r->aparts; ++i) {
    const apart* a = r->far + i;
    const int64_t apart_by = (int64_t)(s->pointers[a->first] - s->pointers[a->second]);
    if (a->low < apart_by && apart_by < a->high) return 0;
  }
  return 1;
}

static int put(repeat* r, const seen* s) {
  const size_t size = sizeof *s->pointers * (size_t)s->array_count;
  size_t i;
  if (r->is_placed && !r->sames && !memcmp(r->pointers, s->pointers, size)) return 1;
  if (!may_be(r, s)) return 0;
  r->is_placed = 0;
  for (i = 0; i < r->words; ++i)
    *(uint64_t*)(uintptr_t)r->word[i].where = s->pointers[r->word[i].array] + r->word[i].offset;
  for (i = 0; i < r->maps; ++i) {
    const uint64_t address = s->pointers[r->map[i].array] + r->map[i].offset;
    if (((of_two)(uintptr_t)r->replace_address)((void*)(uintptr_t)r->map[i].where,
                                                (void*)(uintptr_t)address))
      return 0;
  }
  memcpy(r->pointers, s->pointers, size);
  r->is_placed = 1;
  return 1;
}

/* The interpreter goes on meanwhile: a launch waits where the GPU's queue is full. */
static int start(const repeat* r, uint64_t stream) {
  int code = 0;
  size_t i;
  Py_BEGIN_ALLOW_THREADS for (i = 0; i < r->launches && !code; ++i) {
    ((launch_config*)(uintptr_t)r->launch[i].config)->stream = (void*)(uintptr_t)stream;
    code = ((of_four)(uintptr_t)r->start)((void*)(uintptr_t)r->launch[i].config,
                                          (void*)(uintptr_t)r->launch[i].function,
                                          (void*)(uintptr_t)r->launch[i].parameters, NULL);
  }
  Py_END_ALLOW_THREADS return code;
}

static PyObject* outputs(const repeat* r, const seen* s) {
  PyObject* all;
  size_t i;
  if (!r->returned) Py_RETURN_NONE;
  if (r->returned == 1) {
    Py_INCREF(s->arrays[r->give[0]]);
    return s->arrays[r->give[0]];
  }
  all = PyTuple_New((Py_ssize_t)r->returned);
  for (i = 0; all && i < r->returned; ++i) {
    Py_INCREF(s->arrays[r->give[i]]);
    PyTuple_SetItem(all, (Py_ssize_t)i, s->arrays[r->give[i]]);
  }
  return all;
}

static int is_forked(const repeat* r) {
  PyObject* found = PyObject_GetAttrString(r->driver, "is_forked");
  const int is = found ? PyObject_IsTrue(found) : 1;
  Py_XDECREF(found);
  return is;
}

/* Once the device's context is current, or the stream says it: the outputs; NULL without an error:
 * the launches do not serve the call. */
static PyObject* inside(repeat* r, seen* s, uint64_t stream) {
  uint64_t producer;
  int code;
  if (r->made && (may_be_captured(r, stream) || s->array_count + r->made > MOST_ARRAYS ||
                  s->operand_count + r->made > MOST_ARRAYS))
    return NULL;
  if (current(s, stream, &producer) || order(r, stream, producer) ||
      make(r, s, stream, is_same(producer, stream)) || !put(r, s))
    return NULL;
  code = start(r, stream);
  return code ? PyObject_CallMethod(r->owner, "fail", "i", code) : outputs(r, s);
}

/* Call a method of the owner's, whatever error there is already: that one stays. */
static int turn(const repeat* r, const char* method) {
  PyObject *type, *value, *trace, *done;
  PyErr_Fetch(&type, &value, &trace);
  done = PyObject_CallMethod(r->owner, method, NULL);
  if (type) PyErr_Restore(type, value, trace);
  Py_XDECREF(done);
  return done != NULL;
}

/* A default stream is the current context's, so that is made the device's, and put back after. */
static PyObject* again(repeat* r, seen* s, uint64_t stream) {
  PyObject* found;
  if (is_forked(r)) return NULL;
  if (is_of_device(r, stream)) return inside(r, s, stream);
  if (stream > 2 || !turn(r, "enter")) return NULL;
  found = inside(r, s, stream);
  if (turn(r, "leave")) return found;
  Py_XDECREF(found);
  return NULL;
}

/* [key, arrays, pointers] of a call that is none like an earlier one. */
static PyObject* missed(const seen* s, int given, PyObject* key) {
  PyObject *arrays = PyList_New(given), *pointers = PyList_New(given), *all;
  int i;
  for (i = 0; arrays && pointers && i < given; ++i) {
    PyObject* pointer = PyLong_FromUnsignedLongLong(s->pointers[i]);
    Py_INCREF(s->arrays[i]);
    PyList_SetItem(arrays, i, s->arrays[i]);
    if (!pointer) break;
    PyList_SetItem(pointers, i, pointer);
  }
  all = arrays && pointers && i == given ? PyList_New(3) : NULL;
  if (!all) {
    Py_XDECREF(arrays);
    Py_XDECREF(pointers);
    return NULL;
  }
  Py_INCREF(key);
  PyList_SetItem(all, 0, key);
  PyList_SetItem(all, 1, arrays);
  PyList_SetItem(all, 2, pointers);
  return all;
}

PyObject* call(PyObject* module, PyObject* arguments) {
  PyObject *what, *args, *given, *known, *handle, *key, *capsule, *found = NULL;
  unsigned long long stream;
  seen s;
  int read, count;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "OO!O!O!O!", &what, &PyTuple_Type, &args, &PyDict_Type, &given,
                        &PyDict_Type, &known, &PyLong_Type, &handle))
    return NULL;
  stream = PyLong_AsUnsignedLongLong(handle);
  if (PyErr_Occurred()) { /* no handle of a stream: the whole way says so */
    PyErr_Clear();
    Py_RETURN_NOTIMPLEMENTED;
  }
  read = see(&s, args, given);
  count = s.array_count;
  key = read == 1 ? key_of(&s, what) : NULL;
  if (key) {
    capsule = PyDict_GetItemWithError(known, key); /* borrowed, and may leave the table meanwhile */
    Py_XINCREF(capsule);
    if (capsule && PyCapsule_IsValid(capsule, REPEAT))
      found = again(PyCapsule_GetPointer(capsule, REPEAT), &s, stream);
    if (!found && !PyErr_Occurred()) found = missed(&s, count, key);
    Py_XDECREF(capsule);
    Py_DECREF(key);
  }
  forget_seen(&s);
  if (found || PyErr_Occurred()) return found;
  Py_RETURN_NOTIMPLEMENTED;
}
