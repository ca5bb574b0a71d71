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

// emb  f32 [32, 3, 10]
extern "C" __global__ void k00_emb(
    const long long* __restrict__ x,
    const float* __restrict__ C,
    float* __restrict__ emb
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 960) { return; }
    const long long x_ = x[i / 10];
    const int at = min(max((int)x_, 0), 26);
    const float C_ = C[at * 10 + (i % 10)];
    emb[i] = C_;
}

// matmul  f32 [32, 200]
extern "C" __global__ void k01_matmul(
    const float* __restrict__ emb,
    const float* __restrict__ W1,
    float* __restrict__ matmul
) {
    __shared__ float tile_a_float[256];
    __shared__ float tile_b_float[256];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 26;
    const int top = block / 13 % 2 * 16;
    const int left = block % 13 * 16;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[1] = {};
    for (int k0 = 0; k0 < 30; k0 += 16) {
        for (int t = thread; t < 256; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_2 = 0.0f;
            if (m < 32 && k < 30) {
                const float emb_ = emb[m * 30 + k];
                x_2 = emb_;
            }
            tile_a_float[(t % 16) * 16 + t / 16] = x_2;
        }
        for (int t = thread; t < 256; t += 256) {
            const int n = left + t % 16;
            const int k = k0 + t / 16;
            float x_3 = 0.0f;
            if (n < 200 && k < 30) {
                const float W1_ = W1[k * 200 + n];
                x_3 = W1_;
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
            if (m < 32 && n < 200) {
                const float matmul_ = sums[u * 1 + w];
                matmul[m * 200 + n] = matmul_;
            }
        }
    }
}

// sum  f32 [1, 200]
// sum_2  f32 [1, 200]
// bnvar_inv  f32 [1, 200]
// b1_new  f32 [200]
extern "C" __global__ void k02_b1_new(
    const float* __restrict__ matmul,
    const float* __restrict__ b1,
    const double* __restrict__ lr,
    const float* __restrict__ constant_20,
    float* __restrict__ sum,
    float* __restrict__ bnvar_inv,
    float* __restrict__ b1_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 200) { return; }
    float sum_ = 0.0f;
    for (int k = 0; k < 32; k++) {
        const float matmul_ = matmul[k * 200 + i];
        const float b1_ = b1[i];
        const float hprebn_ = matmul_ + b1_;
        sum_ = sum_ + hprebn_;
    }
    sum[i] = sum_;
    float sum_2_ = 0.0f;
    for (int k_2 = 0; k_2 < 32; k_2++) {
        const float matmul__2 = matmul[k_2 * 200 + i];
        const float b1__2 = b1[i];
        const float hprebn__2 = matmul__2 + b1__2;
        const float bnmean_ = sum_ * 0.03125f;
        const float bndiff_ = hprebn__2 - bnmean_;
        const float bndiff2_ = bndiff_ * bndiff_;
        sum_2_ = sum_2_ + bndiff2_;
    }
    const float bnvar_ = sum_2_ * 0.032258064f;
    const float add_ = bnvar_ + 1e-5f;
    const float bnvar_inv_ = inverse_root(add_);
    bnvar_inv[i] = bnvar_inv_;
    const float b1__3 = b1[i];
    const double lr_ = lr[0];
    const float update_c_new_cast_ = (float)lr_;
    const float constant_20_ = constant_20[i];
    const float update_b1_new_mul_ = 0.0f * b1__3;
    const float update_b1_new_add_ = constant_20_ + update_b1_new_mul_;
    const float update_b1_new_mul_2_ = update_c_new_cast_ * update_b1_new_add_;
    const float b1_new_ = b1__3 - update_b1_new_mul_2_;
    b1_new[i] = b1_new_;
}

// h  f32 [32, 200]
extern "C" __global__ void k03_h(
    const float* __restrict__ bngain,
    const float* __restrict__ matmul,
    const float* __restrict__ b1,
    const float* __restrict__ sum,
    const float* __restrict__ bnvar_inv,
    const float* __restrict__ bnbias,
    float* __restrict__ h
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 6400) { return; }
    const float bngain_ = bngain[i % 200];
    const float matmul_ = matmul[i];
    const float b1_ = b1[i % 200];
    const float hprebn_ = matmul_ + b1_;
    const float sum_ = sum[i % 200];
    const float bnmean_ = sum_ * 0.03125f;
    const float bndiff_ = hprebn_ - bnmean_;
    const float bnvar_inv_ = bnvar_inv[i % 200];
    const float bnraw_ = bndiff_ * bnvar_inv_;
    const float mul_ = bngain_ * bnraw_;
    const float bnbias_ = bnbias[i % 200];
    const float hpreact_ = mul_ + bnbias_;
    const float h_ = tanhf(hpreact_);
    h[i] = h_;
}

// matmul_2  f32 [32, 27]
extern "C" __global__ void k04_matmul_2(
    const float* __restrict__ h,
    const float* __restrict__ W2,
    float* __restrict__ matmul_2
) {
    __shared__ float tile_a_float[256];
    __shared__ float tile_b_float[256];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 4;
    const int top = block / 2 % 2 * 16;
    const int left = block % 2 * 16;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[1] = {};
    for (int k0 = 0; k0 < 200; k0 += 16) {
        for (int t = thread; t < 256; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_2 = 0.0f;
            if (m < 32 && k < 200) {
                const float h_ = h[m * 200 + k];
                x_2 = h_;
            }
            tile_a_float[(t % 16) * 16 + t / 16] = x_2;
        }
        for (int t = thread; t < 256; t += 256) {
            const int n = left + t % 16;
            const int k = k0 + t / 16;
            float x_3 = 0.0f;
            if (n < 27 && k < 200) {
                const float W2_ = W2[k * 27 + n];
                x_3 = W2_;
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
            if (m < 32 && n < 27) {
                const float matmul_2_ = sums[u * 1 + w];
                matmul_2[m * 27 + n] = matmul_2_;
            }
        }
    }
}

// max_axis_1  i64 [32, 1]
// logit_maxes  f32 [32, 1]
// counts_sum  f32 [32, 1]
// counts_sum_inv  f32 [32, 1]
extern "C" __global__ void k05_counts_sum_inv(
    const float* __restrict__ matmul_2,
    const float* __restrict__ b2,
    float* __restrict__ logit_maxes,
    float* __restrict__ counts_sum_inv
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 32) { return; }
    long long max_axis_1_ = 0ll;
    const float matmul_2_ = matmul_2[i * 27];
    const float b2_ = b2[0];
    const float logits_ = matmul_2_ + b2_;
    float best = logits_;
    for (int k = 1; k < 27; k++) {
        const float matmul_2__2 = matmul_2[i * 27 + k];
        const float b2__2 = b2[k];
        const float logits__2 = matmul_2__2 + b2__2;
        if (logits__2 > best || (is_nan(logits__2) && !is_nan(best))) { best = logits__2; max_axis_1_ = (long long)k; }
    }
    const int at = min(max((int)max_axis_1_, 0), 26);
    const float matmul_2__3 = matmul_2[i * 27 + at];
    const float b2__3 = b2[at];
    const float logits__3 = matmul_2__3 + b2__3;
    logit_maxes[i] = logits__3;
    float counts_sum_ = 0.0f;
    for (int k_2 = 0; k_2 < 27; k_2++) {
        const float matmul_2__4 = matmul_2[i * 27 + k_2];
        const float b2__4 = b2[k_2];
        const float logits__4 = matmul_2__4 + b2__4;
        const float norm_logits_ = logits__4 - logits__3;
        const float counts_ = expf(norm_logits_);
        counts_sum_ = counts_sum_ + counts_;
    }
    const float counts_sum_inv_ = 1.0f / counts_sum_;
    counts_sum_inv[i] = counts_sum_inv_;
}

// mean  f32 []
// loss  f32 []
// step_C_new  i64 []
// step_W1_new  i64 []
// step_b1_new  i64 []
// step_W2_new  i64 []
// step_b2_new  i64 []
// step_bngain_new  i64 []
// step_bnbias_new  i64 []
extern "C" __global__ void k06_step_bnbias_new(
    const long long* __restrict__ y,
    const float* __restrict__ matmul_2,
    const float* __restrict__ b2,
    const float* __restrict__ logit_maxes,
    const float* __restrict__ counts_sum_inv,
    const long long* __restrict__ step_C,
    const long long* __restrict__ step_W1,
    const long long* __restrict__ step_b1,
    const long long* __restrict__ step_W2,
    const long long* __restrict__ step_b2,
    const long long* __restrict__ step_bngain,
    const long long* __restrict__ step_bnbias,
    float* __restrict__ loss,
    long long* __restrict__ step_C_new,
    long long* __restrict__ step_W1_new,
    long long* __restrict__ step_b1_new,
    long long* __restrict__ step_W2_new,
    long long* __restrict__ step_b2_new,
    long long* __restrict__ step_bngain_new,
    long long* __restrict__ step_bnbias_new
) {
    __shared__ float part_float[32];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float sum_3 = 0.0f;
    for (int col = thread; col < 32; col += 32) {
        const long long y_ = y[col];
        const int at = min(max((int)y_, 0), 26);
        const float matmul_2_ = matmul_2[col * 27 + at];
        const float b2_ = b2[at];
        const float logits_ = matmul_2_ + b2_;
        const float logit_maxes_ = logit_maxes[col];
        const float norm_logits_ = logits_ - logit_maxes_;
        const float counts_ = expf(norm_logits_);
        const float counts_sum_inv_ = counts_sum_inv[col];
        const float probs_ = counts_ * counts_sum_inv_;
        const float logprobs_ = logf(probs_);
        sum_3 = sum_3 + logprobs_;
    }
    part_float[thread] = sum_3;
    __syncthreads();
    for (int half = 16; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float mean_ = part_float[0] / 32.0f;
    __syncthreads();
    const float loss_ = -mean_;
    if (thread == 0) {
        loss[row] = loss_;
    }
    const long long step_C_ = step_C[0];
    const long long step_C_new_ = step_C_ + 1ll;
    if (thread == 0) {
        step_C_new[row] = step_C_new_;
    }
    const long long step_W1_ = step_W1[0];
    const long long step_W1_new_ = step_W1_ + 1ll;
    if (thread == 0) {
        step_W1_new[row] = step_W1_new_;
    }
    const long long step_b1_ = step_b1[0];
    const long long step_b1_new_ = step_b1_ + 1ll;
    if (thread == 0) {
        step_b1_new[row] = step_b1_new_;
    }
    const long long step_W2_ = step_W2[0];
    const long long step_W2_new_ = step_W2_ + 1ll;
    if (thread == 0) {
        step_W2_new[row] = step_W2_new_;
    }
    const long long step_b2_ = step_b2[0];
    const long long step_b2_new_ = step_b2_ + 1ll;
    if (thread == 0) {
        step_b2_new[row] = step_b2_new_;
    }
    const long long step_bngain_ = step_bngain[0];
    const long long step_bngain_new_ = step_bngain_ + 1ll;
    if (thread == 0) {
        step_bngain_new[row] = step_bngain_new_;
    }
    const long long step_bnbias_ = step_bnbias[0];
    const long long step_bnbias_new_ = step_bnbias_ + 1ll;
    if (thread == 0) {
        step_bnbias_new[row] = step_bnbias_new_;
    }
}

// gather_grad  f32 [32, 27]
// d_logits  f32 [32, 27]
extern "C" __global__ void k07_d_logits(
    const long long* __restrict__ y,
    const float* __restrict__ constant_11,
    const float* __restrict__ matmul_2,
    const float* __restrict__ b2,
    const float* __restrict__ logit_maxes,
    const float* __restrict__ counts_sum_inv,
    float* __restrict__ d_logits
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 864) { return; }
    float gather_grad_ = 0.0f;
    for (int k = 0; k < 1; k++) {
        const long long y_ = y[i / 27];
        const int place = (int)y_;
        if ((place == i % 27 || place + 27 == i % 27)) {
            const float constant_11_ = constant_11[i / 27];
            gather_grad_ += constant_11_;
        }
    }
    const float matmul_2_ = matmul_2[i];
    const float b2_ = b2[i % 27];
    const float logits_ = matmul_2_ + b2_;
    const float logit_maxes_ = logit_maxes[i / 27];
    const float norm_logits_ = logits_ - logit_maxes_;
    const float counts_ = expf(norm_logits_);
    const float counts_sum_inv_ = counts_sum_inv[i / 27];
    const float probs_ = counts_ * counts_sum_inv_;
    const float sub_3_ = probs_ - gather_grad_;
    const float d_logits_ = sub_3_ * 0.03125f;
    d_logits[i] = d_logits_;
}

// d_b2  f32 [27]
// b2_new  f32 [27]
extern "C" __global__ void k08_b2_new(
    const float* __restrict__ d_logits,
    const float* b2,
    const double* __restrict__ lr,
    float* b2_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 27) { return; }
    float d_b2_ = 0.0f;
    for (int k = 0; k < 32; k++) {
        const float d_logits_ = d_logits[k * 27 + i];
        d_b2_ = d_b2_ + d_logits_;
    }
    const float b2_ = b2[i];
    const double lr_ = lr[0];
    const float update_c_new_cast_ = (float)lr_;
    const float update_b2_new_mul_ = 0.0f * b2_;
    const float update_b2_new_add_ = d_b2_ + update_b2_new_mul_;
    const float update_b2_new_mul_2_ = update_c_new_cast_ * update_b2_new_add_;
    const float b2_new_ = b2_ - update_b2_new_mul_2_;
    b2_new[i] = b2_new_;
}

// d_h  f32 [32, 200]
// d_hpreact  f32 [32, 200]
extern "C" __global__ void k09_d_hpreact(
    const float* __restrict__ d_logits,
    const float* __restrict__ W2,
    const float* __restrict__ h,
    float* __restrict__ d_hpreact
) {
    __shared__ float tile_a_float[256];
    __shared__ float tile_b_float[256];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 26;
    const int top = block / 13 % 2 * 16;
    const int left = block % 13 * 16;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[1] = {};
    for (int k0 = 0; k0 < 27; k0 += 16) {
        for (int t = thread; t < 256; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_2 = 0.0f;
            if (m < 32 && k < 27) {
                const float d_logits_ = d_logits[m * 27 + k];
                x_2 = d_logits_;
            }
            tile_a_float[(t % 16) * 16 + t / 16] = x_2;
        }
        for (int t = thread; t < 256; t += 256) {
            const int n = left + t % 16;
            const int k = k0 + t / 16;
            float x_3 = 0.0f;
            if (n < 200 && k < 27) {
                const float W2_ = W2[n * 27 + k];
                x_3 = W2_;
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
            if (m < 32 && n < 200) {
                const float d_h_ = sums[u * 1 + w];
                const float h_ = h[m * 200 + n];
                const float backward_d_hpreact_sub_ = 1.0f - h_;
                const float backward_d_hpreact_add_ = 1.0f + h_;
                const float backward_d_hpreact_mul_ = backward_d_hpreact_sub_ * backward_d_hpreact_add_;
                const float d_hpreact_ = d_h_ * backward_d_hpreact_mul_;
                d_hpreact[m * 200 + n] = d_hpreact_;
            }
        }
    }
}

// d_W2  f32 [200, 27]
// W2_new  f32 [200, 27]
extern "C" __global__ void k10_W2_new(
    const float* __restrict__ h,
    const float* __restrict__ d_logits,
    const float* W2,
    const double* __restrict__ lr,
    float* W2_new
) {
    __shared__ float tile_a_float[256];
    __shared__ float tile_b_float[256];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 26;
    const int top = block / 2 % 13 * 16;
    const int left = block % 2 * 16;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[1] = {};
    for (int k0 = 0; k0 < 32; k0 += 16) {
        for (int t = thread; t < 256; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_2 = 0.0f;
            if (m < 200 && k < 32) {
                const float h_ = h[k * 200 + m];
                x_2 = h_;
            }
            tile_a_float[(t % 16) * 16 + t / 16] = x_2;
        }
        for (int t = thread; t < 256; t += 256) {
            const int n = left + t % 16;
            const int k = k0 + t / 16;
            float x_3 = 0.0f;
            if (n < 27 && k < 32) {
                const float d_logits_ = d_logits[k * 27 + n];
                x_3 = d_logits_;
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
            if (m < 200 && n < 27) {
                const float d_W2_ = sums[u * 1 + w];
                const float W2_ = W2[m * 27 + n];
                const double lr_ = lr[0];
                const float update_c_new_cast_ = (float)lr_;
                const float update_w2_new_mul_ = 0.0f * W2_;
                const float update_w2_new_add_ = d_W2_ + update_w2_new_mul_;
                const float update_w2_new_mul_2_ = update_c_new_cast_ * update_w2_new_add_;
                const float W2_new_ = W2_ - update_w2_new_mul_2_;
                W2_new[m * 27 + n] = W2_new_;
            }
        }
    }
}

// d_bnbias  f32 [1, 200]
// d_bngain  f32 [1, 200]
// bngain_new  f32 [1, 200]
// bnbias_new  f32 [1, 200]
extern "C" __global__ void k11_bnbias_new(
    const float* __restrict__ d_hpreact,
    const float* __restrict__ matmul,
    const float* __restrict__ b1,
    const float* __restrict__ sum,
    const float* __restrict__ bnvar_inv,
    const float* __restrict__ bngain,
    const double* __restrict__ lr,
    const float* bnbias,
    float* __restrict__ d_bnbias,
    float* __restrict__ d_bngain,
    float* __restrict__ bngain_new,
    float* bnbias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 200) { return; }
    float d_bnbias_ = 0.0f;
    for (int k = 0; k < 32; k++) {
        const float d_hpreact_ = d_hpreact[k * 200 + i];
        d_bnbias_ = d_bnbias_ + d_hpreact_;
    }
    d_bnbias[i] = d_bnbias_;
    float d_bngain_ = 0.0f;
    for (int k_2 = 0; k_2 < 32; k_2++) {
        const float d_hpreact__2 = d_hpreact[k_2 * 200 + i];
        const float matmul_ = matmul[k_2 * 200 + i];
        const float b1_ = b1[i];
        const float hprebn_ = matmul_ + b1_;
        const float sum_ = sum[i];
        const float bnmean_ = sum_ * 0.03125f;
        const float bndiff_ = hprebn_ - bnmean_;
        const float bnvar_inv_ = bnvar_inv[i];
        const float bnraw_ = bndiff_ * bnvar_inv_;
        const float mul_4_ = d_hpreact__2 * bnraw_;
        d_bngain_ = d_bngain_ + mul_4_;
    }
    d_bngain[i] = d_bngain_;
    const float bngain_ = bngain[i];
    const double lr_ = lr[0];
    const float update_c_new_cast_ = (float)lr_;
    const float update_bngain_new_mul_ = 0.0f * bngain_;
    const float update_bngain_new_add_ = d_bngain_ + update_bngain_new_mul_;
    const float update_bngain_new_mul_2_ = update_c_new_cast_ * update_bngain_new_add_;
    const float bngain_new_ = bngain_ - update_bngain_new_mul_2_;
    bngain_new[i] = bngain_new_;
    const float bnbias_ = bnbias[i];
    const float update_bnbias_new_mul_ = 0.0f * bnbias_;
    const float update_bnbias_new_add_ = d_bnbias_ + update_bnbias_new_mul_;
    const float update_bnbias_new_mul_2_ = update_c_new_cast_ * update_bnbias_new_add_;
    const float bnbias_new_ = bnbias_ - update_bnbias_new_mul_2_;
    bnbias_new[i] = bnbias_new_;
}

// d_hprebn  f32 [32, 200]
extern "C" __global__ void k12_d_hprebn(
    const float* __restrict__ bnvar_inv,
    const float* __restrict__ bngain,
    const float* __restrict__ d_hpreact,
    const float* __restrict__ d_bnbias,
    const float* __restrict__ d_bngain,
    const float* __restrict__ matmul,
    const float* __restrict__ b1,
    const float* __restrict__ sum,
    float* __restrict__ d_hprebn
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 6400) { return; }
    const float bnvar_inv_ = bnvar_inv[i % 200];
    const float bngain_ = bngain[i % 200];
    const float mul_9_ = bnvar_inv_ * bngain_;
    const float d_hpreact_ = d_hpreact[i];
    const float d_bnbias_ = d_bnbias[i % 200];
    const float mul_10_ = d_bnbias_ * 0.03125f;
    const float sub_ = d_hpreact_ - mul_10_;
    const float d_bngain_ = d_bngain[i % 200];
    const float mul_11_ = d_bngain_ * 0.032258064f;
    const float matmul_ = matmul[i];
    const float b1_ = b1[i % 200];
    const float hprebn_ = matmul_ + b1_;
    const float sum_ = sum[i % 200];
    const float bnmean_ = sum_ * 0.03125f;
    const float bndiff_ = hprebn_ - bnmean_;
    const float bnraw_ = bndiff_ * bnvar_inv_;
    const float mul_12_ = mul_11_ * bnraw_;
    const float sub_2_ = sub_ - mul_12_;
    const float d_hprebn_ = mul_9_ * sub_2_;
    d_hprebn[i] = d_hprebn_;
}

// d_embcat  f32 [32, 30]
extern "C" __global__ void k13_d_embcat(
    const float* __restrict__ d_hprebn,
    const float* __restrict__ W1,
    float* __restrict__ d_embcat
) {
    __shared__ float tile_a_float[256];
    __shared__ float tile_b_float[256];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 4;
    const int top = block / 2 % 2 * 16;
    const int left = block % 2 * 16;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[1] = {};
    for (int k0 = 0; k0 < 200; k0 += 16) {
        for (int t = thread; t < 256; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_2 = 0.0f;
            if (m < 32 && k < 200) {
                const float d_hprebn_ = d_hprebn[m * 200 + k];
                x_2 = d_hprebn_;
            }
            tile_a_float[(t % 16) * 16 + t / 16] = x_2;
        }
        for (int t = thread; t < 256; t += 256) {
            const int n = left + t % 16;
            const int k = k0 + t / 16;
            float x_3 = 0.0f;
            if (n < 30 && k < 200) {
                const float W1_ = W1[n * 200 + k];
                x_3 = W1_;
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
            if (m < 32 && n < 30) {
                const float d_embcat_ = sums[u * 1 + w];
                d_embcat[m * 30 + n] = d_embcat_;
            }
        }
    }
}

// d_W1  f32 [30, 200]
// W1_new  f32 [30, 200]
extern "C" __global__ void k14_W1_new(
    const float* __restrict__ emb,
    const float* __restrict__ d_hprebn,
    const float* W1,
    const double* __restrict__ lr,
    float* W1_new
) {
    __shared__ float tile_a_float[256];
    __shared__ float tile_b_float[256];
    const int thread = (int)threadIdx.x;
    const int block = (int)blockIdx.x;
    const int stack = block / 26;
    const int top = block / 13 % 2 * 16;
    const int left = block % 13 * 16;
    const int tx = thread % 16;
    const int ty = thread / 16;
    float sums[1] = {};
    for (int k0 = 0; k0 < 32; k0 += 16) {
        for (int t = thread; t < 256; t += 256) {
            const int m = top + t / 16;
            const int k = k0 + t % 16;
            float x_2 = 0.0f;
            if (m < 30 && k < 32) {
                const float emb_ = emb[k * 30 + m];
                x_2 = emb_;
            }
            tile_a_float[(t % 16) * 16 + t / 16] = x_2;
        }
        for (int t = thread; t < 256; t += 256) {
            const int n = left + t % 16;
            const int k = k0 + t / 16;
            float x_3 = 0.0f;
            if (n < 200 && k < 32) {
                const float d_hprebn_ = d_hprebn[k * 200 + n];
                x_3 = d_hprebn_;
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
            if (m < 30 && n < 200) {
                const float d_W1_ = sums[u * 1 + w];
                const float W1_ = W1[m * 200 + n];
                const double lr_ = lr[0];
                const float update_c_new_cast_ = (float)lr_;
                const float update_w1_new_mul_ = 0.0f * W1_;
                const float update_w1_new_add_ = d_W1_ + update_w1_new_mul_;
                const float update_w1_new_mul_2_ = update_c_new_cast_ * update_w1_new_add_;
                const float W1_new_ = W1_ - update_w1_new_mul_2_;
                W1_new[m * 200 + n] = W1_new_;
            }
        }
    }
}

// d_C  f32 [27, 10]
// C_new  f32 [27, 10]
extern "C" __global__ void k15_C_new(
    const long long* __restrict__ x,
    const float* __restrict__ d_embcat,
    const float* C,
    const double* __restrict__ lr,
    float* C_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 270) { return; }
    float d_C_ = 0.0f;
    for (int k = 0; k < 96; k++) {
        const long long x_ = x[k];
        if ((int)x_ == i / 10) {
            const int at = (k % 3) * 10 + (i % 10);
            const float d_embcat_ = d_embcat[(k / 3) * 30 + at];
            d_C_ += d_embcat_;
        }
    }
    const float C_ = C[i];
    const double lr_ = lr[0];
    const float update_c_new_cast_ = (float)lr_;
    const float update_c_new_mul_ = 0.0f * C_;
    const float update_c_new_add_ = d_C_ + update_c_new_mul_;
    const float update_c_new_mul_2_ = update_c_new_cast_ * update_c_new_add_;
    const float C_new_ = C_ - update_c_new_mul_2_;
    C_new[i] = C_new_;
}

// Launches, in order: kernel, blocks, threads, arguments.
//   k00_emb<<<4, 256>>>(x, C, emb)
//   k01_matmul<<<26, 256>>>(emb, W1, matmul)
//   k02_b1_new<<<1, 256>>>(matmul, b1, lr, constant_20, sum, bnvar_inv, b1_new)
//   k03_h<<<25, 256>>>(bngain, matmul, b1, sum, bnvar_inv, bnbias, h)
//   k04_matmul_2<<<4, 256>>>(h, W2, matmul_2)
//   k05_counts_sum_inv<<<1, 256>>>(matmul_2, b2, logit_maxes, counts_sum_inv)
//   k06_step_bnbias_new<<<1, 32>>>(y, matmul_2, b2, logit_maxes, counts_sum_inv, step_C, step_W1, step_b1, step_W2, step_b2, step_bngain, step_bnbias, loss, step_C_new, step_W1_new, step_b1_new, step_W2_new, step_b2_new, step_bngain_new, step_bnbias_new)
//   k07_d_logits<<<4, 256>>>(y, constant_11, matmul_2, b2, logit_maxes, counts_sum_inv, d_logits)
//   k08_b2_new<<<1, 256>>>(d_logits, b2, lr, b2_new)
//   k09_d_hpreact<<<26, 256>>>(d_logits, W2, h, d_hpreact)
//   k10_W2_new<<<26, 256>>>(h, d_logits, W2, lr, W2_new)
//   k11_bnbias_new<<<1, 256>>>(d_hpreact, matmul, b1, sum, bnvar_inv, bngain, lr, bnbias, d_bnbias, d_bngain, bngain_new, bnbias_new)
//   k12_d_hprebn<<<25, 256>>>(bnvar_inv, bngain, d_hpreact, d_bnbias, d_bngain, matmul, b1, sum, d_hprebn)
//   k13_d_embcat<<<4, 256>>>(d_hprebn, W1, d_embcat)
//   k14_W1_new<<<26, 256>>>(emb, d_hprebn, W1, lr, W1_new)
//   k15_C_new<<<2, 256>>>(x, d_embcat, C, lr, C_new)
// Results: loss.
// What lasts from run to run, at the end:
//   b1 = b1_new
//   bngain = bngain_new
//   step_C = step_C_new
//   step_W1 = step_W1_new
//   step_b1 = step_b1_new
//   step_W2 = step_W2_new
//   step_b2 = step_b2_new
//   step_bngain = step_bngain_new
//   step_bnbias = step_bnbias_new

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

#if defined(CHAINRULE_SHIM) || __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(16, 1, 1) __launch_bounds__(640, 1) persistent_16(
    float* __restrict__ C,
    float* __restrict__ W1,
    float* __restrict__ b1,
    float* __restrict__ bngain,
    float* __restrict__ bnbias,
    float* __restrict__ W2,
    float* __restrict__ b2,
    long long* __restrict__ step_C,
    const double* __restrict__ lr,
    long long* __restrict__ step_W1,
    long long* __restrict__ step_b1,
    long long* __restrict__ step_W2,
    long long* __restrict__ step_b2,
    long long* __restrict__ step_bngain,
    long long* __restrict__ step_bnbias,
    float* loss_all,
    unsigned char* scratch,
    const unsigned long long seed,
    const unsigned long long run,
    const int steps,
    long long* times,
    const long long* __restrict__ x_all,
    const int x_stride,
    const long long* __restrict__ y_all,
    const int y_stride,
    const float* __restrict__ constant_11,
    const float* __restrict__ constant_20
) {
    extern __shared__ __align__(16) unsigned char arena[];
    const int block = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    if (steps == 0) { return; }
    float* own_emb = (float*)(arena + 10448);
    float* own_matmul_2 = (float*)(arena + 14288);
    long long* own_max_axis_1 = (long long*)(arena + 17744);
    float* own_logit_maxes = (float*)(arena + 18000);
    float* own_counts_sum_inv = (float*)(arena + 18128);
    float* own_d_logits = (float*)(arena + 18256);
    float* own_matmul = (float*)(arena + 21712);
    float* own_sum = (float*)(arena + 23376);
    float* own_bnvar_inv = (float*)(arena + 23440);
    float* own_h = (float*)(arena + 23504);
    float* own_d_hpreact = (float*)(arena + 25168);
    float* own_d_bnbias = (float*)(arena + 26832);
    float* own_d_bngain = (float*)(arena + 26896);
    float* own_d_hprebn = (float*)(arena + 26960);
    float* own_d_embcat_parts = (float*)(arena + 28624);
    float* gather_grad = (float*)(scratch + 0);
    float* matmul_2_parts = (float*)(scratch + 3456);
    float* d_C_parts_2 = (float*)(scratch + 58752);
    {
        float* own_C = (float*)(arena + 0);
        {
            for (int e = thread; e < 270; e += 512) {
                const float C_ = C[e];
                const float C_copy_ = C_;
                own_C[e] = C_copy_;
            }
        }
    }
    {
        float* own_W1 = (float*)(arena + 2176);
        {
            for (int e = thread; e < 390; e += 512) {
                const int mine = e % 13;
                const int own = block * 13 + mine;
                if (own < 200) {
                    const float W1_ = W1[(e / 13) * 200 + own];
                    const float W1_copy_ = W1_;
                    own_W1[e] = W1_copy_;
                }
            }
        }
    }
    {
        float* own_b1 = (float*)(arena + 5312);
        {
            for (int e = thread; e < 200; e += 512) {
                const float b1_ = b1[e];
                const float b1_copy_ = b1_;
                own_b1[e] = b1_copy_;
            }
        }
    }
    {
        float* own_bngain = (float*)(arena + 6912);
        {
            for (int e = thread; e < 13; e += 512) {
                const int mine = e;
                const int own = block * 13 + mine;
                if (own < 200) {
                    const float bngain_ = bngain[own];
                    const float bngain_copy_ = bngain_;
                    own_bngain[e] = bngain_copy_;
                }
            }
        }
    }
    {
        float* own_bnbias = (float*)(arena + 7040);
        {
            for (int e = thread; e < 13; e += 512) {
                const int mine = e;
                const int own = block * 13 + mine;
                if (own < 200) {
                    const float bnbias_ = bnbias[own];
                    const float bnbias_copy_ = bnbias_;
                    own_bnbias[e] = bnbias_copy_;
                }
            }
        }
    }
    {
        float* own_W2 = (float*)(arena + 7168);
        {
            for (int e = thread; e < 351; e += 512) {
                const int mine = e / 27;
                const int own = block * 13 + mine;
                if (own < 200) {
                    const float W2_ = W2[own * 27 + (e % 27)];
                    const float W2_copy_ = W2_;
                    own_W2[e] = W2_copy_;
                }
            }
        }
    }
    {
        float* own_b2 = (float*)(arena + 9984);
        {
            for (int e = thread; e < 27; e += 512) {
                const float b2_ = b2[e];
                const float b2_copy_ = b2_;
                own_b2[e] = b2_copy_;
            }
        }
    }
    {
        long long* own_step_C = (long long*)(arena + 10208);
        {
            for (int e = thread; e < 1; e += 512) {
                const long long step_C_ = step_C[0];
                const long long step_C_copy_ = step_C_;
                own_step_C[e] = step_C_copy_;
            }
        }
    }
    {
        double* own_lr = (double*)(arena + 10240);
        {
            for (int e = thread; e < 1; e += 512) {
                const double lr_ = lr[0];
                const double lr_copy_ = lr_;
                own_lr[e] = lr_copy_;
            }
        }
    }
    {
        long long* own_step_W1 = (long long*)(arena + 10256);
        {
            for (int e = thread; e < 1; e += 512) {
                const long long step_W1_ = step_W1[0];
                const long long step_W1_copy_ = step_W1_;
                own_step_W1[e] = step_W1_copy_;
            }
        }
    }
    {
        long long* own_step_b1 = (long long*)(arena + 10288);
        {
            for (int e = thread; e < 1; e += 512) {
                const long long step_b1_ = step_b1[0];
                const long long step_b1_copy_ = step_b1_;
                own_step_b1[e] = step_b1_copy_;
            }
        }
    }
    {
        long long* own_step_W2 = (long long*)(arena + 10320);
        {
            for (int e = thread; e < 1; e += 512) {
                const long long step_W2_ = step_W2[0];
                const long long step_W2_copy_ = step_W2_;
                own_step_W2[e] = step_W2_copy_;
            }
        }
    }
    {
        long long* own_step_b2 = (long long*)(arena + 10352);
        {
            for (int e = thread; e < 1; e += 512) {
                const long long step_b2_ = step_b2[0];
                const long long step_b2_copy_ = step_b2_;
                own_step_b2[e] = step_b2_copy_;
            }
        }
    }
    {
        long long* own_step_bngain = (long long*)(arena + 10384);
        {
            for (int e = thread; e < 1; e += 512) {
                const long long step_bngain_ = step_bngain[0];
                const long long step_bngain_copy_ = step_bngain_;
                own_step_bngain[e] = step_bngain_copy_;
            }
        }
    }
    {
        long long* own_step_bnbias = (long long*)(arena + 10416);
        {
            for (int e = thread; e < 1; e += 512) {
                const long long step_bnbias_ = step_bnbias[0];
                const long long step_bnbias_copy_ = step_bnbias_;
                own_step_bnbias[e] = step_bnbias_copy_;
            }
        }
    }
    __syncthreads();
    for (int step = 0; step < steps; step++) {
        const float* own_C = (const float*)(arena + 0 + (step % 2) * 1088);
        float* own_C_new = (float*)(arena + 0 + (1 - step % 2) * 1088);
        const float* own_W1 = (const float*)(arena + 2176 + (step % 2) * 1568);
        float* own_W1_new = (float*)(arena + 2176 + (1 - step % 2) * 1568);
        const float* own_b1 = (const float*)(arena + 5312 + (step % 2) * 800);
        float* own_b1_new = (float*)(arena + 5312 + (1 - step % 2) * 800);
        const float* own_bngain = (const float*)(arena + 6912 + (step % 2) * 64);
        float* own_bngain_new = (float*)(arena + 6912 + (1 - step % 2) * 64);
        const float* own_bnbias = (const float*)(arena + 7040 + (step % 2) * 64);
        float* own_bnbias_new = (float*)(arena + 7040 + (1 - step % 2) * 64);
        const float* own_W2 = (const float*)(arena + 7168 + (step % 2) * 1408);
        float* own_W2_new = (float*)(arena + 7168 + (1 - step % 2) * 1408);
        const float* own_b2 = (const float*)(arena + 9984 + (step % 2) * 112);
        float* own_b2_new = (float*)(arena + 9984 + (1 - step % 2) * 112);
        const long long* own_step_C = (const long long*)(arena + 10208 + (step % 2) * 16);
        long long* own_step_C_new = (long long*)(arena + 10208 + (1 - step % 2) * 16);
        const double* own_lr = (const double*)(arena + 10240);
        const long long* own_step_W1 = (const long long*)(arena + 10256 + (step % 2) * 16);
        long long* own_step_W1_new = (long long*)(arena + 10256 + (1 - step % 2) * 16);
        const long long* own_step_b1 = (const long long*)(arena + 10288 + (step % 2) * 16);
        long long* own_step_b1_new = (long long*)(arena + 10288 + (1 - step % 2) * 16);
        const long long* own_step_W2 = (const long long*)(arena + 10320 + (step % 2) * 16);
        long long* own_step_W2_new = (long long*)(arena + 10320 + (1 - step % 2) * 16);
        const long long* own_step_b2 = (const long long*)(arena + 10352 + (step % 2) * 16);
        long long* own_step_b2_new = (long long*)(arena + 10352 + (1 - step % 2) * 16);
        const long long* own_step_bngain = (const long long*)(arena + 10384 + (step % 2) * 16);
        long long* own_step_bngain_new = (long long*)(arena + 10384 + (1 - step % 2) * 16);
        const long long* own_step_bnbias = (const long long*)(arena + 10416 + (step % 2) * 16);
        long long* own_step_bnbias_new = (long long*)(arena + 10416 + (1 - step % 2) * 16);
        float* loss = loss_all + (long long)step * 1;
        const long long* x = x_all + (long long)step * x_stride;
        const long long* y = y_all + (long long)step * y_stride;
        if (times != nullptr && block == 0 && thread == 0) { times[0] = clock64(); }
        if (thread < 512) {
        // emb  f32 [32, 3, 10], whole in each block
        {
            #pragma unroll 2
            for (int e = thread; e < 960; e += 512) {
                const long long x_ = x[e / 10];
                const int at = min(max((int)x_, 0), 26);
                const float C_copy_ = own_C[at * 10 + (e % 10)];
                own_emb[e] = C_copy_;
            }
        }
        // gather_grad  f32 [32, 27], split along axis 0
        {
            const int own_thread = (thread + 64) % 512;
            for (int e = own_thread; e < 54; e += 512) {
                const int mine = e / 27;
                const int own = block * 2 + mine;
                float gather_grad_ = 0.0f;
                for (int k = 0; k < 1; k++) {
                    const long long y_ = y[own];
                    const int place = (int)y_;
                    if ((place == e % 27 || place + 27 == e % 27)) {
                        const float constant_11_ = constant_11[own];
                        gather_grad_ += constant_11_;
                    }
                }
                gather_grad[own * 27 + (e % 27)] = gather_grad_;
            }
        }
        } else {
        const int all_threads = thread;
        const int thread = all_threads - 512;
        // step_C_new  i64 [], whole in each block
        {
            for (int e = thread; e < 1; e += 128) {
                const long long step_C_copy_ = own_step_C[0];
                const long long step_C_new_ = step_C_copy_ + 1ll;
                own_step_C_new[e] = step_C_new_;
            }
        }
        }
        __syncthreads();
        if (times != nullptr && block == 0 && thread == 0) { times[1] = clock64(); }
        if (thread < 512) {
        // matmul  f32 [32, 200], split along axis 1
        {
            for (int e = thread; e < 416; e += 512) {
                const int mine = e % 13;
                const int own = block * 13 + mine;
                if (own < 200) {
                    float matmul_ = 0.0f;
                    #pragma unroll 30
                    for (int k = 0; k < 30; k++) {
                        const float emb_ = own_emb[(e / 13) * 30 + k];
                        const float W1_copy_ = own_W1[k * 13 + mine];
                        matmul_ += emb_ * W1_copy_;
                    }
                    own_matmul[e] = matmul_;
                }
            }
        }
        } else {
        const int all_threads = thread;
        const int thread = all_threads - 512;
        // step_W1_new  i64 [], whole in each block
        {
            for (int e = thread; e < 1; e += 128) {
                const long long step_W1_copy_ = own_step_W1[0];
                const long long step_W1_new_ = step_W1_copy_ + 1ll;
                own_step_W1_new[e] = step_W1_new_;
            }
        }
        }
        __syncthreads();
        if (times != nullptr && block == 0 && thread == 0) { times[2] = clock64(); }
        if (thread < 512) {
        // sum  f32 [1, 200], split along axis 1
        // sum_2  f32 [1, 200], split along axis 1
        // bnvar_inv  f32 [1, 200], split along axis 1
        {
            if (thread < 416) {
                const int place = thread / 32;
                const int lane = thread % 32;
                const int e = min(place, 12);
                const int mine = e;
                const int own = min(block * 13 + mine, 199);
                float sum_ = 0.0f;
                #pragma unroll 1
                for (int k = lane; k < 32; k += 32) {
                    const float matmul_ = own_matmul[k * 13 + mine];
                    const float b1_copy_ = own_b1[own];
                    const float hprebn_ = matmul_ + b1_copy_;
                    sum_ = sum_ + hprebn_;
                }
                for (int bit = 16; bit > 0; bit /= 2) { sum_ = sum_ + of_lanes(sum_, bit); }
                float sum_2_ = 0.0f;
                #pragma unroll 1
                for (int k_2 = lane; k_2 < 32; k_2 += 32) {
                    const float matmul__2 = own_matmul[k_2 * 13 + mine];
                    const float b1_copy__2 = own_b1[own];
                    const float hprebn__2 = matmul__2 + b1_copy__2;
                    const float bnmean_ = sum_ * 0.03125f;
                    const float bndiff_ = hprebn__2 - bnmean_;
                    const float bndiff2_ = bndiff_ * bndiff_;
                    sum_2_ = sum_2_ + bndiff2_;
                }
                for (int bit_2 = 16; bit_2 > 0; bit_2 /= 2) { sum_2_ = sum_2_ + of_lanes(sum_2_, bit_2); }
                const float bnvar_ = sum_2_ * 0.032258064f;
                const float add_ = bnvar_ + 1e-5f;
                const float bnvar_inv_ = inverse_root(add_);
                if (lane == 0 && block * 13 + mine < 200) {
                    own_sum[e] = sum_;
                    own_bnvar_inv[e] = bnvar_inv_;
                }
            }
        }
        } else {
        const int all_threads = thread;
        const int thread = all_threads - 512;
        // b1_new  f32 [200], whole in each block
        {
            #pragma unroll 2
            for (int e = thread; e < 200; e += 128) {
                const float b1_copy_ = own_b1[e];
                const double lr_copy_ = own_lr[0];
                const float update_c_new_cast_ = (float)lr_copy_;
                const float constant_20_ = constant_20[e];
                const float update_b1_new_mul_ = 0.0f * b1_copy_;
                const float update_b1_new_add_ = constant_20_ + update_b1_new_mul_;
                const float update_b1_new_mul_2_ = update_c_new_cast_ * update_b1_new_add_;
                const float b1_new_ = b1_copy_ - update_b1_new_mul_2_;
                own_b1_new[e] = b1_new_;
            }
        }
        }
        __syncthreads();
        if (times != nullptr && block == 0 && thread == 0) { times[3] = clock64(); }
        if (thread < 512) {
        // h  f32 [32, 200], split along axis 1
        {
            for (int e = thread; e < 416; e += 512) {
                const int mine = e % 13;
                const int own = block * 13 + mine;
                if (own < 200) {
                    const float bngain_copy_ = own_bngain[mine];
                    const float matmul_ = own_matmul[(e / 13) * 13 + mine];
                    const float b1_copy_ = own_b1[own];
                    const float hprebn_ = matmul_ + b1_copy_;
                    const float sum_ = own_sum[mine];
                    const float bnmean_ = sum_ * 0.03125f;
                    const float bndiff_ = hprebn_ - bnmean_;
                    const float bnvar_inv_ = own_bnvar_inv[mine];
                    const float bnraw_ = bndiff_ * bnvar_inv_;
                    const float mul_ = bngain_copy_ * bnraw_;
                    const float bnbias_copy_ = own_bnbias[mine];
                    const float hpreact_ = mul_ + bnbias_copy_;
                    const float h_ = tanhf(hpreact_);
                    own_h[e] = h_;
                }
            }
        }
        } else {
        const int all_threads = thread;
        const int thread = all_threads - 512;
        // step_b1_new  i64 [], whole in each block
        {
            for (int e = thread; e < 1; e += 128) {
                const long long step_b1_copy_ = own_step_b1[0];
                const long long step_b1_new_ = step_b1_copy_ + 1ll;
                own_step_b1_new[e] = step_b1_new_;
            }
        }
        }
        __syncthreads();
        if (times != nullptr && block == 0 && thread == 0) { times[4] = clock64(); }
        if (thread < 512) {
        // matmul_2_parts  f32 [16, 32, 27], split along axis 0
        {
            #pragma unroll 2
            for (int e = thread; e < 864; e += 512) {
                const int mine = 0;
                const int own = block * 1 + mine;
                float matmul_2_parts_ = 0.0f;
                #pragma unroll 13
                for (int k = 0; k < 13; k++) {
                    const int inner = own * 13 + k;
                    if (inner < 200) {
                        const float h_ = own_h[(e / 27) * 13 + k];
                        const float W2_copy_ = own_W2[k * 27 + (e % 27)];
                        matmul_2_parts_ += h_ * W2_copy_;
                    }
                }
                matmul_2_parts[own * 864 + e] = matmul_2_parts_;
            }
        }
        } else {
        const int all_threads = thread;
        const int thread = all_threads - 512;
        // step_W2_new  i64 [], whole in each block
        {
            for (int e = thread; e < 1; e += 128) {
                const long long step_W2_copy_ = own_step_W2[0];
                const long long step_W2_new_ = step_W2_copy_ + 1ll;
                own_step_W2_new[e] = step_W2_new_;
            }
        }
        }
        cluster_barrier();
        if (times != nullptr && block == 0 && thread == 0) { times[5] = clock64(); }
        if (thread < 512) {
        // matmul_2  f32 [32, 27], whole in each block
        {
            #pragma unroll 2
            for (int e = thread; e < 864; e += 512) {
                float matmul_2_ = 0.0f;
                #pragma unroll 16
                for (int k = 0; k < 16; k++) {
                    const float matmul_2_parts_ = matmul_2_parts[k * 864 + e];
                    matmul_2_ = matmul_2_ + matmul_2_parts_;
                }
                own_matmul_2[e] = matmul_2_;
            }
        }
        } else {
        const int all_threads = thread;
        const int thread = all_threads - 512;
        // step_b2_new  i64 [], whole in each block
        {
            for (int e = thread; e < 1; e += 128) {
                const long long step_b2_copy_ = own_step_b2[0];
                const long long step_b2_new_ = step_b2_copy_ + 1ll;
                own_step_b2_new[e] = step_b2_new_;
            }
        }
        }
        __syncthreads();
        if (times != nullptr && block == 0 && thread == 0) { times[6] = clock64(); }
        if (thread < 512) {
        // max_axis_1  i64 [32, 1], whole in each block
        {
            for (int e = thread; e < 32; e += 512) {
                long long max_axis_1_ = 0ll;
                const float matmul_2_ = own_matmul_2[e * 27];
                const float b2_copy_ = own_b2[0];
                const float logits_ = matmul_2_ + b2_copy_;
                float best = logits_;
                for (int k = 1; k < 27; k++) {
                    const float matmul_2__2 = own_matmul_2[e * 27 + k];
                    const float b2_copy__2 = own_b2[k];
                    const float logits__2 = matmul_2__2 + b2_copy__2;
                    if (logits__2 > best || (is_nan(logits__2) && !is_nan(best))) { best = logits__2; max_axis_1_ = (long long)k; }
                }
                own_max_axis_1[e] = max_axis_1_;
            }
        }
        } else {
        const int all_threads = thread;
        const int thread = all_threads - 512;
        // step_bngain_new  i64 [], whole in each block
        {
            for (int e = thread; e < 1; e += 128) {
                const long long step_bngain_copy_ = own_step_bngain[0];
                const long long step_bngain_new_ = step_bngain_copy_ + 1ll;
                own_step_bngain_new[e] = step_bngain_new_;
            }
        }
        }
        __syncthreads();
        if (times != nullptr && block == 0 && thread == 0) { times[7] = clock64(); }
        if (thread < 512) {
        // logit_maxes  f32 [32, 1], whole in each block
        // counts_sum  f32 [32, 1], whole in each block
        // counts_sum_inv  f32 [32, 1], whole in each block
        {
            const int place = thread / 16;
            const int lane = thread % 16;
            const int e = min(place, 31);
            const long long max_axis_1_ = own_max_axis_1[e];
            const int at = min(max((int)max_axis_1_, 0), 26);
            const float matmul_2_ = own_matmul_2[e * 27 + at];
            const float b2_copy_ = own_b2[at];
            const float logits_ = matmul_2_ + b2_copy_;
            float counts_sum_ = 0.0f;
            #pragma unroll 2
            for (int k = lane; k < 27; k += 16) {
                const float matmul_2__2 = own_matmul_2[e * 27 + k];
                const float b2_copy__2 = own_b2[k];
                const float logits__2 = matmul_2__2 + b2_copy__2;
                const float norm_logits_ = logits__2 - logits_;
                const float counts_ = expf(norm_logits_);
                counts_sum_ = counts_sum_ + counts_;
            }
            for (int bit = 8; bit > 0; bit /= 2) { counts_sum_ = counts_sum_ + of_lanes(counts_sum_, bit); }
            const float counts_sum_inv_ = 1.0f / counts_sum_;
            if (lane == 0) {
                own_logit_maxes[e] = logits_;
                own_counts_sum_inv[e] = counts_sum_inv_;
            }
        }
        } else {
        const int all_threads = thread;
        const int thread = all_threads - 512;
        // step_bnbias_new  i64 [], whole in each block
        {
            for (int e = thread; e < 1; e += 128) {
                const long long step_bnbias_copy_ = own_step_bnbias[0];
                const long long step_bnbias_new_ = step_bnbias_copy_ + 1ll;
                own_step_bnbias_new[e] = step_bnbias_new_;
            }
        }
        }
        __syncthreads();
        if (times != nullptr && block == 0 && thread == 0) { times[8] = clock64(); }
        if (thread < 512) {
        // d_logits  f32 [32, 27], whole in each block
        {
            #pragma unroll 2
            for (int e = thread; e < 864; e += 512) {
                const float matmul_2_ = own_matmul_2[e];
                const float b2_copy_ = own_b2[e % 27];
                const float logits_ = matmul_2_ + b2_copy_;
                const float logit_maxes_ = own_logit_maxes[e / 27];
                const float norm_logits_ = logits_ - logit_maxes_;
                const float counts_ = expf(norm_logits_);
                const float counts_sum_inv_ = own_counts_sum_inv[e / 27];
                const float probs_ = counts_ * counts_sum_inv_;
                const float gather_grad_ = gather_grad[e];
                const float sub_3_ = probs_ - gather_grad_;
                const float d_logits_ = sub_3_ * 0.03125f;
                own_d_logits[e] = d_logits_;
            }
        }
        } else {
        const int all_threads = thread;
        const int thread = all_threads - 512;
        // mean  f32 [], whole in each block
        // loss  f32 [], whole in each block
        {
            if (thread < 32) {
                const int place = thread / 32;
                const int lane = thread % 32;
                const int e = min(place, 0);
                float mean_ = 0.0f;
                #pragma unroll 1
                for (int k = lane; k < 32; k += 32) {
                    const long long y_ = y[k];
                    const int at = min(max((int)y_, 0), 26);
                    const float matmul_2_ = own_matmul_2[k * 27 + at];
                    const float b2_copy_ = own_b2[at];
                    const float logits_ = matmul_2_ + b2_copy_;
                    const float logit_maxes_ = own_logit_maxes[k];
                    const float norm_logits_ = logits_ - logit_maxes_;
                    const float counts_ = expf(norm_logits_);
                    const float counts_sum_inv_ = own_counts_sum_inv[k];
                    const float probs_ = counts_ * counts_sum_inv_;
                    const float logprobs_ = logf(probs_);
                    mean_ = mean_ + logprobs_;
                }
                for (int bit = 16; bit > 0; bit /= 2) { mean_ = mean_ + of_lanes(mean_, bit); }
                mean_ = mean_ / 32.0f;
                const float loss_ = -mean_;
                if (lane == 0) {
                    if (block == 0) {
                        loss[0] = loss_;
                    }
                }
            }
        }
        }
        __syncthreads();
        if (times != nullptr && block == 0 && thread == 0) { times[9] = clock64(); }
        if (thread < 512) {
        // d_h  f32 [32, 200], split along axis 1
        // d_hpreact  f32 [32, 200], split along axis 1
        {
            for (int e = thread; e < 416; e += 512) {
                const int mine = e % 13;
                const int own = block * 13 + mine;
                if (own < 200) {
                    float d_h_ = 0.0f;
                    #pragma unroll 27
                    for (int k = 0; k < 27; k++) {
                        const float d_logits_ = own_d_logits[(e / 13) * 27 + k];
                        const float W2_copy_ = own_W2[mine * 27 + k];
                        d_h_ += d_logits_ * W2_copy_;
                    }
                    const float h_ = own_h[(e / 13) * 13 + mine];
                    const float backward_d_hpreact_sub_ = 1.0f - h_;
                    const float backward_d_hpreact_add_ = 1.0f + h_;
                    const float backward_d_hpreact_mul_ = backward_d_hpreact_sub_ * backward_d_hpreact_add_;
                    const float d_hpreact_ = d_h_ * backward_d_hpreact_mul_;
                    own_d_hpreact[e] = d_hpreact_;
                }
            }
        }
        } else {
        const int all_threads = thread;
        const int thread = all_threads - 512;
        // d_b2  f32 [27], whole in each block
        // b2_new  f32 [27], whole in each block
        {
            const int place = thread / 4;
            const int lane = thread % 4;
            const int e = min(place, 26);
            float d_b2_ = 0.0f;
            #pragma unroll 8
            for (int k = lane; k < 32; k += 4) {
                const float d_logits_ = own_d_logits[k * 27 + e];
                d_b2_ = d_b2_ + d_logits_;
            }
            for (int bit = 2; bit > 0; bit /= 2) { d_b2_ = d_b2_ + of_lanes(d_b2_, bit); }
            const float b2_copy_ = own_b2[e];
            const double lr_copy_ = own_lr[0];
            const float update_c_new_cast_ = (float)lr_copy_;
            const float update_b2_new_mul_ = 0.0f * b2_copy_;
            const float update_b2_new_add_ = d_b2_ + update_b2_new_mul_;
            const float update_b2_new_mul_2_ = update_c_new_cast_ * update_b2_new_add_;
            const float b2_new_ = b2_copy_ - update_b2_new_mul_2_;
            if (lane == 0 && place < 27) {
                own_b2_new[e] = b2_new_;
            }
        }
        }
        __syncthreads();
        if (times != nullptr && block == 0 && thread == 0) { times[10] = clock64(); }
        if (thread < 512) {
        // d_bnbias  f32 [1, 200], split along axis 1
        // bnbias_new  f32 [1, 200], split along axis 1
        {
            if (thread < 416) {
                const int place = thread / 32;
                const int lane = thread % 32;
                const int e = min(place, 12);
                const int mine = e;
                const int own = min(block * 13 + mine, 199);
                float d_bnbias_ = 0.0f;
                #pragma unroll 1
                for (int k = lane; k < 32; k += 32) {
                    const float d_hpreact_ = own_d_hpreact[k * 13 + mine];
                    d_bnbias_ = d_bnbias_ + d_hpreact_;
                }
                for (int bit = 16; bit > 0; bit /= 2) { d_bnbias_ = d_bnbias_ + of_lanes(d_bnbias_, bit); }
                const float bnbias_copy_ = own_bnbias[mine];
                const double lr_copy_ = own_lr[0];
                const float update_c_new_cast_ = (float)lr_copy_;
                const float update_bnbias_new_mul_ = 0.0f * bnbias_copy_;
                const float update_bnbias_new_add_ = d_bnbias_ + update_bnbias_new_mul_;
                const float update_bnbias_new_mul_2_ = update_c_new_cast_ * update_bnbias_new_add_;
                const float bnbias_new_ = bnbias_copy_ - update_bnbias_new_mul_2_;
                if (lane == 0 && block * 13 + mine < 200) {
                    own_d_bnbias[e] = d_bnbias_;
                    own_bnbias_new[e] = bnbias_new_;
                }
            }
        }
        // d_bngain  f32 [1, 200], split along axis 1
        // bngain_new  f32 [1, 200], split along axis 1
        {
            const int own_thread = (thread + 96) % 512;
            if (own_thread < 416) {
                const int place = own_thread / 32;
                const int lane = own_thread % 32;
                const int e = min(place, 12);
                const int mine = e;
                const int own = min(block * 13 + mine, 199);
                float d_bngain_ = 0.0f;
                #pragma unroll 1
                for (int k = lane; k < 32; k += 32) {
                    const float d_hpreact_ = own_d_hpreact[k * 13 + mine];
                    const float matmul_ = own_matmul[k * 13 + mine];
                    const float b1_copy_ = own_b1[own];
                    const float hprebn_ = matmul_ + b1_copy_;
                    const float sum_ = own_sum[mine];
                    const float bnmean_ = sum_ * 0.03125f;
                    const float bndiff_ = hprebn_ - bnmean_;
                    const float bnvar_inv_ = own_bnvar_inv[mine];
                    const float bnraw_ = bndiff_ * bnvar_inv_;
                    const float mul_4_ = d_hpreact_ * bnraw_;
                    d_bngain_ = d_bngain_ + mul_4_;
                }
                for (int bit = 16; bit > 0; bit /= 2) { d_bngain_ = d_bngain_ + of_lanes(d_bngain_, bit); }
                const float bngain_copy_ = own_bngain[mine];
                const double lr_copy_ = own_lr[0];
                const float update_c_new_cast_ = (float)lr_copy_;
                const float update_bngain_new_mul_ = 0.0f * bngain_copy_;
                const float update_bngain_new_add_ = d_bngain_ + update_bngain_new_mul_;
                const float update_bngain_new_mul_2_ = update_c_new_cast_ * update_bngain_new_add_;
                const float bngain_new_ = bngain_copy_ - update_bngain_new_mul_2_;
                if (lane == 0 && block * 13 + mine < 200) {
                    own_d_bngain[e] = d_bngain_;
                    own_bngain_new[e] = bngain_new_;
                }
            }
        }
        }
        __syncthreads();
        if (times != nullptr && block == 0 && thread == 0) { times[11] = clock64(); }
        if (thread < 512) {
        // d_hprebn  f32 [32, 200], split along axis 1
        {
            for (int e = thread; e < 416; e += 512) {
                const int mine = e % 13;
                const int own = block * 13 + mine;
                if (own < 200) {
                    const float bnvar_inv_ = own_bnvar_inv[mine];
                    const float bngain_copy_ = own_bngain[mine];
                    const float mul_9_ = bnvar_inv_ * bngain_copy_;
                    const float d_hpreact_ = own_d_hpreact[(e / 13) * 13 + mine];
                    const float d_bnbias_ = own_d_bnbias[mine];
                    const float mul_10_ = d_bnbias_ * 0.03125f;
                    const float sub_ = d_hpreact_ - mul_10_;
                    const float d_bngain_ = own_d_bngain[mine];
                    const float mul_11_ = d_bngain_ * 0.032258064f;
                    const float matmul_ = own_matmul[(e / 13) * 13 + mine];
                    const float b1_copy_ = own_b1[own];
                    const float hprebn_ = matmul_ + b1_copy_;
                    const float sum_ = own_sum[mine];
                    const float bnmean_ = sum_ * 0.03125f;
                    const float bndiff_ = hprebn_ - bnmean_;
                    const float bnraw_ = bndiff_ * bnvar_inv_;
                    const float mul_12_ = mul_11_ * bnraw_;
                    const float sub_2_ = sub_ - mul_12_;
                    const float d_hprebn_ = mul_9_ * sub_2_;
                    own_d_hprebn[e] = d_hprebn_;
                }
            }
        }
        }
        __syncthreads();
        if (times != nullptr && block == 0 && thread == 0) { times[12] = clock64(); }
        if (thread < 512) {
        // d_embcat_parts  f32 [16, 32, 30], split along axis 0
        {
            #pragma unroll 2
            for (int e = thread; e < 960; e += 512) {
                const int mine = 0;
                const int own = block * 1 + mine;
                float d_embcat_parts_ = 0.0f;
                #pragma unroll 13
                for (int k = 0; k < 13; k++) {
                    const int inner = own * 13 + k;
                    if (inner < 200) {
                        const float d_hprebn_ = own_d_hprebn[(e / 30) * 13 + k];
                        const float W1_copy_ = own_W1[(e % 30) * 13 + k];
                        d_embcat_parts_ += d_hprebn_ * W1_copy_;
                    }
                }
                own_d_embcat_parts[e] = d_embcat_parts_;
            }
        }
        }
        __syncthreads();
        if (times != nullptr && block == 0 && thread == 0) { times[13] = clock64(); }
        if (thread < 512) {
        // d_C_parts_2  f32 [16, 27, 10], split along axis 0
        {
            if (thread < 448) {
                const int place = thread / 16;
                const int lane = thread % 16;
                const int e = min(place, 26);
                const int own = block;
                float d_C_parts_2_[10];
                #pragma unroll
                for (int t = 0; t < 10; t++) {
                    d_C_parts_2_[t] = 0.0f;
                }
                #pragma unroll 6
                for (int k = lane; k < 96; k += 16) {
                    const long long x_ = x[k];
                    if ((int)x_ == e) {
                        #pragma unroll
                        for (int t_2 = 0; t_2 < 10; t_2++) {
                            const int at = k * 10 + t_2;
                            const float d_embcat_parts_ = own_d_embcat_parts[at];
                            d_C_parts_2_[t_2] += d_embcat_parts_;
                        }
                    }
                }
                #pragma unroll
                for (int t_3 = 0; t_3 < 10; t_3++) {
                    for (int bit = 8; bit > 0; bit /= 2) { d_C_parts_2_[t_3] = d_C_parts_2_[t_3] + of_lanes(d_C_parts_2_[t_3], bit); }
                }
                if (lane == 0 && place < 27) {
                    #pragma unroll
                    for (int t_4 = 0; t_4 < 10; t_4++) {
                        d_C_parts_2[own * 270 + e * 10 + t_4] = d_C_parts_2_[t_4];
                    }
                }
            }
        }
        }
        cluster_arrive();
        if (thread < 512) {
        // d_W2  f32 [200, 27], split along axis 0
        // W2_new  f32 [200, 27], split along axis 0
        {
            for (int e = thread; e < 351; e += 512) {
                const int mine = e / 27;
                const int own = block * 13 + mine;
                if (own < 200) {
                    float d_W2_ = 0.0f;
                    #pragma unroll 32
                    for (int k = 0; k < 32; k++) {
                        const float h_ = own_h[k * 13 + mine];
                        const float d_logits_ = own_d_logits[k * 27 + (e % 27)];
                        d_W2_ += h_ * d_logits_;
                    }
                    const float W2_copy_ = own_W2[mine * 27 + (e % 27)];
                    const double lr_copy_ = own_lr[0];
                    const float update_c_new_cast_ = (float)lr_copy_;
                    const float update_w2_new_mul_ = 0.0f * W2_copy_;
                    const float update_w2_new_add_ = d_W2_ + update_w2_new_mul_;
                    const float update_w2_new_mul_2_ = update_c_new_cast_ * update_w2_new_add_;
                    const float W2_new_ = W2_copy_ - update_w2_new_mul_2_;
                    own_W2_new[e] = W2_new_;
                }
            }
        }
        // d_W1  f32 [30, 200], split along axis 1
        // W1_new  f32 [30, 200], split along axis 1
        {
            const int own_thread = (thread + 160) % 512;
            for (int e = own_thread; e < 390; e += 512) {
                const int mine = e % 13;
                const int own = block * 13 + mine;
                if (own < 200) {
                    float d_W1_ = 0.0f;
                    #pragma unroll 32
                    for (int k = 0; k < 32; k++) {
                        const float emb_ = own_emb[k * 30 + (e / 13)];
                        const float d_hprebn_ = own_d_hprebn[k * 13 + mine];
                        d_W1_ += emb_ * d_hprebn_;
                    }
                    const float W1_copy_ = own_W1[(e / 13) * 13 + mine];
                    const double lr_copy_ = own_lr[0];
                    const float update_c_new_cast_ = (float)lr_copy_;
                    const float update_w1_new_mul_ = 0.0f * W1_copy_;
                    const float update_w1_new_add_ = d_W1_ + update_w1_new_mul_;
                    const float update_w1_new_mul_2_ = update_c_new_cast_ * update_w1_new_add_;
                    const float W1_new_ = W1_copy_ - update_w1_new_mul_2_;
                    own_W1_new[e] = W1_new_;
                }
            }
        }
        }
        cluster_wait();
        __syncthreads();
        if (times != nullptr && block == 0 && thread == 0) { times[14] = clock64(); }
        if (thread < 512) {
        // d_C  f32 [27, 10], whole in each block
        // C_new  f32 [27, 10], whole in each block
        {
            for (int e = thread; e < 270; e += 512) {
                float d_C_ = 0.0f;
                #pragma unroll 16
                for (int k = 0; k < 16; k++) {
                    const float d_C_parts_2_ = d_C_parts_2[k * 270 + e];
                    d_C_ = d_C_ + d_C_parts_2_;
                }
                const float C_copy_ = own_C[e];
                const double lr_copy_ = own_lr[0];
                const float update_c_new_cast_ = (float)lr_copy_;
                const float update_c_new_mul_ = 0.0f * C_copy_;
                const float update_c_new_add_ = d_C_ + update_c_new_mul_;
                const float update_c_new_mul_2_ = update_c_new_cast_ * update_c_new_add_;
                const float C_new_ = C_copy_ - update_c_new_mul_2_;
                own_C_new[e] = C_new_;
            }
        }
        }
        __syncthreads();
        if (times != nullptr && block == 0 && thread == 0) { times[15] = clock64(); }
    }
    {
        const float* own_C = (const float*)(arena + 0 + (steps % 2) * 1088);
        if (block == 0) {
            #pragma unroll 1
            for (int e = thread; e < 270; e += 512) {
                C[e] = own_C[e];
            }
        }
    }
    {
        const float* own_W1 = (const float*)(arena + 2176 + (steps % 2) * 1568);
        #pragma unroll 1
        for (int e = thread; e < 390; e += 512) {
            const int mine = e % 13;
            const int own = block * 13 + mine;
            if (own < 200) {
                W1[(e / 13) * 200 + own] = own_W1[e];
            }
        }
    }
    {
        const float* own_b1 = (const float*)(arena + 5312 + (steps % 2) * 800);
        if (block == 0) {
            #pragma unroll 1
            for (int e = thread; e < 200; e += 512) {
                b1[e] = own_b1[e];
            }
        }
    }
    {
        const float* own_bngain = (const float*)(arena + 6912 + (steps % 2) * 64);
        #pragma unroll 1
        for (int e = thread; e < 13; e += 512) {
            const int mine = e;
            const int own = block * 13 + mine;
            if (own < 200) {
                bngain[own] = own_bngain[e];
            }
        }
    }
    {
        const float* own_bnbias = (const float*)(arena + 7040 + (steps % 2) * 64);
        #pragma unroll 1
        for (int e = thread; e < 13; e += 512) {
            const int mine = e;
            const int own = block * 13 + mine;
            if (own < 200) {
                bnbias[own] = own_bnbias[e];
            }
        }
    }
    {
        const float* own_W2 = (const float*)(arena + 7168 + (steps % 2) * 1408);
        #pragma unroll 1
        for (int e = thread; e < 351; e += 512) {
            const int mine = e / 27;
            const int own = block * 13 + mine;
            if (own < 200) {
                W2[own * 27 + (e % 27)] = own_W2[e];
            }
        }
    }
    {
        const float* own_b2 = (const float*)(arena + 9984 + (steps % 2) * 112);
        if (block == 0) {
            #pragma unroll 1
            for (int e = thread; e < 27; e += 512) {
                b2[e] = own_b2[e];
            }
        }
    }
    {
        const long long* own_step_C = (const long long*)(arena + 10208 + (steps % 2) * 16);
        if (block == 0) {
            #pragma unroll 1
            for (int e = thread; e < 1; e += 512) {
                step_C[0] = own_step_C[e];
            }
        }
    }
    {
        const long long* own_step_W1 = (const long long*)(arena + 10256 + (steps % 2) * 16);
        if (block == 0) {
            #pragma unroll 1
            for (int e = thread; e < 1; e += 512) {
                step_W1[0] = own_step_W1[e];
            }
        }
    }
    {
        const long long* own_step_b1 = (const long long*)(arena + 10288 + (steps % 2) * 16);
        if (block == 0) {
            #pragma unroll 1
            for (int e = thread; e < 1; e += 512) {
                step_b1[0] = own_step_b1[e];
            }
        }
    }
    {
        const long long* own_step_W2 = (const long long*)(arena + 10320 + (steps % 2) * 16);
        if (block == 0) {
            #pragma unroll 1
            for (int e = thread; e < 1; e += 512) {
                step_W2[0] = own_step_W2[e];
            }
        }
    }
    {
        const long long* own_step_b2 = (const long long*)(arena + 10352 + (steps % 2) * 16);
        if (block == 0) {
            #pragma unroll 1
            for (int e = thread; e < 1; e += 512) {
                step_b2[0] = own_step_b2[e];
            }
        }
    }
    {
        const long long* own_step_bngain = (const long long*)(arena + 10384 + (steps % 2) * 16);
        if (block == 0) {
            #pragma unroll 1
            for (int e = thread; e < 1; e += 512) {
                step_bngain[0] = own_step_bngain[e];
            }
        }
    }
    {
        const long long* own_step_bnbias = (const long long*)(arena + 10416 + (steps % 2) * 16);
        if (block == 0) {
            #pragma unroll 1
            for (int e = thread; e < 1; e += 512) {
                step_bnbias[0] = own_step_bnbias[e];
            }
        }
    }
}
#endif
