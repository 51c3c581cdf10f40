/* kernelpack for C, and for every language that calls C: choose and launch kernels from a bundle.
 *
 * Compile kernelpack.cpp beside this file once, with a C++17 compiler, and link zstd; or take the
 * CMake target `kernelpack::c`. What the calls do is said in loader.hpp and docs/guides/cpp.md.
 *
 * - A call gives KP_OK or the kind of its error. Where `error` is not NULL, an error is put there;
 *   free it with kp_error_free.
 * - A struct starts with its size, set by the caller: a later version may append fields, and takes
 *   those that a caller does not know as 0. One smaller than here is KP_USAGE.
 * - A pointer is needed unless it is said to be optional: NULL is KP_USAGE. Functions that free
 *   take NULL.
 * - A kp_library is shared by threads; a kp_launch belongs to one at a time. A kp_variant lies in
 *   its library and is not freed.
 */
#ifndef KERNELPACK_KERNELPACK_H
#define KERNELPACK_KERNELPACK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KP_ABI 1 /* changes when a caller must be changed */

typedef enum kp_status {
  KP_OK = 0,
  KP_BUNDLE = 1,     /* a file is not a sound bundle, or of another kernel ABI */
  KP_EXPRESSION = 2, /* an expression of a manifest cannot be evaluated for these sizes */
  KP_PROBLEM = 3,    /* the arguments do not describe a problem of the kernel */
  KP_SELECTION = 4,  /* no variant serves the problem on the device */
  KP_TENSOR_MAP = 5, /* a tensor map breaks a rule of the TMA unit */
  KP_DRIVER = 6,     /* the driver is missing, too old, or answered with an error */
  KP_CAPTURE = 7,    /* a stream is captured, and the call would need what a capture forbids */
  KP_FORK = 8,       /* a library opened before a fork is used after it */
  KP_USAGE = 9       /* a NULL or a struct's size that this version does not take */
} kp_status;

typedef struct kp_error kp_error;
typedef struct kp_library kp_library;
typedef struct kp_variant kp_variant;
typedef struct kp_launch kp_launch;

/* A CUstream or cudaStream_t; NULL is the legacy default stream. */
typedef struct CUstream_st* kp_stream;

/* How bundles are opened. Where trust is not NULL, it is files of public keys (PEM), one of whose
 * owners must have signed each bundle; else nobody need have. Where tuned is not NULL, it is a file
 * of times that `kernelpack tune` measured, which choose where they were measured. */
typedef struct kp_options {
  size_t struct_size;
  const char* libcuda; /* the driver's library; NULL: libcuda.so.1 */
  const char* const* trust;
  size_t trust_count;
  const char* tuned;
} kp_options;

typedef struct kp_device {
  size_t struct_size;
  int32_t capability_major, capability_minor;
  int32_t sm_count;
  char name[256];
} kp_device;

/* The size of a problem, such as m. */
typedef struct kp_size {
  const char* name;
  int64_t value;
} kp_size;

/* A real number of a call, such as an epsilon. */
typedef struct kp_number {
  const char* name;
  double value;
} kp_number;

/* Where an argument lies on the device. */
typedef struct kp_address {
  const char* name;
  uint64_t address;
} kp_address;

/* What is asked for. The caller can call the kernel ABIs abi_first to abi_last; both 0: any. */
typedef struct kp_problem {
  size_t struct_size;
  const char* kernel;
  const kp_size* sizes;
  size_t size_count;
  int32_t device;
  uint32_t abi_first, abi_last;
} kp_problem;

/* What a launch is packed from. Where stream is not NULL, it is the stream of the first launch, and
 * while that is being captured a kernel's first use is refused. */
typedef struct kp_arguments {
  size_t struct_size;
  const kp_address* addresses; /* of every argument */
  size_t address_count;
  const kp_stream* stream;
  const kp_number* numbers; /* those left out are their defaults */
  size_t number_count;
} kp_arguments;

uint32_t kp_abi(void); /* KP_ABI of what is linked */

/* Errors: where it is wrong, what, and what would be right; each may be empty, none is NULL, also
 * of a NULL error. */
const char* kp_error_where(const kp_error* error);
const char* kp_error_what(const kp_error* error);
const char* kp_error_hint(const kp_error* error);
void kp_error_free(kp_error* error);

/* Libraries, of a bundle or of several that are taken together. Kernels that are loaded stay when a
 * library is freed: graphs may hold them. */
kp_status kp_library_open(const char* const* paths, size_t path_count, const kp_options* options,
                          kp_library** library, kp_error** error);
void kp_library_free(kp_library* library);
int32_t kp_library_device_count(const kp_library* library);
kp_status kp_library_device(const kp_library* library, int32_t ordinal, kp_device* device,
                            kp_error** error);
/* Load every kernel that runs on a device, or those of a stem; count may be NULL. */
kp_status kp_library_preload(kp_library* library, int32_t device, const char* kernel, size_t* count,
                             kp_error** error);
/* Take every kernel out of the driver: no launch and no graph may still use one. */
kp_status kp_library_unload(kp_library* library, kp_error** error);

/* Variants. */
kp_status kp_select(const kp_library* library, const kp_problem* problem,
                    const kp_variant** variant, kp_error** error);
const char* kp_variant_id(const kp_variant* variant, size_t* size); /* not terminated by 0 */
kp_status kp_workspace_bytes(const kp_library* library, const kp_variant* variant,
                             const kp_problem* problem, int64_t* bytes, kp_error** error);

/* Launches. The library must outlive them. One whose clusters do not fit on the device, not even
 * one of them, is KP_PROBLEM. */
kp_status kp_launch_pack(kp_library* library, const kp_variant* variant, const kp_problem* problem,
                         const kp_arguments* arguments, kp_launch** launch, kp_error** error);
kp_status kp_launch_rebind(kp_launch* launch, const char* argument, uint64_t address,
                           kp_error** error);
/* Replace one of the call's numbers. */
kp_status kp_launch_set(kp_launch* launch, const char* number, double value, kp_error** error);
kp_status kp_launch_start(kp_launch* launch, kp_stream stream, kp_error** error);
void kp_launch_free(kp_launch* launch);

#ifdef __cplusplus
}
#endif

#endif
