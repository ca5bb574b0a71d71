// A step as kernels of CUDA C. It includes nothing: NVRTC compiles it as it is.

#define INF_F __int_as_float(0x7f800000)
#define NAN_F __int_as_float(0x7fffffff)
#define LEAST (-9223372036854775807ll - 1)

static __device__ __forceinline__ bool is_nan(float x) { return x != x; }
static __device__ __forceinline__ bool is_nan(double x) { return x != x; }
static __device__ __forceinline__ bool is_inf(float x) { return x == INF_F || x == -INF_F; }
static __device__ __forceinline__ bool is_inf(double x) { return x == INF_F || x == -INF_F; }
template <typename T>
static __device__ __forceinline__ bool is_nan(T) { return false; }

// bf16 is the upper half of f32: to the nearest, ties to even; NaN stays one.
static __device__ __forceinline__ float of_bf16(unsigned short x) {
    return __int_as_float((int)((unsigned int)x << 16));
}
static __device__ __forceinline__ unsigned short to_bf16(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    unsigned short out;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out) : "f"(x));
    return out;
#endif
    unsigned int bits = (unsigned int)__float_as_int(x);
    if (x != x) { return (unsigned short)(bits >> 16 | 64u); }
    return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
// The nearest one, as f32.
static __device__ __forceinline__ float nearest_bf16(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    int out;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(x), "f"(0.0f));
    return __int_as_float(out);
#endif
    return of_bf16(to_bf16(x));
}
// Two of them in a word.
static __device__ __forceinline__ unsigned int pair(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    unsigned int out;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
    return out;
#endif
    return (unsigned int)to_bf16(low) | (unsigned int)to_bf16(high) << 16;
}

// Neighbours in memory, loaded and stored at once: 16 bytes of them, or all.
template <typename T, int N>
struct __align__(N * sizeof(T)) Several {
    T of[N];
};
template <int N, typename R, typename T>
static __device__ __forceinline__ void take(R (&x)[N], const T* from) {
    constexpr int M = N * sizeof(T) > 16 ? 16 / sizeof(T) : N;
    #pragma unroll
    for (int j = 0; j < N; j += M) {
        const Several<T, M> some = *(const Several<T, M>*)(from + j);
        #pragma unroll
        for (int k = 0; k < M; k++) { x[j + k] = some.of[k]; }
    }
}
template <int N>
static __device__ __forceinline__ void take(float (&x)[N], const unsigned short* from) {
    static_assert(N % 2 == 0, "two in a word");
    unsigned int words[N / 2];
    take(words, (const unsigned int*)from);
    #pragma unroll
    for (int k = 0; k < N / 2; k++) {
        x[2 * k] = __int_as_float((int)(words[k] << 16));
        x[2 * k + 1] = __int_as_float((int)(words[k] & 0xffff0000u));
    }
}
template <int N, typename R, typename T>
static __device__ __forceinline__ void put(T* to, const R (&x)[N]) {
    constexpr int M = N * sizeof(T) > 16 ? 16 / sizeof(T) : N;
    #pragma unroll
    for (int j = 0; j < N; j += M) {
        Several<T, M> some;
        #pragma unroll
        for (int k = 0; k < M; k++) { some.of[k] = x[j + k]; }
        *(Several<T, M>*)(to + j) = some;
    }
}
template <int N>
static __device__ __forceinline__ void put(unsigned short* to, const float (&x)[N]) {
    unsigned int words[N / 2];
    #pragma unroll
    for (int k = 0; k < N / 2; k++) { words[k] = pair(x[2 * k], x[2 * k + 1]); }
    put((unsigned int*)to, words);
}
#ifndef CHAINRULE_SHIM
// The number of another thread of a warp.
template <typename T>
static __device__ __forceinline__ T across(T x, int other) {
    return __shfl_xor_sync(0xffffffffu, x, other);
}
#endif

template <typename T>
static __device__ __forceinline__ T absolute(T x) { return x < 0 ? -x : x; }

template <typename T>
static __device__ __forceinline__ T sign_of(T x) { return T((x > 0) - (x < 0)); }

// NaN wins, as in NumPy.
template <typename T>
static __device__ __forceinline__ T larger(T a, T b) { return a > b || is_nan(a) ? a : b; }
template <typename T>
static __device__ __forceinline__ T smaller(T a, T b) { return a < b || is_nan(a) ? a : b; }

// x to the power of -1/2, also of -0 and of an infinite number.
static __device__ __forceinline__ float inverse_root(float x) {
    return is_inf(x) ? 0.0f : 1.0f / sqrtf(x + 0.0f);
}
static __device__ __forceinline__ double inverse_root(double x) {
    return is_inf(x) ? 0.0 : 1.0 / sqrt(x + 0.0);
}

// Integers: a quotient by 0 is 0, and the rest has the sign of the divisor.
template <typename T>
static __device__ __forceinline__ T quotient(T a, T b) {
    return b == 0 ? T(0) : b == T(-1) ? T(0 - (unsigned long long)a) : T(a / b);
}
template <typename T>
static __device__ __forceinline__ T remainder(T a, T b) {
    return b == 0 || b == T(-1) ? T(0) : T(a % b);
}
template <typename T>
static __device__ __forceinline__ T modulo(T a, T b) {
    T r = remainder(a, b);
    return r != 0 && (r < 0) != (b < 0) ? T(r + b) : r;
}
template <typename T>
static __device__ __forceinline__ T power(T a, T n) {
    T out = 1;
    for (; n > 0; n /= 2) {
        if (n % 2) { out = T(out * a); }
        a = T(a * a);
    }
    return out;
}

// Philox4x32-10: four words of random bits for each counter of four words and each key.
static __device__ __forceinline__ void philox_words(
    unsigned int* c, unsigned int k0, unsigned int k1
) {
    #pragma unroll
    for (int round = 0; round < 10; round++) {
        unsigned long long a = c[0] * 0xd2511f53ull, b = c[2] * 0xcd9e8d57ull;
        unsigned int c1 = c[1], c3 = c[3];
        c[0] = (unsigned int)(b >> 32) ^ c1 ^ k0; c[1] = (unsigned int)b;
        c[2] = (unsigned int)(a >> 32) ^ c3 ^ k1; c[3] = (unsigned int)a;
        k0 += 0x9e3779b9u; k1 += 0xbb67ae85u;
    }
}
// Random bits as a function of seed, run, draw and place.
static __device__ __forceinline__ void philox(
    const unsigned int* draws, unsigned int draw, unsigned int place, unsigned int* c
) {
    c[0] = place; c[1] = draw; c[2] = draws[2]; c[3] = draws[3];
    philox_words(c, draws[0], draws[1]);
}
static __device__ __forceinline__ long long seed_long_long(
    const unsigned int* draws, unsigned int draw, unsigned int place
) {
    unsigned int c[4];
    philox(draws, draw, place, c);
    return (long long)((unsigned long long)c[1] << 32 | c[0]);
}
// Whether dropout keeps the weight of a matrix, a row and a column: four neighbours share a counter.
static __device__ __forceinline__ bool is_kept(
    unsigned long long seed, unsigned int threshold, unsigned int matrix, unsigned int row,
    unsigned int column
) {
    unsigned int c[4] = {column / 4, row, matrix, 0u};
    philox_words(c, (unsigned int)seed, (unsigned int)(seed >> 32));
    const unsigned int low = column % 2 ? c[1] : c[0], upper = column % 2 ? c[3] : c[2];
    return (column / 2 % 2 ? upper : low) >= threshold;
}
static __device__ __forceinline__ float uniform_float(
    const unsigned int* draws, unsigned int draw, unsigned int place
) {
    unsigned int c[4];
    philox(draws, draw, place, c);
    return (c[0] >> 8) * (1.0f / 16777216.0f);
}
static __device__ __forceinline__ double uniform_double(
    const unsigned int* draws, unsigned int draw, unsigned int place
) {
    unsigned int c[4];
    philox(draws, draw, place, c);
    unsigned long long bits = (unsigned long long)c[0] << 32 | c[1];
    return (bits >> 11) * (1.0 / 9007199254740992.0);
}
// Box and Muller, of two words that are not 0.
static __device__ __forceinline__ double normal_double(
    const unsigned int* draws, unsigned int draw, unsigned int place
) {
    unsigned int c[4];
    philox(draws, draw, place, c);
    double radius = sqrt(-2.0 * log((c[0] + 0.5) * (1.0 / 4294967296.0)));
    return radius * cos(6.283185307179586 * ((c[1] + 0.5) * (1.0 / 4294967296.0)));
}
static __device__ __forceinline__ float normal_float(
    const unsigned int* draws, unsigned int draw, unsigned int place
) {
    return (float)normal_double(draws, draw, place);
}
