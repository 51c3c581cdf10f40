// The CUDA driver API: tensor maps. The emulator checks each against the rules of the TMA unit,
// says which one is broken, and encodes it in its own 128 bytes.
#include "wire.hpp"

using namespace standin;

extern "C" {

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType element, cuuint32_t rank,
                                void* address, const cuuint64_t* dims, const cuuint64_t* strides,
                                const cuuint32_t* box, const cuuint32_t* element_strides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  if (rank < 1 || rank > 5)
    return static_cast<CUresult>(complain("a tensor map of rank " + std::to_string(rank)));
  if (!map || !dims || (rank > 1 && !strides) || !box || !element_strides)
    return static_cast<CUresult>(complain("a tensor map by a null pointer"));
  Request request;
  request.put<uint32_t>(element)
      .put<uint32_t>(interleave)
      .put<uint32_t>(swizzle)
      .put<uint32_t>(promotion);
  request.put<uint32_t>(fill).put<uint32_t>(rank).put(reinterpret_cast<uint64_t>(address));
  request.raw(dims, rank * sizeof *dims).raw(strides, (rank - 1) * sizeof *strides);
  request.raw(box, rank * sizeof *box).raw(element_strides, rank * sizeof *element_strides);
  const Answer answer = ask(Operation::tensor_map, request);
  if (!answer.status) std::memcpy(map, answer.bytes.data(), sizeof *map);
  return static_cast<CUresult>(answer.status);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                 const cuuint64_t*, const cuuint64_t*, const int*, const int*,
                                 cuuint32_t, cuuint32_t, const cuuint32_t*, CUtensorMapInterleave,
                                 CUtensorMapSwizzle, CUtensorMapL2promotion,
                                 CUtensorMapFloatOOBfill) {
  return static_cast<CUresult>(refuse("cuTensorMapEncodeIm2col"));
}

CUresult cuTensorMapReplaceAddress(CUtensorMap*, void*) {
  return static_cast<CUresult>(refuse("cuTensorMapReplaceAddress"));
}

}  // extern "C"
