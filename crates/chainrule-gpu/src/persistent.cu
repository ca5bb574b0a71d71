// For kernels that are one cluster of blocks.
#ifndef CHAINRULE_SHIM
// All threads of the cluster wait; what they wrote before is seen by all after it.
static __device__ __forceinline__ void cluster_barrier() {
    asm volatile(
        "barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory"
    );
}
// What the lane of a warp has whose number differs in this bit.
template <typename T>
static __device__ __forceinline__ T of_lanes(T x, int bit) {
    return (T)__shfl_xor_sync(0xffffffffu, x, bit);
}
#endif
