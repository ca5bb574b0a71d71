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

// embedding  f32 [12, 64, 128]
extern "C" __global__ void k00_embedding(
    const long long* __restrict__ x,
    const float* __restrict__ symbols_weight,
    float* __restrict__ embedding
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 98304) { return; }
    const long long x_ = x[i / 128];
    const int at = min(max((int)x_, 0), 64);
    const float symbols_weight_ = symbols_weight[at * 128 + (i % 128)];
    embedding[i] = symbols_weight_;
}

// blocks_0_norm1_reducemean, of /blocks/0/norm1/ReduceMean  f32 [768, 1, 1, 1]
// blocks_0_norm1_reducemean_2, of /blocks/0/norm1/ReduceMean.2  f32 [768, 1, 1, 1]
// blocks_0_norm1_div, of /blocks/0/norm1/Div  f32 [768, 1, 1, 1]
// blocks_0_norm1_add_2, of /blocks/0/norm1/Add.2  f32 [768, 1, 128, 1]
extern "C" __global__ void k01_blocks_0_norm1_add_2(
    const float* __restrict__ embedding,
    const float* __restrict__ positions_weight,
    const float* __restrict__ blocks_0_norm1_weight,
    const float* __restrict__ blocks_0_norm1_bias,
    float* __restrict__ blocks_0_norm1_reducemean,
    float* __restrict__ blocks_0_norm1_div,
    float* __restrict__ blocks_0_norm1_add_2
) {
    __shared__ float part_float[128];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float sum = 0.0f;
    for (int col = thread; col < 128; col += 128) {
        const float embedding_ = embedding[row * 128 + col];
        const float positions_weight_ = positions_weight[(row % 64) * 128 + col];
        const float x_2_ = embedding_ + positions_weight_;
        sum = sum + x_2_;
    }
    part_float[thread] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float blocks_0_norm1_reducemean_ = part_float[0] / 128.0f;
    __syncthreads();
    if (thread == 0) {
        blocks_0_norm1_reducemean[row] = blocks_0_norm1_reducemean_;
    }
    float sum_2 = 0.0f;
    for (int col = thread; col < 128; col += 128) {
        const float embedding__2 = embedding[row * 128 + col];
        const float positions_weight__2 = positions_weight[(row % 64) * 128 + col];
        const float x_2__2 = embedding__2 + positions_weight__2;
        const float blocks_0_norm1_sub_ = x_2__2 - blocks_0_norm1_reducemean_;
        const float blocks_0_norm1_mul_ = blocks_0_norm1_sub_ * blocks_0_norm1_sub_;
        sum_2 = sum_2 + blocks_0_norm1_mul_;
    }
    part_float[thread] = sum_2;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float blocks_0_norm1_reducemean_2_ = part_float[0] / 128.0f;
    __syncthreads();
    const float blocks_0_norm1_add_ = blocks_0_norm1_reducemean_2_ + 1e-5f;
    const float blocks_0_norm1_sqrt_ = sqrtf(blocks_0_norm1_add_);
    const float blocks_0_norm1_div_ = 1.0f / blocks_0_norm1_sqrt_;
    if (thread == 0) {
        blocks_0_norm1_div[row] = blocks_0_norm1_div_;
    }
    for (int col = thread; col < 128; col += 128) {
        const float embedding__3 = embedding[row * 128 + col];
        const float positions_weight__3 = positions_weight[(row % 64) * 128 + col];
        const float x_2__3 = embedding__3 + positions_weight__3;
        const float blocks_0_norm1_sub__2 = x_2__3 - blocks_0_norm1_reducemean_;
        const float blocks_0_norm1_mul_2_ = blocks_0_norm1_sub__2 * blocks_0_norm1_div_;
        const float blocks_0_norm1_weight_ = blocks_0_norm1_weight[col];
        const float blocks_0_norm1_mul_3_ = blocks_0_norm1_mul_2_ * blocks_0_norm1_weight_;
        const float blocks_0_norm1_bias_ = blocks_0_norm1_bias[col];
        const float blocks_0_norm1_add_2_ = blocks_0_norm1_mul_3_ + blocks_0_norm1_bias_;
        blocks_0_norm1_add_2[row * 128 + col] = blocks_0_norm1_add_2_;
    }
}

// blocks_0_attention_qkv_matmul, of /blocks/0/attention/qkv/MatMul  f32 [12, 64, 384]
// linear  f32 [12, 64, 384]
extern "C" __global__ void k02_linear(
    const float* __restrict__ blocks_0_norm1_add_2,
    const float* __restrict__ blocks_0_attention_qkv_weight,
    const float* __restrict__ blocks_0_attention_qkv_bias,
    float* __restrict__ linear
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 6;
    const int top = block / 6 % 1 * 64;
    const int left = block % 6 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 128; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 64 && k < 128) {
                const int at = stack * 64 + m;
                const float blocks_0_norm1_add_2_ = blocks_0_norm1_add_2[at * 128 + k];
                x_4 = blocks_0_norm1_add_2_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_4;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_5 = 0.0f;
            if (n < 384 && k < 128) {
                const float blocks_0_attention_qkv_weight_ = blocks_0_attention_qkv_weight[n * 128 + k];
                x_5 = blocks_0_attention_qkv_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 0];
            sums[1] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 16];
            sums[2] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 32];
            sums[3] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 48];
            sums[4] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 0];
            sums[5] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 16];
            sums[6] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 32];
            sums[7] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 48];
            sums[8] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 0];
            sums[9] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 16];
            sums[10] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 32];
            sums[11] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 48];
            sums[12] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 0];
            sums[13] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 16];
            sums[14] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 32];
            sums[15] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 48];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 4; u++) {
        #pragma unroll
        for (int w = 0; w < 4; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 64 && n < 384) {
                const float blocks_0_attention_qkv_matmul_ = sums[u * 4 + w];
                const float blocks_0_attention_qkv_bias_ = blocks_0_attention_qkv_bias[n];
                const float linear_ = blocks_0_attention_qkv_matmul_ + blocks_0_attention_qkv_bias_;
                linear[stack * 24576 + m * 384 + n] = linear_;
            }
        }
    }
}

// blocks_0_attention_matmul, of /blocks/0/attention/MatMul  f32 [12, 4, 64, 64]
extern "C" __global__ void k03_blocks_0_attention_matmul(
    const float* __restrict__ linear,
    float* __restrict__ blocks_0_attention_matmul
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 1;
    const int top = block / 1 % 1 * 64;
    const int left = block % 1 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 32; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 64 && k < 32) {
                const int at = (stack % 4) * 32 + k;
                const float linear_ = linear[(stack / 4) * 24576 + m * 384 + at];
                x_4 = linear_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_4;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_5 = 0.0f;
            if (n < 64 && k < 32) {
                const int at_2 = 1 * 128 + (stack % 4) * 32 + k;
                const float linear__2 = linear[(stack / 4) * 24576 + n * 384 + at_2];
                x_5 = linear__2;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 0];
            sums[1] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 16];
            sums[2] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 32];
            sums[3] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 48];
            sums[4] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 0];
            sums[5] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 16];
            sums[6] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 32];
            sums[7] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 48];
            sums[8] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 0];
            sums[9] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 16];
            sums[10] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 32];
            sums[11] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 48];
            sums[12] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 0];
            sums[13] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 16];
            sums[14] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 32];
            sums[15] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 48];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 4; u++) {
        #pragma unroll
        for (int w = 0; w < 4; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 64 && n < 64) {
                const float blocks_0_attention_matmul_ = sums[u * 4 + w];
                blocks_0_attention_matmul[stack * 4096 + m * 64 + n] = blocks_0_attention_matmul_;
            }
        }
    }
}

// blocks_0_attention_lessorequal, of /blocks/0/attention/LessOrEqual  bool [64, 64]
extern "C" __global__ void k04_blocks_0_attention_lessorequal(
    bool* __restrict__ blocks_0_attention_lessorequal
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 4096) { return; }
    const bool blocks_0_attention_lessorequal_ = ((long long)(i % 64)) <= ((long long)(i / 64));
    blocks_0_attention_lessorequal[i] = blocks_0_attention_lessorequal_;
}

// blocks_0_attention_reducemax, of /blocks/0/attention/ReduceMax  i64 [12, 4, 64, 1]
// blocks_0_attention_reducemax_2, of /blocks/0/attention/ReduceMax.2  f32 [12, 4, 64, 1]
// blocks_0_attention_exp, of /blocks/0/attention/Exp  f32 [12, 4, 64, 64]
// blocks_0_attention_reducesum, of /blocks/0/attention/ReduceSum  f32 [12, 4, 64, 1]
// blocks_0_attention_where_3, of /blocks/0/attention/Where.3  f32 [12, 4, 64, 64]
extern "C" __global__ void k05_blocks_0_attention_where_3(
    const bool* __restrict__ blocks_0_attention_lessorequal,
    const float* __restrict__ blocks_0_attention_matmul,
    long long* __restrict__ blocks_0_attention_reducemax,
    float* __restrict__ blocks_0_attention_where_3
) {
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    const int col = min(thread, 15) * 4;
    const bool inside = thread < 16;
    long long sum = LEAST;
    bool blocks_0_attention_lessorequal_[4];
    take(blocks_0_attention_lessorequal_, blocks_0_attention_lessorequal + (row % 64) * 64 + col);
    #pragma unroll
    for (int e = 0; e < 4; e++) {
        const bool blocks_0_attention_and_ = true && blocks_0_attention_lessorequal_[e];
        const long long blocks_0_attention_cast_ = (long long)blocks_0_attention_and_;
        sum = larger(sum, blocks_0_attention_cast_);
    }
    if (!inside) { sum = LEAST; }
    for (int half = 16; half > 0; half /= 2) { sum = larger(sum, across(sum, half)); }
    const long long blocks_0_attention_reducemax_ = sum;
    if (thread == 0) {
        blocks_0_attention_reducemax[row] = blocks_0_attention_reducemax_;
    }
    float sum_2 = -INF_F;
    const bool blocks_0_attention_cast_2_ = blocks_0_attention_reducemax_ != 0ll;
    float blocks_0_attention_matmul_[4];
    take(blocks_0_attention_matmul_, blocks_0_attention_matmul + row * 64 + col);
    #pragma unroll
    for (int e = 0; e < 4; e++) {
        const bool blocks_0_attention_and__2 = true && blocks_0_attention_lessorequal_[e];
        const float blocks_0_attention_mul_ = blocks_0_attention_matmul_[e] * 0.17677669f;
        const float blocks_0_attention_where_ = blocks_0_attention_and__2 ? blocks_0_attention_mul_ : (-INF_F);
        const float blocks_0_attention_where_2_ = blocks_0_attention_cast_2_ ? blocks_0_attention_where_ : 0.0f;
        sum_2 = larger(sum_2, blocks_0_attention_where_2_);
    }
    if (!inside) { sum_2 = -INF_F; }
    for (int half = 16; half > 0; half /= 2) { sum_2 = larger(sum_2, across(sum_2, half)); }
    const float blocks_0_attention_reducemax_2_ = sum_2;
    float blocks_0_attention_exp__2[4];
    #pragma unroll
    for (int e = 0; e < 4; e++) {
        const bool blocks_0_attention_and__3 = true && blocks_0_attention_lessorequal_[e];
        const float blocks_0_attention_mul__2 = blocks_0_attention_matmul_[e] * 0.17677669f;
        const float blocks_0_attention_where__2 = blocks_0_attention_and__3 ? blocks_0_attention_mul__2 : (-INF_F);
        const float blocks_0_attention_where_2__2 = blocks_0_attention_cast_2_ ? blocks_0_attention_where__2 : 0.0f;
        const float blocks_0_attention_sub_ = blocks_0_attention_where_2__2 - blocks_0_attention_reducemax_2_;
        const float blocks_0_attention_exp_ = expf(blocks_0_attention_sub_);
        blocks_0_attention_exp__2[e] = blocks_0_attention_exp_;
    }
    float sum_3 = 0.0f;
    #pragma unroll
    for (int e = 0; e < 4; e++) {
        sum_3 = sum_3 + blocks_0_attention_exp__2[e];
    }
    if (!inside) { sum_3 = 0.0f; }
    for (int half = 16; half > 0; half /= 2) { sum_3 = sum_3 + across(sum_3, half); }
    const float blocks_0_attention_reducesum_ = sum_3;
    float blocks_0_attention_where_3__2[4];
    #pragma unroll
    for (int e = 0; e < 4; e++) {
        const bool blocks_0_attention_and__4 = true && blocks_0_attention_lessorequal_[e];
        const float blocks_0_attention_div_ = blocks_0_attention_exp__2[e] / blocks_0_attention_reducesum_;
        const float blocks_0_attention_where_3_ = blocks_0_attention_and__4 ? blocks_0_attention_div_ : 0.0f;
        blocks_0_attention_where_3__2[e] = blocks_0_attention_where_3_;
    }
    if (inside) { put(blocks_0_attention_where_3 + row * 64 + col, blocks_0_attention_where_3__2); }
}

// attention  f32 [12, 4, 64, 32]
extern "C" __global__ void k06_attention(
    const float* __restrict__ blocks_0_attention_where_3,
    const float* __restrict__ linear,
    float* __restrict__ attention
) {
    __shared__ float tile_a_float[256];
    __shared__ float tile_b_float[256];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 8;
    const int top = block / 2 % 4 * 16;
    const int left = block % 2 * 16;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[1] = {};
    for (int k0 = 0; k0 < 64; k0 += 16) {
        for (int t = thread; t < 256; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 64 && k < 64) {
                const float blocks_0_attention_where_3_ = blocks_0_attention_where_3[stack * 4096 + m * 64 + k];
                x_4 = blocks_0_attention_where_3_;
            }
            tile_a_float[(t % 16) * 16 + t / 16] = x_4;
        }
        for (int t = thread; t < 256; t += 256) {
            const int n = left + t % 16;
            const int k = k0 + t / 16;
            float x_5 = 0.0f;
            if (n < 32 && k < 64) {
                const int at = 2 * 128 + (stack % 4) * 32 + n;
                const float linear_ = linear[(stack / 4) * 24576 + k * 384 + at];
                x_5 = linear_;
            }
            tile_b_float[(t / 16) * 16 + t % 16] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 16 + ty + 0] * tile_b_float[t * 16 + tx + 0];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 1; u++) {
        #pragma unroll
        for (int w = 0; w < 1; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 64 && n < 32) {
                const float attention_ = sums[u * 1 + w];
                attention[stack * 2048 + m * 32 + n] = attention_;
            }
        }
    }
}

// blocks_0_attention_out_matmul, of /blocks/0/attention/out/MatMul  f32 [12, 64, 128]
// add  f32 [12, 64, 128]
extern "C" __global__ void k07_add(
    const float* __restrict__ attention,
    const float* __restrict__ blocks_0_attention_out_weight,
    const float* __restrict__ embedding,
    const float* __restrict__ positions_weight,
    const float* __restrict__ blocks_0_attention_out_bias,
    float* __restrict__ add
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 2;
    const int top = block / 2 % 1 * 64;
    const int left = block % 2 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 128; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 64 && k < 128) {
                const float attention_ = attention[stack * 8192 + (k / 32) * 2048 + m * 32 + (k % 32)];
                x_4 = attention_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_4;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_5 = 0.0f;
            if (n < 128 && k < 128) {
                const float blocks_0_attention_out_weight_ = blocks_0_attention_out_weight[n * 128 + k];
                x_5 = blocks_0_attention_out_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 0];
            sums[1] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 16];
            sums[2] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 32];
            sums[3] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 48];
            sums[4] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 0];
            sums[5] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 16];
            sums[6] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 32];
            sums[7] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 48];
            sums[8] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 0];
            sums[9] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 16];
            sums[10] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 32];
            sums[11] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 48];
            sums[12] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 0];
            sums[13] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 16];
            sums[14] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 32];
            sums[15] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 48];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 4; u++) {
        #pragma unroll
        for (int w = 0; w < 4; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 64 && n < 128) {
                const float blocks_0_attention_out_matmul_ = sums[u * 4 + w];
                const float embedding_ = embedding[stack * 8192 + m * 128 + n];
                const float positions_weight_ = positions_weight[m * 128 + n];
                const float x_2_ = embedding_ + positions_weight_;
                const float blocks_0_attention_out_bias_ = blocks_0_attention_out_bias[n];
                const float linear_2_ = blocks_0_attention_out_matmul_ + blocks_0_attention_out_bias_;
                const float add_ = x_2_ + linear_2_;
                add[stack * 8192 + m * 128 + n] = add_;
            }
        }
    }
}

// blocks_0_norm2_reducemean, of /blocks/0/norm2/ReduceMean  f32 [768, 1, 1, 1]
// blocks_0_norm2_reducemean_2, of /blocks/0/norm2/ReduceMean.2  f32 [768, 1, 1, 1]
// blocks_0_norm2_div, of /blocks/0/norm2/Div  f32 [768, 1, 1, 1]
// blocks_0_norm2_add_2, of /blocks/0/norm2/Add.2  f32 [768, 1, 128, 1]
extern "C" __global__ void k08_blocks_0_norm2_add_2(
    const float* __restrict__ add,
    const float* __restrict__ blocks_0_norm2_weight,
    const float* __restrict__ blocks_0_norm2_bias,
    float* __restrict__ blocks_0_norm2_reducemean,
    float* __restrict__ blocks_0_norm2_div,
    float* __restrict__ blocks_0_norm2_add_2
) {
    __shared__ float part_float[128];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float sum = 0.0f;
    for (int col = thread; col < 128; col += 128) {
        const float add_ = add[row * 128 + col];
        sum = sum + add_;
    }
    part_float[thread] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float blocks_0_norm2_reducemean_ = part_float[0] / 128.0f;
    __syncthreads();
    if (thread == 0) {
        blocks_0_norm2_reducemean[row] = blocks_0_norm2_reducemean_;
    }
    float sum_2 = 0.0f;
    for (int col = thread; col < 128; col += 128) {
        const float add__2 = add[row * 128 + col];
        const float blocks_0_norm2_sub_ = add__2 - blocks_0_norm2_reducemean_;
        const float blocks_0_norm2_mul_ = blocks_0_norm2_sub_ * blocks_0_norm2_sub_;
        sum_2 = sum_2 + blocks_0_norm2_mul_;
    }
    part_float[thread] = sum_2;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float blocks_0_norm2_reducemean_2_ = part_float[0] / 128.0f;
    __syncthreads();
    const float blocks_0_norm2_add_ = blocks_0_norm2_reducemean_2_ + 1e-5f;
    const float blocks_0_norm2_sqrt_ = sqrtf(blocks_0_norm2_add_);
    const float blocks_0_norm2_div_ = 1.0f / blocks_0_norm2_sqrt_;
    if (thread == 0) {
        blocks_0_norm2_div[row] = blocks_0_norm2_div_;
    }
    for (int col = thread; col < 128; col += 128) {
        const float add__3 = add[row * 128 + col];
        const float blocks_0_norm2_sub__2 = add__3 - blocks_0_norm2_reducemean_;
        const float blocks_0_norm2_mul_2_ = blocks_0_norm2_sub__2 * blocks_0_norm2_div_;
        const float blocks_0_norm2_weight_ = blocks_0_norm2_weight[col];
        const float blocks_0_norm2_mul_3_ = blocks_0_norm2_mul_2_ * blocks_0_norm2_weight_;
        const float blocks_0_norm2_bias_ = blocks_0_norm2_bias[col];
        const float blocks_0_norm2_add_2_ = blocks_0_norm2_mul_3_ + blocks_0_norm2_bias_;
        blocks_0_norm2_add_2[row * 128 + col] = blocks_0_norm2_add_2_;
    }
}

// blocks_0_expand_matmul, of /blocks/0/expand/MatMul  f32 [12, 64, 512]
// gelu_tanh  f32 [12, 64, 512]
extern "C" __global__ void k09_gelu_tanh(
    const float* __restrict__ blocks_0_norm2_add_2,
    const float* __restrict__ blocks_0_expand_weight,
    const float* __restrict__ blocks_0_expand_bias,
    float* __restrict__ blocks_0_expand_matmul,
    float* __restrict__ gelu_tanh
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 8;
    const int top = block / 8 % 1 * 64;
    const int left = block % 8 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 128; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 64 && k < 128) {
                const int at = stack * 64 + m;
                const float blocks_0_norm2_add_2_ = blocks_0_norm2_add_2[at * 128 + k];
                x_4 = blocks_0_norm2_add_2_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_4;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_5 = 0.0f;
            if (n < 512 && k < 128) {
                const float blocks_0_expand_weight_ = blocks_0_expand_weight[n * 128 + k];
                x_5 = blocks_0_expand_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 0];
            sums[1] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 16];
            sums[2] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 32];
            sums[3] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 48];
            sums[4] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 0];
            sums[5] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 16];
            sums[6] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 32];
            sums[7] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 48];
            sums[8] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 0];
            sums[9] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 16];
            sums[10] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 32];
            sums[11] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 48];
            sums[12] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 0];
            sums[13] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 16];
            sums[14] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 32];
            sums[15] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 48];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 4; u++) {
        #pragma unroll
        for (int w = 0; w < 4; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 64 && n < 512) {
                const float blocks_0_expand_matmul_ = sums[u * 4 + w];
                blocks_0_expand_matmul[stack * 32768 + m * 512 + n] = blocks_0_expand_matmul_;
                const float blocks_0_expand_bias_ = blocks_0_expand_bias[n];
                const float linear_3_ = blocks_0_expand_matmul_ + blocks_0_expand_bias_;
                const float blocks_0_gelu_mul_ = 0.044715f * linear_3_;
                const float blocks_0_gelu_mul_2_ = blocks_0_gelu_mul_ * linear_3_;
                const float blocks_0_gelu_mul_3_ = blocks_0_gelu_mul_2_ * linear_3_;
                const float blocks_0_gelu_add_ = linear_3_ + blocks_0_gelu_mul_3_;
                const float blocks_0_gelu_mul_4_ = 0.7978846f * blocks_0_gelu_add_;
                const float blocks_0_gelu_tanh_ = tanhf(blocks_0_gelu_mul_4_);
                const float blocks_0_gelu_add_2_ = 1.0f + blocks_0_gelu_tanh_;
                const float blocks_0_gelu_mul_5_ = linear_3_ * blocks_0_gelu_add_2_;
                const float gelu_tanh_ = blocks_0_gelu_mul_5_ / 2.0f;
                gelu_tanh[stack * 32768 + m * 512 + n] = gelu_tanh_;
            }
        }
    }
}

// blocks_0_project_matmul, of /blocks/0/project/MatMul  f32 [12, 64, 128]
// add_2  f32 [12, 64, 128]
extern "C" __global__ void k10_add_2(
    const float* __restrict__ gelu_tanh,
    const float* __restrict__ blocks_0_project_weight,
    const float* __restrict__ add,
    const float* __restrict__ blocks_0_project_bias,
    float* __restrict__ add_2
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 2;
    const int top = block / 2 % 1 * 64;
    const int left = block % 2 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 512; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 64 && k < 512) {
                const float gelu_tanh_ = gelu_tanh[stack * 32768 + m * 512 + k];
                x_4 = gelu_tanh_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_4;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_5 = 0.0f;
            if (n < 128 && k < 512) {
                const float blocks_0_project_weight_ = blocks_0_project_weight[n * 512 + k];
                x_5 = blocks_0_project_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 0];
            sums[1] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 16];
            sums[2] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 32];
            sums[3] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 48];
            sums[4] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 0];
            sums[5] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 16];
            sums[6] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 32];
            sums[7] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 48];
            sums[8] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 0];
            sums[9] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 16];
            sums[10] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 32];
            sums[11] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 48];
            sums[12] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 0];
            sums[13] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 16];
            sums[14] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 32];
            sums[15] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 48];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 4; u++) {
        #pragma unroll
        for (int w = 0; w < 4; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 64 && n < 128) {
                const float blocks_0_project_matmul_ = sums[u * 4 + w];
                const float add_ = add[stack * 8192 + m * 128 + n];
                const float blocks_0_project_bias_ = blocks_0_project_bias[n];
                const float linear_4_ = blocks_0_project_matmul_ + blocks_0_project_bias_;
                const float add_2_ = add_ + linear_4_;
                add_2[stack * 8192 + m * 128 + n] = add_2_;
            }
        }
    }
}

// blocks_1_attention_reducemax_2, of /blocks/1/attention/ReduceMax.2  f32 [12, 4, 64, 1]
// blocks_1_attention_exp, of /blocks/1/attention/Exp  f32 [12, 4, 64, 64]
// blocks_1_attention_reducesum, of /blocks/1/attention/ReduceSum  f32 [12, 4, 64, 1]
// blocks_1_attention_where_3, of /blocks/1/attention/Where.3  f32 [12, 4, 64, 64]
extern "C" __global__ void k14_blocks_1_attention_where_3(
    const long long* __restrict__ blocks_0_attention_reducemax,
    const bool* __restrict__ blocks_0_attention_lessorequal,
    const float* __restrict__ blocks_1_attention_matmul,
    float* __restrict__ blocks_1_attention_where_3
) {
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    const int col = min(thread, 15) * 4;
    const bool inside = thread < 16;
    float sum = -INF_F;
    const long long blocks_0_attention_reducemax_ = blocks_0_attention_reducemax[row];
    const bool blocks_0_attention_cast_2_ = blocks_0_attention_reducemax_ != 0ll;
    bool blocks_0_attention_lessorequal_[4];
    take(blocks_0_attention_lessorequal_, blocks_0_attention_lessorequal + (row % 64) * 64 + col);
    float blocks_1_attention_matmul_[4];
    take(blocks_1_attention_matmul_, blocks_1_attention_matmul + row * 64 + col);
    #pragma unroll
    for (int e = 0; e < 4; e++) {
        const bool blocks_0_attention_and_ = true && blocks_0_attention_lessorequal_[e];
        const float blocks_1_attention_mul_ = blocks_1_attention_matmul_[e] * 0.17677669f;
        const float blocks_1_attention_where_ = blocks_0_attention_and_ ? blocks_1_attention_mul_ : (-INF_F);
        const float blocks_1_attention_where_2_ = blocks_0_attention_cast_2_ ? blocks_1_attention_where_ : 0.0f;
        sum = larger(sum, blocks_1_attention_where_2_);
    }
    if (!inside) { sum = -INF_F; }
    for (int half = 16; half > 0; half /= 2) { sum = larger(sum, across(sum, half)); }
    const float blocks_1_attention_reducemax_2_ = sum;
    float blocks_1_attention_exp__2[4];
    #pragma unroll
    for (int e = 0; e < 4; e++) {
        const bool blocks_0_attention_and__2 = true && blocks_0_attention_lessorequal_[e];
        const float blocks_1_attention_mul__2 = blocks_1_attention_matmul_[e] * 0.17677669f;
        const float blocks_1_attention_where__2 = blocks_0_attention_and__2 ? blocks_1_attention_mul__2 : (-INF_F);
        const float blocks_1_attention_where_2__2 = blocks_0_attention_cast_2_ ? blocks_1_attention_where__2 : 0.0f;
        const float blocks_1_attention_sub_ = blocks_1_attention_where_2__2 - blocks_1_attention_reducemax_2_;
        const float blocks_1_attention_exp_ = expf(blocks_1_attention_sub_);
        blocks_1_attention_exp__2[e] = blocks_1_attention_exp_;
    }
    float sum_2 = 0.0f;
    #pragma unroll
    for (int e = 0; e < 4; e++) {
        sum_2 = sum_2 + blocks_1_attention_exp__2[e];
    }
    if (!inside) { sum_2 = 0.0f; }
    for (int half = 16; half > 0; half /= 2) { sum_2 = sum_2 + across(sum_2, half); }
    const float blocks_1_attention_reducesum_ = sum_2;
    float blocks_1_attention_where_3__2[4];
    #pragma unroll
    for (int e = 0; e < 4; e++) {
        const bool blocks_0_attention_and__3 = true && blocks_0_attention_lessorequal_[e];
        const float blocks_1_attention_div_ = blocks_1_attention_exp__2[e] / blocks_1_attention_reducesum_;
        const float blocks_1_attention_where_3_ = blocks_0_attention_and__3 ? blocks_1_attention_div_ : 0.0f;
        blocks_1_attention_where_3__2[e] = blocks_1_attention_where_3_;
    }
    if (inside) { put(blocks_1_attention_where_3 + row * 64 + col, blocks_1_attention_where_3__2); }
}

// blocks_1_attention_out_matmul, of /blocks/1/attention/out/MatMul  f32 [12, 64, 128]
// add_3  f32 [12, 64, 128]
extern "C" __global__ void k16_add_3(
    const float* __restrict__ attention_2,
    const float* __restrict__ blocks_1_attention_out_weight,
    const float* __restrict__ add_2,
    const float* __restrict__ blocks_1_attention_out_bias,
    float* __restrict__ add_3
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 2;
    const int top = block / 2 % 1 * 64;
    const int left = block % 2 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 128; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 64 && k < 128) {
                const float attention_2_ = attention_2[stack * 8192 + (k / 32) * 2048 + m * 32 + (k % 32)];
                x_4 = attention_2_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_4;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_5 = 0.0f;
            if (n < 128 && k < 128) {
                const float blocks_1_attention_out_weight_ = blocks_1_attention_out_weight[n * 128 + k];
                x_5 = blocks_1_attention_out_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 0];
            sums[1] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 16];
            sums[2] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 32];
            sums[3] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 48];
            sums[4] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 0];
            sums[5] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 16];
            sums[6] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 32];
            sums[7] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 48];
            sums[8] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 0];
            sums[9] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 16];
            sums[10] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 32];
            sums[11] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 48];
            sums[12] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 0];
            sums[13] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 16];
            sums[14] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 32];
            sums[15] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 48];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 4; u++) {
        #pragma unroll
        for (int w = 0; w < 4; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 64 && n < 128) {
                const float blocks_1_attention_out_matmul_ = sums[u * 4 + w];
                const float add_2_ = add_2[stack * 8192 + m * 128 + n];
                const float blocks_1_attention_out_bias_ = blocks_1_attention_out_bias[n];
                const float linear_6_ = blocks_1_attention_out_matmul_ + blocks_1_attention_out_bias_;
                const float add_3_ = add_2_ + linear_6_;
                add_3[stack * 8192 + m * 128 + n] = add_3_;
            }
        }
    }
}

// blocks_1_norm2_reducemean, of /blocks/1/norm2/ReduceMean  f32 [768, 1, 1, 1]
// blocks_1_norm2_reducemean_2, of /blocks/1/norm2/ReduceMean.2  f32 [768, 1, 1, 1]
// blocks_1_norm2_div, of /blocks/1/norm2/Div  f32 [768, 1, 1, 1]
// blocks_1_norm2_add_2, of /blocks/1/norm2/Add.2  f32 [768, 1, 128, 1]
// picked, of /loss/ReduceSum  f32 [768, 1]
extern "C" __global__ void k17_picked(
    const float* __restrict__ add_3,
    const float* __restrict__ blocks_1_norm2_weight,
    const float* __restrict__ blocks_1_norm2_bias,
    const long long* __restrict__ y,
    float* __restrict__ blocks_1_norm2_reducemean,
    float* __restrict__ blocks_1_norm2_div,
    float* __restrict__ blocks_1_norm2_add_2,
    float* __restrict__ picked
) {
    __shared__ float part_float[128];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float sum = 0.0f;
    for (int col = thread; col < 128; col += 128) {
        const float add_3_ = add_3[row * 128 + col];
        sum = sum + add_3_;
    }
    part_float[thread] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float blocks_1_norm2_reducemean_ = part_float[0] / 128.0f;
    __syncthreads();
    if (thread == 0) {
        blocks_1_norm2_reducemean[row] = blocks_1_norm2_reducemean_;
    }
    float sum_2 = 0.0f;
    for (int col = thread; col < 128; col += 128) {
        const float add_3__2 = add_3[row * 128 + col];
        const float blocks_1_norm2_sub_ = add_3__2 - blocks_1_norm2_reducemean_;
        const float blocks_1_norm2_mul_ = blocks_1_norm2_sub_ * blocks_1_norm2_sub_;
        sum_2 = sum_2 + blocks_1_norm2_mul_;
    }
    part_float[thread] = sum_2;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float blocks_1_norm2_reducemean_2_ = part_float[0] / 128.0f;
    __syncthreads();
    const float blocks_1_norm2_add_ = blocks_1_norm2_reducemean_2_ + 1e-5f;
    const float blocks_1_norm2_sqrt_ = sqrtf(blocks_1_norm2_add_);
    const float blocks_1_norm2_div_ = 1.0f / blocks_1_norm2_sqrt_;
    if (thread == 0) {
        blocks_1_norm2_div[row] = blocks_1_norm2_div_;
    }
    for (int col = thread; col < 128; col += 128) {
        const float add_3__3 = add_3[row * 128 + col];
        const float blocks_1_norm2_sub__2 = add_3__3 - blocks_1_norm2_reducemean_;
        const float blocks_1_norm2_mul_2_ = blocks_1_norm2_sub__2 * blocks_1_norm2_div_;
        const float blocks_1_norm2_weight_ = blocks_1_norm2_weight[col];
        const float blocks_1_norm2_mul_3_ = blocks_1_norm2_mul_2_ * blocks_1_norm2_weight_;
        const float blocks_1_norm2_bias_ = blocks_1_norm2_bias[col];
        const float blocks_1_norm2_add_2_ = blocks_1_norm2_mul_3_ + blocks_1_norm2_bias_;
        blocks_1_norm2_add_2[row * 128 + col] = blocks_1_norm2_add_2_;
    }
    const long long y_ = y[row];
    const int at = min(max((int)y_, 0), 64);
    const bool loss_equal_ = y_ == ((long long)(at));
    const float loss_cast_ = (float)loss_equal_;
    if (thread == 0) {
        picked[row] = loss_cast_;
    }
}

// linear_17  f32 [12, 64, 65]
extern "C" __global__ void k39_linear_17(
    const float* __restrict__ norm_add_2,
    const float* __restrict__ head_weight,
    float* __restrict__ linear_17
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 2;
    const int top = block / 2 % 1 * 64;
    const int left = block % 2 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 128; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 64 && k < 128) {
                const int at = stack * 64 + m;
                const float norm_add_2_ = norm_add_2[at * 128 + k];
                x_4 = norm_add_2_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_4;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_5 = 0.0f;
            if (n < 65 && k < 128) {
                const float head_weight_ = head_weight[n * 128 + k];
                x_5 = head_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 0];
            sums[1] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 16];
            sums[2] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 32];
            sums[3] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 48];
            sums[4] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 0];
            sums[5] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 16];
            sums[6] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 32];
            sums[7] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 48];
            sums[8] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 0];
            sums[9] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 16];
            sums[10] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 32];
            sums[11] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 48];
            sums[12] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 0];
            sums[13] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 16];
            sums[14] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 32];
            sums[15] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 48];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 4; u++) {
        #pragma unroll
        for (int w = 0; w < 4; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 64 && n < 65) {
                const float linear_17_ = sums[u * 4 + w];
                linear_17[stack * 4160 + m * 65 + n] = linear_17_;
            }
        }
    }
}

// loss_reducesum, of /loss/ReduceSum  f32 []
// backward_d_logits_div, of /backward/d_logits/Div  f32 []
extern "C" __global__ void k40_backward_d_logits_div(
    const float* __restrict__ picked,
    float* __restrict__ loss_reducesum,
    float* __restrict__ backward_d_logits_div
) {
    __shared__ float part_float[256];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float sum = 0.0f;
    for (int col = thread; col < 768; col += 256) {
        const float picked_ = picked[col];
        sum = sum + picked_;
    }
    part_float[thread] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float loss_reducesum_ = part_float[0];
    __syncthreads();
    if (thread == 0) {
        loss_reducesum[row] = loss_reducesum_;
    }
    const float backward_d_logits_div_ = 1.0f / loss_reducesum_;
    if (thread == 0) {
        backward_d_logits_div[row] = backward_d_logits_div_;
    }
}

// loss_reducemax, of /loss/ReduceMax  f32 [768, 1]
// loss_reducesum_2, of /loss/ReduceSum.2  f32 [768, 1]
// d_logits  f32 [768, 65]
extern "C" __global__ void k41_d_logits(
    const float* __restrict__ linear_17,
    const long long* __restrict__ y,
    const float* __restrict__ backward_d_logits_div,
    const float* __restrict__ picked,
    float* __restrict__ loss_reducemax,
    float* __restrict__ loss_reducesum_2,
    float* __restrict__ d_logits
) {
    __shared__ float part_float[128];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float sum = -INF_F;
    for (int col = thread; col < 65; col += 128) {
        const float linear_17_ = linear_17[row * 65 + col];
        sum = larger(sum, linear_17_);
    }
    part_float[thread] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = larger(part_float[thread], part_float[thread + half]); }
        __syncthreads();
    }
    const float loss_reducemax_ = part_float[0];
    __syncthreads();
    if (thread == 0) {
        loss_reducemax[row] = loss_reducemax_;
    }
    float sum_2 = 0.0f;
    for (int col = thread; col < 65; col += 128) {
        const float linear_17__2 = linear_17[row * 65 + col];
        const float loss_sub_ = linear_17__2 - loss_reducemax_;
        const float loss_exp_ = expf(loss_sub_);
        sum_2 = sum_2 + loss_exp_;
    }
    part_float[thread] = sum_2;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float loss_reducesum_2_ = part_float[0];
    __syncthreads();
    if (thread == 0) {
        loss_reducesum_2[row] = loss_reducesum_2_;
    }
    for (int col = thread; col < 65; col += 128) {
        const long long y_ = y[row];
        const int at = min(max((int)y_, 0), 64);
        const bool loss_equal_ = y_ == ((long long)(at));
        const float loss_cast_ = (float)loss_equal_;
        const bool backward_d_logits_cast_3_ = loss_cast_ != 0.0f;
        const long long backward_d_logits_cast_4_ = (long long)backward_d_logits_cast_3_;
        const long long picked_4_ = larger(backward_d_logits_cast_4_, 0ll);
        const bool backward_d_logits_cast_5_ = picked_4_ != 0ll;
        const float backward_d_logits_div_ = backward_d_logits_div[0];
        const float linear_17__3 = linear_17[row * 65 + col];
        const float loss_sub__2 = linear_17__3 - loss_reducemax_;
        const float loss_exp__2 = expf(loss_sub__2);
        const float cross_entropy_1_ = loss_exp__2 / loss_reducesum_2_;
        const float picked_ = picked[row];
        const float backward_d_logits_mul_6_ = cross_entropy_1_ * picked_;
        const bool loss_equal__2 = y_ == ((long long)(col));
        const float loss_cast__2 = (float)loss_equal__2;
        const float backward_d_logits_sub_ = backward_d_logits_mul_6_ - loss_cast__2;
        const float backward_d_logits_mul_7_ = backward_d_logits_div_ * backward_d_logits_sub_;
        const float d_logits_ = backward_d_logits_cast_5_ ? backward_d_logits_mul_7_ : 0.0f;
        d_logits[row * 65 + col] = d_logits_;
    }
}

// loss_reducesum_4, of /loss/ReduceSum.4  f32 []
// loss  f32 []
extern "C" __global__ void k42_loss(
    const long long* __restrict__ y,
    const float* __restrict__ linear_17,
    const float* __restrict__ loss_reducemax,
    const float* __restrict__ loss_reducesum_2,
    const float* __restrict__ loss_reducesum,
    float* __restrict__ loss
) {
    __shared__ float part_float[256];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float sum = 0.0f;
    for (int col = thread; col < 768; col += 256) {
        const long long y_ = y[col];
        const int at = min(max((int)y_, 0), 64);
        const bool loss_equal_ = y_ == ((long long)(at));
        const float loss_cast_ = (float)loss_equal_;
        const bool loss_equal_2_ = loss_cast_ == 0.0f;
        const float linear_17_ = linear_17[col * 65 + at];
        const float loss_reducemax_ = loss_reducemax[col];
        const float loss_sub_ = linear_17_ - loss_reducemax_;
        const float loss_reducesum_2_ = loss_reducesum_2[col];
        const float loss_log_ = logf(loss_reducesum_2_);
        const float loss_sub_2_ = loss_sub_ - loss_log_;
        const float loss_mul_6_ = loss_cast_ * loss_sub_2_;
        const float loss_where_2_ = loss_equal_2_ ? 0.0f : loss_mul_6_;
        const float loss_neg_ = -loss_where_2_;
        sum = sum + loss_neg_;
    }
    part_float[thread] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float loss_reducesum_4_ = part_float[0];
    __syncthreads();
    const float loss_reducesum_ = loss_reducesum[0];
    const float loss_ = loss_reducesum_4_ / loss_reducesum_;
    if (thread == 0) {
        loss[row] = loss_;
    }
}

// backward_head_matmul, of /backward/head/MatMul  f32 [768, 128]
extern "C" __global__ void k43_backward_head_matmul(
    const float* __restrict__ d_logits,
    const float* __restrict__ head_weight,
    float* __restrict__ backward_head_matmul
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 24;
    const int top = block / 2 % 12 * 64;
    const int left = block % 2 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 65; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 768 && k < 65) {
                const float d_logits_ = d_logits[m * 65 + k];
                x_4 = d_logits_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_4;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_5 = 0.0f;
            if (n < 128 && k < 65) {
                const float head_weight_ = head_weight[k * 128 + n];
                x_5 = head_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 0];
            sums[1] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 16];
            sums[2] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 32];
            sums[3] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 48];
            sums[4] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 0];
            sums[5] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 16];
            sums[6] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 32];
            sums[7] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 48];
            sums[8] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 0];
            sums[9] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 16];
            sums[10] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 32];
            sums[11] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 48];
            sums[12] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 0];
            sums[13] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 16];
            sums[14] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 32];
            sums[15] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 48];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 4; u++) {
        #pragma unroll
        for (int w = 0; w < 4; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 768 && n < 128) {
                const float backward_head_matmul_ = sums[u * 4 + w];
                backward_head_matmul[m * 128 + n] = backward_head_matmul_;
            }
        }
    }
}

// d_head_weight  f32 [65, 128]
// update_head_weight_new_add_2, of /update/head_weight_new/Add.2  f32 [65, 128]
// exp_avg_head_weight_new, of exp_avg_head.weight_new  f32 [65, 128]
// exp_avg_sq_head_weight_new, of exp_avg_sq_head.weight_new  f32 [65, 128]
extern "C" __global__ void k44_exp_avg_sq_head_weight_new(
    const float* __restrict__ d_logits,
    const float* __restrict__ norm_add_2,
    const float* __restrict__ head_weight,
    const float* exp_avg_head_weight,
    const float* exp_avg_sq_head_weight,
    float* exp_avg_head_weight_new,
    float* exp_avg_sq_head_weight_new
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 4;
    const int top = block / 2 % 2 * 64;
    const int left = block % 2 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 768; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 65 && k < 768) {
                const float d_logits_ = d_logits[k * 65 + m];
                x_4 = d_logits_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_4;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_5 = 0.0f;
            if (n < 128 && k < 768) {
                const float norm_add_2_ = norm_add_2[k * 128 + n];
                x_5 = norm_add_2_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 0];
            sums[1] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 16];
            sums[2] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 32];
            sums[3] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 48];
            sums[4] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 0];
            sums[5] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 16];
            sums[6] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 32];
            sums[7] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 48];
            sums[8] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 0];
            sums[9] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 16];
            sums[10] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 32];
            sums[11] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 48];
            sums[12] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 0];
            sums[13] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 16];
            sums[14] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 32];
            sums[15] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 48];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 4; u++) {
        #pragma unroll
        for (int w = 0; w < 4; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 65 && n < 128) {
                const float d_head_weight_ = sums[u * 4 + w];
                const float head_weight_ = head_weight[m * 128 + n];
                const float update_head_weight_new_mul_2_ = 0.0f * head_weight_;
                const float update_head_weight_new_add_2_ = d_head_weight_ + update_head_weight_new_mul_2_;
                const float exp_avg_head_weight_ = exp_avg_head_weight[m * 128 + n];
                const float update_head_weight_new_sub_2_ = update_head_weight_new_add_2_ - exp_avg_head_weight_;
                const float update_head_weight_new_mul_3_ = 0.1f * update_head_weight_new_sub_2_;
                const float exp_avg_head_weight_new_ = exp_avg_head_weight_ + update_head_weight_new_mul_3_;
                exp_avg_head_weight_new[m * 128 + n] = exp_avg_head_weight_new_;
                const float exp_avg_sq_head_weight_ = exp_avg_sq_head_weight[m * 128 + n];
                const float update_head_weight_new_mul_4_ = 0.999f * exp_avg_sq_head_weight_;
                const float update_head_weight_new_mul_5_ = 0.001f * update_head_weight_new_add_2_;
                const float update_head_weight_new_mul_6_ = update_head_weight_new_mul_5_ * update_head_weight_new_add_2_;
                const float exp_avg_sq_head_weight_new_ = update_head_weight_new_mul_4_ + update_head_weight_new_mul_6_;
                exp_avg_sq_head_weight_new[m * 128 + n] = exp_avg_sq_head_weight_new_;
            }
        }
    }
}

// backward_norm_reducemean, of /backward/norm/ReduceMean  f32 [768, 1, 1, 1]
// backward_norm_reducemean_2, of /backward/norm/ReduceMean.2  f32 [768, 1, 1, 1]
// backward_norm_mul_6, of /backward/norm/Mul.6  f32 [768, 1, 128, 1]
extern "C" __global__ void k45_backward_norm_mul_6(
    const float* __restrict__ backward_head_matmul,
    const float* __restrict__ norm_weight,
    const float* __restrict__ x_3,
    const float* __restrict__ norm_reducemean,
    const float* __restrict__ norm_div,
    float* __restrict__ backward_norm_mul_6
) {
    __shared__ float part_float[128];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float sum = 0.0f;
    for (int col = thread; col < 128; col += 128) {
        const float backward_head_matmul_ = backward_head_matmul[row * 128 + col];
        const float norm_weight_ = norm_weight[col];
        const float backward_norm_mul_2_ = backward_head_matmul_ * norm_weight_;
        const float x_3_ = x_3[row * 128 + col];
        const float norm_reducemean_ = norm_reducemean[row];
        const float backward_norm_sub_ = x_3_ - norm_reducemean_;
        const float norm_div_ = norm_div[row];
        const float backward_norm_mul_ = backward_norm_sub_ * norm_div_;
        const float backward_norm_mul_3_ = backward_norm_mul_2_ * backward_norm_mul_;
        sum = sum + backward_norm_mul_3_;
    }
    part_float[thread] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float backward_norm_reducemean_ = part_float[0] / 128.0f;
    __syncthreads();
    float sum_2 = 0.0f;
    for (int col = thread; col < 128; col += 128) {
        const float backward_head_matmul__2 = backward_head_matmul[row * 128 + col];
        const float norm_weight__2 = norm_weight[col];
        const float backward_norm_mul_2__2 = backward_head_matmul__2 * norm_weight__2;
        sum_2 = sum_2 + backward_norm_mul_2__2;
    }
    part_float[thread] = sum_2;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float backward_norm_reducemean_2_ = part_float[0] / 128.0f;
    __syncthreads();
    for (int col = thread; col < 128; col += 128) {
        const float backward_head_matmul__3 = backward_head_matmul[row * 128 + col];
        const float norm_weight__3 = norm_weight[col];
        const float backward_norm_mul_2__3 = backward_head_matmul__3 * norm_weight__3;
        const float x_3__2 = x_3[row * 128 + col];
        const float norm_reducemean__2 = norm_reducemean[row];
        const float backward_norm_sub__2 = x_3__2 - norm_reducemean__2;
        const float norm_div__2 = norm_div[row];
        const float backward_norm_mul__2 = backward_norm_sub__2 * norm_div__2;
        const float backward_norm_mul_4_ = backward_norm_mul__2 * backward_norm_reducemean_;
        const float backward_norm_sub_2_ = backward_norm_mul_2__3 - backward_norm_mul_4_;
        const float backward_norm_sub_3_ = backward_norm_sub_2_ - backward_norm_reducemean_2_;
        const float backward_norm_mul_6_ = backward_norm_sub_3_ * norm_div__2;
        backward_norm_mul_6[row * 128 + col] = backward_norm_mul_6_;
    }
}

// of_pieces, of /backward/norm/ReduceSum  f32 [12, 128]
// of_pieces_2, of /backward/norm/ReduceSum.2  f32 [12, 128]
// of_pieces_3, of d_blocks_3_project_bias  f32 [12, 128]
extern "C" __global__ void k46_of_pieces_3(
    const float* __restrict__ backward_head_matmul,
    const float* __restrict__ x_3,
    const float* __restrict__ norm_reducemean,
    const float* __restrict__ norm_div,
    const float* __restrict__ backward_norm_mul_6,
    float* __restrict__ of_pieces,
    float* __restrict__ of_pieces_2,
    float* __restrict__ of_pieces_3
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 1536) { return; }
    float of_pieces_ = 0.0f;
    for (int k = 0; k < 64; k++) {
        const int at = (i / 128) * 64 + k;
        const float backward_head_matmul_ = backward_head_matmul[at * 128 + (i % 128)];
        const float x_3_ = x_3[at * 128 + (i % 128)];
        const float norm_reducemean_ = norm_reducemean[at];
        const float backward_norm_sub_ = x_3_ - norm_reducemean_;
        const float norm_div_ = norm_div[at];
        const float backward_norm_mul_ = backward_norm_sub_ * norm_div_;
        const float backward_norm_mul_5_ = backward_head_matmul_ * backward_norm_mul_;
        of_pieces_ = of_pieces_ + backward_norm_mul_5_;
    }
    of_pieces[i] = of_pieces_;
    float of_pieces_2_ = 0.0f;
    for (int k_2 = 0; k_2 < 64; k_2++) {
        const int at_2 = (i / 128) * 64 + k_2;
        const float backward_head_matmul__2 = backward_head_matmul[at_2 * 128 + (i % 128)];
        of_pieces_2_ = of_pieces_2_ + backward_head_matmul__2;
    }
    of_pieces_2[i] = of_pieces_2_;
    float of_pieces_3_ = 0.0f;
    for (int k_3 = 0; k_3 < 64; k_3++) {
        const int at_3 = (i / 128) * 64 + k_3;
        const float backward_norm_mul_6_ = backward_norm_mul_6[at_3 * 128 + (i % 128)];
        of_pieces_3_ = of_pieces_3_ + backward_norm_mul_6_;
    }
    of_pieces_3[i] = of_pieces_3_;
}

// of_all, of /backward/norm/ReduceSum  f32 [128]
// of_all_2, of /backward/norm/ReduceSum.2  f32 [128]
// of_all_3, of d_blocks_3_project_bias  f32 [128]
// update_blocks_3_project_bias_new_add_2, of /update/blocks_3_project_bias_new/Add.2  f32 [128]
// exp_avg_blocks_3_project_bias_new, of exp_avg_blocks.3.project.bias_new  f32 [128]
// exp_avg_sq_blocks_3_project_bias_new, of exp_avg_sq_blocks.3.project.bias_new  f32 [128]
// update_norm_weight_new_add_2, of /update/norm_weight_new/Add.2  f32 [128]
// exp_avg_norm_weight_new, of exp_avg_norm.weight_new  f32 [128]
// exp_avg_sq_norm_weight_new, of exp_avg_sq_norm.weight_new  f32 [128]
// update_norm_bias_new_add_2, of /update/norm_bias_new/Add.2  f32 [128]
// exp_avg_norm_bias_new, of exp_avg_norm.bias_new  f32 [128]
// exp_avg_sq_norm_bias_new, of exp_avg_sq_norm.bias_new  f32 [128]
extern "C" __global__ void k47_exp_avg_sq_norm_bias_new(
    const float* __restrict__ of_pieces,
    const float* __restrict__ of_pieces_2,
    const float* __restrict__ of_pieces_3,
    const float* __restrict__ blocks_3_project_bias,
    const float* exp_avg_blocks_3_project_bias,
    const float* exp_avg_sq_blocks_3_project_bias,
    const float* __restrict__ norm_weight,
    const float* exp_avg_norm_weight,
    const float* exp_avg_sq_norm_weight,
    const float* __restrict__ norm_bias,
    const float* exp_avg_norm_bias,
    const float* exp_avg_sq_norm_bias,
    float* exp_avg_blocks_3_project_bias_new,
    float* exp_avg_sq_blocks_3_project_bias_new,
    float* exp_avg_norm_weight_new,
    float* exp_avg_sq_norm_weight_new,
    float* exp_avg_norm_bias_new,
    float* exp_avg_sq_norm_bias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 128) { return; }
    float of_all_ = 0.0f;
    for (int k = 0; k < 12; k++) {
        const float of_pieces_ = of_pieces[k * 128 + i];
        of_all_ = of_all_ + of_pieces_;
    }
    float of_all_2_ = 0.0f;
    for (int k_2 = 0; k_2 < 12; k_2++) {
        const float of_pieces_2_ = of_pieces_2[k_2 * 128 + i];
        of_all_2_ = of_all_2_ + of_pieces_2_;
    }
    float of_all_3_ = 0.0f;
    for (int k_3 = 0; k_3 < 12; k_3++) {
        const float of_pieces_3_ = of_pieces_3[k_3 * 128 + i];
        of_all_3_ = of_all_3_ + of_pieces_3_;
    }
    const float blocks_3_project_bias_ = blocks_3_project_bias[i];
    const float update_blocks_3_project_bias_new_mul_2_ = 0.0f * blocks_3_project_bias_;
    const float update_blocks_3_project_bias_new_add_2_ = of_all_3_ + update_blocks_3_project_bias_new_mul_2_;
    const float exp_avg_blocks_3_project_bias_ = exp_avg_blocks_3_project_bias[i];
    const float update_blocks_3_project_bias_new_sub_2_ = update_blocks_3_project_bias_new_add_2_ - exp_avg_blocks_3_project_bias_;
    const float update_blocks_3_project_bias_new_mul_3_ = 0.1f * update_blocks_3_project_bias_new_sub_2_;
    const float exp_avg_blocks_3_project_bias_new_ = exp_avg_blocks_3_project_bias_ + update_blocks_3_project_bias_new_mul_3_;
    exp_avg_blocks_3_project_bias_new[i] = exp_avg_blocks_3_project_bias_new_;
    const float exp_avg_sq_blocks_3_project_bias_ = exp_avg_sq_blocks_3_project_bias[i];
    const float update_blocks_3_project_bias_new_mul_4_ = 0.999f * exp_avg_sq_blocks_3_project_bias_;
    const float update_blocks_3_project_bias_new_mul_5_ = 0.001f * update_blocks_3_project_bias_new_add_2_;
    const float update_blocks_3_project_bias_new_mul_6_ = update_blocks_3_project_bias_new_mul_5_ * update_blocks_3_project_bias_new_add_2_;
    const float exp_avg_sq_blocks_3_project_bias_new_ = update_blocks_3_project_bias_new_mul_4_ + update_blocks_3_project_bias_new_mul_6_;
    exp_avg_sq_blocks_3_project_bias_new[i] = exp_avg_sq_blocks_3_project_bias_new_;
    const float norm_weight_ = norm_weight[i];
    const float update_norm_weight_new_mul_2_ = 0.0f * norm_weight_;
    const float update_norm_weight_new_add_2_ = of_all_ + update_norm_weight_new_mul_2_;
    const float exp_avg_norm_weight_ = exp_avg_norm_weight[i];
    const float update_norm_weight_new_sub_2_ = update_norm_weight_new_add_2_ - exp_avg_norm_weight_;
    const float update_norm_weight_new_mul_3_ = 0.1f * update_norm_weight_new_sub_2_;
    const float exp_avg_norm_weight_new_ = exp_avg_norm_weight_ + update_norm_weight_new_mul_3_;
    exp_avg_norm_weight_new[i] = exp_avg_norm_weight_new_;
    const float exp_avg_sq_norm_weight_ = exp_avg_sq_norm_weight[i];
    const float update_norm_weight_new_mul_4_ = 0.999f * exp_avg_sq_norm_weight_;
    const float update_norm_weight_new_mul_5_ = 0.001f * update_norm_weight_new_add_2_;
    const float update_norm_weight_new_mul_6_ = update_norm_weight_new_mul_5_ * update_norm_weight_new_add_2_;
    const float exp_avg_sq_norm_weight_new_ = update_norm_weight_new_mul_4_ + update_norm_weight_new_mul_6_;
    exp_avg_sq_norm_weight_new[i] = exp_avg_sq_norm_weight_new_;
    const float norm_bias_ = norm_bias[i];
    const float update_norm_bias_new_mul_2_ = 0.0f * norm_bias_;
    const float update_norm_bias_new_add_2_ = of_all_2_ + update_norm_bias_new_mul_2_;
    const float exp_avg_norm_bias_ = exp_avg_norm_bias[i];
    const float update_norm_bias_new_sub_2_ = update_norm_bias_new_add_2_ - exp_avg_norm_bias_;
    const float update_norm_bias_new_mul_3_ = 0.1f * update_norm_bias_new_sub_2_;
    const float exp_avg_norm_bias_new_ = exp_avg_norm_bias_ + update_norm_bias_new_mul_3_;
    exp_avg_norm_bias_new[i] = exp_avg_norm_bias_new_;
    const float exp_avg_sq_norm_bias_ = exp_avg_sq_norm_bias[i];
    const float update_norm_bias_new_mul_4_ = 0.999f * exp_avg_sq_norm_bias_;
    const float update_norm_bias_new_mul_5_ = 0.001f * update_norm_bias_new_add_2_;
    const float update_norm_bias_new_mul_6_ = update_norm_bias_new_mul_5_ * update_norm_bias_new_add_2_;
    const float exp_avg_sq_norm_bias_new_ = update_norm_bias_new_mul_4_ + update_norm_bias_new_mul_6_;
    exp_avg_sq_norm_bias_new[i] = exp_avg_sq_norm_bias_new_;
}

// backward_blocks_3_project_matmul, of /backward/blocks/3/project/MatMul  f32 [768, 512]
// gelu_tanh_grad  f32 [12, 64, 512]
extern "C" __global__ void k48_gelu_tanh_grad(
    const float* __restrict__ backward_norm_mul_6,
    const float* __restrict__ blocks_3_project_weight,
    const float* __restrict__ blocks_3_expand_matmul,
    const float* __restrict__ blocks_3_expand_bias,
    float* __restrict__ gelu_tanh_grad
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 96;
    const int top = block / 8 % 12 * 64;
    const int left = block % 8 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 128; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 768 && k < 128) {
                const float backward_norm_mul_6_ = backward_norm_mul_6[m * 128 + k];
                x_4 = backward_norm_mul_6_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_4;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_5 = 0.0f;
            if (n < 512 && k < 128) {
                const float blocks_3_project_weight_ = blocks_3_project_weight[k * 512 + n];
                x_5 = blocks_3_project_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 0];
            sums[1] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 16];
            sums[2] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 32];
            sums[3] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 48];
            sums[4] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 0];
            sums[5] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 16];
            sums[6] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 32];
            sums[7] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 48];
            sums[8] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 0];
            sums[9] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 16];
            sums[10] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 32];
            sums[11] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 48];
            sums[12] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 0];
            sums[13] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 16];
            sums[14] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 32];
            sums[15] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 48];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 4; u++) {
        #pragma unroll
        for (int w = 0; w < 4; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 768 && n < 512) {
                const float backward_blocks_3_project_matmul_ = sums[u * 4 + w];
                const float blocks_3_expand_matmul_ = blocks_3_expand_matmul[m * 512 + n];
                const float blocks_3_expand_bias_ = blocks_3_expand_bias[n];
                const float linear_15_ = blocks_3_expand_matmul_ + blocks_3_expand_bias_;
                const float blocks_3_gelu_mul_ = 0.044715f * linear_15_;
                const float blocks_3_gelu_mul_2_ = blocks_3_gelu_mul_ * linear_15_;
                const float blocks_3_gelu_mul_3_ = blocks_3_gelu_mul_2_ * linear_15_;
                const float blocks_3_gelu_add_ = linear_15_ + blocks_3_gelu_mul_3_;
                const float blocks_3_gelu_mul_4_ = 0.7978846f * blocks_3_gelu_add_;
                const float blocks_3_gelu_tanh_ = tanhf(blocks_3_gelu_mul_4_);
                const float blocks_3_gelu_add_2_ = 1.0f + blocks_3_gelu_tanh_;
                const float backward_blocks_3_gelu_div_ = blocks_3_gelu_add_2_ / 2.0f;
                const float backward_blocks_3_gelu_mul_8_ = blocks_3_gelu_tanh_ * blocks_3_gelu_tanh_;
                const float backward_blocks_3_gelu_sub_ = 1.0f - backward_blocks_3_gelu_mul_8_;
                const float backward_blocks_3_gelu_mul_9_ = linear_15_ * backward_blocks_3_gelu_sub_;
                const float backward_blocks_3_gelu_mul_5_ = 0.134145f * linear_15_;
                const float backward_blocks_3_gelu_mul_6_ = backward_blocks_3_gelu_mul_5_ * linear_15_;
                const float backward_blocks_3_gelu_add_2_ = 1.0f + backward_blocks_3_gelu_mul_6_;
                const float backward_blocks_3_gelu_mul_7_ = 0.7978846f * backward_blocks_3_gelu_add_2_;
                const float backward_blocks_3_gelu_mul_10_ = backward_blocks_3_gelu_mul_9_ * backward_blocks_3_gelu_mul_7_;
                const float backward_blocks_3_gelu_div_2_ = backward_blocks_3_gelu_mul_10_ / 2.0f;
                const float backward_blocks_3_gelu_add_4_ = backward_blocks_3_gelu_div_ + backward_blocks_3_gelu_div_2_;
                const float gelu_tanh_grad_ = backward_blocks_3_project_matmul_ * backward_blocks_3_gelu_add_4_;
                gelu_tanh_grad[m * 512 + n] = gelu_tanh_grad_;
            }
        }
    }
}

// d_blocks_3_project_weight  f32 [128, 512]
// update_blocks_3_project_weight_new_add_2, of /update/blocks_3_project_weight_new/Add.2  f32 [128, 512]
// exp_avg_blocks_3_project_weight_new, of exp_avg_blocks.3.project.weight_new  f32 [128, 512]
// exp_avg_sq_blocks_3_project_weight_new, of exp_avg_sq_blocks.3.project.weight_new  f32 [128, 512]
extern "C" __global__ void k49_exp_avg_sq_blocks_3_project_weight_new(
    const float* __restrict__ backward_norm_mul_6,
    const float* __restrict__ gelu_tanh_4,
    const float* __restrict__ blocks_3_project_weight,
    const float* exp_avg_blocks_3_project_weight,
    const float* exp_avg_sq_blocks_3_project_weight,
    float* exp_avg_blocks_3_project_weight_new,
    float* exp_avg_sq_blocks_3_project_weight_new
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 16;
    const int top = block / 8 % 2 * 64;
    const int left = block % 8 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 768; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 128 && k < 768) {
                const float backward_norm_mul_6_ = backward_norm_mul_6[k * 128 + m];
                x_4 = backward_norm_mul_6_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_4;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_5 = 0.0f;
            if (n < 512 && k < 768) {
                const float gelu_tanh_4_ = gelu_tanh_4[k * 512 + n];
                x_5 = gelu_tanh_4_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 0];
            sums[1] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 16];
            sums[2] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 32];
            sums[3] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 48];
            sums[4] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 0];
            sums[5] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 16];
            sums[6] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 32];
            sums[7] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 48];
            sums[8] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 0];
            sums[9] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 16];
            sums[10] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 32];
            sums[11] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 48];
            sums[12] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 0];
            sums[13] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 16];
            sums[14] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 32];
            sums[15] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 48];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 4; u++) {
        #pragma unroll
        for (int w = 0; w < 4; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 128 && n < 512) {
                const float d_blocks_3_project_weight_ = sums[u * 4 + w];
                const float blocks_3_project_weight_ = blocks_3_project_weight[m * 512 + n];
                const float update_blocks_3_project_weight_new_mul_2_ = 0.0f * blocks_3_project_weight_;
                const float update_blocks_3_project_weight_new_add_2_ = d_blocks_3_project_weight_ + update_blocks_3_project_weight_new_mul_2_;
                const float exp_avg_blocks_3_project_weight_ = exp_avg_blocks_3_project_weight[m * 512 + n];
                const float update_blocks_3_project_weight_new_sub_2_ = update_blocks_3_project_weight_new_add_2_ - exp_avg_blocks_3_project_weight_;
                const float update_blocks_3_project_weight_new_mul_3_ = 0.1f * update_blocks_3_project_weight_new_sub_2_;
                const float exp_avg_blocks_3_project_weight_new_ = exp_avg_blocks_3_project_weight_ + update_blocks_3_project_weight_new_mul_3_;
                exp_avg_blocks_3_project_weight_new[m * 512 + n] = exp_avg_blocks_3_project_weight_new_;
                const float exp_avg_sq_blocks_3_project_weight_ = exp_avg_sq_blocks_3_project_weight[m * 512 + n];
                const float update_blocks_3_project_weight_new_mul_4_ = 0.999f * exp_avg_sq_blocks_3_project_weight_;
                const float update_blocks_3_project_weight_new_mul_5_ = 0.001f * update_blocks_3_project_weight_new_add_2_;
                const float update_blocks_3_project_weight_new_mul_6_ = update_blocks_3_project_weight_new_mul_5_ * update_blocks_3_project_weight_new_add_2_;
                const float exp_avg_sq_blocks_3_project_weight_new_ = update_blocks_3_project_weight_new_mul_4_ + update_blocks_3_project_weight_new_mul_6_;
                exp_avg_sq_blocks_3_project_weight_new[m * 512 + n] = exp_avg_sq_blocks_3_project_weight_new_;
            }
        }
    }
}

// backward_blocks_3_expand_matmul, of /backward/blocks/3/expand/MatMul  f32 [768, 128]
extern "C" __global__ void k50_backward_blocks_3_expand_matmul(
    const float* __restrict__ gelu_tanh_grad,
    const float* __restrict__ blocks_3_expand_weight,
    float* __restrict__ backward_blocks_3_expand_matmul
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 24;
    const int top = block / 2 % 12 * 64;
    const int left = block % 2 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 512; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 768 && k < 512) {
                const float gelu_tanh_grad_ = gelu_tanh_grad[m * 512 + k];
                x_4 = gelu_tanh_grad_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_4;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_5 = 0.0f;
            if (n < 128 && k < 512) {
                const float blocks_3_expand_weight_ = blocks_3_expand_weight[k * 128 + n];
                x_5 = blocks_3_expand_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 0];
            sums[1] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 16];
            sums[2] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 32];
            sums[3] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 48];
            sums[4] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 0];
            sums[5] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 16];
            sums[6] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 32];
            sums[7] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 48];
            sums[8] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 0];
            sums[9] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 16];
            sums[10] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 32];
            sums[11] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 48];
            sums[12] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 0];
            sums[13] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 16];
            sums[14] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 32];
            sums[15] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 48];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 4; u++) {
        #pragma unroll
        for (int w = 0; w < 4; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 768 && n < 128) {
                const float backward_blocks_3_expand_matmul_ = sums[u * 4 + w];
                backward_blocks_3_expand_matmul[m * 128 + n] = backward_blocks_3_expand_matmul_;
            }
        }
    }
}

// d_blocks_3_expand_weight  f32 [512, 128]
// update_blocks_3_expand_weight_new_add_2, of /update/blocks_3_expand_weight_new/Add.2  f32 [512, 128]
// exp_avg_blocks_3_expand_weight_new, of exp_avg_blocks.3.expand.weight_new  f32 [512, 128]
// exp_avg_sq_blocks_3_expand_weight_new, of exp_avg_sq_blocks.3.expand.weight_new  f32 [512, 128]
extern "C" __global__ void k51_exp_avg_sq_blocks_3_expand_weight_new(
    const float* __restrict__ gelu_tanh_grad,
    const float* __restrict__ blocks_3_norm2_add_2,
    const float* __restrict__ blocks_3_expand_weight,
    const float* exp_avg_blocks_3_expand_weight,
    const float* exp_avg_sq_blocks_3_expand_weight,
    float* exp_avg_blocks_3_expand_weight_new,
    float* exp_avg_sq_blocks_3_expand_weight_new
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 16;
    const int top = block / 2 % 8 * 64;
    const int left = block % 2 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 768; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 512 && k < 768) {
                const float gelu_tanh_grad_ = gelu_tanh_grad[k * 512 + m];
                x_4 = gelu_tanh_grad_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_4;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_5 = 0.0f;
            if (n < 128 && k < 768) {
                const float blocks_3_norm2_add_2_ = blocks_3_norm2_add_2[k * 128 + n];
                x_5 = blocks_3_norm2_add_2_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 0];
            sums[1] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 16];
            sums[2] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 32];
            sums[3] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 48];
            sums[4] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 0];
            sums[5] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 16];
            sums[6] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 32];
            sums[7] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 48];
            sums[8] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 0];
            sums[9] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 16];
            sums[10] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 32];
            sums[11] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 48];
            sums[12] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 0];
            sums[13] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 16];
            sums[14] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 32];
            sums[15] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 48];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 4; u++) {
        #pragma unroll
        for (int w = 0; w < 4; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 512 && n < 128) {
                const float d_blocks_3_expand_weight_ = sums[u * 4 + w];
                const float blocks_3_expand_weight_ = blocks_3_expand_weight[m * 128 + n];
                const float update_blocks_3_expand_weight_new_mul_2_ = 0.0f * blocks_3_expand_weight_;
                const float update_blocks_3_expand_weight_new_add_2_ = d_blocks_3_expand_weight_ + update_blocks_3_expand_weight_new_mul_2_;
                const float exp_avg_blocks_3_expand_weight_ = exp_avg_blocks_3_expand_weight[m * 128 + n];
                const float update_blocks_3_expand_weight_new_sub_2_ = update_blocks_3_expand_weight_new_add_2_ - exp_avg_blocks_3_expand_weight_;
                const float update_blocks_3_expand_weight_new_mul_3_ = 0.1f * update_blocks_3_expand_weight_new_sub_2_;
                const float exp_avg_blocks_3_expand_weight_new_ = exp_avg_blocks_3_expand_weight_ + update_blocks_3_expand_weight_new_mul_3_;
                exp_avg_blocks_3_expand_weight_new[m * 128 + n] = exp_avg_blocks_3_expand_weight_new_;
                const float exp_avg_sq_blocks_3_expand_weight_ = exp_avg_sq_blocks_3_expand_weight[m * 128 + n];
                const float update_blocks_3_expand_weight_new_mul_4_ = 0.999f * exp_avg_sq_blocks_3_expand_weight_;
                const float update_blocks_3_expand_weight_new_mul_5_ = 0.001f * update_blocks_3_expand_weight_new_add_2_;
                const float update_blocks_3_expand_weight_new_mul_6_ = update_blocks_3_expand_weight_new_mul_5_ * update_blocks_3_expand_weight_new_add_2_;
                const float exp_avg_sq_blocks_3_expand_weight_new_ = update_blocks_3_expand_weight_new_mul_4_ + update_blocks_3_expand_weight_new_mul_6_;
                exp_avg_sq_blocks_3_expand_weight_new[m * 128 + n] = exp_avg_sq_blocks_3_expand_weight_new_;
            }
        }
    }
}

// of_pieces_4, of d_blocks_3_expand_bias  f32 [12, 512]
extern "C" __global__ void k52_of_pieces_4(
    const float* __restrict__ gelu_tanh_grad,
    float* __restrict__ of_pieces_4
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 6144) { return; }
    float of_pieces_4_ = 0.0f;
    for (int k = 0; k < 64; k++) {
        const int at = (i / 512) * 64 + k;
        const float gelu_tanh_grad_ = gelu_tanh_grad[at * 512 + (i % 512)];
        of_pieces_4_ = of_pieces_4_ + gelu_tanh_grad_;
    }
    of_pieces_4[i] = of_pieces_4_;
}

// of_all_4, of d_blocks_3_expand_bias  f32 [512]
// update_blocks_3_expand_bias_new_add_2, of /update/blocks_3_expand_bias_new/Add.2  f32 [512]
// exp_avg_blocks_3_expand_bias_new, of exp_avg_blocks.3.expand.bias_new  f32 [512]
// exp_avg_sq_blocks_3_expand_bias_new, of exp_avg_sq_blocks.3.expand.bias_new  f32 [512]
extern "C" __global__ void k53_exp_avg_sq_blocks_3_expand_bias_new(
    const float* __restrict__ of_pieces_4,
    const float* __restrict__ blocks_3_expand_bias,
    const float* exp_avg_blocks_3_expand_bias,
    const float* exp_avg_sq_blocks_3_expand_bias,
    float* exp_avg_blocks_3_expand_bias_new,
    float* exp_avg_sq_blocks_3_expand_bias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 512) { return; }
    float of_all_4_ = 0.0f;
    for (int k = 0; k < 12; k++) {
        const float of_pieces_4_ = of_pieces_4[k * 512 + i];
        of_all_4_ = of_all_4_ + of_pieces_4_;
    }
    const float blocks_3_expand_bias_ = blocks_3_expand_bias[i];
    const float update_blocks_3_expand_bias_new_mul_2_ = 0.0f * blocks_3_expand_bias_;
    const float update_blocks_3_expand_bias_new_add_2_ = of_all_4_ + update_blocks_3_expand_bias_new_mul_2_;
    const float exp_avg_blocks_3_expand_bias_ = exp_avg_blocks_3_expand_bias[i];
    const float update_blocks_3_expand_bias_new_sub_2_ = update_blocks_3_expand_bias_new_add_2_ - exp_avg_blocks_3_expand_bias_;
    const float update_blocks_3_expand_bias_new_mul_3_ = 0.1f * update_blocks_3_expand_bias_new_sub_2_;
    const float exp_avg_blocks_3_expand_bias_new_ = exp_avg_blocks_3_expand_bias_ + update_blocks_3_expand_bias_new_mul_3_;
    exp_avg_blocks_3_expand_bias_new[i] = exp_avg_blocks_3_expand_bias_new_;
    const float exp_avg_sq_blocks_3_expand_bias_ = exp_avg_sq_blocks_3_expand_bias[i];
    const float update_blocks_3_expand_bias_new_mul_4_ = 0.999f * exp_avg_sq_blocks_3_expand_bias_;
    const float update_blocks_3_expand_bias_new_mul_5_ = 0.001f * update_blocks_3_expand_bias_new_add_2_;
    const float update_blocks_3_expand_bias_new_mul_6_ = update_blocks_3_expand_bias_new_mul_5_ * update_blocks_3_expand_bias_new_add_2_;
    const float exp_avg_sq_blocks_3_expand_bias_new_ = update_blocks_3_expand_bias_new_mul_4_ + update_blocks_3_expand_bias_new_mul_6_;
    exp_avg_sq_blocks_3_expand_bias_new[i] = exp_avg_sq_blocks_3_expand_bias_new_;
}

// backward_blocks_3_norm2_reducemean, of /backward/blocks/3/norm2/ReduceMean  f32 [768, 1, 1, 1]
// backward_blocks_3_norm2_reducemean_2, of /backward/blocks/3/norm2/ReduceMean.2  f32 [768, 1, 1, 1]
// add_8  f32 [12, 64, 128]
extern "C" __global__ void k54_add_8(
    const float* __restrict__ backward_blocks_3_expand_matmul,
    const float* __restrict__ blocks_3_norm2_weight,
    const float* __restrict__ add_7,
    const float* __restrict__ blocks_3_norm2_reducemean,
    const float* __restrict__ blocks_3_norm2_div,
    const float* __restrict__ backward_norm_mul_6,
    float* __restrict__ add_8
) {
    __shared__ float part_float[128];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float sum = 0.0f;
    for (int col = thread; col < 128; col += 128) {
        const float backward_blocks_3_expand_matmul_ = backward_blocks_3_expand_matmul[row * 128 + col];
        const float blocks_3_norm2_weight_ = blocks_3_norm2_weight[col];
        const float backward_blocks_3_norm2_mul_2_ = backward_blocks_3_expand_matmul_ * blocks_3_norm2_weight_;
        const float add_7_ = add_7[row * 128 + col];
        const float blocks_3_norm2_reducemean_ = blocks_3_norm2_reducemean[row];
        const float backward_blocks_3_norm2_sub_ = add_7_ - blocks_3_norm2_reducemean_;
        const float blocks_3_norm2_div_ = blocks_3_norm2_div[row];
        const float backward_blocks_3_norm2_mul_ = backward_blocks_3_norm2_sub_ * blocks_3_norm2_div_;
        const float backward_blocks_3_norm2_mul_3_ = backward_blocks_3_norm2_mul_2_ * backward_blocks_3_norm2_mul_;
        sum = sum + backward_blocks_3_norm2_mul_3_;
    }
    part_float[thread] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float backward_blocks_3_norm2_reducemean_ = part_float[0] / 128.0f;
    __syncthreads();
    float sum_2 = 0.0f;
    for (int col = thread; col < 128; col += 128) {
        const float backward_blocks_3_expand_matmul__2 = backward_blocks_3_expand_matmul[row * 128 + col];
        const float blocks_3_norm2_weight__2 = blocks_3_norm2_weight[col];
        const float backward_blocks_3_norm2_mul_2__2 = backward_blocks_3_expand_matmul__2 * blocks_3_norm2_weight__2;
        sum_2 = sum_2 + backward_blocks_3_norm2_mul_2__2;
    }
    part_float[thread] = sum_2;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float backward_blocks_3_norm2_reducemean_2_ = part_float[0] / 128.0f;
    __syncthreads();
    for (int col = thread; col < 128; col += 128) {
        const float backward_norm_mul_6_ = backward_norm_mul_6[row * 128 + col];
        const float backward_blocks_3_expand_matmul__3 = backward_blocks_3_expand_matmul[row * 128 + col];
        const float blocks_3_norm2_weight__3 = blocks_3_norm2_weight[col];
        const float backward_blocks_3_norm2_mul_2__3 = backward_blocks_3_expand_matmul__3 * blocks_3_norm2_weight__3;
        const float add_7__2 = add_7[row * 128 + col];
        const float blocks_3_norm2_reducemean__2 = blocks_3_norm2_reducemean[row];
        const float backward_blocks_3_norm2_sub__2 = add_7__2 - blocks_3_norm2_reducemean__2;
        const float blocks_3_norm2_div__2 = blocks_3_norm2_div[row];
        const float backward_blocks_3_norm2_mul__2 = backward_blocks_3_norm2_sub__2 * blocks_3_norm2_div__2;
        const float backward_blocks_3_norm2_mul_4_ = backward_blocks_3_norm2_mul__2 * backward_blocks_3_norm2_reducemean_;
        const float backward_blocks_3_norm2_sub_2_ = backward_blocks_3_norm2_mul_2__3 - backward_blocks_3_norm2_mul_4_;
        const float backward_blocks_3_norm2_sub_3_ = backward_blocks_3_norm2_sub_2_ - backward_blocks_3_norm2_reducemean_2_;
        const float backward_blocks_3_norm2_mul_6_ = backward_blocks_3_norm2_sub_3_ * blocks_3_norm2_div__2;
        const float add_8_ = backward_norm_mul_6_ + backward_blocks_3_norm2_mul_6_;
        add_8[row * 128 + col] = add_8_;
    }
}

// backward_blocks_3_attention_out_matmul, of /backward/blocks/3/attention/out/MatMul  f32 [768, 128]
extern "C" __global__ void k57_backward_blocks_3_attention_out_matmul(
    const float* __restrict__ add_8,
    const float* __restrict__ blocks_3_attention_out_weight,
    float* __restrict__ backward_blocks_3_attention_out_matmul
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 24;
    const int top = block / 2 % 12 * 64;
    const int left = block % 2 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 128; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 768 && k < 128) {
                const float add_8_ = add_8[m * 128 + k];
                x_4 = add_8_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_4;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_5 = 0.0f;
            if (n < 128 && k < 128) {
                const float blocks_3_attention_out_weight_ = blocks_3_attention_out_weight[k * 128 + n];
                x_5 = blocks_3_attention_out_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 0];
            sums[1] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 16];
            sums[2] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 32];
            sums[3] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 48];
            sums[4] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 0];
            sums[5] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 16];
            sums[6] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 32];
            sums[7] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 48];
            sums[8] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 0];
            sums[9] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 16];
            sums[10] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 32];
            sums[11] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 48];
            sums[12] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 0];
            sums[13] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 16];
            sums[14] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 32];
            sums[15] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 48];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 4; u++) {
        #pragma unroll
        for (int w = 0; w < 4; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 768 && n < 128) {
                const float backward_blocks_3_attention_out_matmul_ = sums[u * 4 + w];
                backward_blocks_3_attention_out_matmul[m * 128 + n] = backward_blocks_3_attention_out_matmul_;
            }
        }
    }
}

// d_blocks_3_attention_out_weight  f32 [128, 128]
// update_blocks_3_attention_out_weight_new_add_2, of /update/blocks_3_attention_out_weight_new/Add.2  f32 [128, 128]
// exp_avg_blocks_3_attention_out_weight_new, of exp_avg_blocks.3.attention.out.weight_new  f32 [128, 128]
// exp_avg_sq_blocks_3_attention_out_weight_new, of exp_avg_sq_blocks.3.attention.out.weight_new  f32 [128, 128]
extern "C" __global__ void k58_exp_avg_sq_blocks_3_attention_out_weight_new(
    const float* __restrict__ add_8,
    const float* __restrict__ attention_4,
    const float* __restrict__ blocks_3_attention_out_weight,
    const float* exp_avg_blocks_3_attention_out_weight,
    const float* exp_avg_sq_blocks_3_attention_out_weight,
    float* exp_avg_blocks_3_attention_out_weight_new,
    float* exp_avg_sq_blocks_3_attention_out_weight_new
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 4;
    const int top = block / 2 % 2 * 64;
    const int left = block % 2 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 768; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 128 && k < 768) {
                const float add_8_ = add_8[k * 128 + m];
                x_4 = add_8_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_4;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_5 = 0.0f;
            if (n < 128 && k < 768) {
                const float attention_4_ = attention_4[(k / 64) * 8192 + (n / 32) * 2048 + (k % 64) * 32 + (n % 32)];
                x_5 = attention_4_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 0];
            sums[1] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 16];
            sums[2] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 32];
            sums[3] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 48];
            sums[4] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 0];
            sums[5] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 16];
            sums[6] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 32];
            sums[7] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 48];
            sums[8] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 0];
            sums[9] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 16];
            sums[10] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 32];
            sums[11] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 48];
            sums[12] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 0];
            sums[13] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 16];
            sums[14] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 32];
            sums[15] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 48];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 4; u++) {
        #pragma unroll
        for (int w = 0; w < 4; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 128 && n < 128) {
                const float d_blocks_3_attention_out_weight_ = sums[u * 4 + w];
                const float blocks_3_attention_out_weight_ = blocks_3_attention_out_weight[m * 128 + n];
                const float update_blocks_3_attention_out_weight_new_mul_2_ = 0.0f * blocks_3_attention_out_weight_;
                const float update_blocks_3_attention_out_weight_new_add_2_ = d_blocks_3_attention_out_weight_ + update_blocks_3_attention_out_weight_new_mul_2_;
                const float exp_avg_blocks_3_attention_out_weight_ = exp_avg_blocks_3_attention_out_weight[m * 128 + n];
                const float update_blocks_3_attention_out_weight_new_sub_2_ = update_blocks_3_attention_out_weight_new_add_2_ - exp_avg_blocks_3_attention_out_weight_;
                const float update_blocks_3_attention_out_weight_new_mul_3_ = 0.1f * update_blocks_3_attention_out_weight_new_sub_2_;
                const float exp_avg_blocks_3_attention_out_weight_new_ = exp_avg_blocks_3_attention_out_weight_ + update_blocks_3_attention_out_weight_new_mul_3_;
                exp_avg_blocks_3_attention_out_weight_new[m * 128 + n] = exp_avg_blocks_3_attention_out_weight_new_;
                const float exp_avg_sq_blocks_3_attention_out_weight_ = exp_avg_sq_blocks_3_attention_out_weight[m * 128 + n];
                const float update_blocks_3_attention_out_weight_new_mul_4_ = 0.999f * exp_avg_sq_blocks_3_attention_out_weight_;
                const float update_blocks_3_attention_out_weight_new_mul_5_ = 0.001f * update_blocks_3_attention_out_weight_new_add_2_;
                const float update_blocks_3_attention_out_weight_new_mul_6_ = update_blocks_3_attention_out_weight_new_mul_5_ * update_blocks_3_attention_out_weight_new_add_2_;
                const float exp_avg_sq_blocks_3_attention_out_weight_new_ = update_blocks_3_attention_out_weight_new_mul_4_ + update_blocks_3_attention_out_weight_new_mul_6_;
                exp_avg_sq_blocks_3_attention_out_weight_new[m * 128 + n] = exp_avg_sq_blocks_3_attention_out_weight_new_;
            }
        }
    }
}

// backward_blocks_3_attention_matmul_2, of /backward/blocks/3/attention/MatMul.2  f32 [12, 4, 64, 64]
extern "C" __global__ void k59_backward_blocks_3_attention_matmul_2(
    const float* __restrict__ backward_blocks_3_attention_out_matmul,
    const float* __restrict__ linear_13,
    float* __restrict__ backward_blocks_3_attention_matmul_2
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 1;
    const int top = block / 1 % 1 * 64;
    const int left = block % 1 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 32; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 64 && k < 32) {
                const int at = (stack % 4) * 32 + k;
                const int at_2 = (stack / 4) * 64 + m;
                const float backward_blocks_3_attention_out_matmul_ = backward_blocks_3_attention_out_matmul[at_2 * 128 + at];
                x_4 = backward_blocks_3_attention_out_matmul_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_4;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_5 = 0.0f;
            if (n < 64 && k < 32) {
                const int at_3 = 2 * 128 + (stack % 4) * 32 + k;
                const float linear_13_ = linear_13[(stack / 4) * 24576 + n * 384 + at_3];
                x_5 = linear_13_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 0];
            sums[1] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 16];
            sums[2] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 32];
            sums[3] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 48];
            sums[4] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 0];
            sums[5] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 16];
            sums[6] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 32];
            sums[7] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 48];
            sums[8] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 0];
            sums[9] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 16];
            sums[10] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 32];
            sums[11] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 48];
            sums[12] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 0];
            sums[13] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 16];
            sums[14] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 32];
            sums[15] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 48];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 4; u++) {
        #pragma unroll
        for (int w = 0; w < 4; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 64 && n < 64) {
                const float backward_blocks_3_attention_matmul_2_ = sums[u * 4 + w];
                backward_blocks_3_attention_matmul_2[stack * 4096 + m * 64 + n] = backward_blocks_3_attention_matmul_2_;
            }
        }
    }
}

// backward_blocks_3_attention_reducesum_2, of /backward/blocks/3/attention/ReduceSum.2  f32 [12, 4, 64, 1]
extern "C" __global__ void k60_backward_blocks_3_attention_reducesum_2(
    const float* __restrict__ backward_blocks_3_attention_out_matmul,
    const float* __restrict__ attention_4,
    float* __restrict__ backward_blocks_3_attention_reducesum_2
) {
    __shared__ float part_float[32];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float sum = 0.0f;
    for (int col = thread; col < 32; col += 32) {
        const int at = (row / 64 % 4) * 32 + col;
        const int at_2 = (row / 256) * 64 + (row % 64);
        const float backward_blocks_3_attention_out_matmul_ = backward_blocks_3_attention_out_matmul[at_2 * 128 + at];
        const float attention_4_ = attention_4[row * 32 + col];
        const float backward_blocks_3_attention_mul_3_ = backward_blocks_3_attention_out_matmul_ * attention_4_;
        sum = sum + backward_blocks_3_attention_mul_3_;
    }
    part_float[thread] = sum;
    __syncthreads();
    for (int half = 16; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float backward_blocks_3_attention_reducesum_2_ = part_float[0];
    __syncthreads();
    if (thread == 0) {
        backward_blocks_3_attention_reducesum_2[row] = backward_blocks_3_attention_reducesum_2_;
    }
}

// backward_blocks_3_attention_mul_5, of /backward/blocks/3/attention/Mul.5  f32 [12, 4, 64, 64]
extern "C" __global__ void k61_backward_blocks_3_attention_mul_5(
    const float* __restrict__ blocks_3_attention_where_3,
    const float* __restrict__ backward_blocks_3_attention_matmul_2,
    const float* __restrict__ backward_blocks_3_attention_reducesum_2,
    float* __restrict__ backward_blocks_3_attention_mul_5
) {
    const int i = ((int)blockIdx.x * 256 + (int)threadIdx.x) * 4;
    if (i >= 196608) { return; }
    float blocks_3_attention_where_3_[4];
    take(blocks_3_attention_where_3_, blocks_3_attention_where_3 + i);
    float backward_blocks_3_attention_matmul_2_[4];
    take(backward_blocks_3_attention_matmul_2_, backward_blocks_3_attention_matmul_2 + i);
    const float backward_blocks_3_attention_reducesum_2_ = backward_blocks_3_attention_reducesum_2[i / 64];
    float backward_blocks_3_attention_mul_5__2[4];
    #pragma unroll
    for (int e = 0; e < 4; e++) {
        const float backward_blocks_3_attention_sub_2_ = backward_blocks_3_attention_matmul_2_[e] - backward_blocks_3_attention_reducesum_2_;
        const float backward_blocks_3_attention_mul_4_ = blocks_3_attention_where_3_[e] * backward_blocks_3_attention_sub_2_;
        const float backward_blocks_3_attention_mul_5_ = backward_blocks_3_attention_mul_4_ * 0.17677669f;
        backward_blocks_3_attention_mul_5__2[e] = backward_blocks_3_attention_mul_5_;
    }
    put(backward_blocks_3_attention_mul_5 + i, backward_blocks_3_attention_mul_5__2);
}

// attention_grad  f32 [12, 4, 64, 32]
extern "C" __global__ void k62_attention_grad(
    const float* __restrict__ backward_blocks_3_attention_mul_5,
    const float* __restrict__ linear_13,
    float* __restrict__ attention_grad
) {
    __shared__ float tile_a_float[256];
    __shared__ float tile_b_float[256];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 8;
    const int top = block / 2 % 4 * 16;
    const int left = block % 2 * 16;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[1] = {};
    for (int k0 = 0; k0 < 64; k0 += 16) {
        for (int t = thread; t < 256; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 64 && k < 64) {
                const float backward_blocks_3_attention_mul_5_ = backward_blocks_3_attention_mul_5[stack * 4096 + m * 64 + k];
                x_4 = backward_blocks_3_attention_mul_5_;
            }
            tile_a_float[(t % 16) * 16 + t / 16] = x_4;
        }
        for (int t = thread; t < 256; t += 256) {
            const int n = left + t % 16;
            const int k = k0 + t / 16;
            float x_5 = 0.0f;
            if (n < 32 && k < 64) {
                const int at = 1 * 128 + (stack % 4) * 32 + n;
                const float linear_13_ = linear_13[(stack / 4) * 24576 + k * 384 + at];
                x_5 = linear_13_;
            }
            tile_b_float[(t / 16) * 16 + t % 16] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 16 + ty + 0] * tile_b_float[t * 16 + tx + 0];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 1; u++) {
        #pragma unroll
        for (int w = 0; w < 1; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 64 && n < 32) {
                const float attention_grad_ = sums[u * 1 + w];
                attention_grad[stack * 2048 + m * 32 + n] = attention_grad_;
            }
        }
    }
}

// attention_grad_1  f32 [12, 4, 64, 32]
extern "C" __global__ void k63_attention_grad_1(
    const float* __restrict__ backward_blocks_3_attention_mul_5,
    const float* __restrict__ linear_13,
    float* __restrict__ attention_grad_1
) {
    __shared__ float tile_a_float[256];
    __shared__ float tile_b_float[256];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 8;
    const int top = block / 2 % 4 * 16;
    const int left = block % 2 * 16;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[1] = {};
    for (int k0 = 0; k0 < 64; k0 += 16) {
        for (int t = thread; t < 256; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 64 && k < 64) {
                const float backward_blocks_3_attention_mul_5_ = backward_blocks_3_attention_mul_5[stack * 4096 + k * 64 + m];
                x_4 = backward_blocks_3_attention_mul_5_;
            }
            tile_a_float[(t % 16) * 16 + t / 16] = x_4;
        }
        for (int t = thread; t < 256; t += 256) {
            const int n = left + t % 16;
            const int k = k0 + t / 16;
            float x_5 = 0.0f;
            if (n < 32 && k < 64) {
                const int at = (stack % 4) * 32 + n;
                const float linear_13_ = linear_13[(stack / 4) * 24576 + k * 384 + at];
                x_5 = linear_13_;
            }
            tile_b_float[(t / 16) * 16 + t % 16] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 16 + ty + 0] * tile_b_float[t * 16 + tx + 0];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 1; u++) {
        #pragma unroll
        for (int w = 0; w < 1; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 64 && n < 32) {
                const float attention_grad_1_ = sums[u * 1 + w];
                attention_grad_1[stack * 2048 + m * 32 + n] = attention_grad_1_;
            }
        }
    }
}

// attention_grad_2  f32 [12, 4, 64, 32]
extern "C" __global__ void k64_attention_grad_2(
    const float* __restrict__ blocks_3_attention_where_3,
    const float* __restrict__ backward_blocks_3_attention_out_matmul,
    float* __restrict__ attention_grad_2
) {
    __shared__ float tile_a_float[256];
    __shared__ float tile_b_float[256];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 8;
    const int top = block / 2 % 4 * 16;
    const int left = block % 2 * 16;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[1] = {};
    for (int k0 = 0; k0 < 64; k0 += 16) {
        for (int t = thread; t < 256; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 64 && k < 64) {
                const float blocks_3_attention_where_3_ = blocks_3_attention_where_3[stack * 4096 + k * 64 + m];
                x_4 = blocks_3_attention_where_3_;
            }
            tile_a_float[(t % 16) * 16 + t / 16] = x_4;
        }
        for (int t = thread; t < 256; t += 256) {
            const int n = left + t % 16;
            const int k = k0 + t / 16;
            float x_5 = 0.0f;
            if (n < 32 && k < 64) {
                const int at = (stack % 4) * 32 + n;
                const int at_2 = (stack / 4) * 64 + k;
                const float backward_blocks_3_attention_out_matmul_ = backward_blocks_3_attention_out_matmul[at_2 * 128 + at];
                x_5 = backward_blocks_3_attention_out_matmul_;
            }
            tile_b_float[(t / 16) * 16 + t % 16] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 16 + ty + 0] * tile_b_float[t * 16 + tx + 0];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 1; u++) {
        #pragma unroll
        for (int w = 0; w < 1; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 64 && n < 32) {
                const float attention_grad_2_ = sums[u * 1 + w];
                attention_grad_2[stack * 2048 + m * 32 + n] = attention_grad_2_;
            }
        }
    }
}

// unslice  f32 [12, 64, 3, 4, 32]
extern "C" __global__ void k65_unslice(
    const float* __restrict__ attention_grad,
    const float* __restrict__ attention_grad_1,
    const float* __restrict__ attention_grad_2,
    float* __restrict__ unslice
) {
    const int i = ((int)blockIdx.x * 256 + (int)threadIdx.x) * 4;
    if (i >= 294912) { return; }
    float attention_grad_[4];
    if ((i / 128 % 3) >= 0 && (i / 128 % 3) < 1) { take(attention_grad_, attention_grad + (i / 24576) * 8192 + (i / 32 % 4) * 2048 + (i / 384 % 64) * 32 + (i % 32)); }
    float attention_grad_1_[4];
    if ((i / 128 % 3) >= 1 && (i / 128 % 3) < 2) { take(attention_grad_1_, attention_grad_1 + (i / 24576) * 8192 + (i / 32 % 4) * 2048 + (i / 384 % 64) * 32 + (i % 32)); }
    float attention_grad_2_[4];
    if ((i / 128 % 3) >= 2 && (i / 128 % 3) < 3) { take(attention_grad_2_, attention_grad_2 + (i / 24576) * 8192 + (i / 32 % 4) * 2048 + (i / 384 % 64) * 32 + (i % 32)); }
    float unslice__2[4];
    #pragma unroll
    for (int e = 0; e < 4; e++) {
        const float unslice_ = ((i / 128 % 3) < 1) ? attention_grad_[e] : (((i / 128 % 3) < 2) ? attention_grad_1_[e] : (attention_grad_2_[e]));
        unslice__2[e] = unslice_;
    }
    put(unslice + i, unslice__2);
}

// backward_blocks_3_attention_qkv_matmul, of /backward/blocks/3/attention/qkv/MatMul  f32 [768, 128]
extern "C" __global__ void k66_backward_blocks_3_attention_qkv_matmul(
    const float* __restrict__ unslice,
    const float* __restrict__ blocks_3_attention_qkv_weight,
    float* __restrict__ backward_blocks_3_attention_qkv_matmul
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 24;
    const int top = block / 2 % 12 * 64;
    const int left = block % 2 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 384; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 768 && k < 384) {
                const float unslice_ = unslice[m * 384 + k];
                x_4 = unslice_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_4;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_5 = 0.0f;
            if (n < 128 && k < 384) {
                const float blocks_3_attention_qkv_weight_ = blocks_3_attention_qkv_weight[k * 128 + n];
                x_5 = blocks_3_attention_qkv_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 0];
            sums[1] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 16];
            sums[2] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 32];
            sums[3] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 48];
            sums[4] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 0];
            sums[5] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 16];
            sums[6] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 32];
            sums[7] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 48];
            sums[8] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 0];
            sums[9] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 16];
            sums[10] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 32];
            sums[11] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 48];
            sums[12] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 0];
            sums[13] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 16];
            sums[14] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 32];
            sums[15] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 48];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 4; u++) {
        #pragma unroll
        for (int w = 0; w < 4; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 768 && n < 128) {
                const float backward_blocks_3_attention_qkv_matmul_ = sums[u * 4 + w];
                backward_blocks_3_attention_qkv_matmul[m * 128 + n] = backward_blocks_3_attention_qkv_matmul_;
            }
        }
    }
}

// d_blocks_3_attention_qkv_weight  f32 [384, 128]
// update_blocks_3_attention_qkv_weight_new_add_2, of /update/blocks_3_attention_qkv_weight_new/Add.2  f32 [384, 128]
// exp_avg_blocks_3_attention_qkv_weight_new, of exp_avg_blocks.3.attention.qkv.weight_new  f32 [384, 128]
// exp_avg_sq_blocks_3_attention_qkv_weight_new, of exp_avg_sq_blocks.3.attention.qkv.weight_new  f32 [384, 128]
extern "C" __global__ void k67_exp_avg_sq_blocks_3_attention_qkv_weight_new(
    const float* __restrict__ unslice,
    const float* __restrict__ blocks_3_norm1_add_2,
    const float* __restrict__ blocks_3_attention_qkv_weight,
    const float* exp_avg_blocks_3_attention_qkv_weight,
    const float* exp_avg_sq_blocks_3_attention_qkv_weight,
    float* exp_avg_blocks_3_attention_qkv_weight_new,
    float* exp_avg_sq_blocks_3_attention_qkv_weight_new
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 12;
    const int top = block / 2 % 6 * 64;
    const int left = block % 2 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 768; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_4 = 0.0f;
            if (m < 384 && k < 768) {
                const float unslice_ = unslice[k * 384 + m];
                x_4 = unslice_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_4;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_5 = 0.0f;
            if (n < 128 && k < 768) {
                const float blocks_3_norm1_add_2_ = blocks_3_norm1_add_2[k * 128 + n];
                x_5 = blocks_3_norm1_add_2_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_5;
        }
        __syncthreads();
        for (int t = 0; t < 16; t++) {
            sums[0] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 0];
            sums[1] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 16];
            sums[2] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 32];
            sums[3] += tile_a_float[t * 64 + ty + 0] * tile_b_float[t * 64 + tx + 48];
            sums[4] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 0];
            sums[5] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 16];
            sums[6] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 32];
            sums[7] += tile_a_float[t * 64 + ty + 16] * tile_b_float[t * 64 + tx + 48];
            sums[8] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 0];
            sums[9] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 16];
            sums[10] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 32];
            sums[11] += tile_a_float[t * 64 + ty + 32] * tile_b_float[t * 64 + tx + 48];
            sums[12] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 0];
            sums[13] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 16];
            sums[14] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 32];
            sums[15] += tile_a_float[t * 64 + ty + 48] * tile_b_float[t * 64 + tx + 48];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int u = 0; u < 4; u++) {
        #pragma unroll
        for (int w = 0; w < 4; w++) {
            const int m = top + ty + 16 * u;
            const int n = left + tx + 16 * w;
            if (m < 384 && n < 128) {
                const float d_blocks_3_attention_qkv_weight_ = sums[u * 4 + w];
                const float blocks_3_attention_qkv_weight_ = blocks_3_attention_qkv_weight[m * 128 + n];
                const float update_blocks_3_attention_qkv_weight_new_mul_2_ = 0.0f * blocks_3_attention_qkv_weight_;
                const float update_blocks_3_attention_qkv_weight_new_add_2_ = d_blocks_3_attention_qkv_weight_ + update_blocks_3_attention_qkv_weight_new_mul_2_;
                const float exp_avg_blocks_3_attention_qkv_weight_ = exp_avg_blocks_3_attention_qkv_weight[m * 128 + n];
                const float update_blocks_3_attention_qkv_weight_new_sub_2_ = update_blocks_3_attention_qkv_weight_new_add_2_ - exp_avg_blocks_3_attention_qkv_weight_;
                const float update_blocks_3_attention_qkv_weight_new_mul_3_ = 0.1f * update_blocks_3_attention_qkv_weight_new_sub_2_;
                const float exp_avg_blocks_3_attention_qkv_weight_new_ = exp_avg_blocks_3_attention_qkv_weight_ + update_blocks_3_attention_qkv_weight_new_mul_3_;
                exp_avg_blocks_3_attention_qkv_weight_new[m * 128 + n] = exp_avg_blocks_3_attention_qkv_weight_new_;
                const float exp_avg_sq_blocks_3_attention_qkv_weight_ = exp_avg_sq_blocks_3_attention_qkv_weight[m * 128 + n];
                const float update_blocks_3_attention_qkv_weight_new_mul_4_ = 0.999f * exp_avg_sq_blocks_3_attention_qkv_weight_;
                const float update_blocks_3_attention_qkv_weight_new_mul_5_ = 0.001f * update_blocks_3_attention_qkv_weight_new_add_2_;
                const float update_blocks_3_attention_qkv_weight_new_mul_6_ = update_blocks_3_attention_qkv_weight_new_mul_5_ * update_blocks_3_attention_qkv_weight_new_add_2_;
                const float exp_avg_sq_blocks_3_attention_qkv_weight_new_ = update_blocks_3_attention_qkv_weight_new_mul_4_ + update_blocks_3_attention_qkv_weight_new_mul_6_;
                exp_avg_sq_blocks_3_attention_qkv_weight_new[m * 128 + n] = exp_avg_sq_blocks_3_attention_qkv_weight_new_;
            }
        }
    }
}

// of_pieces_8, of d_blocks_3_attention_qkv_bias  f32 [12, 384]
extern "C" __global__ void k68_of_pieces_8(
    const float* __restrict__ unslice,
    float* __restrict__ of_pieces_8
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 4608) { return; }
    float of_pieces_8_ = 0.0f;
    for (int k = 0; k < 64; k++) {
        const int at = (i / 384) * 64 + k;
        const float unslice_ = unslice[at * 384 + (i % 384)];
        of_pieces_8_ = of_pieces_8_ + unslice_;
    }
    of_pieces_8[i] = of_pieces_8_;
}

// of_all_8, of d_blocks_3_attention_qkv_bias  f32 [384]
// update_blocks_3_attention_qkv_bias_new_add_2, of /update/blocks_3_attention_qkv_bias_new/Add.2  f32 [384]
// exp_avg_blocks_3_attention_qkv_bias_new, of exp_avg_blocks.3.attention.qkv.bias_new  f32 [384]
// exp_avg_sq_blocks_3_attention_qkv_bias_new, of exp_avg_sq_blocks.3.attention.qkv.bias_new  f32 [384]
extern "C" __global__ void k69_exp_avg_sq_blocks_3_attention_qkv_bias_new(
    const float* __restrict__ of_pieces_8,
    const float* __restrict__ blocks_3_attention_qkv_bias,
    const float* exp_avg_blocks_3_attention_qkv_bias,
    const float* exp_avg_sq_blocks_3_attention_qkv_bias,
    float* exp_avg_blocks_3_attention_qkv_bias_new,
    float* exp_avg_sq_blocks_3_attention_qkv_bias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 384) { return; }
    float of_all_8_ = 0.0f;
    for (int k = 0; k < 12; k++) {
        const float of_pieces_8_ = of_pieces_8[k * 384 + i];
        of_all_8_ = of_all_8_ + of_pieces_8_;
    }
    const float blocks_3_attention_qkv_bias_ = blocks_3_attention_qkv_bias[i];
    const float update_blocks_3_attention_qkv_bias_new_mul_2_ = 0.0f * blocks_3_attention_qkv_bias_;
    const float update_blocks_3_attention_qkv_bias_new_add_2_ = of_all_8_ + update_blocks_3_attention_qkv_bias_new_mul_2_;
    const float exp_avg_blocks_3_attention_qkv_bias_ = exp_avg_blocks_3_attention_qkv_bias[i];
    const float update_blocks_3_attention_qkv_bias_new_sub_2_ = update_blocks_3_attention_qkv_bias_new_add_2_ - exp_avg_blocks_3_attention_qkv_bias_;
    const float update_blocks_3_attention_qkv_bias_new_mul_3_ = 0.1f * update_blocks_3_attention_qkv_bias_new_sub_2_;
    const float exp_avg_blocks_3_attention_qkv_bias_new_ = exp_avg_blocks_3_attention_qkv_bias_ + update_blocks_3_attention_qkv_bias_new_mul_3_;
    exp_avg_blocks_3_attention_qkv_bias_new[i] = exp_avg_blocks_3_attention_qkv_bias_new_;
    const float exp_avg_sq_blocks_3_attention_qkv_bias_ = exp_avg_sq_blocks_3_attention_qkv_bias[i];
    const float update_blocks_3_attention_qkv_bias_new_mul_4_ = 0.999f * exp_avg_sq_blocks_3_attention_qkv_bias_;
    const float update_blocks_3_attention_qkv_bias_new_mul_5_ = 0.001f * update_blocks_3_attention_qkv_bias_new_add_2_;
    const float update_blocks_3_attention_qkv_bias_new_mul_6_ = update_blocks_3_attention_qkv_bias_new_mul_5_ * update_blocks_3_attention_qkv_bias_new_add_2_;
    const float exp_avg_sq_blocks_3_attention_qkv_bias_new_ = update_blocks_3_attention_qkv_bias_new_mul_4_ + update_blocks_3_attention_qkv_bias_new_mul_6_;
    exp_avg_sq_blocks_3_attention_qkv_bias_new[i] = exp_avg_sq_blocks_3_attention_qkv_bias_new_;
}

// backward_blocks_0_norm1_reducemean, of /backward/blocks/0/norm1/ReduceMean  f32 [768, 1, 1, 1]
// backward_blocks_0_norm1_reducemean_2, of /backward/blocks/0/norm1/ReduceMean.2  f32 [768, 1, 1, 1]
// d_x_2  f32 [12, 64, 128]
extern "C" __global__ void k145_d_x_2(
    const float* __restrict__ backward_blocks_0_attention_qkv_matmul,
    const float* __restrict__ blocks_0_norm1_weight,
    const float* __restrict__ embedding,
    const float* __restrict__ positions_weight,
    const float* __restrict__ blocks_0_norm1_reducemean,
    const float* __restrict__ blocks_0_norm1_div,
    const float* __restrict__ add_14,
    float* __restrict__ d_x_2
) {
    __shared__ float part_float[128];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float sum = 0.0f;
    for (int col = thread; col < 128; col += 128) {
        const float backward_blocks_0_attention_qkv_matmul_ = backward_blocks_0_attention_qkv_matmul[row * 128 + col];
        const float blocks_0_norm1_weight_ = blocks_0_norm1_weight[col];
        const float backward_blocks_0_norm1_mul_2_ = backward_blocks_0_attention_qkv_matmul_ * blocks_0_norm1_weight_;
        const float embedding_ = embedding[row * 128 + col];
        const float positions_weight_ = positions_weight[(row % 64) * 128 + col];
        const float x_2_ = embedding_ + positions_weight_;
        const float blocks_0_norm1_reducemean_ = blocks_0_norm1_reducemean[row];
        const float backward_blocks_0_norm1_sub_ = x_2_ - blocks_0_norm1_reducemean_;
        const float blocks_0_norm1_div_ = blocks_0_norm1_div[row];
        const float backward_blocks_0_norm1_mul_ = backward_blocks_0_norm1_sub_ * blocks_0_norm1_div_;
        const float backward_blocks_0_norm1_mul_3_ = backward_blocks_0_norm1_mul_2_ * backward_blocks_0_norm1_mul_;
        sum = sum + backward_blocks_0_norm1_mul_3_;
    }
    part_float[thread] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float backward_blocks_0_norm1_reducemean_ = part_float[0] / 128.0f;
    __syncthreads();
    float sum_2 = 0.0f;
    for (int col = thread; col < 128; col += 128) {
        const float backward_blocks_0_attention_qkv_matmul__2 = backward_blocks_0_attention_qkv_matmul[row * 128 + col];
        const float blocks_0_norm1_weight__2 = blocks_0_norm1_weight[col];
        const float backward_blocks_0_norm1_mul_2__2 = backward_blocks_0_attention_qkv_matmul__2 * blocks_0_norm1_weight__2;
        sum_2 = sum_2 + backward_blocks_0_norm1_mul_2__2;
    }
    part_float[thread] = sum_2;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float backward_blocks_0_norm1_reducemean_2_ = part_float[0] / 128.0f;
    __syncthreads();
    for (int col = thread; col < 128; col += 128) {
        const float add_14_ = add_14[row * 128 + col];
        const float backward_blocks_0_attention_qkv_matmul__3 = backward_blocks_0_attention_qkv_matmul[row * 128 + col];
        const float blocks_0_norm1_weight__3 = blocks_0_norm1_weight[col];
        const float backward_blocks_0_norm1_mul_2__3 = backward_blocks_0_attention_qkv_matmul__3 * blocks_0_norm1_weight__3;
        const float embedding__2 = embedding[row * 128 + col];
        const float positions_weight__2 = positions_weight[(row % 64) * 128 + col];
        const float x_2__2 = embedding__2 + positions_weight__2;
        const float blocks_0_norm1_reducemean__2 = blocks_0_norm1_reducemean[row];
        const float backward_blocks_0_norm1_sub__2 = x_2__2 - blocks_0_norm1_reducemean__2;
        const float blocks_0_norm1_div__2 = blocks_0_norm1_div[row];
        const float backward_blocks_0_norm1_mul__2 = backward_blocks_0_norm1_sub__2 * blocks_0_norm1_div__2;
        const float backward_blocks_0_norm1_mul_4_ = backward_blocks_0_norm1_mul__2 * backward_blocks_0_norm1_reducemean_;
        const float backward_blocks_0_norm1_sub_2_ = backward_blocks_0_norm1_mul_2__3 - backward_blocks_0_norm1_mul_4_;
        const float backward_blocks_0_norm1_sub_3_ = backward_blocks_0_norm1_sub_2_ - backward_blocks_0_norm1_reducemean_2_;
        const float backward_blocks_0_norm1_mul_6_ = backward_blocks_0_norm1_sub_3_ * blocks_0_norm1_div__2;
        const float d_x_2_ = add_14_ + backward_blocks_0_norm1_mul_6_;
        d_x_2[row * 128 + col] = d_x_2_;
    }
}

// of_pieces_33, of /backward/blocks/0/norm1/ReduceSum  f32 [12, 128]
// of_pieces_34, of /backward/blocks/0/norm1/ReduceSum.2  f32 [12, 128]
extern "C" __global__ void k146_of_pieces_34(
    const float* __restrict__ backward_blocks_0_attention_qkv_matmul,
    const float* __restrict__ embedding,
    const float* __restrict__ positions_weight,
    const float* __restrict__ blocks_0_norm1_reducemean,
    const float* __restrict__ blocks_0_norm1_div,
    float* __restrict__ of_pieces_33,
    float* __restrict__ of_pieces_34
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 1536) { return; }
    float of_pieces_33_ = 0.0f;
    for (int k = 0; k < 64; k++) {
        const int at = (i / 128) * 64 + k;
        const float backward_blocks_0_attention_qkv_matmul_ = backward_blocks_0_attention_qkv_matmul[at * 128 + (i % 128)];
        const float embedding_ = embedding[at * 128 + (i % 128)];
        const float positions_weight_ = positions_weight[(at % 64) * 128 + (i % 128)];
        const float x_2_ = embedding_ + positions_weight_;
        const float blocks_0_norm1_reducemean_ = blocks_0_norm1_reducemean[at];
        const float backward_blocks_0_norm1_sub_ = x_2_ - blocks_0_norm1_reducemean_;
        const float blocks_0_norm1_div_ = blocks_0_norm1_div[at];
        const float backward_blocks_0_norm1_mul_ = backward_blocks_0_norm1_sub_ * blocks_0_norm1_div_;
        const float backward_blocks_0_norm1_mul_5_ = backward_blocks_0_attention_qkv_matmul_ * backward_blocks_0_norm1_mul_;
        of_pieces_33_ = of_pieces_33_ + backward_blocks_0_norm1_mul_5_;
    }
    of_pieces_33[i] = of_pieces_33_;
    float of_pieces_34_ = 0.0f;
    for (int k_2 = 0; k_2 < 64; k_2++) {
        const int at_2 = (i / 128) * 64 + k_2;
        const float backward_blocks_0_attention_qkv_matmul__2 = backward_blocks_0_attention_qkv_matmul[at_2 * 128 + (i % 128)];
        of_pieces_34_ = of_pieces_34_ + backward_blocks_0_attention_qkv_matmul__2;
    }
    of_pieces_34[i] = of_pieces_34_;
}

// of_all_33, of /backward/blocks/0/norm1/ReduceSum  f32 [128]
// of_all_34, of /backward/blocks/0/norm1/ReduceSum.2  f32 [128]
// update_blocks_0_norm1_weight_new_add_2, of /update/blocks_0_norm1_weight_new/Add.2  f32 [128]
// exp_avg_blocks_0_norm1_weight_new, of exp_avg_blocks.0.norm1.weight_new  f32 [128]
// exp_avg_sq_blocks_0_norm1_weight_new, of exp_avg_sq_blocks.0.norm1.weight_new  f32 [128]
// update_blocks_0_norm1_bias_new_add_2, of /update/blocks_0_norm1_bias_new/Add.2  f32 [128]
// exp_avg_blocks_0_norm1_bias_new, of exp_avg_blocks.0.norm1.bias_new  f32 [128]
// exp_avg_sq_blocks_0_norm1_bias_new, of exp_avg_sq_blocks.0.norm1.bias_new  f32 [128]
extern "C" __global__ void k147_exp_avg_sq_blocks_0_norm1_bias_new(
    const float* __restrict__ of_pieces_33,
    const float* __restrict__ of_pieces_34,
    const float* __restrict__ blocks_0_norm1_weight,
    const float* exp_avg_blocks_0_norm1_weight,
    const float* exp_avg_sq_blocks_0_norm1_weight,
    const float* __restrict__ blocks_0_norm1_bias,
    const float* exp_avg_blocks_0_norm1_bias,
    const float* exp_avg_sq_blocks_0_norm1_bias,
    float* exp_avg_blocks_0_norm1_weight_new,
    float* exp_avg_sq_blocks_0_norm1_weight_new,
    float* exp_avg_blocks_0_norm1_bias_new,
    float* exp_avg_sq_blocks_0_norm1_bias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 128) { return; }
    float of_all_33_ = 0.0f;
    for (int k = 0; k < 12; k++) {
        const float of_pieces_33_ = of_pieces_33[k * 128 + i];
        of_all_33_ = of_all_33_ + of_pieces_33_;
    }
    float of_all_34_ = 0.0f;
    for (int k_2 = 0; k_2 < 12; k_2++) {
        const float of_pieces_34_ = of_pieces_34[k_2 * 128 + i];
        of_all_34_ = of_all_34_ + of_pieces_34_;
    }
    const float blocks_0_norm1_weight_ = blocks_0_norm1_weight[i];
    const float update_blocks_0_norm1_weight_new_mul_2_ = 0.0f * blocks_0_norm1_weight_;
    const float update_blocks_0_norm1_weight_new_add_2_ = of_all_33_ + update_blocks_0_norm1_weight_new_mul_2_;
    const float exp_avg_blocks_0_norm1_weight_ = exp_avg_blocks_0_norm1_weight[i];
    const float update_blocks_0_norm1_weight_new_sub_2_ = update_blocks_0_norm1_weight_new_add_2_ - exp_avg_blocks_0_norm1_weight_;
    const float update_blocks_0_norm1_weight_new_mul_3_ = 0.1f * update_blocks_0_norm1_weight_new_sub_2_;
    const float exp_avg_blocks_0_norm1_weight_new_ = exp_avg_blocks_0_norm1_weight_ + update_blocks_0_norm1_weight_new_mul_3_;
    exp_avg_blocks_0_norm1_weight_new[i] = exp_avg_blocks_0_norm1_weight_new_;
    const float exp_avg_sq_blocks_0_norm1_weight_ = exp_avg_sq_blocks_0_norm1_weight[i];
    const float update_blocks_0_norm1_weight_new_mul_4_ = 0.999f * exp_avg_sq_blocks_0_norm1_weight_;
    const float update_blocks_0_norm1_weight_new_mul_5_ = 0.001f * update_blocks_0_norm1_weight_new_add_2_;
    const float update_blocks_0_norm1_weight_new_mul_6_ = update_blocks_0_norm1_weight_new_mul_5_ * update_blocks_0_norm1_weight_new_add_2_;
    const float exp_avg_sq_blocks_0_norm1_weight_new_ = update_blocks_0_norm1_weight_new_mul_4_ + update_blocks_0_norm1_weight_new_mul_6_;
    exp_avg_sq_blocks_0_norm1_weight_new[i] = exp_avg_sq_blocks_0_norm1_weight_new_;
    const float blocks_0_norm1_bias_ = blocks_0_norm1_bias[i];
    const float update_blocks_0_norm1_bias_new_mul_2_ = 0.0f * blocks_0_norm1_bias_;
    const float update_blocks_0_norm1_bias_new_add_2_ = of_all_34_ + update_blocks_0_norm1_bias_new_mul_2_;
    const float exp_avg_blocks_0_norm1_bias_ = exp_avg_blocks_0_norm1_bias[i];
    const float update_blocks_0_norm1_bias_new_sub_2_ = update_blocks_0_norm1_bias_new_add_2_ - exp_avg_blocks_0_norm1_bias_;
    const float update_blocks_0_norm1_bias_new_mul_3_ = 0.1f * update_blocks_0_norm1_bias_new_sub_2_;
    const float exp_avg_blocks_0_norm1_bias_new_ = exp_avg_blocks_0_norm1_bias_ + update_blocks_0_norm1_bias_new_mul_3_;
    exp_avg_blocks_0_norm1_bias_new[i] = exp_avg_blocks_0_norm1_bias_new_;
    const float exp_avg_sq_blocks_0_norm1_bias_ = exp_avg_sq_blocks_0_norm1_bias[i];
    const float update_blocks_0_norm1_bias_new_mul_4_ = 0.999f * exp_avg_sq_blocks_0_norm1_bias_;
    const float update_blocks_0_norm1_bias_new_mul_5_ = 0.001f * update_blocks_0_norm1_bias_new_add_2_;
    const float update_blocks_0_norm1_bias_new_mul_6_ = update_blocks_0_norm1_bias_new_mul_5_ * update_blocks_0_norm1_bias_new_add_2_;
    const float exp_avg_sq_blocks_0_norm1_bias_new_ = update_blocks_0_norm1_bias_new_mul_4_ + update_blocks_0_norm1_bias_new_mul_6_;
    exp_avg_sq_blocks_0_norm1_bias_new[i] = exp_avg_sq_blocks_0_norm1_bias_new_;
}

// reshape_19  f32 [64, 128]
// update_positions_weight_new_add_2, of /update/positions_weight_new/Add.2  f32 [64, 128]
// exp_avg_positions_weight_new, of exp_avg_positions.weight_new  f32 [64, 128]
// exp_avg_sq_positions_weight_new, of exp_avg_sq_positions.weight_new  f32 [64, 128]
extern "C" __global__ void k148_exp_avg_sq_positions_weight_new(
    const float* __restrict__ d_x_2,
    const float* __restrict__ positions_weight,
    const float* exp_avg_positions_weight,
    const float* exp_avg_sq_positions_weight,
    float* exp_avg_positions_weight_new,
    float* exp_avg_sq_positions_weight_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 8192) { return; }
    float reshape_19_ = 0.0f;
    for (int k = 0; k < 12; k++) {
        const float d_x_2_ = d_x_2[k * 8192 + i];
        reshape_19_ = reshape_19_ + d_x_2_;
    }
    const float positions_weight_ = positions_weight[i];
    const float update_positions_weight_new_mul_2_ = 0.0f * positions_weight_;
    const float update_positions_weight_new_add_2_ = reshape_19_ + update_positions_weight_new_mul_2_;
    const float exp_avg_positions_weight_ = exp_avg_positions_weight[i];
    const float update_positions_weight_new_sub_2_ = update_positions_weight_new_add_2_ - exp_avg_positions_weight_;
    const float update_positions_weight_new_mul_3_ = 0.1f * update_positions_weight_new_sub_2_;
    const float exp_avg_positions_weight_new_ = exp_avg_positions_weight_ + update_positions_weight_new_mul_3_;
    exp_avg_positions_weight_new[i] = exp_avg_positions_weight_new_;
    const float exp_avg_sq_positions_weight_ = exp_avg_sq_positions_weight[i];
    const float update_positions_weight_new_mul_4_ = 0.999f * exp_avg_sq_positions_weight_;
    const float update_positions_weight_new_mul_5_ = 0.001f * update_positions_weight_new_add_2_;
    const float update_positions_weight_new_mul_6_ = update_positions_weight_new_mul_5_ * update_positions_weight_new_add_2_;
    const float exp_avg_sq_positions_weight_new_ = update_positions_weight_new_mul_4_ + update_positions_weight_new_mul_6_;
    exp_avg_sq_positions_weight_new[i] = exp_avg_sq_positions_weight_new_;
}

// count, of d_symbols_weight  i32 [768]
extern "C" __global__ void k149_count(const long long* __restrict__ x, int* __restrict__ count) {
    __shared__ int part_b_int[32];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    const int col = thread * 4;
    int sum = 0;
    long long x_[4];
    take(x_, x + col);
    const long long x__2 = x[row];
    #pragma unroll
    for (int e = 0; e < 4; e++) {
        const bool before_ = x_[e] < x__2;
        const bool before_2_ = x_[e] == x__2;
        const bool before_3_ = ((long long)(col + e)) < ((long long)(row));
        const bool before_4_ = before_2_ && before_3_;
        const bool before_5_ = before_ || before_4_;
        const int before_6_ = (int)before_5_;
        sum = sum + before_6_;
    }
    for (int half = 16; half > 0; half /= 2) { sum = sum + across(sum, half); }
    if (thread % 32 == 0) { part_b_int[thread / 32] = sum; }
    __syncthreads();
    sum = part_b_int[0];
    for (int w = 1; w < 6; w++) { sum = sum + part_b_int[w]; }
    const int count_ = sum;
    if (thread == 0) {
        count[row] = count_;
    }
}

// places, of d_symbols_weight  i64 [768, 1]
extern "C" __global__ void k150_places(
    const int* __restrict__ count,
    long long* __restrict__ places
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 768) { return; }
    const int count_ = count[i];
    const long long count_2_ = (long long)count_;
    const int at = (int)count_2_;
    places[at] = (long long)(i);
}

// begins, of d_symbols_weight  i64 [66]
extern "C" __global__ void k151_begins(
    const long long* __restrict__ places,
    const long long* __restrict__ x,
    long long* __restrict__ begins
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 66) { return; }
    int low = 0;
    int high = 768;
    while (low < high) {
        const int middle = (low + high) / 2;
        const long long places_ = places[middle];
        const int at = (int)places_;
        const long long x_ = x[at];
        if ((int)x_ < i) { low = middle + 1; } else { high = middle; }
    }
    const long long begins_ = (long long)low;
    begins[i] = begins_;
}

// d_symbols_weight  f32 [65, 128]
// update_symbols_weight_new_add_2, of /update/symbols_weight_new/Add.2  f32 [65, 128]
// exp_avg_symbols_weight_new, of exp_avg_symbols.weight_new  f32 [65, 128]
// exp_avg_sq_symbols_weight_new, of exp_avg_sq_symbols.weight_new  f32 [65, 128]
extern "C" __global__ void k152_exp_avg_sq_symbols_weight_new(
    const long long* __restrict__ begins,
    const long long* __restrict__ places,
    const float* __restrict__ d_x_2,
    const float* __restrict__ symbols_weight,
    const float* exp_avg_symbols_weight,
    const float* exp_avg_sq_symbols_weight,
    float* exp_avg_symbols_weight_new,
    float* exp_avg_sq_symbols_weight_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 8320) { return; }
    float d_symbols_weight_ = 0.0f;
    const int at = i / 128;
    const long long begins_ = begins[at];
    const int end = (int)begins_;
    const int at_2 = (i / 128) + 1;
    const long long begins__2 = begins[at_2];
    const int end_2 = (int)begins__2;
    for (int j = end; j < end_2; j++) {
        const long long places_ = places[j];
        const int at_3 = (int)places_;
        const float d_x_2_ = d_x_2[at_3 * 128 + (i % 128)];
        d_symbols_weight_ += d_x_2_;
    }
    const float symbols_weight_ = symbols_weight[i];
    const float update_symbols_weight_new_mul_2_ = 0.0f * symbols_weight_;
    const float update_symbols_weight_new_add_2_ = d_symbols_weight_ + update_symbols_weight_new_mul_2_;
    const float exp_avg_symbols_weight_ = exp_avg_symbols_weight[i];
    const float update_symbols_weight_new_sub_2_ = update_symbols_weight_new_add_2_ - exp_avg_symbols_weight_;
    const float update_symbols_weight_new_mul_3_ = 0.1f * update_symbols_weight_new_sub_2_;
    const float exp_avg_symbols_weight_new_ = exp_avg_symbols_weight_ + update_symbols_weight_new_mul_3_;
    exp_avg_symbols_weight_new[i] = exp_avg_symbols_weight_new_;
    const float exp_avg_sq_symbols_weight_ = exp_avg_sq_symbols_weight[i];
    const float update_symbols_weight_new_mul_4_ = 0.999f * exp_avg_sq_symbols_weight_;
    const float update_symbols_weight_new_mul_5_ = 0.001f * update_symbols_weight_new_add_2_;
    const float update_symbols_weight_new_mul_6_ = update_symbols_weight_new_mul_5_ * update_symbols_weight_new_add_2_;
    const float exp_avg_sq_symbols_weight_new_ = update_symbols_weight_new_mul_4_ + update_symbols_weight_new_mul_6_;
    exp_avg_sq_symbols_weight_new[i] = exp_avg_sq_symbols_weight_new_;
}

// update_symbols_weight_new_add, of /update/symbols_weight_new/Add  i64 []
// update_symbols_weight_new_pow_2, of /update/symbols_weight_new/Pow.2  f64 []
// update_symbols_weight_new_div, of /update/symbols_weight_new/Div  f64 []
// update_positions_weight_new_add, of /update/positions_weight_new/Add  i64 []
// update_positions_weight_new_pow_2, of /update/positions_weight_new/Pow.2  f64 []
// update_positions_weight_new_div, of /update/positions_weight_new/Div  f64 []
// update_blocks_0_norm1_weight_new_add, of /update/blocks_0_norm1_weight_new/Add  i64 []
// update_blocks_0_norm1_weight_new_pow_2, of /update/blocks_0_norm1_weight_new/Pow.2  f64 []
// update_blocks_0_norm1_weight_new_div, of /update/blocks_0_norm1_weight_new/Div  f64 []
// update_blocks_0_norm1_bias_new_add, of /update/blocks_0_norm1_bias_new/Add  i64 []
// update_blocks_0_norm1_bias_new_pow_2, of /update/blocks_0_norm1_bias_new/Pow.2  f64 []
// update_blocks_0_norm1_bias_new_div, of /update/blocks_0_norm1_bias_new/Div  f64 []
// update_blocks_0_attention_qkv_weight_new_add, of /update/blocks_0_attention_qkv_weight_new/Add  i64 []
// update_blocks_0_attention_qkv_weight_new_pow_2, of /update/blocks_0_attention_qkv_weight_new/Pow.2  f64 []
// update_blocks_0_attention_qkv_weight_new_div, of /update/blocks_0_attention_qkv_weight_new/Div  f64 []
// update_blocks_0_attention_qkv_bias_new_add, of /update/blocks_0_attention_qkv_bias_new/Add  i64 []
extern "C" __global__ void k153_update_blocks_0_attention_qkv_bias_new_add(
    const long long* __restrict__ step_symbols_weight,
    const double* __restrict__ lr,
    const long long* __restrict__ step_positions_weight,
    const long long* __restrict__ step_blocks_0_norm1_weight,
    const long long* __restrict__ step_blocks_0_norm1_bias,
    const long long* __restrict__ step_blocks_0_attention_qkv_weight,
    const long long* __restrict__ step_blocks_0_attention_qkv_bias,
    long long* __restrict__ update_symbols_weight_new_add,
    double* __restrict__ update_symbols_weight_new_pow_2,
    double* __restrict__ update_symbols_weight_new_div,
    long long* __restrict__ update_positions_weight_new_add,
    double* __restrict__ update_positions_weight_new_pow_2,
    double* __restrict__ update_positions_weight_new_div,
    long long* __restrict__ update_blocks_0_norm1_weight_new_add,
    double* __restrict__ update_blocks_0_norm1_weight_new_pow_2,
    double* __restrict__ update_blocks_0_norm1_weight_new_div,
    long long* __restrict__ update_blocks_0_norm1_bias_new_add,
    double* __restrict__ update_blocks_0_norm1_bias_new_pow_2,
    double* __restrict__ update_blocks_0_norm1_bias_new_div,
    long long* __restrict__ update_blocks_0_attention_qkv_weight_new_add,
    double* __restrict__ update_blocks_0_attention_qkv_weight_new_pow_2,
    double* __restrict__ update_blocks_0_attention_qkv_weight_new_div,
    long long* __restrict__ update_blocks_0_attention_qkv_bias_new_add
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 1) { return; }
    const long long step_symbols_weight_ = step_symbols_weight[0];
    const long long update_symbols_weight_new_add_ = step_symbols_weight_ + 1ll;
    update_symbols_weight_new_add[i] = update_symbols_weight_new_add_;
    const double update_symbols_weight_new_cast_ = (double)update_symbols_weight_new_add_;
    const double update_symbols_weight_new_pow_ = pow(0.999, update_symbols_weight_new_cast_);
    const double update_symbols_weight_new_sub_3_ = 1.0 - update_symbols_weight_new_pow_;
    const double update_symbols_weight_new_pow_2_ = inverse_root(update_symbols_weight_new_sub_3_);
    update_symbols_weight_new_pow_2[i] = update_symbols_weight_new_pow_2_;
    const double lr_ = lr[0];
    const double update_symbols_weight_new_pow_3_ = pow(0.9, update_symbols_weight_new_cast_);
    const double update_symbols_weight_new_sub_4_ = 1.0 - update_symbols_weight_new_pow_3_;
    const double update_symbols_weight_new_div_ = lr_ / update_symbols_weight_new_sub_4_;
    update_symbols_weight_new_div[i] = update_symbols_weight_new_div_;
    const long long step_positions_weight_ = step_positions_weight[0];
    const long long update_positions_weight_new_add_ = step_positions_weight_ + 1ll;
    update_positions_weight_new_add[i] = update_positions_weight_new_add_;
    const double update_positions_weight_new_cast_ = (double)update_positions_weight_new_add_;
    const double update_positions_weight_new_pow_ = pow(0.999, update_positions_weight_new_cast_);
    const double update_positions_weight_new_sub_3_ = 1.0 - update_positions_weight_new_pow_;
    const double update_positions_weight_new_pow_2_ = inverse_root(update_positions_weight_new_sub_3_);
    update_positions_weight_new_pow_2[i] = update_positions_weight_new_pow_2_;
    const double update_positions_weight_new_pow_3_ = pow(0.9, update_positions_weight_new_cast_);
    const double update_positions_weight_new_sub_4_ = 1.0 - update_positions_weight_new_pow_3_;
    const double update_positions_weight_new_div_ = lr_ / update_positions_weight_new_sub_4_;
    update_positions_weight_new_div[i] = update_positions_weight_new_div_;
    const long long step_blocks_0_norm1_weight_ = step_blocks_0_norm1_weight[0];
    const long long update_blocks_0_norm1_weight_new_add_ = step_blocks_0_norm1_weight_ + 1ll;
    update_blocks_0_norm1_weight_new_add[i] = update_blocks_0_norm1_weight_new_add_;
    const double update_blocks_0_norm1_weight_new_cast_ = (double)update_blocks_0_norm1_weight_new_add_;
    const double update_blocks_0_norm1_weight_new_pow_ = pow(0.999, update_blocks_0_norm1_weight_new_cast_);
    const double update_blocks_0_norm1_weight_new_sub_3_ = 1.0 - update_blocks_0_norm1_weight_new_pow_;
    const double update_blocks_0_norm1_weight_new_pow_2_ = inverse_root(update_blocks_0_norm1_weight_new_sub_3_);
    update_blocks_0_norm1_weight_new_pow_2[i] = update_blocks_0_norm1_weight_new_pow_2_;
    const double update_blocks_0_norm1_weight_new_pow_3_ = pow(0.9, update_blocks_0_norm1_weight_new_cast_);
    const double update_blocks_0_norm1_weight_new_sub_4_ = 1.0 - update_blocks_0_norm1_weight_new_pow_3_;
    const double update_blocks_0_norm1_weight_new_div_ = lr_ / update_blocks_0_norm1_weight_new_sub_4_;
    update_blocks_0_norm1_weight_new_div[i] = update_blocks_0_norm1_weight_new_div_;
    const long long step_blocks_0_norm1_bias_ = step_blocks_0_norm1_bias[0];
    const long long update_blocks_0_norm1_bias_new_add_ = step_blocks_0_norm1_bias_ + 1ll;
    update_blocks_0_norm1_bias_new_add[i] = update_blocks_0_norm1_bias_new_add_;
    const double update_blocks_0_norm1_bias_new_cast_ = (double)update_blocks_0_norm1_bias_new_add_;
    const double update_blocks_0_norm1_bias_new_pow_ = pow(0.999, update_blocks_0_norm1_bias_new_cast_);
    const double update_blocks_0_norm1_bias_new_sub_3_ = 1.0 - update_blocks_0_norm1_bias_new_pow_;
    const double update_blocks_0_norm1_bias_new_pow_2_ = inverse_root(update_blocks_0_norm1_bias_new_sub_3_);
    update_blocks_0_norm1_bias_new_pow_2[i] = update_blocks_0_norm1_bias_new_pow_2_;
    const double update_blocks_0_norm1_bias_new_pow_3_ = pow(0.9, update_blocks_0_norm1_bias_new_cast_);
    const double update_blocks_0_norm1_bias_new_sub_4_ = 1.0 - update_blocks_0_norm1_bias_new_pow_3_;
    const double update_blocks_0_norm1_bias_new_div_ = lr_ / update_blocks_0_norm1_bias_new_sub_4_;
    update_blocks_0_norm1_bias_new_div[i] = update_blocks_0_norm1_bias_new_div_;
    const long long step_blocks_0_attention_qkv_weight_ = step_blocks_0_attention_qkv_weight[0];
    const long long update_blocks_0_attention_qkv_weight_new_add_ = step_blocks_0_attention_qkv_weight_ + 1ll;
    update_blocks_0_attention_qkv_weight_new_add[i] = update_blocks_0_attention_qkv_weight_new_add_;
    const double update_blocks_0_attention_qkv_weight_new_cast_ = (double)update_blocks_0_attention_qkv_weight_new_add_;
    const double update_blocks_0_attention_qkv_weight_new_pow_ = pow(0.999, update_blocks_0_attention_qkv_weight_new_cast_);
    const double update_blocks_0_attention_qkv_weight_new_sub_3_ = 1.0 - update_blocks_0_attention_qkv_weight_new_pow_;
    const double update_blocks_0_attention_qkv_weight_new_pow_2_ = inverse_root(update_blocks_0_attention_qkv_weight_new_sub_3_);
    update_blocks_0_attention_qkv_weight_new_pow_2[i] = update_blocks_0_attention_qkv_weight_new_pow_2_;
    const double update_blocks_0_attention_qkv_weight_new_pow_3_ = pow(0.9, update_blocks_0_attention_qkv_weight_new_cast_);
    const double update_blocks_0_attention_qkv_weight_new_sub_4_ = 1.0 - update_blocks_0_attention_qkv_weight_new_pow_3_;
    const double update_blocks_0_attention_qkv_weight_new_div_ = lr_ / update_blocks_0_attention_qkv_weight_new_sub_4_;
    update_blocks_0_attention_qkv_weight_new_div[i] = update_blocks_0_attention_qkv_weight_new_div_;
    const long long step_blocks_0_attention_qkv_bias_ = step_blocks_0_attention_qkv_bias[0];
    const long long update_blocks_0_attention_qkv_bias_new_add_ = step_blocks_0_attention_qkv_bias_ + 1ll;
    update_blocks_0_attention_qkv_bias_new_add[i] = update_blocks_0_attention_qkv_bias_new_add_;
}

// symbols_weight_new, of symbols.weight_new  f32 [65, 128]
extern "C" __global__ void k154_symbols_weight_new(
    const float* symbols_weight,
    const double* __restrict__ lr,
    const double* __restrict__ update_symbols_weight_new_div,
    const float* exp_avg_symbols_weight_new,
    const float* exp_avg_sq_symbols_weight_new,
    const double* __restrict__ update_symbols_weight_new_pow_2,
    float* symbols_weight_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 8320) { return; }
    const float symbols_weight_ = symbols_weight[i];
    const double lr_ = lr[0];
    const double update_symbols_weight_new_mul_ = lr_ * 0.01;
    const double update_symbols_weight_new_sub_ = 1.0 - update_symbols_weight_new_mul_;
    const float update_symbols_weight_new_cast_3_ = (float)update_symbols_weight_new_sub_;
    const float update_symbols_weight_new_mul_8_ = symbols_weight_ * update_symbols_weight_new_cast_3_;
    const double update_symbols_weight_new_div_ = update_symbols_weight_new_div[0];
    const float update_symbols_weight_new_cast_5_ = (float)update_symbols_weight_new_div_;
    const float exp_avg_symbols_weight_new_ = exp_avg_symbols_weight_new[i];
    const float update_symbols_weight_new_mul_9_ = update_symbols_weight_new_cast_5_ * exp_avg_symbols_weight_new_;
    const float exp_avg_sq_symbols_weight_new_ = exp_avg_sq_symbols_weight_new[i];
    const float update_symbols_weight_new_sqrt_ = sqrtf(exp_avg_sq_symbols_weight_new_);
    const double update_symbols_weight_new_pow_2_ = update_symbols_weight_new_pow_2[0];
    const float update_symbols_weight_new_cast_2_ = (float)update_symbols_weight_new_pow_2_;
    const float update_symbols_weight_new_mul_7_ = update_symbols_weight_new_sqrt_ * update_symbols_weight_new_cast_2_;
    const float update_symbols_weight_new_add_5_ = update_symbols_weight_new_mul_7_ + 1e-8f;
    const float update_symbols_weight_new_div_2_ = update_symbols_weight_new_mul_9_ / update_symbols_weight_new_add_5_;
    const float symbols_weight_new_ = update_symbols_weight_new_mul_8_ - update_symbols_weight_new_div_2_;
    symbols_weight_new[i] = symbols_weight_new_;
}

// positions_weight_new, of positions.weight_new  f32 [64, 128]
extern "C" __global__ void k155_positions_weight_new(
    const float* positions_weight,
    const double* __restrict__ lr,
    const double* __restrict__ update_positions_weight_new_div,
    const float* exp_avg_positions_weight_new,
    const float* exp_avg_sq_positions_weight_new,
    const double* __restrict__ update_positions_weight_new_pow_2,
    float* positions_weight_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 8192) { return; }
    const float positions_weight_ = positions_weight[i];
    const double lr_ = lr[0];
    const double update_symbols_weight_new_mul_ = lr_ * 0.01;
    const double update_symbols_weight_new_sub_ = 1.0 - update_symbols_weight_new_mul_;
    const float update_symbols_weight_new_cast_3_ = (float)update_symbols_weight_new_sub_;
    const float update_positions_weight_new_mul_8_ = positions_weight_ * update_symbols_weight_new_cast_3_;
    const double update_positions_weight_new_div_ = update_positions_weight_new_div[0];
    const float update_positions_weight_new_cast_5_ = (float)update_positions_weight_new_div_;
    const float exp_avg_positions_weight_new_ = exp_avg_positions_weight_new[i];
    const float update_positions_weight_new_mul_9_ = update_positions_weight_new_cast_5_ * exp_avg_positions_weight_new_;
    const float exp_avg_sq_positions_weight_new_ = exp_avg_sq_positions_weight_new[i];
    const float update_positions_weight_new_sqrt_ = sqrtf(exp_avg_sq_positions_weight_new_);
    const double update_positions_weight_new_pow_2_ = update_positions_weight_new_pow_2[0];
    const float update_positions_weight_new_cast_2_ = (float)update_positions_weight_new_pow_2_;
    const float update_positions_weight_new_mul_7_ = update_positions_weight_new_sqrt_ * update_positions_weight_new_cast_2_;
    const float update_positions_weight_new_add_5_ = update_positions_weight_new_mul_7_ + 1e-8f;
    const float update_positions_weight_new_div_2_ = update_positions_weight_new_mul_9_ / update_positions_weight_new_add_5_;
    const float positions_weight_new_ = update_positions_weight_new_mul_8_ - update_positions_weight_new_div_2_;
    positions_weight_new[i] = positions_weight_new_;
}

// blocks_0_norm1_weight_new, of blocks.0.norm1.weight_new  f32 [128]
// blocks_0_norm1_bias_new, of blocks.0.norm1.bias_new  f32 [128]
extern "C" __global__ void k156_blocks_0_norm1_bias_new(
    const float* blocks_0_norm1_weight,
    const double* __restrict__ lr,
    const double* __restrict__ update_blocks_0_norm1_weight_new_div,
    const float* exp_avg_blocks_0_norm1_weight_new,
    const float* exp_avg_sq_blocks_0_norm1_weight_new,
    const double* __restrict__ update_blocks_0_norm1_weight_new_pow_2,
    const float* blocks_0_norm1_bias,
    const double* __restrict__ update_blocks_0_norm1_bias_new_div,
    const float* exp_avg_blocks_0_norm1_bias_new,
    const float* exp_avg_sq_blocks_0_norm1_bias_new,
    const double* __restrict__ update_blocks_0_norm1_bias_new_pow_2,
    float* blocks_0_norm1_weight_new,
    float* blocks_0_norm1_bias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 128) { return; }
    const float blocks_0_norm1_weight_ = blocks_0_norm1_weight[i];
    const double lr_ = lr[0];
    const double update_symbols_weight_new_mul_ = lr_ * 0.01;
    const double update_symbols_weight_new_sub_ = 1.0 - update_symbols_weight_new_mul_;
    const float update_symbols_weight_new_cast_3_ = (float)update_symbols_weight_new_sub_;
    const float update_blocks_0_norm1_weight_new_mul_8_ = blocks_0_norm1_weight_ * update_symbols_weight_new_cast_3_;
    const double update_blocks_0_norm1_weight_new_div_ = update_blocks_0_norm1_weight_new_div[0];
    const float update_blocks_0_norm1_weight_new_cast_5_ = (float)update_blocks_0_norm1_weight_new_div_;
    const float exp_avg_blocks_0_norm1_weight_new_ = exp_avg_blocks_0_norm1_weight_new[i];
    const float update_blocks_0_norm1_weight_new_mul_9_ = update_blocks_0_norm1_weight_new_cast_5_ * exp_avg_blocks_0_norm1_weight_new_;
    const float exp_avg_sq_blocks_0_norm1_weight_new_ = exp_avg_sq_blocks_0_norm1_weight_new[i];
    const float update_blocks_0_norm1_weight_new_sqrt_ = sqrtf(exp_avg_sq_blocks_0_norm1_weight_new_);
    const double update_blocks_0_norm1_weight_new_pow_2_ = update_blocks_0_norm1_weight_new_pow_2[0];
    const float update_blocks_0_norm1_weight_new_cast_2_ = (float)update_blocks_0_norm1_weight_new_pow_2_;
    const float update_blocks_0_norm1_weight_new_mul_7_ = update_blocks_0_norm1_weight_new_sqrt_ * update_blocks_0_norm1_weight_new_cast_2_;
    const float update_blocks_0_norm1_weight_new_add_5_ = update_blocks_0_norm1_weight_new_mul_7_ + 1e-8f;
    const float update_blocks_0_norm1_weight_new_div_2_ = update_blocks_0_norm1_weight_new_mul_9_ / update_blocks_0_norm1_weight_new_add_5_;
    const float blocks_0_norm1_weight_new_ = update_blocks_0_norm1_weight_new_mul_8_ - update_blocks_0_norm1_weight_new_div_2_;
    blocks_0_norm1_weight_new[i] = blocks_0_norm1_weight_new_;
    const float blocks_0_norm1_bias_ = blocks_0_norm1_bias[i];
    const float update_blocks_0_norm1_bias_new_mul_8_ = blocks_0_norm1_bias_ * update_symbols_weight_new_cast_3_;
    const double update_blocks_0_norm1_bias_new_div_ = update_blocks_0_norm1_bias_new_div[0];
    const float update_blocks_0_norm1_bias_new_cast_5_ = (float)update_blocks_0_norm1_bias_new_div_;
    const float exp_avg_blocks_0_norm1_bias_new_ = exp_avg_blocks_0_norm1_bias_new[i];
    const float update_blocks_0_norm1_bias_new_mul_9_ = update_blocks_0_norm1_bias_new_cast_5_ * exp_avg_blocks_0_norm1_bias_new_;
    const float exp_avg_sq_blocks_0_norm1_bias_new_ = exp_avg_sq_blocks_0_norm1_bias_new[i];
    const float update_blocks_0_norm1_bias_new_sqrt_ = sqrtf(exp_avg_sq_blocks_0_norm1_bias_new_);
    const double update_blocks_0_norm1_bias_new_pow_2_ = update_blocks_0_norm1_bias_new_pow_2[0];
    const float update_blocks_0_norm1_bias_new_cast_2_ = (float)update_blocks_0_norm1_bias_new_pow_2_;
    const float update_blocks_0_norm1_bias_new_mul_7_ = update_blocks_0_norm1_bias_new_sqrt_ * update_blocks_0_norm1_bias_new_cast_2_;
    const float update_blocks_0_norm1_bias_new_add_5_ = update_blocks_0_norm1_bias_new_mul_7_ + 1e-8f;
    const float update_blocks_0_norm1_bias_new_div_2_ = update_blocks_0_norm1_bias_new_mul_9_ / update_blocks_0_norm1_bias_new_add_5_;
    const float blocks_0_norm1_bias_new_ = update_blocks_0_norm1_bias_new_mul_8_ - update_blocks_0_norm1_bias_new_div_2_;
    blocks_0_norm1_bias_new[i] = blocks_0_norm1_bias_new_;
}

// blocks_0_attention_qkv_weight_new, of blocks.0.attention.qkv.weight_new  f32 [384, 128]
extern "C" __global__ void k157_blocks_0_attention_qkv_weight_new(
    const float* blocks_0_attention_qkv_weight,
    const double* __restrict__ lr,
    const double* __restrict__ update_blocks_0_attention_qkv_weight_new_div,
    const float* exp_avg_blocks_0_attention_qkv_weight_new,
    const float* exp_avg_sq_blocks_0_attention_qkv_weight_new,
    const double* __restrict__ update_blocks_0_attention_qkv_weight_new_pow_2,
    float* blocks_0_attention_qkv_weight_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 49152) { return; }
    const float blocks_0_attention_qkv_weight_ = blocks_0_attention_qkv_weight[i];
    const double lr_ = lr[0];
    const double update_symbols_weight_new_mul_ = lr_ * 0.01;
    const double update_symbols_weight_new_sub_ = 1.0 - update_symbols_weight_new_mul_;
    const float update_symbols_weight_new_cast_3_ = (float)update_symbols_weight_new_sub_;
    const float update_blocks_0_attention_qkv_weight_new_mul_8_ = blocks_0_attention_qkv_weight_ * update_symbols_weight_new_cast_3_;
    const double update_blocks_0_attention_qkv_weight_new_div_ = update_blocks_0_attention_qkv_weight_new_div[0];
    const float update_blocks_0_attention_qkv_weight_new_cast_5_ = (float)update_blocks_0_attention_qkv_weight_new_div_;
    const float exp_avg_blocks_0_attention_qkv_weight_new_ = exp_avg_blocks_0_attention_qkv_weight_new[i];
    const float update_blocks_0_attention_qkv_weight_new_mul_9_ = update_blocks_0_attention_qkv_weight_new_cast_5_ * exp_avg_blocks_0_attention_qkv_weight_new_;
    const float exp_avg_sq_blocks_0_attention_qkv_weight_new_ = exp_avg_sq_blocks_0_attention_qkv_weight_new[i];
    const float update_blocks_0_attention_qkv_weight_new_sqrt_ = sqrtf(exp_avg_sq_blocks_0_attention_qkv_weight_new_);
    const double update_blocks_0_attention_qkv_weight_new_pow_2_ = update_blocks_0_attention_qkv_weight_new_pow_2[0];
    const float update_blocks_0_attention_qkv_weight_new_cast_2_ = (float)update_blocks_0_attention_qkv_weight_new_pow_2_;
    const float update_blocks_0_attention_qkv_weight_new_mul_7_ = update_blocks_0_attention_qkv_weight_new_sqrt_ * update_blocks_0_attention_qkv_weight_new_cast_2_;
    const float update_blocks_0_attention_qkv_weight_new_add_5_ = update_blocks_0_attention_qkv_weight_new_mul_7_ + 1e-8f;
    const float update_blocks_0_attention_qkv_weight_new_div_2_ = update_blocks_0_attention_qkv_weight_new_mul_9_ / update_blocks_0_attention_qkv_weight_new_add_5_;
    const float blocks_0_attention_qkv_weight_new_ = update_blocks_0_attention_qkv_weight_new_mul_8_ - update_blocks_0_attention_qkv_weight_new_div_2_;
    blocks_0_attention_qkv_weight_new[i] = blocks_0_attention_qkv_weight_new_;
}

// update_blocks_0_attention_qkv_bias_new_pow_2, of /update/blocks_0_attention_qkv_bias_new/Pow.2  f64 []
// update_blocks_0_attention_qkv_bias_new_div, of /update/blocks_0_attention_qkv_bias_new/Div  f64 []
// update_blocks_0_attention_out_weight_new_add, of /update/blocks_0_attention_out_weight_new/Add  i64 []
// update_blocks_0_attention_out_weight_new_pow_2, of /update/blocks_0_attention_out_weight_new/Pow.2  f64 []
// update_blocks_0_attention_out_weight_new_div, of /update/blocks_0_attention_out_weight_new/Div  f64 []
// update_blocks_0_attention_out_bias_new_add, of /update/blocks_0_attention_out_bias_new/Add  i64 []
// update_blocks_0_attention_out_bias_new_pow_2, of /update/blocks_0_attention_out_bias_new/Pow.2  f64 []
// update_blocks_0_attention_out_bias_new_div, of /update/blocks_0_attention_out_bias_new/Div  f64 []
// update_blocks_0_norm2_weight_new_add, of /update/blocks_0_norm2_weight_new/Add  i64 []
// update_blocks_0_norm2_weight_new_pow_2, of /update/blocks_0_norm2_weight_new/Pow.2  f64 []
// update_blocks_0_norm2_weight_new_div, of /update/blocks_0_norm2_weight_new/Div  f64 []
// update_blocks_0_norm2_bias_new_add, of /update/blocks_0_norm2_bias_new/Add  i64 []
// update_blocks_0_norm2_bias_new_pow_2, of /update/blocks_0_norm2_bias_new/Pow.2  f64 []
// update_blocks_0_norm2_bias_new_div, of /update/blocks_0_norm2_bias_new/Div  f64 []
// update_blocks_0_expand_weight_new_add, of /update/blocks_0_expand_weight_new/Add  i64 []
// update_blocks_0_expand_weight_new_pow_2, of /update/blocks_0_expand_weight_new/Pow.2  f64 []
extern "C" __global__ void k158_update_blocks_0_expand_weight_new_pow_2(
    const long long* __restrict__ update_blocks_0_attention_qkv_bias_new_add,
    const double* __restrict__ lr,
    const long long* __restrict__ step_blocks_0_attention_out_weight,
    const long long* __restrict__ step_blocks_0_attention_out_bias,
    const long long* __restrict__ step_blocks_0_norm2_weight,
    const long long* __restrict__ step_blocks_0_norm2_bias,
    const long long* __restrict__ step_blocks_0_expand_weight,
    double* __restrict__ update_blocks_0_attention_qkv_bias_new_pow_2,
    double* __restrict__ update_blocks_0_attention_qkv_bias_new_div,
    long long* __restrict__ update_blocks_0_attention_out_weight_new_add,
    double* __restrict__ update_blocks_0_attention_out_weight_new_pow_2,
    double* __restrict__ update_blocks_0_attention_out_weight_new_div,
    long long* __restrict__ update_blocks_0_attention_out_bias_new_add,
    double* __restrict__ update_blocks_0_attention_out_bias_new_pow_2,
    double* __restrict__ update_blocks_0_attention_out_bias_new_div,
    long long* __restrict__ update_blocks_0_norm2_weight_new_add,
    double* __restrict__ update_blocks_0_norm2_weight_new_pow_2,
    double* __restrict__ update_blocks_0_norm2_weight_new_div,
    long long* __restrict__ update_blocks_0_norm2_bias_new_add,
    double* __restrict__ update_blocks_0_norm2_bias_new_pow_2,
    double* __restrict__ update_blocks_0_norm2_bias_new_div,
    long long* __restrict__ update_blocks_0_expand_weight_new_add,
    double* __restrict__ update_blocks_0_expand_weight_new_pow_2
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 1) { return; }
    const long long update_blocks_0_attention_qkv_bias_new_add_ = update_blocks_0_attention_qkv_bias_new_add[0];
    const double update_blocks_0_attention_qkv_bias_new_cast_ = (double)update_blocks_0_attention_qkv_bias_new_add_;
    const double update_blocks_0_attention_qkv_bias_new_pow_ = pow(0.999, update_blocks_0_attention_qkv_bias_new_cast_);
    const double update_blocks_0_attention_qkv_bias_new_sub_3_ = 1.0 - update_blocks_0_attention_qkv_bias_new_pow_;
    const double update_blocks_0_attention_qkv_bias_new_pow_2_ = inverse_root(update_blocks_0_attention_qkv_bias_new_sub_3_);
    update_blocks_0_attention_qkv_bias_new_pow_2[i] = update_blocks_0_attention_qkv_bias_new_pow_2_;
    const double lr_ = lr[0];
    const double update_blocks_0_attention_qkv_bias_new_pow_3_ = pow(0.9, update_blocks_0_attention_qkv_bias_new_cast_);
    const double update_blocks_0_attention_qkv_bias_new_sub_4_ = 1.0 - update_blocks_0_attention_qkv_bias_new_pow_3_;
    const double update_blocks_0_attention_qkv_bias_new_div_ = lr_ / update_blocks_0_attention_qkv_bias_new_sub_4_;
    update_blocks_0_attention_qkv_bias_new_div[i] = update_blocks_0_attention_qkv_bias_new_div_;
    const long long step_blocks_0_attention_out_weight_ = step_blocks_0_attention_out_weight[0];
    const long long update_blocks_0_attention_out_weight_new_add_ = step_blocks_0_attention_out_weight_ + 1ll;
    update_blocks_0_attention_out_weight_new_add[i] = update_blocks_0_attention_out_weight_new_add_;
    const double update_blocks_0_attention_out_weight_new_cast_ = (double)update_blocks_0_attention_out_weight_new_add_;
    const double update_blocks_0_attention_out_weight_new_pow_ = pow(0.999, update_blocks_0_attention_out_weight_new_cast_);
    const double update_blocks_0_attention_out_weight_new_sub_3_ = 1.0 - update_blocks_0_attention_out_weight_new_pow_;
    const double update_blocks_0_attention_out_weight_new_pow_2_ = inverse_root(update_blocks_0_attention_out_weight_new_sub_3_);
    update_blocks_0_attention_out_weight_new_pow_2[i] = update_blocks_0_attention_out_weight_new_pow_2_;
    const double update_blocks_0_attention_out_weight_new_pow_3_ = pow(0.9, update_blocks_0_attention_out_weight_new_cast_);
    const double update_blocks_0_attention_out_weight_new_sub_4_ = 1.0 - update_blocks_0_attention_out_weight_new_pow_3_;
    const double update_blocks_0_attention_out_weight_new_div_ = lr_ / update_blocks_0_attention_out_weight_new_sub_4_;
    update_blocks_0_attention_out_weight_new_div[i] = update_blocks_0_attention_out_weight_new_div_;
    const long long step_blocks_0_attention_out_bias_ = step_blocks_0_attention_out_bias[0];
    const long long update_blocks_0_attention_out_bias_new_add_ = step_blocks_0_attention_out_bias_ + 1ll;
    update_blocks_0_attention_out_bias_new_add[i] = update_blocks_0_attention_out_bias_new_add_;
    const double update_blocks_0_attention_out_bias_new_cast_ = (double)update_blocks_0_attention_out_bias_new_add_;
    const double update_blocks_0_attention_out_bias_new_pow_ = pow(0.999, update_blocks_0_attention_out_bias_new_cast_);
    const double update_blocks_0_attention_out_bias_new_sub_3_ = 1.0 - update_blocks_0_attention_out_bias_new_pow_;
    const double update_blocks_0_attention_out_bias_new_pow_2_ = inverse_root(update_blocks_0_attention_out_bias_new_sub_3_);
    update_blocks_0_attention_out_bias_new_pow_2[i] = update_blocks_0_attention_out_bias_new_pow_2_;
    const double update_blocks_0_attention_out_bias_new_pow_3_ = pow(0.9, update_blocks_0_attention_out_bias_new_cast_);
    const double update_blocks_0_attention_out_bias_new_sub_4_ = 1.0 - update_blocks_0_attention_out_bias_new_pow_3_;
    const double update_blocks_0_attention_out_bias_new_div_ = lr_ / update_blocks_0_attention_out_bias_new_sub_4_;
    update_blocks_0_attention_out_bias_new_div[i] = update_blocks_0_attention_out_bias_new_div_;
    const long long step_blocks_0_norm2_weight_ = step_blocks_0_norm2_weight[0];
    const long long update_blocks_0_norm2_weight_new_add_ = step_blocks_0_norm2_weight_ + 1ll;
    update_blocks_0_norm2_weight_new_add[i] = update_blocks_0_norm2_weight_new_add_;
    const double update_blocks_0_norm2_weight_new_cast_ = (double)update_blocks_0_norm2_weight_new_add_;
    const double update_blocks_0_norm2_weight_new_pow_ = pow(0.999, update_blocks_0_norm2_weight_new_cast_);
    const double update_blocks_0_norm2_weight_new_sub_3_ = 1.0 - update_blocks_0_norm2_weight_new_pow_;
    const double update_blocks_0_norm2_weight_new_pow_2_ = inverse_root(update_blocks_0_norm2_weight_new_sub_3_);
    update_blocks_0_norm2_weight_new_pow_2[i] = update_blocks_0_norm2_weight_new_pow_2_;
    const double update_blocks_0_norm2_weight_new_pow_3_ = pow(0.9, update_blocks_0_norm2_weight_new_cast_);
    const double update_blocks_0_norm2_weight_new_sub_4_ = 1.0 - update_blocks_0_norm2_weight_new_pow_3_;
    const double update_blocks_0_norm2_weight_new_div_ = lr_ / update_blocks_0_norm2_weight_new_sub_4_;
    update_blocks_0_norm2_weight_new_div[i] = update_blocks_0_norm2_weight_new_div_;
    const long long step_blocks_0_norm2_bias_ = step_blocks_0_norm2_bias[0];
    const long long update_blocks_0_norm2_bias_new_add_ = step_blocks_0_norm2_bias_ + 1ll;
    update_blocks_0_norm2_bias_new_add[i] = update_blocks_0_norm2_bias_new_add_;
    const double update_blocks_0_norm2_bias_new_cast_ = (double)update_blocks_0_norm2_bias_new_add_;
    const double update_blocks_0_norm2_bias_new_pow_ = pow(0.999, update_blocks_0_norm2_bias_new_cast_);
    const double update_blocks_0_norm2_bias_new_sub_3_ = 1.0 - update_blocks_0_norm2_bias_new_pow_;
    const double update_blocks_0_norm2_bias_new_pow_2_ = inverse_root(update_blocks_0_norm2_bias_new_sub_3_);
    update_blocks_0_norm2_bias_new_pow_2[i] = update_blocks_0_norm2_bias_new_pow_2_;
    const double update_blocks_0_norm2_bias_new_pow_3_ = pow(0.9, update_blocks_0_norm2_bias_new_cast_);
    const double update_blocks_0_norm2_bias_new_sub_4_ = 1.0 - update_blocks_0_norm2_bias_new_pow_3_;
    const double update_blocks_0_norm2_bias_new_div_ = lr_ / update_blocks_0_norm2_bias_new_sub_4_;
    update_blocks_0_norm2_bias_new_div[i] = update_blocks_0_norm2_bias_new_div_;
    const long long step_blocks_0_expand_weight_ = step_blocks_0_expand_weight[0];
    const long long update_blocks_0_expand_weight_new_add_ = step_blocks_0_expand_weight_ + 1ll;
    update_blocks_0_expand_weight_new_add[i] = update_blocks_0_expand_weight_new_add_;
    const double update_blocks_0_expand_weight_new_cast_ = (double)update_blocks_0_expand_weight_new_add_;
    const double update_blocks_0_expand_weight_new_pow_ = pow(0.999, update_blocks_0_expand_weight_new_cast_);
    const double update_blocks_0_expand_weight_new_sub_3_ = 1.0 - update_blocks_0_expand_weight_new_pow_;
    const double update_blocks_0_expand_weight_new_pow_2_ = inverse_root(update_blocks_0_expand_weight_new_sub_3_);
    update_blocks_0_expand_weight_new_pow_2[i] = update_blocks_0_expand_weight_new_pow_2_;
}

// blocks_0_attention_qkv_bias_new, of blocks.0.attention.qkv.bias_new  f32 [384]
extern "C" __global__ void k159_blocks_0_attention_qkv_bias_new(
    const float* blocks_0_attention_qkv_bias,
    const double* __restrict__ lr,
    const double* __restrict__ update_blocks_0_attention_qkv_bias_new_div,
    const float* exp_avg_blocks_0_attention_qkv_bias_new,
    const float* exp_avg_sq_blocks_0_attention_qkv_bias_new,
    const double* __restrict__ update_blocks_0_attention_qkv_bias_new_pow_2,
    float* blocks_0_attention_qkv_bias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 384) { return; }
    const float blocks_0_attention_qkv_bias_ = blocks_0_attention_qkv_bias[i];
    const double lr_ = lr[0];
    const double update_symbols_weight_new_mul_ = lr_ * 0.01;
    const double update_symbols_weight_new_sub_ = 1.0 - update_symbols_weight_new_mul_;
    const float update_symbols_weight_new_cast_3_ = (float)update_symbols_weight_new_sub_;
    const float update_blocks_0_attention_qkv_bias_new_mul_8_ = blocks_0_attention_qkv_bias_ * update_symbols_weight_new_cast_3_;
    const double update_blocks_0_attention_qkv_bias_new_div_ = update_blocks_0_attention_qkv_bias_new_div[0];
    const float update_blocks_0_attention_qkv_bias_new_cast_5_ = (float)update_blocks_0_attention_qkv_bias_new_div_;
    const float exp_avg_blocks_0_attention_qkv_bias_new_ = exp_avg_blocks_0_attention_qkv_bias_new[i];
    const float update_blocks_0_attention_qkv_bias_new_mul_9_ = update_blocks_0_attention_qkv_bias_new_cast_5_ * exp_avg_blocks_0_attention_qkv_bias_new_;
    const float exp_avg_sq_blocks_0_attention_qkv_bias_new_ = exp_avg_sq_blocks_0_attention_qkv_bias_new[i];
    const float update_blocks_0_attention_qkv_bias_new_sqrt_ = sqrtf(exp_avg_sq_blocks_0_attention_qkv_bias_new_);
    const double update_blocks_0_attention_qkv_bias_new_pow_2_ = update_blocks_0_attention_qkv_bias_new_pow_2[0];
    const float update_blocks_0_attention_qkv_bias_new_cast_2_ = (float)update_blocks_0_attention_qkv_bias_new_pow_2_;
    const float update_blocks_0_attention_qkv_bias_new_mul_7_ = update_blocks_0_attention_qkv_bias_new_sqrt_ * update_blocks_0_attention_qkv_bias_new_cast_2_;
    const float update_blocks_0_attention_qkv_bias_new_add_5_ = update_blocks_0_attention_qkv_bias_new_mul_7_ + 1e-8f;
    const float update_blocks_0_attention_qkv_bias_new_div_2_ = update_blocks_0_attention_qkv_bias_new_mul_9_ / update_blocks_0_attention_qkv_bias_new_add_5_;
    const float blocks_0_attention_qkv_bias_new_ = update_blocks_0_attention_qkv_bias_new_mul_8_ - update_blocks_0_attention_qkv_bias_new_div_2_;
    blocks_0_attention_qkv_bias_new[i] = blocks_0_attention_qkv_bias_new_;
}

// blocks_0_attention_out_weight_new, of blocks.0.attention.out.weight_new  f32 [128, 128]
extern "C" __global__ void k160_blocks_0_attention_out_weight_new(
    const float* blocks_0_attention_out_weight,
    const double* __restrict__ lr,
    const double* __restrict__ update_blocks_0_attention_out_weight_new_div,
    const float* exp_avg_blocks_0_attention_out_weight_new,
    const float* exp_avg_sq_blocks_0_attention_out_weight_new,
    const double* __restrict__ update_blocks_0_attention_out_weight_new_pow_2,
    float* blocks_0_attention_out_weight_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 16384) { return; }
    const float blocks_0_attention_out_weight_ = blocks_0_attention_out_weight[i];
    const double lr_ = lr[0];
    const double update_symbols_weight_new_mul_ = lr_ * 0.01;
    const double update_symbols_weight_new_sub_ = 1.0 - update_symbols_weight_new_mul_;
    const float update_symbols_weight_new_cast_3_ = (float)update_symbols_weight_new_sub_;
    const float update_blocks_0_attention_out_weight_new_mul_8_ = blocks_0_attention_out_weight_ * update_symbols_weight_new_cast_3_;
    const double update_blocks_0_attention_out_weight_new_div_ = update_blocks_0_attention_out_weight_new_div[0];
    const float update_blocks_0_attention_out_weight_new_cast_5_ = (float)update_blocks_0_attention_out_weight_new_div_;
    const float exp_avg_blocks_0_attention_out_weight_new_ = exp_avg_blocks_0_attention_out_weight_new[i];
    const float update_blocks_0_attention_out_weight_new_mul_9_ = update_blocks_0_attention_out_weight_new_cast_5_ * exp_avg_blocks_0_attention_out_weight_new_;
    const float exp_avg_sq_blocks_0_attention_out_weight_new_ = exp_avg_sq_blocks_0_attention_out_weight_new[i];
    const float update_blocks_0_attention_out_weight_new_sqrt_ = sqrtf(exp_avg_sq_blocks_0_attention_out_weight_new_);
    const double update_blocks_0_attention_out_weight_new_pow_2_ = update_blocks_0_attention_out_weight_new_pow_2[0];
    const float update_blocks_0_attention_out_weight_new_cast_2_ = (float)update_blocks_0_attention_out_weight_new_pow_2_;
    const float update_blocks_0_attention_out_weight_new_mul_7_ = update_blocks_0_attention_out_weight_new_sqrt_ * update_blocks_0_attention_out_weight_new_cast_2_;
    const float update_blocks_0_attention_out_weight_new_add_5_ = update_blocks_0_attention_out_weight_new_mul_7_ + 1e-8f;
    const float update_blocks_0_attention_out_weight_new_div_2_ = update_blocks_0_attention_out_weight_new_mul_9_ / update_blocks_0_attention_out_weight_new_add_5_;
    const float blocks_0_attention_out_weight_new_ = update_blocks_0_attention_out_weight_new_mul_8_ - update_blocks_0_attention_out_weight_new_div_2_;
    blocks_0_attention_out_weight_new[i] = blocks_0_attention_out_weight_new_;
}

// blocks_0_attention_out_bias_new, of blocks.0.attention.out.bias_new  f32 [128]
// blocks_0_norm2_weight_new, of blocks.0.norm2.weight_new  f32 [128]
// blocks_0_norm2_bias_new, of blocks.0.norm2.bias_new  f32 [128]
extern "C" __global__ void k161_blocks_0_norm2_bias_new(
    const float* blocks_0_attention_out_bias,
    const double* __restrict__ lr,
    const double* __restrict__ update_blocks_0_attention_out_bias_new_div,
    const float* exp_avg_blocks_0_attention_out_bias_new,
    const float* exp_avg_sq_blocks_0_attention_out_bias_new,
    const double* __restrict__ update_blocks_0_attention_out_bias_new_pow_2,
    const float* blocks_0_norm2_weight,
    const double* __restrict__ update_blocks_0_norm2_weight_new_div,
    const float* exp_avg_blocks_0_norm2_weight_new,
    const float* exp_avg_sq_blocks_0_norm2_weight_new,
    const double* __restrict__ update_blocks_0_norm2_weight_new_pow_2,
    const float* blocks_0_norm2_bias,
    const double* __restrict__ update_blocks_0_norm2_bias_new_div,
    const float* exp_avg_blocks_0_norm2_bias_new,
    const float* exp_avg_sq_blocks_0_norm2_bias_new,
    const double* __restrict__ update_blocks_0_norm2_bias_new_pow_2,
    float* blocks_0_attention_out_bias_new,
    float* blocks_0_norm2_weight_new,
    float* blocks_0_norm2_bias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 128) { return; }
    const float blocks_0_attention_out_bias_ = blocks_0_attention_out_bias[i];
    const double lr_ = lr[0];
    const double update_symbols_weight_new_mul_ = lr_ * 0.01;
    const double update_symbols_weight_new_sub_ = 1.0 - update_symbols_weight_new_mul_;
    const float update_symbols_weight_new_cast_3_ = (float)update_symbols_weight_new_sub_;
    const float update_blocks_0_attention_out_bias_new_mul_8_ = blocks_0_attention_out_bias_ * update_symbols_weight_new_cast_3_;
    const double update_blocks_0_attention_out_bias_new_div_ = update_blocks_0_attention_out_bias_new_div[0];
    const float update_blocks_0_attention_out_bias_new_cast_5_ = (float)update_blocks_0_attention_out_bias_new_div_;
    const float exp_avg_blocks_0_attention_out_bias_new_ = exp_avg_blocks_0_attention_out_bias_new[i];
    const float update_blocks_0_attention_out_bias_new_mul_9_ = update_blocks_0_attention_out_bias_new_cast_5_ * exp_avg_blocks_0_attention_out_bias_new_;
    const float exp_avg_sq_blocks_0_attention_out_bias_new_ = exp_avg_sq_blocks_0_attention_out_bias_new[i];
    const float update_blocks_0_attention_out_bias_new_sqrt_ = sqrtf(exp_avg_sq_blocks_0_attention_out_bias_new_);
    const double update_blocks_0_attention_out_bias_new_pow_2_ = update_blocks_0_attention_out_bias_new_pow_2[0];
    const float update_blocks_0_attention_out_bias_new_cast_2_ = (float)update_blocks_0_attention_out_bias_new_pow_2_;
    const float update_blocks_0_attention_out_bias_new_mul_7_ = update_blocks_0_attention_out_bias_new_sqrt_ * update_blocks_0_attention_out_bias_new_cast_2_;
    const float update_blocks_0_attention_out_bias_new_add_5_ = update_blocks_0_attention_out_bias_new_mul_7_ + 1e-8f;
    const float update_blocks_0_attention_out_bias_new_div_2_ = update_blocks_0_attention_out_bias_new_mul_9_ / update_blocks_0_attention_out_bias_new_add_5_;
    const float blocks_0_attention_out_bias_new_ = update_blocks_0_attention_out_bias_new_mul_8_ - update_blocks_0_attention_out_bias_new_div_2_;
    blocks_0_attention_out_bias_new[i] = blocks_0_attention_out_bias_new_;
    const float blocks_0_norm2_weight_ = blocks_0_norm2_weight[i];
    const float update_blocks_0_norm2_weight_new_mul_8_ = blocks_0_norm2_weight_ * update_symbols_weight_new_cast_3_;
    const double update_blocks_0_norm2_weight_new_div_ = update_blocks_0_norm2_weight_new_div[0];
    const float update_blocks_0_norm2_weight_new_cast_5_ = (float)update_blocks_0_norm2_weight_new_div_;
    const float exp_avg_blocks_0_norm2_weight_new_ = exp_avg_blocks_0_norm2_weight_new[i];
    const float update_blocks_0_norm2_weight_new_mul_9_ = update_blocks_0_norm2_weight_new_cast_5_ * exp_avg_blocks_0_norm2_weight_new_;
    const float exp_avg_sq_blocks_0_norm2_weight_new_ = exp_avg_sq_blocks_0_norm2_weight_new[i];
    const float update_blocks_0_norm2_weight_new_sqrt_ = sqrtf(exp_avg_sq_blocks_0_norm2_weight_new_);
    const double update_blocks_0_norm2_weight_new_pow_2_ = update_blocks_0_norm2_weight_new_pow_2[0];
    const float update_blocks_0_norm2_weight_new_cast_2_ = (float)update_blocks_0_norm2_weight_new_pow_2_;
    const float update_blocks_0_norm2_weight_new_mul_7_ = update_blocks_0_norm2_weight_new_sqrt_ * update_blocks_0_norm2_weight_new_cast_2_;
    const float update_blocks_0_norm2_weight_new_add_5_ = update_blocks_0_norm2_weight_new_mul_7_ + 1e-8f;
    const float update_blocks_0_norm2_weight_new_div_2_ = update_blocks_0_norm2_weight_new_mul_9_ / update_blocks_0_norm2_weight_new_add_5_;
    const float blocks_0_norm2_weight_new_ = update_blocks_0_norm2_weight_new_mul_8_ - update_blocks_0_norm2_weight_new_div_2_;
    blocks_0_norm2_weight_new[i] = blocks_0_norm2_weight_new_;
    const float blocks_0_norm2_bias_ = blocks_0_norm2_bias[i];
    const float update_blocks_0_norm2_bias_new_mul_8_ = blocks_0_norm2_bias_ * update_symbols_weight_new_cast_3_;
    const double update_blocks_0_norm2_bias_new_div_ = update_blocks_0_norm2_bias_new_div[0];
    const float update_blocks_0_norm2_bias_new_cast_5_ = (float)update_blocks_0_norm2_bias_new_div_;
    const float exp_avg_blocks_0_norm2_bias_new_ = exp_avg_blocks_0_norm2_bias_new[i];
    const float update_blocks_0_norm2_bias_new_mul_9_ = update_blocks_0_norm2_bias_new_cast_5_ * exp_avg_blocks_0_norm2_bias_new_;
    const float exp_avg_sq_blocks_0_norm2_bias_new_ = exp_avg_sq_blocks_0_norm2_bias_new[i];
    const float update_blocks_0_norm2_bias_new_sqrt_ = sqrtf(exp_avg_sq_blocks_0_norm2_bias_new_);
    const double update_blocks_0_norm2_bias_new_pow_2_ = update_blocks_0_norm2_bias_new_pow_2[0];
    const float update_blocks_0_norm2_bias_new_cast_2_ = (float)update_blocks_0_norm2_bias_new_pow_2_;
    const float update_blocks_0_norm2_bias_new_mul_7_ = update_blocks_0_norm2_bias_new_sqrt_ * update_blocks_0_norm2_bias_new_cast_2_;
    const float update_blocks_0_norm2_bias_new_add_5_ = update_blocks_0_norm2_bias_new_mul_7_ + 1e-8f;
    const float update_blocks_0_norm2_bias_new_div_2_ = update_blocks_0_norm2_bias_new_mul_9_ / update_blocks_0_norm2_bias_new_add_5_;
    const float blocks_0_norm2_bias_new_ = update_blocks_0_norm2_bias_new_mul_8_ - update_blocks_0_norm2_bias_new_div_2_;
    blocks_0_norm2_bias_new[i] = blocks_0_norm2_bias_new_;
}

// update_blocks_0_expand_weight_new_div, of /update/blocks_0_expand_weight_new/Div  f64 []
// update_blocks_0_expand_bias_new_add, of /update/blocks_0_expand_bias_new/Add  i64 []
// update_blocks_0_expand_bias_new_pow_2, of /update/blocks_0_expand_bias_new/Pow.2  f64 []
// update_blocks_0_expand_bias_new_div, of /update/blocks_0_expand_bias_new/Div  f64 []
// update_blocks_0_project_weight_new_add, of /update/blocks_0_project_weight_new/Add  i64 []
// update_blocks_0_project_weight_new_pow_2, of /update/blocks_0_project_weight_new/Pow.2  f64 []
// update_blocks_0_project_weight_new_div, of /update/blocks_0_project_weight_new/Div  f64 []
// update_blocks_0_project_bias_new_add, of /update/blocks_0_project_bias_new/Add  i64 []
// update_blocks_0_project_bias_new_pow_2, of /update/blocks_0_project_bias_new/Pow.2  f64 []
// update_blocks_0_project_bias_new_div, of /update/blocks_0_project_bias_new/Div  f64 []
// update_blocks_1_norm1_weight_new_add, of /update/blocks_1_norm1_weight_new/Add  i64 []
// update_blocks_1_norm1_weight_new_pow_2, of /update/blocks_1_norm1_weight_new/Pow.2  f64 []
// update_blocks_1_norm1_weight_new_div, of /update/blocks_1_norm1_weight_new/Div  f64 []
// update_blocks_1_norm1_bias_new_add, of /update/blocks_1_norm1_bias_new/Add  i64 []
// update_blocks_1_norm1_bias_new_pow_2, of /update/blocks_1_norm1_bias_new/Pow.2  f64 []
// update_blocks_1_norm1_bias_new_div, of /update/blocks_1_norm1_bias_new/Div  f64 []
extern "C" __global__ void k162_update_blocks_1_norm1_bias_new_div(
    const double* __restrict__ lr,
    const long long* __restrict__ update_blocks_0_expand_weight_new_add,
    const long long* __restrict__ step_blocks_0_expand_bias,
    const long long* __restrict__ step_blocks_0_project_weight,
    const long long* __restrict__ step_blocks_0_project_bias,
    const long long* __restrict__ step_blocks_1_norm1_weight,
    const long long* __restrict__ step_blocks_1_norm1_bias,
    double* __restrict__ update_blocks_0_expand_weight_new_div,
    long long* __restrict__ update_blocks_0_expand_bias_new_add,
    double* __restrict__ update_blocks_0_expand_bias_new_pow_2,
    double* __restrict__ update_blocks_0_expand_bias_new_div,
    long long* __restrict__ update_blocks_0_project_weight_new_add,
    double* __restrict__ update_blocks_0_project_weight_new_pow_2,
    double* __restrict__ update_blocks_0_project_weight_new_div,
    long long* __restrict__ update_blocks_0_project_bias_new_add,
    double* __restrict__ update_blocks_0_project_bias_new_pow_2,
    double* __restrict__ update_blocks_0_project_bias_new_div,
    long long* __restrict__ update_blocks_1_norm1_weight_new_add,
    double* __restrict__ update_blocks_1_norm1_weight_new_pow_2,
    double* __restrict__ update_blocks_1_norm1_weight_new_div,
    long long* __restrict__ update_blocks_1_norm1_bias_new_add,
    double* __restrict__ update_blocks_1_norm1_bias_new_pow_2,
    double* __restrict__ update_blocks_1_norm1_bias_new_div
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 1) { return; }
    const double lr_ = lr[0];
    const long long update_blocks_0_expand_weight_new_add_ = update_blocks_0_expand_weight_new_add[0];
    const double update_blocks_0_expand_weight_new_cast_ = (double)update_blocks_0_expand_weight_new_add_;
    const double update_blocks_0_expand_weight_new_pow_3_ = pow(0.9, update_blocks_0_expand_weight_new_cast_);
    const double update_blocks_0_expand_weight_new_sub_4_ = 1.0 - update_blocks_0_expand_weight_new_pow_3_;
    const double update_blocks_0_expand_weight_new_div_ = lr_ / update_blocks_0_expand_weight_new_sub_4_;
    update_blocks_0_expand_weight_new_div[i] = update_blocks_0_expand_weight_new_div_;
    const long long step_blocks_0_expand_bias_ = step_blocks_0_expand_bias[0];
    const long long update_blocks_0_expand_bias_new_add_ = step_blocks_0_expand_bias_ + 1ll;
    update_blocks_0_expand_bias_new_add[i] = update_blocks_0_expand_bias_new_add_;
    const double update_blocks_0_expand_bias_new_cast_ = (double)update_blocks_0_expand_bias_new_add_;
    const double update_blocks_0_expand_bias_new_pow_ = pow(0.999, update_blocks_0_expand_bias_new_cast_);
    const double update_blocks_0_expand_bias_new_sub_3_ = 1.0 - update_blocks_0_expand_bias_new_pow_;
    const double update_blocks_0_expand_bias_new_pow_2_ = inverse_root(update_blocks_0_expand_bias_new_sub_3_);
    update_blocks_0_expand_bias_new_pow_2[i] = update_blocks_0_expand_bias_new_pow_2_;
    const double update_blocks_0_expand_bias_new_pow_3_ = pow(0.9, update_blocks_0_expand_bias_new_cast_);
    const double update_blocks_0_expand_bias_new_sub_4_ = 1.0 - update_blocks_0_expand_bias_new_pow_3_;
    const double update_blocks_0_expand_bias_new_div_ = lr_ / update_blocks_0_expand_bias_new_sub_4_;
    update_blocks_0_expand_bias_new_div[i] = update_blocks_0_expand_bias_new_div_;
    const long long step_blocks_0_project_weight_ = step_blocks_0_project_weight[0];
    const long long update_blocks_0_project_weight_new_add_ = step_blocks_0_project_weight_ + 1ll;
    update_blocks_0_project_weight_new_add[i] = update_blocks_0_project_weight_new_add_;
    const double update_blocks_0_project_weight_new_cast_ = (double)update_blocks_0_project_weight_new_add_;
    const double update_blocks_0_project_weight_new_pow_ = pow(0.999, update_blocks_0_project_weight_new_cast_);
    const double update_blocks_0_project_weight_new_sub_3_ = 1.0 - update_blocks_0_project_weight_new_pow_;
    const double update_blocks_0_project_weight_new_pow_2_ = inverse_root(update_blocks_0_project_weight_new_sub_3_);
    update_blocks_0_project_weight_new_pow_2[i] = update_blocks_0_project_weight_new_pow_2_;
    const double update_blocks_0_project_weight_new_pow_3_ = pow(0.9, update_blocks_0_project_weight_new_cast_);
    const double update_blocks_0_project_weight_new_sub_4_ = 1.0 - update_blocks_0_project_weight_new_pow_3_;
    const double update_blocks_0_project_weight_new_div_ = lr_ / update_blocks_0_project_weight_new_sub_4_;
    update_blocks_0_project_weight_new_div[i] = update_blocks_0_project_weight_new_div_;
    const long long step_blocks_0_project_bias_ = step_blocks_0_project_bias[0];
    const long long update_blocks_0_project_bias_new_add_ = step_blocks_0_project_bias_ + 1ll;
    update_blocks_0_project_bias_new_add[i] = update_blocks_0_project_bias_new_add_;
    const double update_blocks_0_project_bias_new_cast_ = (double)update_blocks_0_project_bias_new_add_;
    const double update_blocks_0_project_bias_new_pow_ = pow(0.999, update_blocks_0_project_bias_new_cast_);
    const double update_blocks_0_project_bias_new_sub_3_ = 1.0 - update_blocks_0_project_bias_new_pow_;
    const double update_blocks_0_project_bias_new_pow_2_ = inverse_root(update_blocks_0_project_bias_new_sub_3_);
    update_blocks_0_project_bias_new_pow_2[i] = update_blocks_0_project_bias_new_pow_2_;
    const double update_blocks_0_project_bias_new_pow_3_ = pow(0.9, update_blocks_0_project_bias_new_cast_);
    const double update_blocks_0_project_bias_new_sub_4_ = 1.0 - update_blocks_0_project_bias_new_pow_3_;
    const double update_blocks_0_project_bias_new_div_ = lr_ / update_blocks_0_project_bias_new_sub_4_;
    update_blocks_0_project_bias_new_div[i] = update_blocks_0_project_bias_new_div_;
    const long long step_blocks_1_norm1_weight_ = step_blocks_1_norm1_weight[0];
    const long long update_blocks_1_norm1_weight_new_add_ = step_blocks_1_norm1_weight_ + 1ll;
    update_blocks_1_norm1_weight_new_add[i] = update_blocks_1_norm1_weight_new_add_;
    const double update_blocks_1_norm1_weight_new_cast_ = (double)update_blocks_1_norm1_weight_new_add_;
    const double update_blocks_1_norm1_weight_new_pow_ = pow(0.999, update_blocks_1_norm1_weight_new_cast_);
    const double update_blocks_1_norm1_weight_new_sub_3_ = 1.0 - update_blocks_1_norm1_weight_new_pow_;
    const double update_blocks_1_norm1_weight_new_pow_2_ = inverse_root(update_blocks_1_norm1_weight_new_sub_3_);
    update_blocks_1_norm1_weight_new_pow_2[i] = update_blocks_1_norm1_weight_new_pow_2_;
    const double update_blocks_1_norm1_weight_new_pow_3_ = pow(0.9, update_blocks_1_norm1_weight_new_cast_);
    const double update_blocks_1_norm1_weight_new_sub_4_ = 1.0 - update_blocks_1_norm1_weight_new_pow_3_;
    const double update_blocks_1_norm1_weight_new_div_ = lr_ / update_blocks_1_norm1_weight_new_sub_4_;
    update_blocks_1_norm1_weight_new_div[i] = update_blocks_1_norm1_weight_new_div_;
    const long long step_blocks_1_norm1_bias_ = step_blocks_1_norm1_bias[0];
    const long long update_blocks_1_norm1_bias_new_add_ = step_blocks_1_norm1_bias_ + 1ll;
    update_blocks_1_norm1_bias_new_add[i] = update_blocks_1_norm1_bias_new_add_;
    const double update_blocks_1_norm1_bias_new_cast_ = (double)update_blocks_1_norm1_bias_new_add_;
    const double update_blocks_1_norm1_bias_new_pow_ = pow(0.999, update_blocks_1_norm1_bias_new_cast_);
    const double update_blocks_1_norm1_bias_new_sub_3_ = 1.0 - update_blocks_1_norm1_bias_new_pow_;
    const double update_blocks_1_norm1_bias_new_pow_2_ = inverse_root(update_blocks_1_norm1_bias_new_sub_3_);
    update_blocks_1_norm1_bias_new_pow_2[i] = update_blocks_1_norm1_bias_new_pow_2_;
    const double update_blocks_1_norm1_bias_new_pow_3_ = pow(0.9, update_blocks_1_norm1_bias_new_cast_);
    const double update_blocks_1_norm1_bias_new_sub_4_ = 1.0 - update_blocks_1_norm1_bias_new_pow_3_;
    const double update_blocks_1_norm1_bias_new_div_ = lr_ / update_blocks_1_norm1_bias_new_sub_4_;
    update_blocks_1_norm1_bias_new_div[i] = update_blocks_1_norm1_bias_new_div_;
}

// blocks_0_expand_weight_new, of blocks.0.expand.weight_new  f32 [512, 128]
// blocks_0_project_weight_new, of blocks.0.project.weight_new  f32 [128, 512]
extern "C" __global__ void k163_blocks_0_project_weight_new(
    const float* blocks_0_expand_weight,
    const double* __restrict__ lr,
    const double* __restrict__ update_blocks_0_expand_weight_new_div,
    const float* exp_avg_blocks_0_expand_weight_new,
    const float* exp_avg_sq_blocks_0_expand_weight_new,
    const double* __restrict__ update_blocks_0_expand_weight_new_pow_2,
    const float* blocks_0_project_weight,
    const double* __restrict__ update_blocks_0_project_weight_new_div,
    const float* exp_avg_blocks_0_project_weight_new,
    const float* exp_avg_sq_blocks_0_project_weight_new,
    const double* __restrict__ update_blocks_0_project_weight_new_pow_2,
    float* blocks_0_expand_weight_new,
    float* blocks_0_project_weight_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 65536) { return; }
    const float blocks_0_expand_weight_ = blocks_0_expand_weight[i];
    const double lr_ = lr[0];
    const double update_symbols_weight_new_mul_ = lr_ * 0.01;
    const double update_symbols_weight_new_sub_ = 1.0 - update_symbols_weight_new_mul_;
    const float update_symbols_weight_new_cast_3_ = (float)update_symbols_weight_new_sub_;
    const float update_blocks_0_expand_weight_new_mul_8_ = blocks_0_expand_weight_ * update_symbols_weight_new_cast_3_;
    const double update_blocks_0_expand_weight_new_div_ = update_blocks_0_expand_weight_new_div[0];
    const float update_blocks_0_expand_weight_new_cast_5_ = (float)update_blocks_0_expand_weight_new_div_;
    const float exp_avg_blocks_0_expand_weight_new_ = exp_avg_blocks_0_expand_weight_new[i];
    const float update_blocks_0_expand_weight_new_mul_9_ = update_blocks_0_expand_weight_new_cast_5_ * exp_avg_blocks_0_expand_weight_new_;
    const float exp_avg_sq_blocks_0_expand_weight_new_ = exp_avg_sq_blocks_0_expand_weight_new[i];
    const float update_blocks_0_expand_weight_new_sqrt_ = sqrtf(exp_avg_sq_blocks_0_expand_weight_new_);
    const double update_blocks_0_expand_weight_new_pow_2_ = update_blocks_0_expand_weight_new_pow_2[0];
    const float update_blocks_0_expand_weight_new_cast_2_ = (float)update_blocks_0_expand_weight_new_pow_2_;
    const float update_blocks_0_expand_weight_new_mul_7_ = update_blocks_0_expand_weight_new_sqrt_ * update_blocks_0_expand_weight_new_cast_2_;
    const float update_blocks_0_expand_weight_new_add_5_ = update_blocks_0_expand_weight_new_mul_7_ + 1e-8f;
    const float update_blocks_0_expand_weight_new_div_2_ = update_blocks_0_expand_weight_new_mul_9_ / update_blocks_0_expand_weight_new_add_5_;
    const float blocks_0_expand_weight_new_ = update_blocks_0_expand_weight_new_mul_8_ - update_blocks_0_expand_weight_new_div_2_;
    blocks_0_expand_weight_new[i] = blocks_0_expand_weight_new_;
    const float blocks_0_project_weight_ = blocks_0_project_weight[i];
    const float update_blocks_0_project_weight_new_mul_8_ = blocks_0_project_weight_ * update_symbols_weight_new_cast_3_;
    const double update_blocks_0_project_weight_new_div_ = update_blocks_0_project_weight_new_div[0];
    const float update_blocks_0_project_weight_new_cast_5_ = (float)update_blocks_0_project_weight_new_div_;
    const float exp_avg_blocks_0_project_weight_new_ = exp_avg_blocks_0_project_weight_new[i];
    const float update_blocks_0_project_weight_new_mul_9_ = update_blocks_0_project_weight_new_cast_5_ * exp_avg_blocks_0_project_weight_new_;
    const float exp_avg_sq_blocks_0_project_weight_new_ = exp_avg_sq_blocks_0_project_weight_new[i];
    const float update_blocks_0_project_weight_new_sqrt_ = sqrtf(exp_avg_sq_blocks_0_project_weight_new_);
    const double update_blocks_0_project_weight_new_pow_2_ = update_blocks_0_project_weight_new_pow_2[0];
    const float update_blocks_0_project_weight_new_cast_2_ = (float)update_blocks_0_project_weight_new_pow_2_;
    const float update_blocks_0_project_weight_new_mul_7_ = update_blocks_0_project_weight_new_sqrt_ * update_blocks_0_project_weight_new_cast_2_;
    const float update_blocks_0_project_weight_new_add_5_ = update_blocks_0_project_weight_new_mul_7_ + 1e-8f;
    const float update_blocks_0_project_weight_new_div_2_ = update_blocks_0_project_weight_new_mul_9_ / update_blocks_0_project_weight_new_add_5_;
    const float blocks_0_project_weight_new_ = update_blocks_0_project_weight_new_mul_8_ - update_blocks_0_project_weight_new_div_2_;
    blocks_0_project_weight_new[i] = blocks_0_project_weight_new_;
}

// blocks_0_expand_bias_new, of blocks.0.expand.bias_new  f32 [512]
extern "C" __global__ void k164_blocks_0_expand_bias_new(
    const float* blocks_0_expand_bias,
    const double* __restrict__ lr,
    const double* __restrict__ update_blocks_0_expand_bias_new_div,
    const float* exp_avg_blocks_0_expand_bias_new,
    const float* exp_avg_sq_blocks_0_expand_bias_new,
    const double* __restrict__ update_blocks_0_expand_bias_new_pow_2,
    float* blocks_0_expand_bias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 512) { return; }
    const float blocks_0_expand_bias_ = blocks_0_expand_bias[i];
    const double lr_ = lr[0];
    const double update_symbols_weight_new_mul_ = lr_ * 0.01;
    const double update_symbols_weight_new_sub_ = 1.0 - update_symbols_weight_new_mul_;
    const float update_symbols_weight_new_cast_3_ = (float)update_symbols_weight_new_sub_;
    const float update_blocks_0_expand_bias_new_mul_8_ = blocks_0_expand_bias_ * update_symbols_weight_new_cast_3_;
    const double update_blocks_0_expand_bias_new_div_ = update_blocks_0_expand_bias_new_div[0];
    const float update_blocks_0_expand_bias_new_cast_5_ = (float)update_blocks_0_expand_bias_new_div_;
    const float exp_avg_blocks_0_expand_bias_new_ = exp_avg_blocks_0_expand_bias_new[i];
    const float update_blocks_0_expand_bias_new_mul_9_ = update_blocks_0_expand_bias_new_cast_5_ * exp_avg_blocks_0_expand_bias_new_;
    const float exp_avg_sq_blocks_0_expand_bias_new_ = exp_avg_sq_blocks_0_expand_bias_new[i];
    const float update_blocks_0_expand_bias_new_sqrt_ = sqrtf(exp_avg_sq_blocks_0_expand_bias_new_);
    const double update_blocks_0_expand_bias_new_pow_2_ = update_blocks_0_expand_bias_new_pow_2[0];
    const float update_blocks_0_expand_bias_new_cast_2_ = (float)update_blocks_0_expand_bias_new_pow_2_;
    const float update_blocks_0_expand_bias_new_mul_7_ = update_blocks_0_expand_bias_new_sqrt_ * update_blocks_0_expand_bias_new_cast_2_;
    const float update_blocks_0_expand_bias_new_add_5_ = update_blocks_0_expand_bias_new_mul_7_ + 1e-8f;
    const float update_blocks_0_expand_bias_new_div_2_ = update_blocks_0_expand_bias_new_mul_9_ / update_blocks_0_expand_bias_new_add_5_;
    const float blocks_0_expand_bias_new_ = update_blocks_0_expand_bias_new_mul_8_ - update_blocks_0_expand_bias_new_div_2_;
    blocks_0_expand_bias_new[i] = blocks_0_expand_bias_new_;
}

// blocks_3_expand_weight_new, of blocks.3.expand.weight_new  f32 [512, 128]
extern "C" __global__ void k191_blocks_3_expand_weight_new(
    const float* blocks_3_expand_weight,
    const double* __restrict__ lr,
    const double* __restrict__ update_blocks_3_expand_weight_new_div,
    const float* exp_avg_blocks_3_expand_weight_new,
    const float* exp_avg_sq_blocks_3_expand_weight_new,
    const double* __restrict__ update_blocks_3_expand_weight_new_pow_2,
    float* blocks_3_expand_weight_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 65536) { return; }
    const float blocks_3_expand_weight_ = blocks_3_expand_weight[i];
    const double lr_ = lr[0];
    const double update_symbols_weight_new_mul_ = lr_ * 0.01;
    const double update_symbols_weight_new_sub_ = 1.0 - update_symbols_weight_new_mul_;
    const float update_symbols_weight_new_cast_3_ = (float)update_symbols_weight_new_sub_;
    const float update_blocks_3_expand_weight_new_mul_8_ = blocks_3_expand_weight_ * update_symbols_weight_new_cast_3_;
    const double update_blocks_3_expand_weight_new_div_ = update_blocks_3_expand_weight_new_div[0];
    const float update_blocks_3_expand_weight_new_cast_5_ = (float)update_blocks_3_expand_weight_new_div_;
    const float exp_avg_blocks_3_expand_weight_new_ = exp_avg_blocks_3_expand_weight_new[i];
    const float update_blocks_3_expand_weight_new_mul_9_ = update_blocks_3_expand_weight_new_cast_5_ * exp_avg_blocks_3_expand_weight_new_;
    const float exp_avg_sq_blocks_3_expand_weight_new_ = exp_avg_sq_blocks_3_expand_weight_new[i];
    const float update_blocks_3_expand_weight_new_sqrt_ = sqrtf(exp_avg_sq_blocks_3_expand_weight_new_);
    const double update_blocks_3_expand_weight_new_pow_2_ = update_blocks_3_expand_weight_new_pow_2[0];
    const float update_blocks_3_expand_weight_new_cast_2_ = (float)update_blocks_3_expand_weight_new_pow_2_;
    const float update_blocks_3_expand_weight_new_mul_7_ = update_blocks_3_expand_weight_new_sqrt_ * update_blocks_3_expand_weight_new_cast_2_;
    const float update_blocks_3_expand_weight_new_add_5_ = update_blocks_3_expand_weight_new_mul_7_ + 1e-8f;
    const float update_blocks_3_expand_weight_new_div_2_ = update_blocks_3_expand_weight_new_mul_9_ / update_blocks_3_expand_weight_new_add_5_;
    const float blocks_3_expand_weight_new_ = update_blocks_3_expand_weight_new_mul_8_ - update_blocks_3_expand_weight_new_div_2_;
    blocks_3_expand_weight_new[i] = blocks_3_expand_weight_new_;
}

// update_blocks_3_project_weight_new_add, of /update/blocks_3_project_weight_new/Add  i64 []
// update_blocks_3_project_weight_new_pow_2, of /update/blocks_3_project_weight_new/Pow.2  f64 []
// update_blocks_3_project_weight_new_div, of /update/blocks_3_project_weight_new/Div  f64 []
// update_blocks_3_project_bias_new_add, of /update/blocks_3_project_bias_new/Add  i64 []
// update_blocks_3_project_bias_new_pow_2, of /update/blocks_3_project_bias_new/Pow.2  f64 []
// update_blocks_3_project_bias_new_div, of /update/blocks_3_project_bias_new/Div  f64 []
// update_norm_weight_new_add, of /update/norm_weight_new/Add  i64 []
// update_norm_weight_new_pow_2, of /update/norm_weight_new/Pow.2  f64 []
// update_norm_weight_new_div, of /update/norm_weight_new/Div  f64 []
// update_norm_bias_new_add, of /update/norm_bias_new/Add  i64 []
// update_norm_bias_new_pow_2, of /update/norm_bias_new/Pow.2  f64 []
// update_norm_bias_new_div, of /update/norm_bias_new/Div  f64 []
// update_head_weight_new_add, of /update/head_weight_new/Add  i64 []
// update_head_weight_new_pow_2, of /update/head_weight_new/Pow.2  f64 []
// update_head_weight_new_div, of /update/head_weight_new/Div  f64 []
extern "C" __global__ void k193_update_head_weight_new_div(
    const long long* __restrict__ step_blocks_3_project_weight,
    const double* __restrict__ lr,
    const long long* __restrict__ step_blocks_3_project_bias,
    const long long* __restrict__ step_norm_weight,
    const long long* __restrict__ step_norm_bias,
    const long long* __restrict__ step_head_weight,
    long long* __restrict__ update_blocks_3_project_weight_new_add,
    double* __restrict__ update_blocks_3_project_weight_new_pow_2,
    double* __restrict__ update_blocks_3_project_weight_new_div,
    long long* __restrict__ update_blocks_3_project_bias_new_add,
    double* __restrict__ update_blocks_3_project_bias_new_pow_2,
    double* __restrict__ update_blocks_3_project_bias_new_div,
    long long* __restrict__ update_norm_weight_new_add,
    double* __restrict__ update_norm_weight_new_pow_2,
    double* __restrict__ update_norm_weight_new_div,
    long long* __restrict__ update_norm_bias_new_add,
    double* __restrict__ update_norm_bias_new_pow_2,
    double* __restrict__ update_norm_bias_new_div,
    long long* __restrict__ update_head_weight_new_add,
    double* __restrict__ update_head_weight_new_pow_2,
    double* __restrict__ update_head_weight_new_div
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 1) { return; }
    const long long step_blocks_3_project_weight_ = step_blocks_3_project_weight[0];
    const long long update_blocks_3_project_weight_new_add_ = step_blocks_3_project_weight_ + 1ll;
    update_blocks_3_project_weight_new_add[i] = update_blocks_3_project_weight_new_add_;
    const double update_blocks_3_project_weight_new_cast_ = (double)update_blocks_3_project_weight_new_add_;
    const double update_blocks_3_project_weight_new_pow_ = pow(0.999, update_blocks_3_project_weight_new_cast_);
    const double update_blocks_3_project_weight_new_sub_3_ = 1.0 - update_blocks_3_project_weight_new_pow_;
    const double update_blocks_3_project_weight_new_pow_2_ = inverse_root(update_blocks_3_project_weight_new_sub_3_);
    update_blocks_3_project_weight_new_pow_2[i] = update_blocks_3_project_weight_new_pow_2_;
    const double lr_ = lr[0];
    const double update_blocks_3_project_weight_new_pow_3_ = pow(0.9, update_blocks_3_project_weight_new_cast_);
    const double update_blocks_3_project_weight_new_sub_4_ = 1.0 - update_blocks_3_project_weight_new_pow_3_;
    const double update_blocks_3_project_weight_new_div_ = lr_ / update_blocks_3_project_weight_new_sub_4_;
    update_blocks_3_project_weight_new_div[i] = update_blocks_3_project_weight_new_div_;
    const long long step_blocks_3_project_bias_ = step_blocks_3_project_bias[0];
    const long long update_blocks_3_project_bias_new_add_ = step_blocks_3_project_bias_ + 1ll;
    update_blocks_3_project_bias_new_add[i] = update_blocks_3_project_bias_new_add_;
    const double update_blocks_3_project_bias_new_cast_ = (double)update_blocks_3_project_bias_new_add_;
    const double update_blocks_3_project_bias_new_pow_ = pow(0.999, update_blocks_3_project_bias_new_cast_);
    const double update_blocks_3_project_bias_new_sub_3_ = 1.0 - update_blocks_3_project_bias_new_pow_;
    const double update_blocks_3_project_bias_new_pow_2_ = inverse_root(update_blocks_3_project_bias_new_sub_3_);
    update_blocks_3_project_bias_new_pow_2[i] = update_blocks_3_project_bias_new_pow_2_;
    const double update_blocks_3_project_bias_new_pow_3_ = pow(0.9, update_blocks_3_project_bias_new_cast_);
    const double update_blocks_3_project_bias_new_sub_4_ = 1.0 - update_blocks_3_project_bias_new_pow_3_;
    const double update_blocks_3_project_bias_new_div_ = lr_ / update_blocks_3_project_bias_new_sub_4_;
    update_blocks_3_project_bias_new_div[i] = update_blocks_3_project_bias_new_div_;
    const long long step_norm_weight_ = step_norm_weight[0];
    const long long update_norm_weight_new_add_ = step_norm_weight_ + 1ll;
    update_norm_weight_new_add[i] = update_norm_weight_new_add_;
    const double update_norm_weight_new_cast_ = (double)update_norm_weight_new_add_;
    const double update_norm_weight_new_pow_ = pow(0.999, update_norm_weight_new_cast_);
    const double update_norm_weight_new_sub_3_ = 1.0 - update_norm_weight_new_pow_;
    const double update_norm_weight_new_pow_2_ = inverse_root(update_norm_weight_new_sub_3_);
    update_norm_weight_new_pow_2[i] = update_norm_weight_new_pow_2_;
    const double update_norm_weight_new_pow_3_ = pow(0.9, update_norm_weight_new_cast_);
    const double update_norm_weight_new_sub_4_ = 1.0 - update_norm_weight_new_pow_3_;
    const double update_norm_weight_new_div_ = lr_ / update_norm_weight_new_sub_4_;
    update_norm_weight_new_div[i] = update_norm_weight_new_div_;
    const long long step_norm_bias_ = step_norm_bias[0];
    const long long update_norm_bias_new_add_ = step_norm_bias_ + 1ll;
    update_norm_bias_new_add[i] = update_norm_bias_new_add_;
    const double update_norm_bias_new_cast_ = (double)update_norm_bias_new_add_;
    const double update_norm_bias_new_pow_ = pow(0.999, update_norm_bias_new_cast_);
    const double update_norm_bias_new_sub_3_ = 1.0 - update_norm_bias_new_pow_;
    const double update_norm_bias_new_pow_2_ = inverse_root(update_norm_bias_new_sub_3_);
    update_norm_bias_new_pow_2[i] = update_norm_bias_new_pow_2_;
    const double update_norm_bias_new_pow_3_ = pow(0.9, update_norm_bias_new_cast_);
    const double update_norm_bias_new_sub_4_ = 1.0 - update_norm_bias_new_pow_3_;
    const double update_norm_bias_new_div_ = lr_ / update_norm_bias_new_sub_4_;
    update_norm_bias_new_div[i] = update_norm_bias_new_div_;
    const long long step_head_weight_ = step_head_weight[0];
    const long long update_head_weight_new_add_ = step_head_weight_ + 1ll;
    update_head_weight_new_add[i] = update_head_weight_new_add_;
    const double update_head_weight_new_cast_ = (double)update_head_weight_new_add_;
    const double update_head_weight_new_pow_ = pow(0.999, update_head_weight_new_cast_);
    const double update_head_weight_new_sub_3_ = 1.0 - update_head_weight_new_pow_;
    const double update_head_weight_new_pow_2_ = inverse_root(update_head_weight_new_sub_3_);
    update_head_weight_new_pow_2[i] = update_head_weight_new_pow_2_;
    const double update_head_weight_new_pow_3_ = pow(0.9, update_head_weight_new_cast_);
    const double update_head_weight_new_sub_4_ = 1.0 - update_head_weight_new_pow_3_;
    const double update_head_weight_new_div_ = lr_ / update_head_weight_new_sub_4_;
    update_head_weight_new_div[i] = update_head_weight_new_div_;
}

// Launches, in order: kernel, blocks, threads, arguments.
//   k00_embedding<<<384, 256>>>(x, symbols_weight, embedding)
//   k01_blocks_0_norm1_add_2<<<768, 128>>>(embedding, positions_weight, blocks_0_norm1_weight, blocks_0_norm1_bias, blocks_0_norm1_reducemean, blocks_0_norm1_div, blocks_0_norm1_add_2)
//   k02_linear<<<72, 256>>>(blocks_0_norm1_add_2, blocks_0_attention_qkv_weight, blocks_0_attention_qkv_bias, linear)
//   k03_blocks_0_attention_matmul<<<48, 256>>>(linear, blocks_0_attention_matmul)
//   k04_blocks_0_attention_lessorequal<<<16, 256>>>(blocks_0_attention_lessorequal)
//   k05_blocks_0_attention_where_3<<<3072, 32>>>(blocks_0_attention_lessorequal, blocks_0_attention_matmul, blocks_0_attention_reducemax, blocks_0_attention_where_3)
//   k06_attention<<<384, 256>>>(blocks_0_attention_where_3, linear, attention)
//   k07_add<<<24, 256>>>(attention, blocks_0_attention_out_weight, embedding, positions_weight, blocks_0_attention_out_bias, add)
//   k08_blocks_0_norm2_add_2<<<768, 128>>>(add, blocks_0_norm2_weight, blocks_0_norm2_bias, blocks_0_norm2_reducemean, blocks_0_norm2_div, blocks_0_norm2_add_2)
//   k09_gelu_tanh<<<96, 256>>>(blocks_0_norm2_add_2, blocks_0_expand_weight, blocks_0_expand_bias, blocks_0_expand_matmul, gelu_tanh)
//   k10_add_2<<<24, 256>>>(gelu_tanh, blocks_0_project_weight, add, blocks_0_project_bias, add_2)
//   k08_blocks_0_norm2_add_2<<<768, 128>>>(add_2, blocks_1_norm1_weight, blocks_1_norm1_bias, blocks_1_norm1_reducemean, blocks_1_norm1_div, blocks_1_norm1_add_2)
//   k02_linear<<<72, 256>>>(blocks_1_norm1_add_2, blocks_1_attention_qkv_weight, blocks_1_attention_qkv_bias, linear_5)
//   k03_blocks_0_attention_matmul<<<48, 256>>>(linear_5, blocks_1_attention_matmul)
//   k14_blocks_1_attention_where_3<<<3072, 32>>>(blocks_0_attention_reducemax, blocks_0_attention_lessorequal, blocks_1_attention_matmul, blocks_1_attention_where_3)
//   k06_attention<<<384, 256>>>(blocks_1_attention_where_3, linear_5, attention_2)
//   k16_add_3<<<24, 256>>>(attention_2, blocks_1_attention_out_weight, add_2, blocks_1_attention_out_bias, add_3)
//   k17_picked<<<768, 128>>>(add_3, blocks_1_norm2_weight, blocks_1_norm2_bias, y, blocks_1_norm2_reducemean, blocks_1_norm2_div, blocks_1_norm2_add_2, picked)
//   k09_gelu_tanh<<<96, 256>>>(blocks_1_norm2_add_2, blocks_1_expand_weight, blocks_1_expand_bias, blocks_1_expand_matmul, gelu_tanh_2)
//   k10_add_2<<<24, 256>>>(gelu_tanh_2, blocks_1_project_weight, add_3, blocks_1_project_bias, add_4)
//   k08_blocks_0_norm2_add_2<<<768, 128>>>(add_4, blocks_2_norm1_weight, blocks_2_norm1_bias, blocks_2_norm1_reducemean, blocks_2_norm1_div, blocks_2_norm1_add_2)
//   k02_linear<<<72, 256>>>(blocks_2_norm1_add_2, blocks_2_attention_qkv_weight, blocks_2_attention_qkv_bias, linear_9)
//   k03_blocks_0_attention_matmul<<<48, 256>>>(linear_9, blocks_2_attention_matmul)
//   k14_blocks_1_attention_where_3<<<3072, 32>>>(blocks_0_attention_reducemax, blocks_0_attention_lessorequal, blocks_2_attention_matmul, blocks_2_attention_where_3)
//   k06_attention<<<384, 256>>>(blocks_2_attention_where_3, linear_9, attention_3)
//   k16_add_3<<<24, 256>>>(attention_3, blocks_2_attention_out_weight, add_4, blocks_2_attention_out_bias, add_5)
//   k08_blocks_0_norm2_add_2<<<768, 128>>>(add_5, blocks_2_norm2_weight, blocks_2_norm2_bias, blocks_2_norm2_reducemean, blocks_2_norm2_div, blocks_2_norm2_add_2)
//   k09_gelu_tanh<<<96, 256>>>(blocks_2_norm2_add_2, blocks_2_expand_weight, blocks_2_expand_bias, blocks_2_expand_matmul, gelu_tanh_3)
//   k10_add_2<<<24, 256>>>(gelu_tanh_3, blocks_2_project_weight, add_5, blocks_2_project_bias, add_6)
//   k08_blocks_0_norm2_add_2<<<768, 128>>>(add_6, blocks_3_norm1_weight, blocks_3_norm1_bias, blocks_3_norm1_reducemean, blocks_3_norm1_div, blocks_3_norm1_add_2)
//   k02_linear<<<72, 256>>>(blocks_3_norm1_add_2, blocks_3_attention_qkv_weight, blocks_3_attention_qkv_bias, linear_13)
//   k03_blocks_0_attention_matmul<<<48, 256>>>(linear_13, blocks_3_attention_matmul)
//   k14_blocks_1_attention_where_3<<<3072, 32>>>(blocks_0_attention_reducemax, blocks_0_attention_lessorequal, blocks_3_attention_matmul, blocks_3_attention_where_3)
//   k06_attention<<<384, 256>>>(blocks_3_attention_where_3, linear_13, attention_4)
//   k16_add_3<<<24, 256>>>(attention_4, blocks_3_attention_out_weight, add_6, blocks_3_attention_out_bias, add_7)
//   k08_blocks_0_norm2_add_2<<<768, 128>>>(add_7, blocks_3_norm2_weight, blocks_3_norm2_bias, blocks_3_norm2_reducemean, blocks_3_norm2_div, blocks_3_norm2_add_2)
//   k09_gelu_tanh<<<96, 256>>>(blocks_3_norm2_add_2, blocks_3_expand_weight, blocks_3_expand_bias, blocks_3_expand_matmul, gelu_tanh_4)
//   k10_add_2<<<24, 256>>>(gelu_tanh_4, blocks_3_project_weight, add_7, blocks_3_project_bias, x_3)
//   k08_blocks_0_norm2_add_2<<<768, 128>>>(x_3, norm_weight, norm_bias, norm_reducemean, norm_div, norm_add_2)
//   k39_linear_17<<<24, 256>>>(norm_add_2, head_weight, linear_17)
//   k40_backward_d_logits_div<<<1, 256>>>(picked, loss_reducesum, backward_d_logits_div)
//   k41_d_logits<<<768, 128>>>(linear_17, y, backward_d_logits_div, picked, loss_reducemax, loss_reducesum_2, d_logits)
//   k42_loss<<<1, 256>>>(y, linear_17, loss_reducemax, loss_reducesum_2, loss_reducesum, loss)
//   k43_backward_head_matmul<<<24, 256>>>(d_logits, head_weight, backward_head_matmul)
//   k44_exp_avg_sq_head_weight_new<<<4, 256>>>(d_logits, norm_add_2, head_weight, exp_avg_head_weight, exp_avg_sq_head_weight, exp_avg_head_weight_new, exp_avg_sq_head_weight_new)
//   k45_backward_norm_mul_6<<<768, 128>>>(backward_head_matmul, norm_weight, x_3, norm_reducemean, norm_div, backward_norm_mul_6)
//   k46_of_pieces_3<<<6, 256>>>(backward_head_matmul, x_3, norm_reducemean, norm_div, backward_norm_mul_6, of_pieces, of_pieces_2, of_pieces_3)
//   k47_exp_avg_sq_norm_bias_new<<<1, 256>>>(of_pieces, of_pieces_2, of_pieces_3, blocks_3_project_bias, exp_avg_blocks_3_project_bias, exp_avg_sq_blocks_3_project_bias, norm_weight, exp_avg_norm_weight, exp_avg_sq_norm_weight, norm_bias, exp_avg_norm_bias, exp_avg_sq_norm_bias, exp_avg_blocks_3_project_bias_new, exp_avg_sq_blocks_3_project_bias_new, exp_avg_norm_weight_new, exp_avg_sq_norm_weight_new, exp_avg_norm_bias_new, exp_avg_sq_norm_bias_new)
//   k48_gelu_tanh_grad<<<96, 256>>>(backward_norm_mul_6, blocks_3_project_weight, blocks_3_expand_matmul, blocks_3_expand_bias, gelu_tanh_grad)
//   k49_exp_avg_sq_blocks_3_project_weight_new<<<16, 256>>>(backward_norm_mul_6, gelu_tanh_4, blocks_3_project_weight, exp_avg_blocks_3_project_weight, exp_avg_sq_blocks_3_project_weight, exp_avg_blocks_3_project_weight_new, exp_avg_sq_blocks_3_project_weight_new)
//   k50_backward_blocks_3_expand_matmul<<<24, 256>>>(gelu_tanh_grad, blocks_3_expand_weight, backward_blocks_3_expand_matmul)
//   k51_exp_avg_sq_blocks_3_expand_weight_new<<<16, 256>>>(gelu_tanh_grad, blocks_3_norm2_add_2, blocks_3_expand_weight, exp_avg_blocks_3_expand_weight, exp_avg_sq_blocks_3_expand_weight, exp_avg_blocks_3_expand_weight_new, exp_avg_sq_blocks_3_expand_weight_new)
//   k52_of_pieces_4<<<24, 256>>>(gelu_tanh_grad, of_pieces_4)
//   k53_exp_avg_sq_blocks_3_expand_bias_new<<<2, 256>>>(of_pieces_4, blocks_3_expand_bias, exp_avg_blocks_3_expand_bias, exp_avg_sq_blocks_3_expand_bias, exp_avg_blocks_3_expand_bias_new, exp_avg_sq_blocks_3_expand_bias_new)
//   k54_add_8<<<768, 128>>>(backward_blocks_3_expand_matmul, blocks_3_norm2_weight, add_7, blocks_3_norm2_reducemean, blocks_3_norm2_div, backward_norm_mul_6, add_8)
//   k46_of_pieces_3<<<6, 256>>>(backward_blocks_3_expand_matmul, add_7, blocks_3_norm2_reducemean, blocks_3_norm2_div, add_8, of_pieces_5, of_pieces_6, of_pieces_7)
//   k47_exp_avg_sq_norm_bias_new<<<1, 256>>>(of_pieces_5, of_pieces_6, of_pieces_7, blocks_3_attention_out_bias, exp_avg_blocks_3_attention_out_bias, exp_avg_sq_blocks_3_attention_out_bias, blocks_3_norm2_weight, exp_avg_blocks_3_norm2_weight, exp_avg_sq_blocks_3_norm2_weight, blocks_3_norm2_bias, exp_avg_blocks_3_norm2_bias, exp_avg_sq_blocks_3_norm2_bias, exp_avg_blocks_3_attention_out_bias_new, exp_avg_sq_blocks_3_attention_out_bias_new, exp_avg_blocks_3_norm2_weight_new, exp_avg_sq_blocks_3_norm2_weight_new, exp_avg_blocks_3_norm2_bias_new, exp_avg_sq_blocks_3_norm2_bias_new)
//   k57_backward_blocks_3_attention_out_matmul<<<24, 256>>>(add_8, blocks_3_attention_out_weight, backward_blocks_3_attention_out_matmul)
//   k58_exp_avg_sq_blocks_3_attention_out_weight_new<<<4, 256>>>(add_8, attention_4, blocks_3_attention_out_weight, exp_avg_blocks_3_attention_out_weight, exp_avg_sq_blocks_3_attention_out_weight, exp_avg_blocks_3_attention_out_weight_new, exp_avg_sq_blocks_3_attention_out_weight_new)
//   k59_backward_blocks_3_attention_matmul_2<<<48, 256>>>(backward_blocks_3_attention_out_matmul, linear_13, backward_blocks_3_attention_matmul_2)
//   k60_backward_blocks_3_attention_reducesum_2<<<3072, 32>>>(backward_blocks_3_attention_out_matmul, attention_4, backward_blocks_3_attention_reducesum_2)
//   k61_backward_blocks_3_attention_mul_5<<<192, 256>>>(blocks_3_attention_where_3, backward_blocks_3_attention_matmul_2, backward_blocks_3_attention_reducesum_2, backward_blocks_3_attention_mul_5)
//   k62_attention_grad<<<384, 256>>>(backward_blocks_3_attention_mul_5, linear_13, attention_grad)
//   k63_attention_grad_1<<<384, 256>>>(backward_blocks_3_attention_mul_5, linear_13, attention_grad_1)
//   k64_attention_grad_2<<<384, 256>>>(blocks_3_attention_where_3, backward_blocks_3_attention_out_matmul, attention_grad_2)
//   k65_unslice<<<288, 256>>>(attention_grad, attention_grad_1, attention_grad_2, unslice)
//   k66_backward_blocks_3_attention_qkv_matmul<<<24, 256>>>(unslice, blocks_3_attention_qkv_weight, backward_blocks_3_attention_qkv_matmul)
//   k67_exp_avg_sq_blocks_3_attention_qkv_weight_new<<<12, 256>>>(unslice, blocks_3_norm1_add_2, blocks_3_attention_qkv_weight, exp_avg_blocks_3_attention_qkv_weight, exp_avg_sq_blocks_3_attention_qkv_weight, exp_avg_blocks_3_attention_qkv_weight_new, exp_avg_sq_blocks_3_attention_qkv_weight_new)
//   k68_of_pieces_8<<<18, 256>>>(unslice, of_pieces_8)
//   k69_exp_avg_sq_blocks_3_attention_qkv_bias_new<<<2, 256>>>(of_pieces_8, blocks_3_attention_qkv_bias, exp_avg_blocks_3_attention_qkv_bias, exp_avg_sq_blocks_3_attention_qkv_bias, exp_avg_blocks_3_attention_qkv_bias_new, exp_avg_sq_blocks_3_attention_qkv_bias_new)
//   k54_add_8<<<768, 128>>>(backward_blocks_3_attention_qkv_matmul, blocks_3_norm1_weight, add_6, blocks_3_norm1_reducemean, blocks_3_norm1_div, add_8, add_9)
//   k46_of_pieces_3<<<6, 256>>>(backward_blocks_3_attention_qkv_matmul, add_6, blocks_3_norm1_reducemean, blocks_3_norm1_div, add_9, of_pieces_9, of_pieces_10, of_pieces_11)
//   k47_exp_avg_sq_norm_bias_new<<<1, 256>>>(of_pieces_9, of_pieces_10, of_pieces_11, blocks_2_project_bias, exp_avg_blocks_2_project_bias, exp_avg_sq_blocks_2_project_bias, blocks_3_norm1_weight, exp_avg_blocks_3_norm1_weight, exp_avg_sq_blocks_3_norm1_weight, blocks_3_norm1_bias, exp_avg_blocks_3_norm1_bias, exp_avg_sq_blocks_3_norm1_bias, exp_avg_blocks_2_project_bias_new, exp_avg_sq_blocks_2_project_bias_new, exp_avg_blocks_3_norm1_weight_new, exp_avg_sq_blocks_3_norm1_weight_new, exp_avg_blocks_3_norm1_bias_new, exp_avg_sq_blocks_3_norm1_bias_new)
//   k48_gelu_tanh_grad<<<96, 256>>>(add_9, blocks_2_project_weight, blocks_2_expand_matmul, blocks_2_expand_bias, gelu_tanh_grad_2)
//   k49_exp_avg_sq_blocks_3_project_weight_new<<<16, 256>>>(add_9, gelu_tanh_3, blocks_2_project_weight, exp_avg_blocks_2_project_weight, exp_avg_sq_blocks_2_project_weight, exp_avg_blocks_2_project_weight_new, exp_avg_sq_blocks_2_project_weight_new)
//   k50_backward_blocks_3_expand_matmul<<<24, 256>>>(gelu_tanh_grad_2, blocks_2_expand_weight, backward_blocks_2_expand_matmul)
//   k51_exp_avg_sq_blocks_3_expand_weight_new<<<16, 256>>>(gelu_tanh_grad_2, blocks_2_norm2_add_2, blocks_2_expand_weight, exp_avg_blocks_2_expand_weight, exp_avg_sq_blocks_2_expand_weight, exp_avg_blocks_2_expand_weight_new, exp_avg_sq_blocks_2_expand_weight_new)
//   k52_of_pieces_4<<<24, 256>>>(gelu_tanh_grad_2, of_pieces_12)
//   k53_exp_avg_sq_blocks_3_expand_bias_new<<<2, 256>>>(of_pieces_12, blocks_2_expand_bias, exp_avg_blocks_2_expand_bias, exp_avg_sq_blocks_2_expand_bias, exp_avg_blocks_2_expand_bias_new, exp_avg_sq_blocks_2_expand_bias_new)
//   k54_add_8<<<768, 128>>>(backward_blocks_2_expand_matmul, blocks_2_norm2_weight, add_5, blocks_2_norm2_reducemean, blocks_2_norm2_div, add_9, add_10)
//   k46_of_pieces_3<<<6, 256>>>(backward_blocks_2_expand_matmul, add_5, blocks_2_norm2_reducemean, blocks_2_norm2_div, add_10, of_pieces_13, of_pieces_14, of_pieces_15)
//   k47_exp_avg_sq_norm_bias_new<<<1, 256>>>(of_pieces_13, of_pieces_14, of_pieces_15, blocks_2_attention_out_bias, exp_avg_blocks_2_attention_out_bias, exp_avg_sq_blocks_2_attention_out_bias, blocks_2_norm2_weight, exp_avg_blocks_2_norm2_weight, exp_avg_sq_blocks_2_norm2_weight, blocks_2_norm2_bias, exp_avg_blocks_2_norm2_bias, exp_avg_sq_blocks_2_norm2_bias, exp_avg_blocks_2_attention_out_bias_new, exp_avg_sq_blocks_2_attention_out_bias_new, exp_avg_blocks_2_norm2_weight_new, exp_avg_sq_blocks_2_norm2_weight_new, exp_avg_blocks_2_norm2_bias_new, exp_avg_sq_blocks_2_norm2_bias_new)
//   k57_backward_blocks_3_attention_out_matmul<<<24, 256>>>(add_10, blocks_2_attention_out_weight, backward_blocks_2_attention_out_matmul)
//   k58_exp_avg_sq_blocks_3_attention_out_weight_new<<<4, 256>>>(add_10, attention_3, blocks_2_attention_out_weight, exp_avg_blocks_2_attention_out_weight, exp_avg_sq_blocks_2_attention_out_weight, exp_avg_blocks_2_attention_out_weight_new, exp_avg_sq_blocks_2_attention_out_weight_new)
//   k59_backward_blocks_3_attention_matmul_2<<<48, 256>>>(backward_blocks_2_attention_out_matmul, linear_9, backward_blocks_2_attention_matmul_2)
//   k60_backward_blocks_3_attention_reducesum_2<<<3072, 32>>>(backward_blocks_2_attention_out_matmul, attention_3, backward_blocks_2_attention_reducesum_2)
//   k61_backward_blocks_3_attention_mul_5<<<192, 256>>>(blocks_2_attention_where_3, backward_blocks_2_attention_matmul_2, backward_blocks_2_attention_reducesum_2, backward_blocks_2_attention_mul_5)
//   k62_attention_grad<<<384, 256>>>(backward_blocks_2_attention_mul_5, linear_9, attention_grad_3)
//   k63_attention_grad_1<<<384, 256>>>(backward_blocks_2_attention_mul_5, linear_9, attention_grad_1_2)
//   k64_attention_grad_2<<<384, 256>>>(blocks_2_attention_where_3, backward_blocks_2_attention_out_matmul, attention_grad_2_2)
//   k65_unslice<<<288, 256>>>(attention_grad_3, attention_grad_1_2, attention_grad_2_2, unslice_2)
//   k66_backward_blocks_3_attention_qkv_matmul<<<24, 256>>>(unslice_2, blocks_2_attention_qkv_weight, backward_blocks_2_attention_qkv_matmul)
//   k67_exp_avg_sq_blocks_3_attention_qkv_weight_new<<<12, 256>>>(unslice_2, blocks_2_norm1_add_2, blocks_2_attention_qkv_weight, exp_avg_blocks_2_attention_qkv_weight, exp_avg_sq_blocks_2_attention_qkv_weight, exp_avg_blocks_2_attention_qkv_weight_new, exp_avg_sq_blocks_2_attention_qkv_weight_new)
//   k68_of_pieces_8<<<18, 256>>>(unslice_2, of_pieces_16)
//   k69_exp_avg_sq_blocks_3_attention_qkv_bias_new<<<2, 256>>>(of_pieces_16, blocks_2_attention_qkv_bias, exp_avg_blocks_2_attention_qkv_bias, exp_avg_sq_blocks_2_attention_qkv_bias, exp_avg_blocks_2_attention_qkv_bias_new, exp_avg_sq_blocks_2_attention_qkv_bias_new)
//   k54_add_8<<<768, 128>>>(backward_blocks_2_attention_qkv_matmul, blocks_2_norm1_weight, add_4, blocks_2_norm1_reducemean, blocks_2_norm1_div, add_10, add_11)
//   k46_of_pieces_3<<<6, 256>>>(backward_blocks_2_attention_qkv_matmul, add_4, blocks_2_norm1_reducemean, blocks_2_norm1_div, add_11, of_pieces_17, of_pieces_18, of_pieces_19)
//   k47_exp_avg_sq_norm_bias_new<<<1, 256>>>(of_pieces_17, of_pieces_18, of_pieces_19, blocks_1_project_bias, exp_avg_blocks_1_project_bias, exp_avg_sq_blocks_1_project_bias, blocks_2_norm1_weight, exp_avg_blocks_2_norm1_weight, exp_avg_sq_blocks_2_norm1_weight, blocks_2_norm1_bias, exp_avg_blocks_2_norm1_bias, exp_avg_sq_blocks_2_norm1_bias, exp_avg_blocks_1_project_bias_new, exp_avg_sq_blocks_1_project_bias_new, exp_avg_blocks_2_norm1_weight_new, exp_avg_sq_blocks_2_norm1_weight_new, exp_avg_blocks_2_norm1_bias_new, exp_avg_sq_blocks_2_norm1_bias_new)
//   k48_gelu_tanh_grad<<<96, 256>>>(add_11, blocks_1_project_weight, blocks_1_expand_matmul, blocks_1_expand_bias, gelu_tanh_grad_3)
//   k49_exp_avg_sq_blocks_3_project_weight_new<<<16, 256>>>(add_11, gelu_tanh_2, blocks_1_project_weight, exp_avg_blocks_1_project_weight, exp_avg_sq_blocks_1_project_weight, exp_avg_blocks_1_project_weight_new, exp_avg_sq_blocks_1_project_weight_new)
//   k50_backward_blocks_3_expand_matmul<<<24, 256>>>(gelu_tanh_grad_3, blocks_1_expand_weight, backward_blocks_1_expand_matmul)
//   k51_exp_avg_sq_blocks_3_expand_weight_new<<<16, 256>>>(gelu_tanh_grad_3, blocks_1_norm2_add_2, blocks_1_expand_weight, exp_avg_blocks_1_expand_weight, exp_avg_sq_blocks_1_expand_weight, exp_avg_blocks_1_expand_weight_new, exp_avg_sq_blocks_1_expand_weight_new)
//   k52_of_pieces_4<<<24, 256>>>(gelu_tanh_grad_3, of_pieces_20)
//   k53_exp_avg_sq_blocks_3_expand_bias_new<<<2, 256>>>(of_pieces_20, blocks_1_expand_bias, exp_avg_blocks_1_expand_bias, exp_avg_sq_blocks_1_expand_bias, exp_avg_blocks_1_expand_bias_new, exp_avg_sq_blocks_1_expand_bias_new)
//   k54_add_8<<<768, 128>>>(backward_blocks_1_expand_matmul, blocks_1_norm2_weight, add_3, blocks_1_norm2_reducemean, blocks_1_norm2_div, add_11, add_12)
//   k46_of_pieces_3<<<6, 256>>>(backward_blocks_1_expand_matmul, add_3, blocks_1_norm2_reducemean, blocks_1_norm2_div, add_12, of_pieces_21, of_pieces_22, of_pieces_23)
//   k47_exp_avg_sq_norm_bias_new<<<1, 256>>>(of_pieces_21, of_pieces_22, of_pieces_23, blocks_1_attention_out_bias, exp_avg_blocks_1_attention_out_bias, exp_avg_sq_blocks_1_attention_out_bias, blocks_1_norm2_weight, exp_avg_blocks_1_norm2_weight, exp_avg_sq_blocks_1_norm2_weight, blocks_1_norm2_bias, exp_avg_blocks_1_norm2_bias, exp_avg_sq_blocks_1_norm2_bias, exp_avg_blocks_1_attention_out_bias_new, exp_avg_sq_blocks_1_attention_out_bias_new, exp_avg_blocks_1_norm2_weight_new, exp_avg_sq_blocks_1_norm2_weight_new, exp_avg_blocks_1_norm2_bias_new, exp_avg_sq_blocks_1_norm2_bias_new)
//   k57_backward_blocks_3_attention_out_matmul<<<24, 256>>>(add_12, blocks_1_attention_out_weight, backward_blocks_1_attention_out_matmul)
//   k58_exp_avg_sq_blocks_3_attention_out_weight_new<<<4, 256>>>(add_12, attention_2, blocks_1_attention_out_weight, exp_avg_blocks_1_attention_out_weight, exp_avg_sq_blocks_1_attention_out_weight, exp_avg_blocks_1_attention_out_weight_new, exp_avg_sq_blocks_1_attention_out_weight_new)
//   k59_backward_blocks_3_attention_matmul_2<<<48, 256>>>(backward_blocks_1_attention_out_matmul, linear_5, backward_blocks_1_attention_matmul_2)
//   k60_backward_blocks_3_attention_reducesum_2<<<3072, 32>>>(backward_blocks_1_attention_out_matmul, attention_2, backward_blocks_1_attention_reducesum_2)
//   k61_backward_blocks_3_attention_mul_5<<<192, 256>>>(blocks_1_attention_where_3, backward_blocks_1_attention_matmul_2, backward_blocks_1_attention_reducesum_2, backward_blocks_1_attention_mul_5)
//   k62_attention_grad<<<384, 256>>>(backward_blocks_1_attention_mul_5, linear_5, attention_grad_4)
//   k63_attention_grad_1<<<384, 256>>>(backward_blocks_1_attention_mul_5, linear_5, attention_grad_1_3)
//   k64_attention_grad_2<<<384, 256>>>(blocks_1_attention_where_3, backward_blocks_1_attention_out_matmul, attention_grad_2_3)
//   k65_unslice<<<288, 256>>>(attention_grad_4, attention_grad_1_3, attention_grad_2_3, unslice_3)
//   k66_backward_blocks_3_attention_qkv_matmul<<<24, 256>>>(unslice_3, blocks_1_attention_qkv_weight, backward_blocks_1_attention_qkv_matmul)
//   k67_exp_avg_sq_blocks_3_attention_qkv_weight_new<<<12, 256>>>(unslice_3, blocks_1_norm1_add_2, blocks_1_attention_qkv_weight, exp_avg_blocks_1_attention_qkv_weight, exp_avg_sq_blocks_1_attention_qkv_weight, exp_avg_blocks_1_attention_qkv_weight_new, exp_avg_sq_blocks_1_attention_qkv_weight_new)
//   k68_of_pieces_8<<<18, 256>>>(unslice_3, of_pieces_24)
//   k69_exp_avg_sq_blocks_3_attention_qkv_bias_new<<<2, 256>>>(of_pieces_24, blocks_1_attention_qkv_bias, exp_avg_blocks_1_attention_qkv_bias, exp_avg_sq_blocks_1_attention_qkv_bias, exp_avg_blocks_1_attention_qkv_bias_new, exp_avg_sq_blocks_1_attention_qkv_bias_new)
//   k54_add_8<<<768, 128>>>(backward_blocks_1_attention_qkv_matmul, blocks_1_norm1_weight, add_2, blocks_1_norm1_reducemean, blocks_1_norm1_div, add_12, add_13)
//   k46_of_pieces_3<<<6, 256>>>(backward_blocks_1_attention_qkv_matmul, add_2, blocks_1_norm1_reducemean, blocks_1_norm1_div, add_13, of_pieces_25, of_pieces_26, of_pieces_27)
//   k47_exp_avg_sq_norm_bias_new<<<1, 256>>>(of_pieces_25, of_pieces_26, of_pieces_27, blocks_0_project_bias, exp_avg_blocks_0_project_bias, exp_avg_sq_blocks_0_project_bias, blocks_1_norm1_weight, exp_avg_blocks_1_norm1_weight, exp_avg_sq_blocks_1_norm1_weight, blocks_1_norm1_bias, exp_avg_blocks_1_norm1_bias, exp_avg_sq_blocks_1_norm1_bias, exp_avg_blocks_0_project_bias_new, exp_avg_sq_blocks_0_project_bias_new, exp_avg_blocks_1_norm1_weight_new, exp_avg_sq_blocks_1_norm1_weight_new, exp_avg_blocks_1_norm1_bias_new, exp_avg_sq_blocks_1_norm1_bias_new)
//   k48_gelu_tanh_grad<<<96, 256>>>(add_13, blocks_0_project_weight, blocks_0_expand_matmul, blocks_0_expand_bias, gelu_tanh_grad_4)
//   k49_exp_avg_sq_blocks_3_project_weight_new<<<16, 256>>>(add_13, gelu_tanh, blocks_0_project_weight, exp_avg_blocks_0_project_weight, exp_avg_sq_blocks_0_project_weight, exp_avg_blocks_0_project_weight_new, exp_avg_sq_blocks_0_project_weight_new)
//   k50_backward_blocks_3_expand_matmul<<<24, 256>>>(gelu_tanh_grad_4, blocks_0_expand_weight, backward_blocks_0_expand_matmul)
//   k51_exp_avg_sq_blocks_3_expand_weight_new<<<16, 256>>>(gelu_tanh_grad_4, blocks_0_norm2_add_2, blocks_0_expand_weight, exp_avg_blocks_0_expand_weight, exp_avg_sq_blocks_0_expand_weight, exp_avg_blocks_0_expand_weight_new, exp_avg_sq_blocks_0_expand_weight_new)
//   k52_of_pieces_4<<<24, 256>>>(gelu_tanh_grad_4, of_pieces_28)
//   k53_exp_avg_sq_blocks_3_expand_bias_new<<<2, 256>>>(of_pieces_28, blocks_0_expand_bias, exp_avg_blocks_0_expand_bias, exp_avg_sq_blocks_0_expand_bias, exp_avg_blocks_0_expand_bias_new, exp_avg_sq_blocks_0_expand_bias_new)
//   k54_add_8<<<768, 128>>>(backward_blocks_0_expand_matmul, blocks_0_norm2_weight, add, blocks_0_norm2_reducemean, blocks_0_norm2_div, add_13, add_14)
//   k46_of_pieces_3<<<6, 256>>>(backward_blocks_0_expand_matmul, add, blocks_0_norm2_reducemean, blocks_0_norm2_div, add_14, of_pieces_29, of_pieces_30, of_pieces_31)
//   k47_exp_avg_sq_norm_bias_new<<<1, 256>>>(of_pieces_29, of_pieces_30, of_pieces_31, blocks_0_attention_out_bias, exp_avg_blocks_0_attention_out_bias, exp_avg_sq_blocks_0_attention_out_bias, blocks_0_norm2_weight, exp_avg_blocks_0_norm2_weight, exp_avg_sq_blocks_0_norm2_weight, blocks_0_norm2_bias, exp_avg_blocks_0_norm2_bias, exp_avg_sq_blocks_0_norm2_bias, exp_avg_blocks_0_attention_out_bias_new, exp_avg_sq_blocks_0_attention_out_bias_new, exp_avg_blocks_0_norm2_weight_new, exp_avg_sq_blocks_0_norm2_weight_new, exp_avg_blocks_0_norm2_bias_new, exp_avg_sq_blocks_0_norm2_bias_new)
//   k57_backward_blocks_3_attention_out_matmul<<<24, 256>>>(add_14, blocks_0_attention_out_weight, backward_blocks_0_attention_out_matmul)
//   k58_exp_avg_sq_blocks_3_attention_out_weight_new<<<4, 256>>>(add_14, attention, blocks_0_attention_out_weight, exp_avg_blocks_0_attention_out_weight, exp_avg_sq_blocks_0_attention_out_weight, exp_avg_blocks_0_attention_out_weight_new, exp_avg_sq_blocks_0_attention_out_weight_new)
//   k59_backward_blocks_3_attention_matmul_2<<<48, 256>>>(backward_blocks_0_attention_out_matmul, linear, backward_blocks_0_attention_matmul_2)
//   k60_backward_blocks_3_attention_reducesum_2<<<3072, 32>>>(backward_blocks_0_attention_out_matmul, attention, backward_blocks_0_attention_reducesum_2)
//   k61_backward_blocks_3_attention_mul_5<<<192, 256>>>(blocks_0_attention_where_3, backward_blocks_0_attention_matmul_2, backward_blocks_0_attention_reducesum_2, backward_blocks_0_attention_mul_5)
//   k62_attention_grad<<<384, 256>>>(backward_blocks_0_attention_mul_5, linear, attention_grad_5)
//   k63_attention_grad_1<<<384, 256>>>(backward_blocks_0_attention_mul_5, linear, attention_grad_1_4)
//   k64_attention_grad_2<<<384, 256>>>(blocks_0_attention_where_3, backward_blocks_0_attention_out_matmul, attention_grad_2_4)
//   k65_unslice<<<288, 256>>>(attention_grad_5, attention_grad_1_4, attention_grad_2_4, unslice_4)
//   k66_backward_blocks_3_attention_qkv_matmul<<<24, 256>>>(unslice_4, blocks_0_attention_qkv_weight, backward_blocks_0_attention_qkv_matmul)
//   k67_exp_avg_sq_blocks_3_attention_qkv_weight_new<<<12, 256>>>(unslice_4, blocks_0_norm1_add_2, blocks_0_attention_qkv_weight, exp_avg_blocks_0_attention_qkv_weight, exp_avg_sq_blocks_0_attention_qkv_weight, exp_avg_blocks_0_attention_qkv_weight_new, exp_avg_sq_blocks_0_attention_qkv_weight_new)
//   k68_of_pieces_8<<<18, 256>>>(unslice_4, of_pieces_32)
//   k69_exp_avg_sq_blocks_3_attention_qkv_bias_new<<<2, 256>>>(of_pieces_32, blocks_0_attention_qkv_bias, exp_avg_blocks_0_attention_qkv_bias, exp_avg_sq_blocks_0_attention_qkv_bias, exp_avg_blocks_0_attention_qkv_bias_new, exp_avg_sq_blocks_0_attention_qkv_bias_new)
//   k145_d_x_2<<<768, 128>>>(backward_blocks_0_attention_qkv_matmul, blocks_0_norm1_weight, embedding, positions_weight, blocks_0_norm1_reducemean, blocks_0_norm1_div, add_14, d_x_2)
//   k146_of_pieces_34<<<6, 256>>>(backward_blocks_0_attention_qkv_matmul, embedding, positions_weight, blocks_0_norm1_reducemean, blocks_0_norm1_div, of_pieces_33, of_pieces_34)
//   k147_exp_avg_sq_blocks_0_norm1_bias_new<<<1, 256>>>(of_pieces_33, of_pieces_34, blocks_0_norm1_weight, exp_avg_blocks_0_norm1_weight, exp_avg_sq_blocks_0_norm1_weight, blocks_0_norm1_bias, exp_avg_blocks_0_norm1_bias, exp_avg_sq_blocks_0_norm1_bias, exp_avg_blocks_0_norm1_weight_new, exp_avg_sq_blocks_0_norm1_weight_new, exp_avg_blocks_0_norm1_bias_new, exp_avg_sq_blocks_0_norm1_bias_new)
//   k148_exp_avg_sq_positions_weight_new<<<32, 256>>>(d_x_2, positions_weight, exp_avg_positions_weight, exp_avg_sq_positions_weight, exp_avg_positions_weight_new, exp_avg_sq_positions_weight_new)
//   k149_count<<<768, 192>>>(x, count)
//   k150_places<<<3, 256>>>(count, places)
//   k151_begins<<<1, 256>>>(places, x, begins)
//   k152_exp_avg_sq_symbols_weight_new<<<33, 256>>>(begins, places, d_x_2, symbols_weight, exp_avg_symbols_weight, exp_avg_sq_symbols_weight, exp_avg_symbols_weight_new, exp_avg_sq_symbols_weight_new)
//   k153_update_blocks_0_attention_qkv_bias_new_add<<<1, 256>>>(step_symbols_weight, lr, step_positions_weight, step_blocks_0_norm1_weight, step_blocks_0_norm1_bias, step_blocks_0_attention_qkv_weight, step_blocks_0_attention_qkv_bias, update_symbols_weight_new_add, update_symbols_weight_new_pow_2, update_symbols_weight_new_div, update_positions_weight_new_add, update_positions_weight_new_pow_2, update_positions_weight_new_div, update_blocks_0_norm1_weight_new_add, update_blocks_0_norm1_weight_new_pow_2, update_blocks_0_norm1_weight_new_div, update_blocks_0_norm1_bias_new_add, update_blocks_0_norm1_bias_new_pow_2, update_blocks_0_norm1_bias_new_div, update_blocks_0_attention_qkv_weight_new_add, update_blocks_0_attention_qkv_weight_new_pow_2, update_blocks_0_attention_qkv_weight_new_div, update_blocks_0_attention_qkv_bias_new_add)
//   k154_symbols_weight_new<<<33, 256>>>(symbols_weight, lr, update_symbols_weight_new_div, exp_avg_symbols_weight_new, exp_avg_sq_symbols_weight_new, update_symbols_weight_new_pow_2, symbols_weight_new)
//   k155_positions_weight_new<<<32, 256>>>(positions_weight, lr, update_positions_weight_new_div, exp_avg_positions_weight_new, exp_avg_sq_positions_weight_new, update_positions_weight_new_pow_2, positions_weight_new)
//   k156_blocks_0_norm1_bias_new<<<1, 256>>>(blocks_0_norm1_weight, lr, update_blocks_0_norm1_weight_new_div, exp_avg_blocks_0_norm1_weight_new, exp_avg_sq_blocks_0_norm1_weight_new, update_blocks_0_norm1_weight_new_pow_2, blocks_0_norm1_bias, update_blocks_0_norm1_bias_new_div, exp_avg_blocks_0_norm1_bias_new, exp_avg_sq_blocks_0_norm1_bias_new, update_blocks_0_norm1_bias_new_pow_2, blocks_0_norm1_weight_new, blocks_0_norm1_bias_new)
//   k157_blocks_0_attention_qkv_weight_new<<<192, 256>>>(blocks_0_attention_qkv_weight, lr, update_blocks_0_attention_qkv_weight_new_div, exp_avg_blocks_0_attention_qkv_weight_new, exp_avg_sq_blocks_0_attention_qkv_weight_new, update_blocks_0_attention_qkv_weight_new_pow_2, blocks_0_attention_qkv_weight_new)
//   k158_update_blocks_0_expand_weight_new_pow_2<<<1, 256>>>(update_blocks_0_attention_qkv_bias_new_add, lr, step_blocks_0_attention_out_weight, step_blocks_0_attention_out_bias, step_blocks_0_norm2_weight, step_blocks_0_norm2_bias, step_blocks_0_expand_weight, update_blocks_0_attention_qkv_bias_new_pow_2, update_blocks_0_attention_qkv_bias_new_div, update_blocks_0_attention_out_weight_new_add, update_blocks_0_attention_out_weight_new_pow_2, update_blocks_0_attention_out_weight_new_div, update_blocks_0_attention_out_bias_new_add, update_blocks_0_attention_out_bias_new_pow_2, update_blocks_0_attention_out_bias_new_div, update_blocks_0_norm2_weight_new_add, update_blocks_0_norm2_weight_new_pow_2, update_blocks_0_norm2_weight_new_div, update_blocks_0_norm2_bias_new_add, update_blocks_0_norm2_bias_new_pow_2, update_blocks_0_norm2_bias_new_div, update_blocks_0_expand_weight_new_add, update_blocks_0_expand_weight_new_pow_2)
//   k159_blocks_0_attention_qkv_bias_new<<<2, 256>>>(blocks_0_attention_qkv_bias, lr, update_blocks_0_attention_qkv_bias_new_div, exp_avg_blocks_0_attention_qkv_bias_new, exp_avg_sq_blocks_0_attention_qkv_bias_new, update_blocks_0_attention_qkv_bias_new_pow_2, blocks_0_attention_qkv_bias_new)
//   k160_blocks_0_attention_out_weight_new<<<64, 256>>>(blocks_0_attention_out_weight, lr, update_blocks_0_attention_out_weight_new_div, exp_avg_blocks_0_attention_out_weight_new, exp_avg_sq_blocks_0_attention_out_weight_new, update_blocks_0_attention_out_weight_new_pow_2, blocks_0_attention_out_weight_new)
//   k161_blocks_0_norm2_bias_new<<<1, 256>>>(blocks_0_attention_out_bias, lr, update_blocks_0_attention_out_bias_new_div, exp_avg_blocks_0_attention_out_bias_new, exp_avg_sq_blocks_0_attention_out_bias_new, update_blocks_0_attention_out_bias_new_pow_2, blocks_0_norm2_weight, update_blocks_0_norm2_weight_new_div, exp_avg_blocks_0_norm2_weight_new, exp_avg_sq_blocks_0_norm2_weight_new, update_blocks_0_norm2_weight_new_pow_2, blocks_0_norm2_bias, update_blocks_0_norm2_bias_new_div, exp_avg_blocks_0_norm2_bias_new, exp_avg_sq_blocks_0_norm2_bias_new, update_blocks_0_norm2_bias_new_pow_2, blocks_0_attention_out_bias_new, blocks_0_norm2_weight_new, blocks_0_norm2_bias_new)
//   k162_update_blocks_1_norm1_bias_new_div<<<1, 256>>>(lr, update_blocks_0_expand_weight_new_add, step_blocks_0_expand_bias, step_blocks_0_project_weight, step_blocks_0_project_bias, step_blocks_1_norm1_weight, step_blocks_1_norm1_bias, update_blocks_0_expand_weight_new_div, update_blocks_0_expand_bias_new_add, update_blocks_0_expand_bias_new_pow_2, update_blocks_0_expand_bias_new_div, update_blocks_0_project_weight_new_add, update_blocks_0_project_weight_new_pow_2, update_blocks_0_project_weight_new_div, update_blocks_0_project_bias_new_add, update_blocks_0_project_bias_new_pow_2, update_blocks_0_project_bias_new_div, update_blocks_1_norm1_weight_new_add, update_blocks_1_norm1_weight_new_pow_2, update_blocks_1_norm1_weight_new_div, update_blocks_1_norm1_bias_new_add, update_blocks_1_norm1_bias_new_pow_2, update_blocks_1_norm1_bias_new_div)
//   k163_blocks_0_project_weight_new<<<256, 256>>>(blocks_0_expand_weight, lr, update_blocks_0_expand_weight_new_div, exp_avg_blocks_0_expand_weight_new, exp_avg_sq_blocks_0_expand_weight_new, update_blocks_0_expand_weight_new_pow_2, blocks_0_project_weight, update_blocks_0_project_weight_new_div, exp_avg_blocks_0_project_weight_new, exp_avg_sq_blocks_0_project_weight_new, update_blocks_0_project_weight_new_pow_2, blocks_0_expand_weight_new, blocks_0_project_weight_new)
//   k164_blocks_0_expand_bias_new<<<2, 256>>>(blocks_0_expand_bias, lr, update_blocks_0_expand_bias_new_div, exp_avg_blocks_0_expand_bias_new, exp_avg_sq_blocks_0_expand_bias_new, update_blocks_0_expand_bias_new_pow_2, blocks_0_expand_bias_new)
//   k161_blocks_0_norm2_bias_new<<<1, 256>>>(blocks_0_project_bias, lr, update_blocks_0_project_bias_new_div, exp_avg_blocks_0_project_bias_new, exp_avg_sq_blocks_0_project_bias_new, update_blocks_0_project_bias_new_pow_2, blocks_1_norm1_weight, update_blocks_1_norm1_weight_new_div, exp_avg_blocks_1_norm1_weight_new, exp_avg_sq_blocks_1_norm1_weight_new, update_blocks_1_norm1_weight_new_pow_2, blocks_1_norm1_bias, update_blocks_1_norm1_bias_new_div, exp_avg_blocks_1_norm1_bias_new, exp_avg_sq_blocks_1_norm1_bias_new, update_blocks_1_norm1_bias_new_pow_2, blocks_0_project_bias_new, blocks_1_norm1_weight_new, blocks_1_norm1_bias_new)
//   k153_update_blocks_0_attention_qkv_bias_new_add<<<1, 256>>>(step_blocks_1_attention_qkv_weight, lr, step_blocks_1_attention_qkv_bias, step_blocks_1_attention_out_weight, step_blocks_1_attention_out_bias, step_blocks_1_norm2_weight, step_blocks_1_norm2_bias, update_blocks_1_attention_qkv_weight_new_add, update_blocks_1_attention_qkv_weight_new_pow_2, update_blocks_1_attention_qkv_weight_new_div, update_blocks_1_attention_qkv_bias_new_add, update_blocks_1_attention_qkv_bias_new_pow_2, update_blocks_1_attention_qkv_bias_new_div, update_blocks_1_attention_out_weight_new_add, update_blocks_1_attention_out_weight_new_pow_2, update_blocks_1_attention_out_weight_new_div, update_blocks_1_attention_out_bias_new_add, update_blocks_1_attention_out_bias_new_pow_2, update_blocks_1_attention_out_bias_new_div, update_blocks_1_norm2_weight_new_add, update_blocks_1_norm2_weight_new_pow_2, update_blocks_1_norm2_weight_new_div, update_blocks_1_norm2_bias_new_add)
//   k157_blocks_0_attention_qkv_weight_new<<<192, 256>>>(blocks_1_attention_qkv_weight, lr, update_blocks_1_attention_qkv_weight_new_div, exp_avg_blocks_1_attention_qkv_weight_new, exp_avg_sq_blocks_1_attention_qkv_weight_new, update_blocks_1_attention_qkv_weight_new_pow_2, blocks_1_attention_qkv_weight_new)
//   k159_blocks_0_attention_qkv_bias_new<<<2, 256>>>(blocks_1_attention_qkv_bias, lr, update_blocks_1_attention_qkv_bias_new_div, exp_avg_blocks_1_attention_qkv_bias_new, exp_avg_sq_blocks_1_attention_qkv_bias_new, update_blocks_1_attention_qkv_bias_new_pow_2, blocks_1_attention_qkv_bias_new)
//   k160_blocks_0_attention_out_weight_new<<<64, 256>>>(blocks_1_attention_out_weight, lr, update_blocks_1_attention_out_weight_new_div, exp_avg_blocks_1_attention_out_weight_new, exp_avg_sq_blocks_1_attention_out_weight_new, update_blocks_1_attention_out_weight_new_pow_2, blocks_1_attention_out_weight_new)
//   k156_blocks_0_norm1_bias_new<<<1, 256>>>(blocks_1_attention_out_bias, lr, update_blocks_1_attention_out_bias_new_div, exp_avg_blocks_1_attention_out_bias_new, exp_avg_sq_blocks_1_attention_out_bias_new, update_blocks_1_attention_out_bias_new_pow_2, blocks_1_norm2_weight, update_blocks_1_norm2_weight_new_div, exp_avg_blocks_1_norm2_weight_new, exp_avg_sq_blocks_1_norm2_weight_new, update_blocks_1_norm2_weight_new_pow_2, blocks_1_attention_out_bias_new, blocks_1_norm2_weight_new)
//   k158_update_blocks_0_expand_weight_new_pow_2<<<1, 256>>>(update_blocks_1_norm2_bias_new_add, lr, step_blocks_1_expand_weight, step_blocks_1_expand_bias, step_blocks_1_project_weight, step_blocks_1_project_bias, step_blocks_2_norm1_weight, update_blocks_1_norm2_bias_new_pow_2, update_blocks_1_norm2_bias_new_div, update_blocks_1_expand_weight_new_add, update_blocks_1_expand_weight_new_pow_2, update_blocks_1_expand_weight_new_div, update_blocks_1_expand_bias_new_add, update_blocks_1_expand_bias_new_pow_2, update_blocks_1_expand_bias_new_div, update_blocks_1_project_weight_new_add, update_blocks_1_project_weight_new_pow_2, update_blocks_1_project_weight_new_div, update_blocks_1_project_bias_new_add, update_blocks_1_project_bias_new_pow_2, update_blocks_1_project_bias_new_div, update_blocks_2_norm1_weight_new_add, update_blocks_2_norm1_weight_new_pow_2)
//   k156_blocks_0_norm1_bias_new<<<1, 256>>>(blocks_1_norm2_bias, lr, update_blocks_1_norm2_bias_new_div, exp_avg_blocks_1_norm2_bias_new, exp_avg_sq_blocks_1_norm2_bias_new, update_blocks_1_norm2_bias_new_pow_2, blocks_1_project_bias, update_blocks_1_project_bias_new_div, exp_avg_blocks_1_project_bias_new, exp_avg_sq_blocks_1_project_bias_new, update_blocks_1_project_bias_new_pow_2, blocks_1_norm2_bias_new, blocks_1_project_bias_new)
//   k163_blocks_0_project_weight_new<<<256, 256>>>(blocks_1_expand_weight, lr, update_blocks_1_expand_weight_new_div, exp_avg_blocks_1_expand_weight_new, exp_avg_sq_blocks_1_expand_weight_new, update_blocks_1_expand_weight_new_pow_2, blocks_1_project_weight, update_blocks_1_project_weight_new_div, exp_avg_blocks_1_project_weight_new, exp_avg_sq_blocks_1_project_weight_new, update_blocks_1_project_weight_new_pow_2, blocks_1_expand_weight_new, blocks_1_project_weight_new)
//   k164_blocks_0_expand_bias_new<<<2, 256>>>(blocks_1_expand_bias, lr, update_blocks_1_expand_bias_new_div, exp_avg_blocks_1_expand_bias_new, exp_avg_sq_blocks_1_expand_bias_new, update_blocks_1_expand_bias_new_pow_2, blocks_1_expand_bias_new)
//   k162_update_blocks_1_norm1_bias_new_div<<<1, 256>>>(lr, update_blocks_2_norm1_weight_new_add, step_blocks_2_norm1_bias, step_blocks_2_attention_qkv_weight, step_blocks_2_attention_qkv_bias, step_blocks_2_attention_out_weight, step_blocks_2_attention_out_bias, update_blocks_2_norm1_weight_new_div, update_blocks_2_norm1_bias_new_add, update_blocks_2_norm1_bias_new_pow_2, update_blocks_2_norm1_bias_new_div, update_blocks_2_attention_qkv_weight_new_add, update_blocks_2_attention_qkv_weight_new_pow_2, update_blocks_2_attention_qkv_weight_new_div, update_blocks_2_attention_qkv_bias_new_add, update_blocks_2_attention_qkv_bias_new_pow_2, update_blocks_2_attention_qkv_bias_new_div, update_blocks_2_attention_out_weight_new_add, update_blocks_2_attention_out_weight_new_pow_2, update_blocks_2_attention_out_weight_new_div, update_blocks_2_attention_out_bias_new_add, update_blocks_2_attention_out_bias_new_pow_2, update_blocks_2_attention_out_bias_new_div)
//   k161_blocks_0_norm2_bias_new<<<1, 256>>>(blocks_2_norm1_weight, lr, update_blocks_2_norm1_weight_new_div, exp_avg_blocks_2_norm1_weight_new, exp_avg_sq_blocks_2_norm1_weight_new, update_blocks_2_norm1_weight_new_pow_2, blocks_2_norm1_bias, update_blocks_2_norm1_bias_new_div, exp_avg_blocks_2_norm1_bias_new, exp_avg_sq_blocks_2_norm1_bias_new, update_blocks_2_norm1_bias_new_pow_2, blocks_2_attention_out_bias, update_blocks_2_attention_out_bias_new_div, exp_avg_blocks_2_attention_out_bias_new, exp_avg_sq_blocks_2_attention_out_bias_new, update_blocks_2_attention_out_bias_new_pow_2, blocks_2_norm1_weight_new, blocks_2_norm1_bias_new, blocks_2_attention_out_bias_new)
//   k157_blocks_0_attention_qkv_weight_new<<<192, 256>>>(blocks_2_attention_qkv_weight, lr, update_blocks_2_attention_qkv_weight_new_div, exp_avg_blocks_2_attention_qkv_weight_new, exp_avg_sq_blocks_2_attention_qkv_weight_new, update_blocks_2_attention_qkv_weight_new_pow_2, blocks_2_attention_qkv_weight_new)
//   k159_blocks_0_attention_qkv_bias_new<<<2, 256>>>(blocks_2_attention_qkv_bias, lr, update_blocks_2_attention_qkv_bias_new_div, exp_avg_blocks_2_attention_qkv_bias_new, exp_avg_sq_blocks_2_attention_qkv_bias_new, update_blocks_2_attention_qkv_bias_new_pow_2, blocks_2_attention_qkv_bias_new)
//   k160_blocks_0_attention_out_weight_new<<<64, 256>>>(blocks_2_attention_out_weight, lr, update_blocks_2_attention_out_weight_new_div, exp_avg_blocks_2_attention_out_weight_new, exp_avg_sq_blocks_2_attention_out_weight_new, update_blocks_2_attention_out_weight_new_pow_2, blocks_2_attention_out_weight_new)
//   k153_update_blocks_0_attention_qkv_bias_new_add<<<1, 256>>>(step_blocks_2_norm2_weight, lr, step_blocks_2_norm2_bias, step_blocks_2_expand_weight, step_blocks_2_expand_bias, step_blocks_2_project_weight, step_blocks_2_project_bias, update_blocks_2_norm2_weight_new_add, update_blocks_2_norm2_weight_new_pow_2, update_blocks_2_norm2_weight_new_div, update_blocks_2_norm2_bias_new_add, update_blocks_2_norm2_bias_new_pow_2, update_blocks_2_norm2_bias_new_div, update_blocks_2_expand_weight_new_add, update_blocks_2_expand_weight_new_pow_2, update_blocks_2_expand_weight_new_div, update_blocks_2_expand_bias_new_add, update_blocks_2_expand_bias_new_pow_2, update_blocks_2_expand_bias_new_div, update_blocks_2_project_weight_new_add, update_blocks_2_project_weight_new_pow_2, update_blocks_2_project_weight_new_div, update_blocks_2_project_bias_new_add)
//   k156_blocks_0_norm1_bias_new<<<1, 256>>>(blocks_2_norm2_weight, lr, update_blocks_2_norm2_weight_new_div, exp_avg_blocks_2_norm2_weight_new, exp_avg_sq_blocks_2_norm2_weight_new, update_blocks_2_norm2_weight_new_pow_2, blocks_2_norm2_bias, update_blocks_2_norm2_bias_new_div, exp_avg_blocks_2_norm2_bias_new, exp_avg_sq_blocks_2_norm2_bias_new, update_blocks_2_norm2_bias_new_pow_2, blocks_2_norm2_weight_new, blocks_2_norm2_bias_new)
//   k163_blocks_0_project_weight_new<<<256, 256>>>(blocks_2_expand_weight, lr, update_blocks_2_expand_weight_new_div, exp_avg_blocks_2_expand_weight_new, exp_avg_sq_blocks_2_expand_weight_new, update_blocks_2_expand_weight_new_pow_2, blocks_2_project_weight, update_blocks_2_project_weight_new_div, exp_avg_blocks_2_project_weight_new, exp_avg_sq_blocks_2_project_weight_new, update_blocks_2_project_weight_new_pow_2, blocks_2_expand_weight_new, blocks_2_project_weight_new)
//   k164_blocks_0_expand_bias_new<<<2, 256>>>(blocks_2_expand_bias, lr, update_blocks_2_expand_bias_new_div, exp_avg_blocks_2_expand_bias_new, exp_avg_sq_blocks_2_expand_bias_new, update_blocks_2_expand_bias_new_pow_2, blocks_2_expand_bias_new)
//   k158_update_blocks_0_expand_weight_new_pow_2<<<1, 256>>>(update_blocks_2_project_bias_new_add, lr, step_blocks_3_norm1_weight, step_blocks_3_norm1_bias, step_blocks_3_attention_qkv_weight, step_blocks_3_attention_qkv_bias, step_blocks_3_attention_out_weight, update_blocks_2_project_bias_new_pow_2, update_blocks_2_project_bias_new_div, update_blocks_3_norm1_weight_new_add, update_blocks_3_norm1_weight_new_pow_2, update_blocks_3_norm1_weight_new_div, update_blocks_3_norm1_bias_new_add, update_blocks_3_norm1_bias_new_pow_2, update_blocks_3_norm1_bias_new_div, update_blocks_3_attention_qkv_weight_new_add, update_blocks_3_attention_qkv_weight_new_pow_2, update_blocks_3_attention_qkv_weight_new_div, update_blocks_3_attention_qkv_bias_new_add, update_blocks_3_attention_qkv_bias_new_pow_2, update_blocks_3_attention_qkv_bias_new_div, update_blocks_3_attention_out_weight_new_add, update_blocks_3_attention_out_weight_new_pow_2)
//   k161_blocks_0_norm2_bias_new<<<1, 256>>>(blocks_2_project_bias, lr, update_blocks_2_project_bias_new_div, exp_avg_blocks_2_project_bias_new, exp_avg_sq_blocks_2_project_bias_new, update_blocks_2_project_bias_new_pow_2, blocks_3_norm1_weight, update_blocks_3_norm1_weight_new_div, exp_avg_blocks_3_norm1_weight_new, exp_avg_sq_blocks_3_norm1_weight_new, update_blocks_3_norm1_weight_new_pow_2, blocks_3_norm1_bias, update_blocks_3_norm1_bias_new_div, exp_avg_blocks_3_norm1_bias_new, exp_avg_sq_blocks_3_norm1_bias_new, update_blocks_3_norm1_bias_new_pow_2, blocks_2_project_bias_new, blocks_3_norm1_weight_new, blocks_3_norm1_bias_new)
//   k157_blocks_0_attention_qkv_weight_new<<<192, 256>>>(blocks_3_attention_qkv_weight, lr, update_blocks_3_attention_qkv_weight_new_div, exp_avg_blocks_3_attention_qkv_weight_new, exp_avg_sq_blocks_3_attention_qkv_weight_new, update_blocks_3_attention_qkv_weight_new_pow_2, blocks_3_attention_qkv_weight_new)
//   k159_blocks_0_attention_qkv_bias_new<<<2, 256>>>(blocks_3_attention_qkv_bias, lr, update_blocks_3_attention_qkv_bias_new_div, exp_avg_blocks_3_attention_qkv_bias_new, exp_avg_sq_blocks_3_attention_qkv_bias_new, update_blocks_3_attention_qkv_bias_new_pow_2, blocks_3_attention_qkv_bias_new)
//   k162_update_blocks_1_norm1_bias_new_div<<<1, 256>>>(lr, update_blocks_3_attention_out_weight_new_add, step_blocks_3_attention_out_bias, step_blocks_3_norm2_weight, step_blocks_3_norm2_bias, step_blocks_3_expand_weight, step_blocks_3_expand_bias, update_blocks_3_attention_out_weight_new_div, update_blocks_3_attention_out_bias_new_add, update_blocks_3_attention_out_bias_new_pow_2, update_blocks_3_attention_out_bias_new_div, update_blocks_3_norm2_weight_new_add, update_blocks_3_norm2_weight_new_pow_2, update_blocks_3_norm2_weight_new_div, update_blocks_3_norm2_bias_new_add, update_blocks_3_norm2_bias_new_pow_2, update_blocks_3_norm2_bias_new_div, update_blocks_3_expand_weight_new_add, update_blocks_3_expand_weight_new_pow_2, update_blocks_3_expand_weight_new_div, update_blocks_3_expand_bias_new_add, update_blocks_3_expand_bias_new_pow_2, update_blocks_3_expand_bias_new_div)
//   k160_blocks_0_attention_out_weight_new<<<64, 256>>>(blocks_3_attention_out_weight, lr, update_blocks_3_attention_out_weight_new_div, exp_avg_blocks_3_attention_out_weight_new, exp_avg_sq_blocks_3_attention_out_weight_new, update_blocks_3_attention_out_weight_new_pow_2, blocks_3_attention_out_weight_new)
//   k161_blocks_0_norm2_bias_new<<<1, 256>>>(blocks_3_attention_out_bias, lr, update_blocks_3_attention_out_bias_new_div, exp_avg_blocks_3_attention_out_bias_new, exp_avg_sq_blocks_3_attention_out_bias_new, update_blocks_3_attention_out_bias_new_pow_2, blocks_3_norm2_weight, update_blocks_3_norm2_weight_new_div, exp_avg_blocks_3_norm2_weight_new, exp_avg_sq_blocks_3_norm2_weight_new, update_blocks_3_norm2_weight_new_pow_2, blocks_3_norm2_bias, update_blocks_3_norm2_bias_new_div, exp_avg_blocks_3_norm2_bias_new, exp_avg_sq_blocks_3_norm2_bias_new, update_blocks_3_norm2_bias_new_pow_2, blocks_3_attention_out_bias_new, blocks_3_norm2_weight_new, blocks_3_norm2_bias_new)
//   k191_blocks_3_expand_weight_new<<<256, 256>>>(blocks_3_expand_weight, lr, update_blocks_3_expand_weight_new_div, exp_avg_blocks_3_expand_weight_new, exp_avg_sq_blocks_3_expand_weight_new, update_blocks_3_expand_weight_new_pow_2, blocks_3_expand_weight_new)
//   k164_blocks_0_expand_bias_new<<<2, 256>>>(blocks_3_expand_bias, lr, update_blocks_3_expand_bias_new_div, exp_avg_blocks_3_expand_bias_new, exp_avg_sq_blocks_3_expand_bias_new, update_blocks_3_expand_bias_new_pow_2, blocks_3_expand_bias_new)
//   k193_update_head_weight_new_div<<<1, 256>>>(step_blocks_3_project_weight, lr, step_blocks_3_project_bias, step_norm_weight, step_norm_bias, step_head_weight, update_blocks_3_project_weight_new_add, update_blocks_3_project_weight_new_pow_2, update_blocks_3_project_weight_new_div, update_blocks_3_project_bias_new_add, update_blocks_3_project_bias_new_pow_2, update_blocks_3_project_bias_new_div, update_norm_weight_new_add, update_norm_weight_new_pow_2, update_norm_weight_new_div, update_norm_bias_new_add, update_norm_bias_new_pow_2, update_norm_bias_new_div, update_head_weight_new_add, update_head_weight_new_pow_2, update_head_weight_new_div)
//   k191_blocks_3_expand_weight_new<<<256, 256>>>(blocks_3_project_weight, lr, update_blocks_3_project_weight_new_div, exp_avg_blocks_3_project_weight_new, exp_avg_sq_blocks_3_project_weight_new, update_blocks_3_project_weight_new_pow_2, blocks_3_project_weight_new)
//   k161_blocks_0_norm2_bias_new<<<1, 256>>>(blocks_3_project_bias, lr, update_blocks_3_project_bias_new_div, exp_avg_blocks_3_project_bias_new, exp_avg_sq_blocks_3_project_bias_new, update_blocks_3_project_bias_new_pow_2, norm_weight, update_norm_weight_new_div, exp_avg_norm_weight_new, exp_avg_sq_norm_weight_new, update_norm_weight_new_pow_2, norm_bias, update_norm_bias_new_div, exp_avg_norm_bias_new, exp_avg_sq_norm_bias_new, update_norm_bias_new_pow_2, blocks_3_project_bias_new, norm_weight_new, norm_bias_new)
//   k154_symbols_weight_new<<<33, 256>>>(head_weight, lr, update_head_weight_new_div, exp_avg_head_weight_new, exp_avg_sq_head_weight_new, update_head_weight_new_pow_2, head_weight_new)
// Results: loss.
// What lasts from run to run, at the end:
//   step_symbols_weight = update_symbols_weight_new_add
//   step_positions_weight = update_positions_weight_new_add
//   step_blocks_0_norm1_weight = update_blocks_0_norm1_weight_new_add
//   step_blocks_0_norm1_bias = update_blocks_0_norm1_bias_new_add
//   step_blocks_0_attention_qkv_weight = update_blocks_0_attention_qkv_weight_new_add
//   step_blocks_0_attention_qkv_bias = update_blocks_0_attention_qkv_bias_new_add
//   step_blocks_0_attention_out_weight = update_blocks_0_attention_out_weight_new_add
//   step_blocks_0_attention_out_bias = update_blocks_0_attention_out_bias_new_add
//   step_blocks_0_norm2_weight = update_blocks_0_norm2_weight_new_add
//   step_blocks_0_norm2_bias = update_blocks_0_norm2_bias_new_add
//   step_blocks_0_expand_weight = update_blocks_0_expand_weight_new_add
//   step_blocks_0_expand_bias = update_blocks_0_expand_bias_new_add
//   step_blocks_0_project_weight = update_blocks_0_project_weight_new_add
//   step_blocks_0_project_bias = update_blocks_0_project_bias_new_add
//   step_blocks_1_norm1_weight = update_blocks_1_norm1_weight_new_add
//   step_blocks_1_norm1_bias = update_blocks_1_norm1_bias_new_add
//   step_blocks_1_attention_qkv_weight = update_blocks_1_attention_qkv_weight_new_add
//   step_blocks_1_attention_qkv_bias = update_blocks_1_attention_qkv_bias_new_add
//   step_blocks_1_attention_out_weight = update_blocks_1_attention_out_weight_new_add
//   step_blocks_1_attention_out_bias = update_blocks_1_attention_out_bias_new_add
//   step_blocks_1_norm2_weight = update_blocks_1_norm2_weight_new_add
//   step_blocks_1_norm2_bias = update_blocks_1_norm2_bias_new_add
//   step_blocks_1_expand_weight = update_blocks_1_expand_weight_new_add
//   step_blocks_1_expand_bias = update_blocks_1_expand_bias_new_add
//   step_blocks_1_project_weight = update_blocks_1_project_weight_new_add
//   step_blocks_1_project_bias = update_blocks_1_project_bias_new_add
//   step_blocks_2_norm1_weight = update_blocks_2_norm1_weight_new_add
//   step_blocks_2_norm1_bias = update_blocks_2_norm1_bias_new_add
//   step_blocks_2_attention_qkv_weight = update_blocks_2_attention_qkv_weight_new_add
//   step_blocks_2_attention_qkv_bias = update_blocks_2_attention_qkv_bias_new_add
//   step_blocks_2_attention_out_weight = update_blocks_2_attention_out_weight_new_add
//   step_blocks_2_attention_out_bias = update_blocks_2_attention_out_bias_new_add
//   step_blocks_2_norm2_weight = update_blocks_2_norm2_weight_new_add
//   step_blocks_2_norm2_bias = update_blocks_2_norm2_bias_new_add
//   step_blocks_2_expand_weight = update_blocks_2_expand_weight_new_add
//   step_blocks_2_expand_bias = update_blocks_2_expand_bias_new_add
//   step_blocks_2_project_weight = update_blocks_2_project_weight_new_add
//   step_blocks_2_project_bias = update_blocks_2_project_bias_new_add
//   step_blocks_3_norm1_weight = update_blocks_3_norm1_weight_new_add
//   step_blocks_3_norm1_bias = update_blocks_3_norm1_bias_new_add
//   step_blocks_3_attention_qkv_weight = update_blocks_3_attention_qkv_weight_new_add
//   step_blocks_3_attention_qkv_bias = update_blocks_3_attention_qkv_bias_new_add
//   step_blocks_3_attention_out_weight = update_blocks_3_attention_out_weight_new_add
//   step_blocks_3_attention_out_bias = update_blocks_3_attention_out_bias_new_add
//   step_blocks_3_norm2_weight = update_blocks_3_norm2_weight_new_add
//   step_blocks_3_norm2_bias = update_blocks_3_norm2_bias_new_add
//   step_blocks_3_expand_weight = update_blocks_3_expand_weight_new_add
//   step_blocks_3_expand_bias = update_blocks_3_expand_bias_new_add
//   step_blocks_3_project_weight = update_blocks_3_project_weight_new_add
//   step_blocks_3_project_bias = update_blocks_3_project_bias_new_add
//   step_norm_weight = update_norm_weight_new_add
//   step_norm_bias = update_norm_bias_new_add
//   step_head_weight = update_head_weight_new_add
