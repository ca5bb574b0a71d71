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

// layers_0_matmul, of /layers/0/MatMul  f32 [512, 1024]
// relu  f32 [512, 1024]
extern "C" __global__ void k00_relu(
    const float* __restrict__ x,
    const float* __restrict__ layers_0_weight,
    const float* __restrict__ layers_0_bias,
    float* __restrict__ relu
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 128;
    const int top = block / 16 % 8 * 64;
    const int left = block % 16 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 784; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_2 = 0.0f;
            if (m < 512 && k < 784) {
                const float x_ = x[m * 784 + k];
                x_2 = x_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_2;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_3 = 0.0f;
            if (n < 1024 && k < 784) {
                const float layers_0_weight_ = layers_0_weight[n * 784 + k];
                x_3 = layers_0_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_3;
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
            if (m < 512 && n < 1024) {
                const float layers_0_matmul_ = sums[u * 4 + w];
                const float layers_0_bias_ = layers_0_bias[n];
                const float linear_ = layers_0_matmul_ + layers_0_bias_;
                const float relu_ = larger(linear_, 0.0f);
                relu[m * 1024 + n] = relu_;
            }
        }
    }
}

// layers_2_matmul, of /layers/2/MatMul  f32 [512, 1024]
// relu_2  f32 [512, 1024]
extern "C" __global__ void k01_relu_2(
    const float* __restrict__ relu,
    const float* __restrict__ layers_2_weight,
    const float* __restrict__ layers_2_bias,
    float* __restrict__ relu_2
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 128;
    const int top = block / 16 % 8 * 64;
    const int left = block % 16 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 1024; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_2 = 0.0f;
            if (m < 512 && k < 1024) {
                const float relu_ = relu[m * 1024 + k];
                x_2 = relu_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_2;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_3 = 0.0f;
            if (n < 1024 && k < 1024) {
                const float layers_2_weight_ = layers_2_weight[n * 1024 + k];
                x_3 = layers_2_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_3;
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
            if (m < 512 && n < 1024) {
                const float layers_2_matmul_ = sums[u * 4 + w];
                const float layers_2_bias_ = layers_2_bias[n];
                const float linear_2_ = layers_2_matmul_ + layers_2_bias_;
                const float relu_2_ = larger(linear_2_, 0.0f);
                relu_2[m * 1024 + n] = relu_2_;
            }
        }
    }
}

// layers_6_matmul, of /layers/6/MatMul  f32 [512, 10]
extern "C" __global__ void k03_layers_6_matmul(
    const float* __restrict__ relu_3,
    const float* __restrict__ layers_6_weight,
    float* __restrict__ layers_6_matmul
) {
    __shared__ float tile_a_float[256];
    __shared__ float tile_b_float[256];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 32;
    const int top = block / 1 % 32 * 16;
    const int left = block % 1 * 16;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[1] = {};
    for (int k0 = 0; k0 < 1024; k0 += 16) {
        for (int t = thread; t < 256; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_2 = 0.0f;
            if (m < 512 && k < 1024) {
                const float relu_3_ = relu_3[m * 1024 + k];
                x_2 = relu_3_;
            }
            tile_a_float[(t % 16) * 16 + t / 16] = x_2;
        }
        for (int t = thread; t < 256; t += 256) {
            const int n = left + t % 16;
            const int k = k0 + t / 16;
            float x_3 = 0.0f;
            if (n < 10 && k < 1024) {
                const float layers_6_weight_ = layers_6_weight[n * 1024 + k];
                x_3 = layers_6_weight_;
            }
            tile_b_float[(t / 16) * 16 + t % 16] = x_3;
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
            if (m < 512 && n < 10) {
                const float layers_6_matmul_ = sums[u * 1 + w];
                layers_6_matmul[m * 10 + n] = layers_6_matmul_;
            }
        }
    }
}

// picked, of /loss/ReduceSum  f32 [512, 1]
// loss_reducemax, of /loss/ReduceMax  f32 [512, 1]
// loss_reducesum_2, of /loss/ReduceSum.2  f32 [512, 1]
extern "C" __global__ void k04_loss_reducesum_2(
    const long long* __restrict__ y,
    const float* __restrict__ layers_6_matmul,
    const float* __restrict__ layers_6_bias,
    float* __restrict__ picked,
    float* __restrict__ loss_reducemax,
    float* __restrict__ loss_reducesum_2
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 512) { return; }
    const long long y_ = y[i];
    const int at = min(max((int)y_, 0), 9);
    const bool loss_equal_ = y_ == ((long long)(at));
    const float loss_cast_ = (float)loss_equal_;
    picked[i] = loss_cast_;
    float loss_reducemax_ = -INF_F;
    for (int k = 0; k < 10; k++) {
        const float layers_6_matmul_ = layers_6_matmul[i * 10 + k];
        const float layers_6_bias_ = layers_6_bias[k];
        const float linear_4_ = layers_6_matmul_ + layers_6_bias_;
        loss_reducemax_ = larger(loss_reducemax_, linear_4_);
    }
    loss_reducemax[i] = loss_reducemax_;
    float loss_reducesum_2_ = 0.0f;
    for (int k_2 = 0; k_2 < 10; k_2++) {
        const float layers_6_matmul__2 = layers_6_matmul[i * 10 + k_2];
        const float layers_6_bias__2 = layers_6_bias[k_2];
        const float linear_4__2 = layers_6_matmul__2 + layers_6_bias__2;
        const float loss_sub_ = linear_4__2 - loss_reducemax_;
        const float loss_exp_ = expf(loss_sub_);
        loss_reducesum_2_ = loss_reducesum_2_ + loss_exp_;
    }
    loss_reducesum_2[i] = loss_reducesum_2_;
}

// loss_reducesum, of /loss/ReduceSum  f32 []
// loss_reducesum_4, of /loss/ReduceSum.4  f32 []
// loss  f32 []
// backward_div, of /backward/Div  f32 []
// step_layers_0_weight_new, of step_layers.0.weight_new  i64 []
// step_layers_0_bias_new, of step_layers.0.bias_new  i64 []
// step_layers_2_weight_new, of step_layers.2.weight_new  i64 []
// step_layers_2_bias_new, of step_layers.2.bias_new  i64 []
// step_layers_4_weight_new, of step_layers.4.weight_new  i64 []
// step_layers_4_bias_new, of step_layers.4.bias_new  i64 []
// step_layers_6_weight_new, of step_layers.6.weight_new  i64 []
// step_layers_6_bias_new, of step_layers.6.bias_new  i64 []
extern "C" __global__ void k05_step_layers_6_bias_new(
    const float* __restrict__ picked,
    const long long* __restrict__ y,
    const float* __restrict__ layers_6_matmul,
    const float* __restrict__ layers_6_bias,
    const float* __restrict__ loss_reducemax,
    const float* __restrict__ loss_reducesum_2,
    const long long* __restrict__ step_layers_0_weight,
    const long long* __restrict__ step_layers_0_bias,
    const long long* __restrict__ step_layers_2_weight,
    const long long* __restrict__ step_layers_2_bias,
    const long long* __restrict__ step_layers_4_weight,
    const long long* __restrict__ step_layers_4_bias,
    const long long* __restrict__ step_layers_6_weight,
    const long long* __restrict__ step_layers_6_bias,
    float* __restrict__ loss,
    float* __restrict__ backward_div,
    long long* __restrict__ step_layers_0_weight_new,
    long long* __restrict__ step_layers_0_bias_new,
    long long* __restrict__ step_layers_2_weight_new,
    long long* __restrict__ step_layers_2_bias_new,
    long long* __restrict__ step_layers_4_weight_new,
    long long* __restrict__ step_layers_4_bias_new,
    long long* __restrict__ step_layers_6_weight_new,
    long long* __restrict__ step_layers_6_bias_new
) {
    __shared__ float part_float[256];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float sum = 0.0f;
    for (int col = thread; col < 512; col += 256) {
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
    float sum_2 = 0.0f;
    for (int col = thread; col < 512; col += 256) {
        const long long y_ = y[col];
        const int at = min(max((int)y_, 0), 9);
        const bool loss_equal_ = y_ == ((long long)(at));
        const float loss_cast_ = (float)loss_equal_;
        const bool loss_equal_2_ = loss_cast_ == 0.0f;
        const float layers_6_matmul_ = layers_6_matmul[col * 10 + at];
        const float layers_6_bias_ = layers_6_bias[at];
        const float linear_4_ = layers_6_matmul_ + layers_6_bias_;
        const float loss_reducemax_ = loss_reducemax[col];
        const float loss_sub_ = linear_4_ - loss_reducemax_;
        const float loss_reducesum_2_ = loss_reducesum_2[col];
        const float loss_log_ = logf(loss_reducesum_2_);
        const float loss_sub_2_ = loss_sub_ - loss_log_;
        const float loss_mul_6_ = loss_cast_ * loss_sub_2_;
        const float loss_where_2_ = loss_equal_2_ ? 0.0f : loss_mul_6_;
        const float loss_neg_ = -loss_where_2_;
        sum_2 = sum_2 + loss_neg_;
    }
    part_float[thread] = sum_2;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float loss_reducesum_4_ = part_float[0];
    __syncthreads();
    const float loss_ = loss_reducesum_4_ / loss_reducesum_;
    if (thread == 0) {
        loss[row] = loss_;
    }
    const float backward_div_ = 1.0f / loss_reducesum_;
    if (thread == 0) {
        backward_div[row] = backward_div_;
    }
    const long long step_layers_0_weight_ = step_layers_0_weight[0];
    const long long step_layers_0_weight_new_ = step_layers_0_weight_ + 1ll;
    if (thread == 0) {
        step_layers_0_weight_new[row] = step_layers_0_weight_new_;
    }
    const long long step_layers_0_bias_ = step_layers_0_bias[0];
    const long long step_layers_0_bias_new_ = step_layers_0_bias_ + 1ll;
    if (thread == 0) {
        step_layers_0_bias_new[row] = step_layers_0_bias_new_;
    }
    const long long step_layers_2_weight_ = step_layers_2_weight[0];
    const long long step_layers_2_weight_new_ = step_layers_2_weight_ + 1ll;
    if (thread == 0) {
        step_layers_2_weight_new[row] = step_layers_2_weight_new_;
    }
    const long long step_layers_2_bias_ = step_layers_2_bias[0];
    const long long step_layers_2_bias_new_ = step_layers_2_bias_ + 1ll;
    if (thread == 0) {
        step_layers_2_bias_new[row] = step_layers_2_bias_new_;
    }
    const long long step_layers_4_weight_ = step_layers_4_weight[0];
    const long long step_layers_4_weight_new_ = step_layers_4_weight_ + 1ll;
    if (thread == 0) {
        step_layers_4_weight_new[row] = step_layers_4_weight_new_;
    }
    const long long step_layers_4_bias_ = step_layers_4_bias[0];
    const long long step_layers_4_bias_new_ = step_layers_4_bias_ + 1ll;
    if (thread == 0) {
        step_layers_4_bias_new[row] = step_layers_4_bias_new_;
    }
    const long long step_layers_6_weight_ = step_layers_6_weight[0];
    const long long step_layers_6_weight_new_ = step_layers_6_weight_ + 1ll;
    if (thread == 0) {
        step_layers_6_weight_new[row] = step_layers_6_weight_new_;
    }
    const long long step_layers_6_bias_ = step_layers_6_bias[0];
    const long long step_layers_6_bias_new_ = step_layers_6_bias_ + 1ll;
    if (thread == 0) {
        step_layers_6_bias_new[row] = step_layers_6_bias_new_;
    }
}

// cross_entropy_grad  f32 [512, 10]
extern "C" __global__ void k06_cross_entropy_grad(
    const long long* __restrict__ y,
    const float* __restrict__ backward_div,
    const float* __restrict__ layers_6_matmul,
    const float* __restrict__ layers_6_bias,
    const float* __restrict__ loss_reducemax,
    const float* __restrict__ loss_reducesum_2,
    const float* __restrict__ picked,
    float* __restrict__ cross_entropy_grad
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 5120) { return; }
    const long long y_ = y[i / 10];
    const int at = min(max((int)y_, 0), 9);
    const bool loss_equal_ = y_ == ((long long)(at));
    const float loss_cast_ = (float)loss_equal_;
    const bool backward_cast_3_ = loss_cast_ != 0.0f;
    const long long backward_cast_4_ = (long long)backward_cast_3_;
    const long long picked_4_ = larger(backward_cast_4_, 0ll);
    const bool backward_cast_5_ = picked_4_ != 0ll;
    const float backward_div_ = backward_div[0];
    const float layers_6_matmul_ = layers_6_matmul[i];
    const float layers_6_bias_ = layers_6_bias[i % 10];
    const float linear_4_ = layers_6_matmul_ + layers_6_bias_;
    const float loss_reducemax_ = loss_reducemax[i / 10];
    const float loss_sub_ = linear_4_ - loss_reducemax_;
    const float loss_exp_ = expf(loss_sub_);
    const float loss_reducesum_2_ = loss_reducesum_2[i / 10];
    const float cross_entropy_1_ = loss_exp_ / loss_reducesum_2_;
    const float picked_ = picked[i / 10];
    const float backward_mul_6_ = cross_entropy_1_ * picked_;
    const bool loss_equal__2 = y_ == ((long long)(i % 10));
    const float loss_cast__2 = (float)loss_equal__2;
    const float backward_sub_ = backward_mul_6_ - loss_cast__2;
    const float backward_mul_7_ = backward_div_ * backward_sub_;
    const float cross_entropy_grad_ = backward_cast_5_ ? backward_mul_7_ : 0.0f;
    cross_entropy_grad[i] = cross_entropy_grad_;
}

// linear_grad  f32 [512, 1024]
// relu_grad  f32 [512, 1024]
extern "C" __global__ void k07_relu_grad(
    const float* __restrict__ cross_entropy_grad,
    const float* __restrict__ layers_6_weight,
    const float* __restrict__ relu_3,
    float* __restrict__ relu_grad
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 128;
    const int top = block / 16 % 8 * 64;
    const int left = block % 16 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 10; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_2 = 0.0f;
            if (m < 512 && k < 10) {
                const float cross_entropy_grad_ = cross_entropy_grad[m * 10 + k];
                x_2 = cross_entropy_grad_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_2;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_3 = 0.0f;
            if (n < 1024 && k < 10) {
                const float layers_6_weight_ = layers_6_weight[k * 1024 + n];
                x_3 = layers_6_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_3;
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
            if (m < 512 && n < 1024) {
                const float linear_grad_ = sums[u * 4 + w];
                const float relu_3_ = relu_3[m * 1024 + n];
                const bool backward_layers_5_lessorequal_ = relu_3_ <= 0.0f;
                const float relu_grad_ = backward_layers_5_lessorequal_ ? 0.0f : linear_grad_;
                relu_grad[m * 1024 + n] = relu_grad_;
            }
        }
    }
}

// d_layers_6_weight  f32 [10, 1024]
// layers_6_weight_new, of layers.6.weight_new  f32 [10, 1024]
extern "C" __global__ void k08_layers_6_weight_new(
    const float* __restrict__ cross_entropy_grad,
    const float* __restrict__ relu_3,
    const float* layers_6_weight,
    const double* __restrict__ lr,
    float* layers_6_weight_new
) {
    __shared__ float tile_a_float[256];
    __shared__ float tile_b_float[256];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 64;
    const int top = block / 64 % 1 * 16;
    const int left = block % 64 * 16;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[1] = {};
    for (int k0 = 0; k0 < 512; k0 += 16) {
        for (int t = thread; t < 256; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_2 = 0.0f;
            if (m < 10 && k < 512) {
                const float cross_entropy_grad_ = cross_entropy_grad[k * 10 + m];
                x_2 = cross_entropy_grad_;
            }
            tile_a_float[(t % 16) * 16 + t / 16] = x_2;
        }
        for (int t = thread; t < 256; t += 256) {
            const int n = left + t % 16;
            const int k = k0 + t / 16;
            float x_3 = 0.0f;
            if (n < 1024 && k < 512) {
                const float relu_3_ = relu_3[k * 1024 + n];
                x_3 = relu_3_;
            }
            tile_b_float[(t / 16) * 16 + t % 16] = x_3;
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
            if (m < 10 && n < 1024) {
                const float d_layers_6_weight_ = sums[u * 1 + w];
                const float layers_6_weight_ = layers_6_weight[m * 1024 + n];
                const double lr_ = lr[0];
                const float update_layers_0_weight_new_cast_ = (float)lr_;
                const float update_layers_6_weight_new_mul_ = 0.0f * layers_6_weight_;
                const float update_layers_6_weight_new_add_ = d_layers_6_weight_ + update_layers_6_weight_new_mul_;
                const float update_layers_6_weight_new_mul_2_ = update_layers_0_weight_new_cast_ * update_layers_6_weight_new_add_;
                const float layers_6_weight_new_ = layers_6_weight_ - update_layers_6_weight_new_mul_2_;
                layers_6_weight_new[m * 1024 + n] = layers_6_weight_new_;
            }
        }
    }
}

// of_pieces, of d_layers_6_bias  f32 [8, 10]
extern "C" __global__ void k09_of_pieces(
    const float* __restrict__ cross_entropy_grad,
    float* __restrict__ of_pieces
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 80) { return; }
    float of_pieces_ = 0.0f;
    for (int k = 0; k < 64; k++) {
        const int at = (i / 10) * 64 + k;
        const float cross_entropy_grad_ = cross_entropy_grad[at * 10 + (i % 10)];
        of_pieces_ = of_pieces_ + cross_entropy_grad_;
    }
    of_pieces[i] = of_pieces_;
}

// of_all, of d_layers_6_bias  f32 [10]
// layers_6_bias_new, of layers.6.bias_new  f32 [10]
extern "C" __global__ void k10_layers_6_bias_new(
    const float* __restrict__ of_pieces,
    const float* layers_6_bias,
    const double* __restrict__ lr,
    float* layers_6_bias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 10) { return; }
    float of_all_ = 0.0f;
    for (int k = 0; k < 8; k++) {
        const float of_pieces_ = of_pieces[k * 10 + i];
        of_all_ = of_all_ + of_pieces_;
    }
    const float layers_6_bias_ = layers_6_bias[i];
    const double lr_ = lr[0];
    const float update_layers_0_weight_new_cast_ = (float)lr_;
    const float update_layers_6_bias_new_mul_ = 0.0f * layers_6_bias_;
    const float update_layers_6_bias_new_add_ = of_all_ + update_layers_6_bias_new_mul_;
    const float update_layers_6_bias_new_mul_2_ = update_layers_0_weight_new_cast_ * update_layers_6_bias_new_add_;
    const float layers_6_bias_new_ = layers_6_bias_ - update_layers_6_bias_new_mul_2_;
    layers_6_bias_new[i] = layers_6_bias_new_;
}

// linear_grad_2  f32 [512, 1024]
// relu_grad_2  f32 [512, 1024]
extern "C" __global__ void k11_relu_grad_2(
    const float* __restrict__ relu_grad,
    const float* __restrict__ layers_4_weight,
    const float* __restrict__ relu_2,
    float* __restrict__ relu_grad_2
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 128;
    const int top = block / 16 % 8 * 64;
    const int left = block % 16 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 1024; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_2 = 0.0f;
            if (m < 512 && k < 1024) {
                const float relu_grad_ = relu_grad[m * 1024 + k];
                x_2 = relu_grad_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_2;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_3 = 0.0f;
            if (n < 1024 && k < 1024) {
                const float layers_4_weight_ = layers_4_weight[k * 1024 + n];
                x_3 = layers_4_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_3;
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
            if (m < 512 && n < 1024) {
                const float linear_grad_2_ = sums[u * 4 + w];
                const float relu_2_ = relu_2[m * 1024 + n];
                const bool backward_layers_3_lessorequal_ = relu_2_ <= 0.0f;
                const float relu_grad_2_ = backward_layers_3_lessorequal_ ? 0.0f : linear_grad_2_;
                relu_grad_2[m * 1024 + n] = relu_grad_2_;
            }
        }
    }
}

// d_layers_4_weight  f32 [1024, 1024]
// layers_4_weight_new, of layers.4.weight_new  f32 [1024, 1024]
extern "C" __global__ void k12_layers_4_weight_new(
    const float* __restrict__ relu_grad,
    const float* __restrict__ relu_2,
    const float* layers_4_weight,
    const double* __restrict__ lr,
    float* layers_4_weight_new
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 256;
    const int top = block / 16 % 16 * 64;
    const int left = block % 16 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 512; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_2 = 0.0f;
            if (m < 1024 && k < 512) {
                const float relu_grad_ = relu_grad[k * 1024 + m];
                x_2 = relu_grad_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_2;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_3 = 0.0f;
            if (n < 1024 && k < 512) {
                const float relu_2_ = relu_2[k * 1024 + n];
                x_3 = relu_2_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_3;
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
            if (m < 1024 && n < 1024) {
                const float d_layers_4_weight_ = sums[u * 4 + w];
                const float layers_4_weight_ = layers_4_weight[m * 1024 + n];
                const double lr_ = lr[0];
                const float update_layers_0_weight_new_cast_ = (float)lr_;
                const float update_layers_4_weight_new_mul_ = 0.0f * layers_4_weight_;
                const float update_layers_4_weight_new_add_ = d_layers_4_weight_ + update_layers_4_weight_new_mul_;
                const float update_layers_4_weight_new_mul_2_ = update_layers_0_weight_new_cast_ * update_layers_4_weight_new_add_;
                const float layers_4_weight_new_ = layers_4_weight_ - update_layers_4_weight_new_mul_2_;
                layers_4_weight_new[m * 1024 + n] = layers_4_weight_new_;
            }
        }
    }
}

// of_pieces_2, of d_layers_4_bias  f32 [8, 1024]
// of_pieces_3, of d_layers_2_bias  f32 [8, 1024]
extern "C" __global__ void k13_of_pieces_3(
    const float* __restrict__ relu_grad,
    const float* __restrict__ relu_grad_2,
    float* __restrict__ of_pieces_2,
    float* __restrict__ of_pieces_3
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 8192) { return; }
    float of_pieces_2_ = 0.0f;
    for (int k = 0; k < 64; k++) {
        const int at = (i / 1024) * 64 + k;
        const float relu_grad_ = relu_grad[at * 1024 + (i % 1024)];
        of_pieces_2_ = of_pieces_2_ + relu_grad_;
    }
    of_pieces_2[i] = of_pieces_2_;
    float of_pieces_3_ = 0.0f;
    for (int k_2 = 0; k_2 < 64; k_2++) {
        const int at_2 = (i / 1024) * 64 + k_2;
        const float relu_grad_2_ = relu_grad_2[at_2 * 1024 + (i % 1024)];
        of_pieces_3_ = of_pieces_3_ + relu_grad_2_;
    }
    of_pieces_3[i] = of_pieces_3_;
}

// of_all_2, of d_layers_4_bias  f32 [1024]
// of_all_3, of d_layers_2_bias  f32 [1024]
// layers_2_bias_new, of layers.2.bias_new  f32 [1024]
// layers_4_bias_new, of layers.4.bias_new  f32 [1024]
extern "C" __global__ void k14_layers_4_bias_new(
    const float* __restrict__ of_pieces_2,
    const float* __restrict__ of_pieces_3,
    const float* layers_2_bias,
    const double* __restrict__ lr,
    const float* layers_4_bias,
    float* layers_2_bias_new,
    float* layers_4_bias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 1024) { return; }
    float of_all_2_ = 0.0f;
    for (int k = 0; k < 8; k++) {
        const float of_pieces_2_ = of_pieces_2[k * 1024 + i];
        of_all_2_ = of_all_2_ + of_pieces_2_;
    }
    float of_all_3_ = 0.0f;
    for (int k_2 = 0; k_2 < 8; k_2++) {
        const float of_pieces_3_ = of_pieces_3[k_2 * 1024 + i];
        of_all_3_ = of_all_3_ + of_pieces_3_;
    }
    const float layers_2_bias_ = layers_2_bias[i];
    const double lr_ = lr[0];
    const float update_layers_0_weight_new_cast_ = (float)lr_;
    const float update_layers_2_bias_new_mul_ = 0.0f * layers_2_bias_;
    const float update_layers_2_bias_new_add_ = of_all_3_ + update_layers_2_bias_new_mul_;
    const float update_layers_2_bias_new_mul_2_ = update_layers_0_weight_new_cast_ * update_layers_2_bias_new_add_;
    const float layers_2_bias_new_ = layers_2_bias_ - update_layers_2_bias_new_mul_2_;
    layers_2_bias_new[i] = layers_2_bias_new_;
    const float layers_4_bias_ = layers_4_bias[i];
    const float update_layers_4_bias_new_mul_ = 0.0f * layers_4_bias_;
    const float update_layers_4_bias_new_add_ = of_all_2_ + update_layers_4_bias_new_mul_;
    const float update_layers_4_bias_new_mul_2_ = update_layers_0_weight_new_cast_ * update_layers_4_bias_new_add_;
    const float layers_4_bias_new_ = layers_4_bias_ - update_layers_4_bias_new_mul_2_;
    layers_4_bias_new[i] = layers_4_bias_new_;
}

// d_layers_0_weight  f32 [1024, 784]
// layers_0_weight_new, of layers.0.weight_new  f32 [1024, 784]
extern "C" __global__ void k17_layers_0_weight_new(
    const float* __restrict__ relu_grad_3,
    const float* __restrict__ x,
    const float* layers_0_weight,
    const double* __restrict__ lr,
    float* layers_0_weight_new
) {
    __shared__ float tile_a_float[1024];
    __shared__ float tile_b_float[1024];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 208;
    const int top = block / 13 % 16 * 64;
    const int left = block % 13 * 64;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[16] = {};
    for (int k0 = 0; k0 < 512; k0 += 16) {
        for (int t = thread; t < 1024; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_2 = 0.0f;
            if (m < 1024 && k < 512) {
                const float relu_grad_3_ = relu_grad_3[k * 1024 + m];
                x_2 = relu_grad_3_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_2;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_3 = 0.0f;
            if (n < 784 && k < 512) {
                const float x_ = x[k * 784 + n];
                x_3 = x_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_3;
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
            if (m < 1024 && n < 784) {
                const float d_layers_0_weight_ = sums[u * 4 + w];
                const float layers_0_weight_ = layers_0_weight[m * 784 + n];
                const double lr_ = lr[0];
                const float update_layers_0_weight_new_cast_ = (float)lr_;
                const float update_layers_0_weight_new_mul_ = 0.0f * layers_0_weight_;
                const float update_layers_0_weight_new_add_ = d_layers_0_weight_ + update_layers_0_weight_new_mul_;
                const float update_layers_0_weight_new_mul_2_ = update_layers_0_weight_new_cast_ * update_layers_0_weight_new_add_;
                const float layers_0_weight_new_ = layers_0_weight_ - update_layers_0_weight_new_mul_2_;
                layers_0_weight_new[m * 784 + n] = layers_0_weight_new_;
            }
        }
    }
}

// of_pieces_4, of d_layers_0_bias  f32 [8, 1024]
extern "C" __global__ void k18_of_pieces_4(
    const float* __restrict__ relu_grad_3,
    float* __restrict__ of_pieces_4
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 8192) { return; }
    float of_pieces_4_ = 0.0f;
    for (int k = 0; k < 64; k++) {
        const int at = (i / 1024) * 64 + k;
        const float relu_grad_3_ = relu_grad_3[at * 1024 + (i % 1024)];
        of_pieces_4_ = of_pieces_4_ + relu_grad_3_;
    }
    of_pieces_4[i] = of_pieces_4_;
}

// of_all_4, of d_layers_0_bias  f32 [1024]
// layers_0_bias_new, of layers.0.bias_new  f32 [1024]
extern "C" __global__ void k19_layers_0_bias_new(
    const float* __restrict__ of_pieces_4,
    const float* layers_0_bias,
    const double* __restrict__ lr,
    float* layers_0_bias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 1024) { return; }
    float of_all_4_ = 0.0f;
    for (int k = 0; k < 8; k++) {
        const float of_pieces_4_ = of_pieces_4[k * 1024 + i];
        of_all_4_ = of_all_4_ + of_pieces_4_;
    }
    const float layers_0_bias_ = layers_0_bias[i];
    const double lr_ = lr[0];
    const float update_layers_0_weight_new_cast_ = (float)lr_;
    const float update_layers_0_bias_new_mul_ = 0.0f * layers_0_bias_;
    const float update_layers_0_bias_new_add_ = of_all_4_ + update_layers_0_bias_new_mul_;
    const float update_layers_0_bias_new_mul_2_ = update_layers_0_weight_new_cast_ * update_layers_0_bias_new_add_;
    const float layers_0_bias_new_ = layers_0_bias_ - update_layers_0_bias_new_mul_2_;
    layers_0_bias_new[i] = layers_0_bias_new_;
}

// Launches, in order: kernel, blocks, threads, arguments.
//   k00_relu<<<128, 256>>>(x, layers_0_weight, layers_0_bias, relu)
//   k01_relu_2<<<128, 256>>>(relu, layers_2_weight, layers_2_bias, relu_2)
//   k01_relu_2<<<128, 256>>>(relu_2, layers_4_weight, layers_4_bias, relu_3)
//   k03_layers_6_matmul<<<32, 256>>>(relu_3, layers_6_weight, layers_6_matmul)
//   k04_loss_reducesum_2<<<2, 256>>>(y, layers_6_matmul, layers_6_bias, picked, loss_reducemax, loss_reducesum_2)
//   k05_step_layers_6_bias_new<<<1, 256>>>(picked, y, layers_6_matmul, layers_6_bias, loss_reducemax, loss_reducesum_2, step_layers_0_weight, step_layers_0_bias, step_layers_2_weight, step_layers_2_bias, step_layers_4_weight, step_layers_4_bias, step_layers_6_weight, step_layers_6_bias, loss, backward_div, step_layers_0_weight_new, step_layers_0_bias_new, step_layers_2_weight_new, step_layers_2_bias_new, step_layers_4_weight_new, step_layers_4_bias_new, step_layers_6_weight_new, step_layers_6_bias_new)
//   k06_cross_entropy_grad<<<20, 256>>>(y, backward_div, layers_6_matmul, layers_6_bias, loss_reducemax, loss_reducesum_2, picked, cross_entropy_grad)
//   k07_relu_grad<<<128, 256>>>(cross_entropy_grad, layers_6_weight, relu_3, relu_grad)
//   k08_layers_6_weight_new<<<64, 256>>>(cross_entropy_grad, relu_3, layers_6_weight, lr, layers_6_weight_new)
//   k09_of_pieces<<<1, 256>>>(cross_entropy_grad, of_pieces)
//   k10_layers_6_bias_new<<<1, 256>>>(of_pieces, layers_6_bias, lr, layers_6_bias_new)
//   k11_relu_grad_2<<<128, 256>>>(relu_grad, layers_4_weight, relu_2, relu_grad_2)
//   k12_layers_4_weight_new<<<256, 256>>>(relu_grad, relu_2, layers_4_weight, lr, layers_4_weight_new)
//   k13_of_pieces_3<<<32, 256>>>(relu_grad, relu_grad_2, of_pieces_2, of_pieces_3)
//   k14_layers_4_bias_new<<<4, 256>>>(of_pieces_2, of_pieces_3, layers_2_bias, lr, layers_4_bias, layers_2_bias_new, layers_4_bias_new)
//   k11_relu_grad_2<<<128, 256>>>(relu_grad_2, layers_2_weight, relu, relu_grad_3)
//   k12_layers_4_weight_new<<<256, 256>>>(relu_grad_2, relu, layers_2_weight, lr, layers_2_weight_new)
//   k17_layers_0_weight_new<<<208, 256>>>(relu_grad_3, x, layers_0_weight, lr, layers_0_weight_new)
//   k18_of_pieces_4<<<32, 256>>>(relu_grad_3, of_pieces_4)
//   k19_layers_0_bias_new<<<4, 256>>>(of_pieces_4, layers_0_bias, lr, layers_0_bias_new)
// Results: loss.
// What lasts from run to run, at the end:
//   step_layers_0_weight = step_layers_0_weight_new
//   step_layers_0_bias = step_layers_0_bias_new
//   step_layers_2_weight = step_layers_2_weight_new
//   step_layers_2_bias = step_layers_2_bias_new
//   step_layers_4_weight = step_layers_4_weight_new
//   step_layers_4_bias = step_layers_4_bias_new
//   step_layers_6_weight = step_layers_6_weight_new
//   step_layers_6_bias = step_layers_6_bias_new
