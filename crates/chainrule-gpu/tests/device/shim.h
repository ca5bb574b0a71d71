// Enough of CUDA to run its kernels as C++: threads of a block are coroutines, so that a barrier is
// a change of coroutine.
#include <csetjmp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <vector>

#define __global__ static
#define __device__
#define __shared__ static
#define __forceinline__ inline
#define __restrict__
#define __align__(n) __attribute__((aligned(n)))
#define __cluster_dims__(...)
#define __launch_bounds__(...)
#define CHAINRULE_SHIM

static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }

struct Place {
    unsigned int x, y, z;
};
static Place threadIdx, blockIdx;

static inline float __int_as_float(int bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline int __float_as_int(float x) {
    int bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

// A product as a device's library computes it: strided operands, sums in the result's type.
static float of_bf16(unsigned short x);
static inline float number(float x) { return x; }
static inline double number(double x) { return x; }
static inline float number(unsigned short x) { return of_bf16(x); }
static unsigned short to_bf16(float x);
template <typename T>
static inline void store(T& to, T x) { to = x; }
static inline void store(unsigned short& to, float x) { to = to_bf16(x); }
// Beside the sum: a value of the same shape and a number for each column that are added; gelu, whose
// argument is kept, or a factor, its derivative at what was kept.
enum Function { IDENTITY, GELU, GELU_SLOPE };
template <typename T>
static T gelu(T x) {
    T t = std::tanh(T(0.7978845608028654) * (x + T(0.044715) * x * x * x));
    return T(0.5) * x * (1 + t);
}
template <typename T>
static T gelu_slope(T x) {
    T s = T(0.7978845608028654), t = std::tanh(s * (x + T(0.044715) * x * x * x));
    return T(0.5) * (1 + t) + T(0.5) * x * (1 - t * t) * s * (1 + T(0.134145) * x * x);
}
template <typename A, typename B, typename C>
static void product(
    size_t count, size_t m, size_t n, size_t k,
    const A* a, size_t sa, size_t ra, size_t ca, size_t na,
    const B* b, size_t sb, size_t rb, size_t cb, size_t nb,
    C* c, size_t sc, size_t rc, size_t, size_t nc,
    const C* added, const C* bias, Function function, C* before
) {
    for (size_t s = 0; s < count; s++)
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < n; j++) {
                decltype(number(C())) sum = 0;
                for (size_t l = 0; l < k; l++)
                    sum += number(a[sa + s * na + i * ra + l * ca])
                        * number(b[sb + s * nb + l * rb + j * cb]);
                size_t at = sc + s * nc + i * rc + j;
                if (added != nullptr) { sum += number(added[at]); }
                if (bias != nullptr) { sum += number(bias[j]); }
                if (function == GELU && before != nullptr) { store(before[at], sum); }
                if (function == GELU) { sum = gelu(sum); }
                if (function == GELU_SLOPE) { sum *= gelu_slope(number((C)before[at])); }
                store(c[at], sum);
            }
}

static const size_t STACK = 64 << 10;
static std::vector<char*> stacks;
static std::vector<bool> begun, done;
static jmp_buf* places;
static jmp_buf* cluster_places;
static jmp_buf home;
static ucontext_t first, here;
static unsigned int running;
static void (*body)();
static void* b[1 << 16];

static void enter() {
    body();
    done[running] = true;
    _longjmp(home, 1);
}

// Lets the others go on.
static void yield() {
    unsigned int own = running;
    if (_setjmp(places[own]) == 0) { _longjmp(home, 1); }
}

// A thread goes on when all that have not ended wait.
static std::vector<bool> waiting;
static void __syncthreads() {
    waiting[running] = true;
    yield();
}

// What threads of a warp do together: all write what they have, wait, and read.
static unsigned int given_a[1024][4], given_b[1024][2];
static const unsigned short* given_row[1024];
static long long given_x[1024];

static float upper(unsigned int word, int half) {
    return __int_as_float((int)((half ? word >> 16 : word & 0xffffu) << 16));
}
static void multiply(float* c, const unsigned int* a, unsigned int b0, unsigned int b1) {
    unsigned t = threadIdx.x, warp = t / 32 * 32, lane = t % 32;
    memcpy(given_a[t], a, sizeof given_a[t]);
    given_b[t][0] = b0, given_b[t][1] = b1;
    yield();
    for (int i = 0; i < 4; i++) {
        unsigned row = lane / 4, column = lane % 4 * 2 + i % 2;
        for (unsigned k = 0; k < 16; k++) {
            unsigned at_a = warp + row * 4 + k % 8 / 2, at_b = warp + column * 4 + k % 8 / 2;
            c[i] += upper(given_a[at_a][i / 2 + k / 8 * 2], k % 2) * upper(given_b[at_b][k / 8], k % 2);
        }
    }
    yield();
}
static void fetch_either(unsigned int* b, const unsigned short* row, bool turned) {
    unsigned t = threadIdx.x, warp = t / 32 * 32, lane = t % 32;
    given_row[t] = row;
    yield();
    for (unsigned i = 0; i < 4; i++) {
        unsigned short two[2];
        for (unsigned h = 0; h < 2; h++) {
            unsigned r = turned ? lane % 4 * 2 + h : lane / 4, c = turned ? lane / 4 : lane % 4 * 2 + h;
            two[h] = given_row[warp + 8 * i + r][c];
        }
        b[i] = two[0] | (unsigned)two[1] << 16;
    }
    yield();
}
static void fetch(unsigned int* b, const unsigned short* row) { fetch_either(b, row, false); }
static void fetch_turned(unsigned int* b, const unsigned short* row) { fetch_either(b, row, true); }
template <typename T>
static T across(T x, int other) {
    memcpy(&given_x[threadIdx.x], &x, sizeof x);
    yield();
    T out;
    memcpy(&out, &given_x[threadIdx.x ^ other], sizeof out);
    yield();
    return out;
}

static void send(void* to, const void* from, bool is_there) {
    if (is_there) { memcpy(to, from, 16); } else { memset(to, 0, 16); }
}
static unsigned int to_tf32(float x) {
    return ((unsigned int)__float_as_int(x) + 0x1000u) & ~0x1fffu;
}
static void multiply_tf32(float* c, const unsigned int* a, unsigned int b0, unsigned int b1) {
    unsigned t = threadIdx.x, warp = t / 32 * 32, lane = t % 32;
    memcpy(given_a[t], a, sizeof given_a[t]);
    given_b[t][0] = b0, given_b[t][1] = b1;
    yield();
    for (int i = 0; i < 4; i++) {
        unsigned row = lane / 4, column = lane % 4 * 2 + i % 2;
        for (unsigned k = 0; k < 8; k++) {
            unsigned one = given_a[warp + row * 4 + k % 4][i / 2 + k / 4 * 2];
            unsigned two = given_b[warp + column * 4 + k % 4][k / 4];
            c[i] += __int_as_float((int)one) * __int_as_float((int)two);
        }
    }
    yield();
}
static void arrive() {}
static float power_of_2(float x) { return exp2f(x); }

// Runs each thread until it waits or ends.
static void resume_as(unsigned int t, unsigned int block, unsigned int thread) {
    running = t;
    blockIdx.x = block;
    threadIdx.x = thread;
    if (_setjmp(home) != 0) { return; }
    if (begun[t]) { _longjmp(places[t], 1); }
    begun[t] = true;
    getcontext(&first);
    first.uc_stack.ss_sp = stacks[t];
    first.uc_stack.ss_size = STACK;
    first.uc_link = nullptr;
    makecontext(&first, enter, 0);
    swapcontext(&here, &first);
}

static void resume(unsigned int t) { resume_as(t, blockIdx.x, t); }

static void launch(unsigned blocks, unsigned threads, bool waits, void (*kernel)()) {
    body = kernel;
    if (places == nullptr) { places = new jmp_buf[1024]; }
    while (waits && stacks.size() < threads) { stacks.push_back((char*)malloc(STACK)); }
    for (unsigned n = 0; n < blocks; n++) {
        blockIdx.x = n;
        if (!waits) {
            for (unsigned t = 0; t < threads; t++) {
                threadIdx.x = t;
                kernel();
            }
            continue;
        }
        begun.assign(threads, false);
        done.assign(threads, false);
        waiting.assign(threads, false);
        bool any = true;
        while (any) {
            any = false;
            bool ran = false;
            for (unsigned t = 0; t < threads; t++) {
                any |= !done[t];
                if (done[t] || waiting[t]) { continue; }
                resume(t);
                ran = true;
            }
            if (!ran) { waiting.assign(threads, false); }
        }
    }
}

// A cluster of blocks: a block goes on until all its threads wait for the cluster, the last block
// first if asked for, so that what another one did not write yet shows.
static std::vector<bool> at_cluster;
static void cluster_barrier() {
    at_cluster[running] = true;
    __syncthreads();
}
// Its halves: all arrive before any goes on, or nobody arrives before all wait.
static bool arrives_early = true;
static void cluster_arrive() {
    if (arrives_early) { cluster_barrier(); }
}
static void cluster_wait() {
    if (!arrives_early) { cluster_barrier(); }
}
static long long clock64() { return 0; }
template <typename T>
static T of_lanes(T x, int bit) {
    static T given[1024];
    unsigned t = threadIdx.x;
    given[t] = x;
    yield();
    T out = given[t ^ (unsigned)bit];
    yield();
    return out;
}

// Runs a block until its threads wait for the cluster: whether they do, and have not ended.
static bool resume_block(unsigned block, unsigned threads) {
    auto go_on = [&] {
        for (unsigned n = block * threads; n < (block + 1) * threads; n++) {
            waiting[n] = at_cluster[n] = false;
        }
    };
    for (go_on();;) {
        unsigned ended = 0, there = 0;
        bool ran = false;
        for (unsigned t = 0; t < threads; t++) {
            unsigned n = block * threads + t;
            if (!done[n] && !waiting[n]) {
                resume_as(n, block, t);
                ran = true;
            }
            ended += done[n];
            there += at_cluster[n];
        }
        if (ran) { continue; }
        if (ended == threads) { return false; }
        if (there == threads) { return true; }
        // Threads of a block meet at the same barriers.
        if (ended != 0 || there != 0) { exit(4); }
        go_on();
    }
}
static void launch_cluster(unsigned blocks, unsigned threads, bool backwards, void (*kernel)()) {
    unsigned all = blocks * threads;
    body = kernel;
    arrives_early = !backwards;
    if (cluster_places == nullptr) { cluster_places = new jmp_buf[1 << 14]; }
    while (stacks.size() < all) { stacks.push_back((char*)malloc(STACK)); }
    jmp_buf* own = places;
    places = cluster_places;
    begun.assign(all, false);
    waiting.assign(all, false);
    at_cluster.assign(all, false);
    done.assign(all, false);
    for (bool any = true; any;) {
        any = false;
        for (unsigned n = 0; n < blocks; n++) {
            any |= resume_block(backwards ? blocks - 1 - n : n, threads);
        }
    }
    places = own;
}

static void* buffer(FILE* in, size_t bytes) {
    // Filled with what is no number, so that an element which is not written shows.
    void* out = malloc(bytes + 64);
    memset(out, 0xff, bytes + 64);
    if (in != nullptr && fread(out, 1, bytes, in) != bytes) { exit(3); }
    return out;
}
