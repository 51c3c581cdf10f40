// kernelpack for C++17: choose and launch kernels from a `.kpk` bundle. Headers only, no Python, no
// CUDA toolkit: libcuda is opened when a program connects; zstd is linked (`-lzstd`).
//
//     auto library = kernelpack::load("kernels.kpk");
//     if (!library) return fail(library.error().text());
//     auto variant = (*library)->select("lora_shrink_qkv", sizes, 0);   // {{"m", 128}, …}
//     auto launch = (*library)->pack(**variant, sizes, addresses, 0);   // {{"a", 0x7f…}, …}
//     (*launch)(stream);
//
// What Python's `kernelpack.load` does, this does: the same checks of the file, the same choice,
// the same launch, the same texts of errors. Nothing throws. A `Library` is shared by threads, a
// `Launch` belongs to one at a time.
//
// To read: result, text, sha256 · format, messages, file, header, tree, sections (bytes that are
// trusted) · ed25519, signature (who answers for them) · expression, variant, number, tensor_map,
// plan, tuned, select (pure rules) · decode, catalog, images, bundle, joined (files as values) ·
// driver, json, overlay, functions, launch, library, load (values to the GPU).
#pragma once

#include "detail/load.hpp"

#undef KERNELPACK_TRY
#undef KERNELPACK_CHECK
