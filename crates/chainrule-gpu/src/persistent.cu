// For kernels that are one cluster of blocks.
#ifndef CHAINRULE_SHIM
// Barrier of all threads of the cluster: each sees after it the writes of all before it.
static __device__ __forceinline__ void cluster_barrier() {
    asm volatile(
        "barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory"
    );
}
// Its two halves: what a thread wrote before it arrived is seen by all behind their wait. Threads of
// a block do not wait for each other's work between the two.
static __device__ __forceinline__ void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
static __device__ __forceinline__ void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// Value of the lane of a warp whose number differs in this bit.
template <typename T>
static __device__ __forceinline__ T of_lanes(T x, int bit) {
    return (T)__shfl_xor_sync(0xffffffffu, x, bit);
}
#endif
