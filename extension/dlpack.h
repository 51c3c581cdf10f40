/* As much of DLPack (1.2 and later ones of major version 1) as a call reads: what a tensor is, and
 * the table by which a framework says it without a Python call. */
#pragma once
#include <stdint.h>

typedef struct {
  void* data;
  int32_t device_type, device_id;
  int32_t rank;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} dl_tensor;

typedef struct {
  uint32_t major, minor;
  void* previous;
  void *allocate, *export_managed, *import_managed; /* not called here */
  int (*read)(void* object, dl_tensor* out);        /* may be NULL; no stream is waited for */
  int (*current_stream)(int32_t device_type, int32_t device_id, void** out);
} dl_exchange;

enum { DL_CUDA = 2 };
#define DL_EXCHANGE_CAPSULE "dlpack_exchange_api"
