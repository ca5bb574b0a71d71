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

static const size_t STACK = 64 << 10;
static std::vector<char*> stacks;
static std::vector<bool> begun, done;
static jmp_buf* places;
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

static void __syncthreads() {
    unsigned int own = running;
    if (_setjmp(places[own]) == 0) { _longjmp(home, 1); }
}

// Runs each thread until it waits or ends.
static void resume(unsigned int t) {
    running = t;
    threadIdx.x = t;
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
        bool any = true;
        while (any) {
            any = false;
            for (unsigned t = 0; t < threads; t++) {
                if (done[t]) { continue; }
                resume(t);
                any = true;
            }
        }
    }
}

static void* buffer(FILE* in, size_t bytes) {
    // Filled with what is no number, so that an element which is not written shows.
    void* out = malloc(bytes + 64);
    memset(out, 0xff, bytes + 64);
    if (in != nullptr && fread(out, 1, bytes, in) != bytes) { exit(3); }
    return out;
}
