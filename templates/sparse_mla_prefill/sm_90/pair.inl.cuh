// Two CTAs, a cluster, have the two tiles of heads of one token. Each gathers half of the rows of
// every tile of keys, makes them bf16, and sends them to the other: in a panel, a range of bytes.
//
//   full[tile][part]: this CTA's half is stored and sent, and the bytes of the other's are here
//   free[tile][part]: both CTAs have read it: this one may store, and send into the other
//   sent: the other one has all that this one sent of the odd tile, in whose place outputs, and
//         weights where rope is sent, are to be. For other places `free` says so: whoever gives
//         back has received.

// Send what this warp stored: of each panel a range of bytes.
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
