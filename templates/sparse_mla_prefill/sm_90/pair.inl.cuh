// A cluster of two CTAs has the two tiles of heads of one token. Each gathers half of the rows of
// every tile of keys, dequantises them to bf16, and sends them to the other through DSMEM (bulk
// copies): a range of bytes in each panel.
//
//   full[tile][part]: this CTA's half is stored and sent, and the bytes of the other's are here
//   free[tile][part]: both CTAs have read it, so this one may store, and send into the other
//   sent: the other CTA has received everything of the odd tile, so this one may put outputs (and
//         weights, if rope is sent) in its place. Elsewhere `free` implies it: a CTA releases a
//         part only after it has received it.

// Send what this warp stored: a range of bytes of each panel.
__device__ __forceinline__ void send(uint32_t from, uint32_t panels, uint32_t bytes,
                                     uint32_t full) {
    ptx::fence_proxy_async_shared();
    ptx::mbarrier_arrive(full);
    __syncwarp();
    if (!ptx::elect_one()) return;
    ptx::mbarrier_arrive_expect_tx(full, panels * bytes);
    for (uint32_t panel = 0; panel < panels; ++panel, from += PANEL_BYTES) {
        ptx::bulk_send(in_other(from), from, bytes, in_other(full));
    }
}
