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

template <typename T>
static __device__ __forceinline__ T absolute(T x) { return x < 0 ? -x : x; }

template <typename T>
static __device__ __forceinline__ T sign_of(T x) { return T((x > 0) - (x < 0)); }

// NaN wins, as in NumPy.
template <typename T>
static __device__ __forceinline__ T larger(T a, T b) { return a > b || is_nan(a) ? a : b; }
template <typename T>
static __device__ __forceinline__ T smaller(T a, T b) { return a < b || is_nan(a) ? a : b; }

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

// Random bits as a function of seed, run, draw and place: Philox4x32-10.
static __device__ __forceinline__ void philox(
    const unsigned int* draws, unsigned int draw, unsigned int place, unsigned int* c
) {
    unsigned int k0 = draws[0], k1 = draws[1];
    c[0] = place; c[1] = draw; c[2] = draws[2]; c[3] = draws[3];
    for (int round = 0; round < 10; round++) {
        unsigned long long a = c[0] * 0xd2511f53ull, b = c[2] * 0xcd9e8d57ull;
        unsigned int c1 = c[1], c3 = c[3];
        c[0] = (unsigned int)(b >> 32) ^ c1 ^ k0; c[1] = (unsigned int)b;
        c[2] = (unsigned int)(a >> 32) ^ c3 ^ k1; c[3] = (unsigned int)a;
        k0 += 0x9e3779b9u; k1 += 0xbb67ae85u;
    }
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

// add  f32 [12, 64, 128]
extern "C" __global__ void k00_add(
    const long long* __restrict__ x,
    const float* __restrict__ symbols_weight,
    const float* __restrict__ positions_weight,
    float* __restrict__ add
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 98304) { return; }
    const long long x_ = x[i / 128];
    const int at = min(max((int)x_, 0), 64);
    const float symbols_weight_ = symbols_weight[at * 128 + (i % 128)];
    const float positions_weight_ = positions_weight[i % 8192];
    const float add_ = symbols_weight_ + positions_weight_;
    add[i] = add_;
}

// layer_norm_reducemean, of forward/layer_norm/ReduceMean  f32 [768, 1, 1, 1]
// layer_norm_sub, of forward/layer_norm/Sub  f32 [768, 1, 128, 1]
// layer_norm_reducemean_2, of forward/layer_norm/ReduceMean.2  f32 [768, 1, 1, 1]
// layer_norm_div, of forward/layer_norm/Div  f32 [768, 1, 1, 1]
// layer_norm_add_2, of forward/layer_norm/Add.2  f32 [768, 1, 128, 1]
extern "C" __global__ void k01_layer_norm_add_2(
    const float* __restrict__ add,
    const float* __restrict__ blocks_0_norm1_weight,
    const float* __restrict__ blocks_0_norm1_bias,
    float* __restrict__ layer_norm_reducemean,
    float* __restrict__ layer_norm_sub,
    float* __restrict__ layer_norm_div,
    float* __restrict__ layer_norm_add_2
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
    const float layer_norm_reducemean_ = part_float[0] / 128.0f;
    __syncthreads();
    if (thread == 0) {
        layer_norm_reducemean[row] = layer_norm_reducemean_;
    }
    for (int col = thread; col < 128; col += 128) {
        const float add__2 = add[row * 128 + col];
        const float layer_norm_sub_ = add__2 - layer_norm_reducemean_;
        layer_norm_sub[row * 128 + col] = layer_norm_sub_;
    }
    float sum_2 = 0.0f;
    for (int col = thread; col < 128; col += 128) {
        const float layer_norm_sub__2 = layer_norm_sub[row * 128 + col];
        const float layer_norm_mul_ = layer_norm_sub__2 * layer_norm_sub__2;
        sum_2 = sum_2 + layer_norm_mul_;
    }
    part_float[thread] = sum_2;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float layer_norm_reducemean_2_ = part_float[0] / 128.0f;
    __syncthreads();
    const float layer_norm_add_ = layer_norm_reducemean_2_ + 1e-5f;
    const float layer_norm_sqrt_ = sqrtf(layer_norm_add_);
    const float layer_norm_div_ = 1.0f / layer_norm_sqrt_;
    if (thread == 0) {
        layer_norm_div[row] = layer_norm_div_;
    }
    for (int col = thread; col < 128; col += 128) {
        const float layer_norm_sub__3 = layer_norm_sub[row * 128 + col];
        const float layer_norm_mul_2_ = layer_norm_sub__3 * layer_norm_div_;
        const float blocks_0_norm1_weight_ = blocks_0_norm1_weight[col];
        const float layer_norm_mul_3_ = layer_norm_mul_2_ * blocks_0_norm1_weight_;
        const float blocks_0_norm1_bias_ = blocks_0_norm1_bias[col];
        const float layer_norm_add_2_ = layer_norm_mul_3_ + blocks_0_norm1_bias_;
        layer_norm_add_2[row * 128 + col] = layer_norm_add_2_;
    }
}

// layer_norm_1  f32 [768, 3]
extern "C" __global__ void k02_layer_norm_1(
    const float* __restrict__ layer_norm_reducemean,
    const float* __restrict__ layer_norm_div,
    float* __restrict__ layer_norm_1
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 2304) { return; }
    const float layer_norm_reducemean_ = layer_norm_reducemean[i / 3];
    const float layer_norm_div_ = layer_norm_div[i / 3];
    const float layer_norm_1_ = ((i % 3) < 1) ? layer_norm_reducemean_ : (((i % 3) < 2) ? layer_norm_div_ : (0.0f));
    layer_norm_1[i] = layer_norm_1_;
}

// linear_matmul, of forward/linear/MatMul  f32 [12, 64, 384]
// linear  f32 [12, 64, 384]
extern "C" __global__ void k03_linear(
    const float* __restrict__ layer_norm_add_2,
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
            float x_6 = 0.0f;
            if (m < 64 && k < 128) {
                const int at = stack * 64 + m;
                const float layer_norm_add_2_ = layer_norm_add_2[at * 128 + k];
                x_6 = layer_norm_add_2_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_6;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_7 = 0.0f;
            if (n < 384 && k < 128) {
                const float blocks_0_attention_qkv_weight_ = blocks_0_attention_qkv_weight[n * 128 + k];
                x_7 = blocks_0_attention_qkv_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_7;
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
                const float linear_matmul_ = sums[u * 4 + w];
                const float blocks_0_attention_qkv_bias_ = blocks_0_attention_qkv_bias[n];
                const float linear_ = linear_matmul_ + blocks_0_attention_qkv_bias_;
                linear[stack * 24576 + m * 384 + n] = linear_;
            }
        }
    }
}

// y_2_matmul, of forward/y_2/MatMul  f32 [12, 4, 64, 64]
extern "C" __global__ void k04_y_2_matmul(
    const float* __restrict__ linear,
    float* __restrict__ y_2_matmul
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
            float x_6 = 0.0f;
            if (m < 64 && k < 32) {
                const int at = 0;
                const int at_2 = at * 128 + (stack % 4) * 32 + k;
                const float linear_ = linear[(stack / 4) * 24576 + m * 384 + at_2];
                x_6 = linear_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_6;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_7 = 0.0f;
            if (n < 64 && k < 32) {
                const int at_3 = 0 + 1;
                const int at_4 = at_3 * 128 + (stack % 4) * 32 + k;
                const float linear__2 = linear[(stack / 4) * 24576 + n * 384 + at_4];
                x_7 = linear__2;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_7;
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
                const float y_2_matmul_ = sums[u * 4 + w];
                y_2_matmul[stack * 4096 + m * 64 + n] = y_2_matmul_;
            }
        }
    }
}

// y_2_lessorequal, of forward/y_2/LessOrEqual  bool [64, 64]
// y_3_lessorequal, of forward/y_3/LessOrEqual  bool [64, 64]
// y_4_lessorequal, of forward/y_4/LessOrEqual  bool [64, 64]
extern "C" __global__ void k05_y_4_lessorequal(
    const long long* __restrict__ constant_20,
    bool* __restrict__ y_2_lessorequal,
    bool* __restrict__ y_3_lessorequal,
    bool* __restrict__ y_4_lessorequal
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 4096) { return; }
    const long long constant_20_ = constant_20[i % 64];
    const long long constant_20__2 = constant_20[i / 64];
    const bool y_2_lessorequal_ = constant_20_ <= constant_20__2;
    y_2_lessorequal[i] = y_2_lessorequal_;
    const bool y_3_lessorequal_ = constant_20_ <= constant_20__2;
    y_3_lessorequal[i] = y_3_lessorequal_;
    const bool y_4_lessorequal_ = constant_20_ <= constant_20__2;
    y_4_lessorequal[i] = y_4_lessorequal_;
}

// y_2_and, of forward/y_2/And  bool [12, 4, 64, 64]
// y_3_and, of forward/y_3/And  bool [12, 4, 64, 64]
// y_4_and, of forward/y_4/And  bool [12, 4, 64, 64]
extern "C" __global__ void k06_y_4_and(
    const bool* __restrict__ y_2_lessorequal,
    const bool* __restrict__ y_3_lessorequal,
    const bool* __restrict__ y_4_lessorequal,
    bool* __restrict__ y_2_and,
    bool* __restrict__ y_3_and,
    bool* __restrict__ y_4_and
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 196608) { return; }
    const bool y_2_lessorequal_ = y_2_lessorequal[i % 4096];
    const bool y_2_and_ = true && y_2_lessorequal_;
    y_2_and[i] = y_2_and_;
    const bool y_3_lessorequal_ = y_3_lessorequal[i % 4096];
    const bool y_3_and_ = true && y_3_lessorequal_;
    y_3_and[i] = y_3_and_;
    const bool y_4_lessorequal_ = y_4_lessorequal[i % 4096];
    const bool y_4_and_ = true && y_4_lessorequal_;
    y_4_and[i] = y_4_and_;
}

// y_2_reducemax, of forward/y_2/ReduceMax  i64 [12, 4, 64, 1]
// y_2_where_2, of forward/y_2/Where.2  f32 [12, 4, 64, 64]
// y_2_reducemax_2, of forward/y_2/ReduceMax.2  f32 [12, 4, 64, 1]
// y_2_exp, of forward/y_2/Exp  f32 [12, 4, 64, 64]
// y_2_reducesum, of forward/y_2/ReduceSum  f32 [12, 4, 64, 1]
// y_2_mul_2, of forward/y_2/Mul.2  f32 [12, 4, 64, 64]
// y_3_reducemax, of forward/y_3/ReduceMax  i64 [12, 4, 64, 1]
// y_4_reducemax, of forward/y_4/ReduceMax  i64 [12, 4, 64, 1]
extern "C" __global__ void k07_y_4_reducemax(
    const bool* __restrict__ y_2_and,
    const float* __restrict__ y_2_matmul,
    const bool* __restrict__ y_3_and,
    const bool* __restrict__ y_4_and,
    float* __restrict__ y_2_where_2,
    float* __restrict__ y_2_exp,
    float* __restrict__ y_2_mul_2,
    long long* __restrict__ y_3_reducemax,
    long long* __restrict__ y_4_reducemax
) {
    __shared__ long long part_long_long[64];
    __shared__ float part_float[64];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    long long sum = LEAST;
    for (int col = thread; col < 64; col += 64) {
        const bool y_2_and_ = y_2_and[row * 64 + col];
        const long long y_2_cast_ = (long long)y_2_and_;
        sum = larger(sum, y_2_cast_);
    }
    part_long_long[thread] = sum;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (thread < half) { part_long_long[thread] = larger(part_long_long[thread], part_long_long[thread + half]); }
        __syncthreads();
    }
    const long long y_2_reducemax_ = part_long_long[0];
    __syncthreads();
    for (int col = thread; col < 64; col += 64) {
        const bool y_2_cast_2_ = y_2_reducemax_ != 0ll;
        const bool y_2_and__2 = y_2_and[row * 64 + col];
        const float y_2_matmul_ = y_2_matmul[row * 64 + col];
        const float y_2_mul_ = y_2_matmul_ * 0.17677669f;
        const float y_2_where_ = y_2_and__2 ? y_2_mul_ : (-INF_F);
        const float y_2_where_2_ = y_2_cast_2_ ? y_2_where_ : 0.0f;
        y_2_where_2[row * 64 + col] = y_2_where_2_;
    }
    float sum_2 = -INF_F;
    for (int col = thread; col < 64; col += 64) {
        const float y_2_where_2__2 = y_2_where_2[row * 64 + col];
        sum_2 = larger(sum_2, y_2_where_2__2);
    }
    part_float[thread] = sum_2;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = larger(part_float[thread], part_float[thread + half]); }
        __syncthreads();
    }
    const float y_2_reducemax_2_ = part_float[0];
    __syncthreads();
    for (int col = thread; col < 64; col += 64) {
        const float y_2_where_2__3 = y_2_where_2[row * 64 + col];
        const float y_2_sub_ = y_2_where_2__3 - y_2_reducemax_2_;
        const float y_2_exp_ = expf(y_2_sub_);
        y_2_exp[row * 64 + col] = y_2_exp_;
    }
    float sum_3 = 0.0f;
    for (int col = thread; col < 64; col += 64) {
        const float y_2_exp__2 = y_2_exp[row * 64 + col];
        sum_3 = sum_3 + y_2_exp__2;
    }
    part_float[thread] = sum_3;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float y_2_reducesum_ = part_float[0];
    __syncthreads();
    for (int col = thread; col < 64; col += 64) {
        const bool y_2_and__3 = y_2_and[row * 64 + col];
        const float y_2_exp__3 = y_2_exp[row * 64 + col];
        const float y_2_div_ = y_2_exp__3 / y_2_reducesum_;
        const float y_2_where_3_ = y_2_and__3 ? y_2_div_ : 0.0f;
        const float y_2_mul_2_ = y_2_where_3_ * 1.0f;
        y_2_mul_2[row * 64 + col] = y_2_mul_2_;
    }
    long long sum_4 = LEAST;
    for (int col = thread; col < 64; col += 64) {
        const bool y_3_and_ = y_3_and[row * 64 + col];
        const long long y_3_cast_ = (long long)y_3_and_;
        sum_4 = larger(sum_4, y_3_cast_);
    }
    part_long_long[thread] = sum_4;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (thread < half) { part_long_long[thread] = larger(part_long_long[thread], part_long_long[thread + half]); }
        __syncthreads();
    }
    const long long y_3_reducemax_ = part_long_long[0];
    __syncthreads();
    if (thread == 0) {
        y_3_reducemax[row] = y_3_reducemax_;
    }
    long long sum_5 = LEAST;
    for (int col = thread; col < 64; col += 64) {
        const bool y_4_and_ = y_4_and[row * 64 + col];
        const long long y_4_cast_ = (long long)y_4_and_;
        sum_5 = larger(sum_5, y_4_cast_);
    }
    part_long_long[thread] = sum_5;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (thread < half) { part_long_long[thread] = larger(part_long_long[thread], part_long_long[thread + half]); }
        __syncthreads();
    }
    const long long y_4_reducemax_ = part_long_long[0];
    __syncthreads();
    if (thread == 0) {
        y_4_reducemax[row] = y_4_reducemax_;
    }
}

// y_2  f32 [12, 4, 64, 32]
extern "C" __global__ void k08_y_2(
    const float* __restrict__ y_2_mul_2,
    const float* __restrict__ linear,
    float* __restrict__ y_2
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
            float x_6 = 0.0f;
            if (m < 64 && k < 64) {
                const float y_2_mul_2_ = y_2_mul_2[stack * 4096 + m * 64 + k];
                x_6 = y_2_mul_2_;
            }
            tile_a_float[(t % 16) * 16 + t / 16] = x_6;
        }
        for (int t = thread; t < 256; t += 256) {
            const int n = left + t % 16;
            const int k = k0 + t / 16;
            float x_7 = 0.0f;
            if (n < 32 && k < 64) {
                const int at = 0 + 2;
                const int at_2 = at * 128 + (stack % 4) * 32 + n;
                const float linear_ = linear[(stack / 4) * 24576 + k * 384 + at_2];
                x_7 = linear_;
            }
            tile_b_float[(t / 16) * 16 + t % 16] = x_7;
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
                const float y_2_ = sums[u * 1 + w];
                y_2[stack * 2048 + m * 32 + n] = y_2_;
            }
        }
    }
}

// linear_2_matmul, of forward/linear_2/MatMul  f32 [12, 64, 128]
// x_2  f32 [12, 64, 128]
extern "C" __global__ void k09_x_2(
    const float* __restrict__ y_2,
    const float* __restrict__ blocks_0_attention_out_weight,
    const float* __restrict__ add,
    const float* __restrict__ blocks_0_attention_out_bias,
    float* __restrict__ x_2
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
            float x_6 = 0.0f;
            if (m < 64 && k < 128) {
                const float y_2_ = y_2[stack * 8192 + (k / 32) * 2048 + m * 32 + (k % 32)];
                x_6 = y_2_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_6;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_7 = 0.0f;
            if (n < 128 && k < 128) {
                const float blocks_0_attention_out_weight_ = blocks_0_attention_out_weight[n * 128 + k];
                x_7 = blocks_0_attention_out_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_7;
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
                const float linear_2_matmul_ = sums[u * 4 + w];
                const float add_ = add[stack * 8192 + m * 128 + n];
                const float blocks_0_attention_out_bias_ = blocks_0_attention_out_bias[n];
                const float linear_2_ = linear_2_matmul_ + blocks_0_attention_out_bias_;
                const float x_2_ = add_ + linear_2_;
                x_2[stack * 8192 + m * 128 + n] = x_2_;
            }
        }
    }
}

// layer_norm_2_reducemean, of forward/layer_norm_2/ReduceMean  f32 [768, 1, 1, 1]
// layer_norm_2_sub, of forward/layer_norm_2/Sub  f32 [768, 1, 128, 1]
// layer_norm_2_reducemean_2, of forward/layer_norm_2/ReduceMean.2  f32 [768, 1, 1, 1]
// layer_norm_2_div, of forward/layer_norm_2/Div  f32 [768, 1, 1, 1]
// layer_norm_2_add_2, of forward/layer_norm_2/Add.2  f32 [768, 1, 128, 1]
// layer_norm_grad_9_mul, of backward/layer_norm_grad_9/Mul  f32 [768, 1, 128, 1]
extern "C" __global__ void k10_layer_norm_grad_9_mul(
    const float* __restrict__ x_2,
    const float* __restrict__ blocks_0_norm2_weight,
    const float* __restrict__ blocks_0_norm2_bias,
    const float* __restrict__ add,
    const float* __restrict__ layer_norm_1,
    float* __restrict__ layer_norm_2_reducemean,
    float* __restrict__ layer_norm_2_sub,
    float* __restrict__ layer_norm_2_div,
    float* __restrict__ layer_norm_2_add_2,
    float* __restrict__ layer_norm_grad_9_mul
) {
    __shared__ float part_float[128];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float sum = 0.0f;
    for (int col = thread; col < 128; col += 128) {
        const float x_2_ = x_2[row * 128 + col];
        sum = sum + x_2_;
    }
    part_float[thread] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float layer_norm_2_reducemean_ = part_float[0] / 128.0f;
    __syncthreads();
    if (thread == 0) {
        layer_norm_2_reducemean[row] = layer_norm_2_reducemean_;
    }
    for (int col = thread; col < 128; col += 128) {
        const float x_2__2 = x_2[row * 128 + col];
        const float layer_norm_2_sub_ = x_2__2 - layer_norm_2_reducemean_;
        layer_norm_2_sub[row * 128 + col] = layer_norm_2_sub_;
    }
    float sum_2 = 0.0f;
    for (int col = thread; col < 128; col += 128) {
        const float layer_norm_2_sub__2 = layer_norm_2_sub[row * 128 + col];
        const float layer_norm_2_mul_ = layer_norm_2_sub__2 * layer_norm_2_sub__2;
        sum_2 = sum_2 + layer_norm_2_mul_;
    }
    part_float[thread] = sum_2;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float layer_norm_2_reducemean_2_ = part_float[0] / 128.0f;
    __syncthreads();
    const float layer_norm_2_add_ = layer_norm_2_reducemean_2_ + 1e-5f;
    const float layer_norm_2_sqrt_ = sqrtf(layer_norm_2_add_);
    const float layer_norm_2_div_ = 1.0f / layer_norm_2_sqrt_;
    if (thread == 0) {
        layer_norm_2_div[row] = layer_norm_2_div_;
    }
    for (int col = thread; col < 128; col += 128) {
        const float layer_norm_2_sub__3 = layer_norm_2_sub[row * 128 + col];
        const float layer_norm_2_mul_2_ = layer_norm_2_sub__3 * layer_norm_2_div_;
        const float blocks_0_norm2_weight_ = blocks_0_norm2_weight[col];
        const float layer_norm_2_mul_3_ = layer_norm_2_mul_2_ * blocks_0_norm2_weight_;
        const float blocks_0_norm2_bias_ = blocks_0_norm2_bias[col];
        const float layer_norm_2_add_2_ = layer_norm_2_mul_3_ + blocks_0_norm2_bias_;
        layer_norm_2_add_2[row * 128 + col] = layer_norm_2_add_2_;
    }
    for (int col = thread; col < 128; col += 128) {
        const float add_ = add[row * 128 + col];
        const int at = 0;
        const float layer_norm_1_ = layer_norm_1[row * 3 + at];
        const float layer_norm_grad_9_sub_ = add_ - layer_norm_1_;
        const int at_2 = 0 + 1;
        const float layer_norm_1__2 = layer_norm_1[row * 3 + at_2];
        const float layer_norm_grad_9_mul_ = layer_norm_grad_9_sub_ * layer_norm_1__2;
        layer_norm_grad_9_mul[row * 128 + col] = layer_norm_grad_9_mul_;
    }
}

// linear_3_matmul, of forward/linear_3/MatMul  f32 [12, 64, 512]
// linear_3  f32 [12, 64, 512]
// gelu_tanh  f32 [12, 64, 512]
// gelu_tanh_grad_4_tanh, of backward/gelu_tanh_grad_4/Tanh  f32 [12, 64, 512]
extern "C" __global__ void k12_gelu_tanh_grad_4_tanh(
    const float* __restrict__ layer_norm_2_add_2,
    const float* __restrict__ blocks_0_expand_weight,
    const float* __restrict__ blocks_0_expand_bias,
    float* __restrict__ linear_3,
    float* __restrict__ gelu_tanh,
    float* __restrict__ gelu_tanh_grad_4_tanh
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
            float x_6 = 0.0f;
            if (m < 64 && k < 128) {
                const int at = stack * 64 + m;
                const float layer_norm_2_add_2_ = layer_norm_2_add_2[at * 128 + k];
                x_6 = layer_norm_2_add_2_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_6;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_7 = 0.0f;
            if (n < 512 && k < 128) {
                const float blocks_0_expand_weight_ = blocks_0_expand_weight[n * 128 + k];
                x_7 = blocks_0_expand_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_7;
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
                const float linear_3_matmul_ = sums[u * 4 + w];
                const float blocks_0_expand_bias_ = blocks_0_expand_bias[n];
                const float linear_3_ = linear_3_matmul_ + blocks_0_expand_bias_;
                linear_3[stack * 32768 + m * 512 + n] = linear_3_;
                const float gelu_tanh_mul_ = 0.044715f * linear_3_;
                const float gelu_tanh_mul_2_ = gelu_tanh_mul_ * linear_3_;
                const float gelu_tanh_mul_3_ = gelu_tanh_mul_2_ * linear_3_;
                const float gelu_tanh_add_ = linear_3_ + gelu_tanh_mul_3_;
                const float gelu_tanh_mul_4_ = 0.7978846f * gelu_tanh_add_;
                const float gelu_tanh_tanh_ = tanhf(gelu_tanh_mul_4_);
                const float gelu_tanh_add_2_ = 1.0f + gelu_tanh_tanh_;
                const float gelu_tanh_mul_5_ = linear_3_ * gelu_tanh_add_2_;
                const float gelu_tanh_ = gelu_tanh_mul_5_ / 2.0f;
                gelu_tanh[stack * 32768 + m * 512 + n] = gelu_tanh_;
                const float gelu_tanh_grad_4_mul_ = 0.044715f * linear_3_;
                const float gelu_tanh_grad_4_mul_2_ = gelu_tanh_grad_4_mul_ * linear_3_;
                const float gelu_tanh_grad_4_mul_3_ = gelu_tanh_grad_4_mul_2_ * linear_3_;
                const float gelu_tanh_grad_4_add_ = linear_3_ + gelu_tanh_grad_4_mul_3_;
                const float gelu_tanh_grad_4_mul_4_ = 0.7978846f * gelu_tanh_grad_4_add_;
                const float gelu_tanh_grad_4_tanh_ = tanhf(gelu_tanh_grad_4_mul_4_);
                gelu_tanh_grad_4_tanh[stack * 32768 + m * 512 + n] = gelu_tanh_grad_4_tanh_;
            }
        }
    }
}

// linear_4_matmul, of forward/linear_4/MatMul  f32 [12, 64, 128]
// add_2  f32 [12, 64, 128]
extern "C" __global__ void k13_add_2(
    const float* __restrict__ gelu_tanh,
    const float* __restrict__ blocks_0_project_weight,
    const float* __restrict__ x_2,
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
            float x_6 = 0.0f;
            if (m < 64 && k < 512) {
                const float gelu_tanh_ = gelu_tanh[stack * 32768 + m * 512 + k];
                x_6 = gelu_tanh_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_6;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_7 = 0.0f;
            if (n < 128 && k < 512) {
                const float blocks_0_project_weight_ = blocks_0_project_weight[n * 512 + k];
                x_7 = blocks_0_project_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_7;
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
                const float linear_4_matmul_ = sums[u * 4 + w];
                const float x_2_ = x_2[stack * 8192 + m * 128 + n];
                const float blocks_0_project_bias_ = blocks_0_project_bias[n];
                const float linear_4_ = linear_4_matmul_ + blocks_0_project_bias_;
                const float add_2_ = x_2_ + linear_4_;
                add_2[stack * 8192 + m * 128 + n] = add_2_;
            }
        }
    }
}

// y_3_matmul, of forward/y_3/MatMul  f32 [12, 4, 64, 64]
// y_3_where_2, of forward/y_3/Where.2  f32 [12, 4, 64, 64]
extern "C" __global__ void k17_y_3_where_2(
    const float* __restrict__ linear_5,
    const long long* __restrict__ y_3_reducemax,
    const bool* __restrict__ y_3_and,
    float* __restrict__ y_3_where_2
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
            float x_6 = 0.0f;
            if (m < 64 && k < 32) {
                const int at = 0;
                const int at_2 = at * 128 + (stack % 4) * 32 + k;
                const float linear_5_ = linear_5[(stack / 4) * 24576 + m * 384 + at_2];
                x_6 = linear_5_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_6;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_7 = 0.0f;
            if (n < 64 && k < 32) {
                const int at_3 = 0 + 1;
                const int at_4 = at_3 * 128 + (stack % 4) * 32 + k;
                const float linear_5__2 = linear_5[(stack / 4) * 24576 + n * 384 + at_4];
                x_7 = linear_5__2;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_7;
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
                const float y_3_matmul_ = sums[u * 4 + w];
                const long long y_3_reducemax_ = y_3_reducemax[stack * 64 + m];
                const bool y_3_cast_2_ = y_3_reducemax_ != 0ll;
                const bool y_3_and_ = y_3_and[stack * 4096 + m * 64 + n];
                const float y_3_mul_ = y_3_matmul_ * 0.17677669f;
                const float y_3_where_ = y_3_and_ ? y_3_mul_ : (-INF_F);
                const float y_3_where_2_ = y_3_cast_2_ ? y_3_where_ : 0.0f;
                y_3_where_2[stack * 4096 + m * 64 + n] = y_3_where_2_;
            }
        }
    }
}

// y_3_reducemax_2, of forward/y_3/ReduceMax.2  f32 [12, 4, 64, 1]
// y_3_exp, of forward/y_3/Exp  f32 [12, 4, 64, 64]
// y_3_reducesum, of forward/y_3/ReduceSum  f32 [12, 4, 64, 1]
// y_3_mul_2, of forward/y_3/Mul.2  f32 [12, 4, 64, 64]
extern "C" __global__ void k18_y_3_mul_2(
    const float* __restrict__ y_3_where_2,
    const bool* __restrict__ y_3_and,
    float* __restrict__ y_3_exp,
    float* __restrict__ y_3_mul_2
) {
    __shared__ float part_float[64];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float sum = -INF_F;
    for (int col = thread; col < 64; col += 64) {
        const float y_3_where_2_ = y_3_where_2[row * 64 + col];
        sum = larger(sum, y_3_where_2_);
    }
    part_float[thread] = sum;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = larger(part_float[thread], part_float[thread + half]); }
        __syncthreads();
    }
    const float y_3_reducemax_2_ = part_float[0];
    __syncthreads();
    for (int col = thread; col < 64; col += 64) {
        const float y_3_where_2__2 = y_3_where_2[row * 64 + col];
        const float y_3_sub_ = y_3_where_2__2 - y_3_reducemax_2_;
        const float y_3_exp_ = expf(y_3_sub_);
        y_3_exp[row * 64 + col] = y_3_exp_;
    }
    float sum_2 = 0.0f;
    for (int col = thread; col < 64; col += 64) {
        const float y_3_exp__2 = y_3_exp[row * 64 + col];
        sum_2 = sum_2 + y_3_exp__2;
    }
    part_float[thread] = sum_2;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float y_3_reducesum_ = part_float[0];
    __syncthreads();
    for (int col = thread; col < 64; col += 64) {
        const bool y_3_and_ = y_3_and[row * 64 + col];
        const float y_3_exp__3 = y_3_exp[row * 64 + col];
        const float y_3_div_ = y_3_exp__3 / y_3_reducesum_;
        const float y_3_where_3_ = y_3_and_ ? y_3_div_ : 0.0f;
        const float y_3_mul_2_ = y_3_where_3_ * 1.0f;
        y_3_mul_2[row * 64 + col] = y_3_mul_2_;
    }
}

// y_5_lessorequal, of forward/y_5/LessOrEqual  bool [64, 64]
extern "C" __global__ void k40_y_5_lessorequal(
    const long long* __restrict__ constant_20,
    bool* __restrict__ y_5_lessorequal
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 4096) { return; }
    const long long constant_20_ = constant_20[i % 64];
    const long long constant_20__2 = constant_20[i / 64];
    const bool y_5_lessorequal_ = constant_20_ <= constant_20__2;
    y_5_lessorequal[i] = y_5_lessorequal_;
}

// y_5_and, of forward/y_5/And  bool [12, 4, 64, 64]
extern "C" __global__ void k41_y_5_and(
    const bool* __restrict__ y_5_lessorequal,
    bool* __restrict__ y_5_and
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 196608) { return; }
    const bool y_5_lessorequal_ = y_5_lessorequal[i % 4096];
    const bool y_5_and_ = true && y_5_lessorequal_;
    y_5_and[i] = y_5_and_;
}

// y_5_reducemax, of forward/y_5/ReduceMax  i64 [12, 4, 64, 1]
// y_5_where_2, of forward/y_5/Where.2  f32 [12, 4, 64, 64]
// y_5_reducemax_2, of forward/y_5/ReduceMax.2  f32 [12, 4, 64, 1]
// y_5_exp, of forward/y_5/Exp  f32 [12, 4, 64, 64]
// y_5_reducesum, of forward/y_5/ReduceSum  f32 [12, 4, 64, 1]
// y_5_mul_2, of forward/y_5/Mul.2  f32 [12, 4, 64, 64]
extern "C" __global__ void k42_y_5_mul_2(
    const bool* __restrict__ y_5_and,
    const float* __restrict__ y_5_matmul,
    float* __restrict__ y_5_where_2,
    float* __restrict__ y_5_exp,
    float* __restrict__ y_5_mul_2
) {
    __shared__ long long part_long_long[64];
    __shared__ float part_float[64];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    long long sum = LEAST;
    for (int col = thread; col < 64; col += 64) {
        const bool y_5_and_ = y_5_and[row * 64 + col];
        const long long y_5_cast_ = (long long)y_5_and_;
        sum = larger(sum, y_5_cast_);
    }
    part_long_long[thread] = sum;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (thread < half) { part_long_long[thread] = larger(part_long_long[thread], part_long_long[thread + half]); }
        __syncthreads();
    }
    const long long y_5_reducemax_ = part_long_long[0];
    __syncthreads();
    for (int col = thread; col < 64; col += 64) {
        const bool y_5_cast_2_ = y_5_reducemax_ != 0ll;
        const bool y_5_and__2 = y_5_and[row * 64 + col];
        const float y_5_matmul_ = y_5_matmul[row * 64 + col];
        const float y_5_mul_ = y_5_matmul_ * 0.17677669f;
        const float y_5_where_ = y_5_and__2 ? y_5_mul_ : (-INF_F);
        const float y_5_where_2_ = y_5_cast_2_ ? y_5_where_ : 0.0f;
        y_5_where_2[row * 64 + col] = y_5_where_2_;
    }
    float sum_2 = -INF_F;
    for (int col = thread; col < 64; col += 64) {
        const float y_5_where_2__2 = y_5_where_2[row * 64 + col];
        sum_2 = larger(sum_2, y_5_where_2__2);
    }
    part_float[thread] = sum_2;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = larger(part_float[thread], part_float[thread + half]); }
        __syncthreads();
    }
    const float y_5_reducemax_2_ = part_float[0];
    __syncthreads();
    for (int col = thread; col < 64; col += 64) {
        const float y_5_where_2__3 = y_5_where_2[row * 64 + col];
        const float y_5_sub_ = y_5_where_2__3 - y_5_reducemax_2_;
        const float y_5_exp_ = expf(y_5_sub_);
        y_5_exp[row * 64 + col] = y_5_exp_;
    }
    float sum_3 = 0.0f;
    for (int col = thread; col < 64; col += 64) {
        const float y_5_exp__2 = y_5_exp[row * 64 + col];
        sum_3 = sum_3 + y_5_exp__2;
    }
    part_float[thread] = sum_3;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float y_5_reducesum_ = part_float[0];
    __syncthreads();
    for (int col = thread; col < 64; col += 64) {
        const bool y_5_and__3 = y_5_and[row * 64 + col];
        const float y_5_exp__3 = y_5_exp[row * 64 + col];
        const float y_5_div_ = y_5_exp__3 / y_5_reducesum_;
        const float y_5_where_3_ = y_5_and__3 ? y_5_div_ : 0.0f;
        const float y_5_mul_2_ = y_5_where_3_ * 1.0f;
        y_5_mul_2[row * 64 + col] = y_5_mul_2_;
    }
}

// linear_17  f32 [12, 64, 65]
extern "C" __global__ void k51_linear_17(
    const float* __restrict__ layer_norm_9_add_2,
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
            float x_6 = 0.0f;
            if (m < 64 && k < 128) {
                const int at = stack * 64 + m;
                const float layer_norm_9_add_2_ = layer_norm_9_add_2[at * 128 + k];
                x_6 = layer_norm_9_add_2_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_6;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_7 = 0.0f;
            if (n < 65 && k < 128) {
                const float head_weight_ = head_weight[n * 128 + k];
                x_7 = head_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_7;
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

// loss_cast, of forward/loss/Cast  f32 [768, 65]
// loss_add, of forward/loss/Add  f32 [768, 65]
// d_logits_cast, of backward/d_logits/Cast  f32 [768, 65]
// d_logits_add, of backward/d_logits/Add  f32 [768, 65]
extern "C" __global__ void k52_d_logits_add(
    const long long* __restrict__ y,
    const long long* __restrict__ constant_30,
    float* __restrict__ loss_cast,
    float* __restrict__ loss_add,
    float* __restrict__ d_logits_cast,
    float* __restrict__ d_logits_add
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 49920) { return; }
    const long long y_ = y[i / 65];
    const long long loss_where_ = true ? y_ : 0ll;
    const long long constant_30_ = constant_30[i % 65];
    const bool loss_equal_ = loss_where_ == constant_30_;
    const bool loss_and_ = loss_equal_ && true;
    const float loss_cast_ = (float)loss_and_;
    loss_cast[i] = loss_cast_;
    const float loss_mul_3_ = loss_cast_ * 1.0f;
    const float loss_mul_4_ = loss_mul_3_ * 1.0f;
    const float loss_cast_2_ = (float)true;
    const float loss_mul_ = loss_cast_2_ * 1.0f;
    const float loss_mul_2_ = loss_mul_ * 0.0f;
    const float loss_add_ = loss_mul_4_ + loss_mul_2_;
    loss_add[i] = loss_add_;
    const long long d_logits_where_ = true ? y_ : 0ll;
    const bool d_logits_equal_ = d_logits_where_ == constant_30_;
    const bool d_logits_and_ = d_logits_equal_ && true;
    const float d_logits_cast_ = (float)d_logits_and_;
    d_logits_cast[i] = d_logits_cast_;
    const float d_logits_mul_3_ = d_logits_cast_ * 1.0f;
    const float d_logits_mul_4_ = d_logits_mul_3_ * 1.0f;
    const float d_logits_cast_2_ = (float)true;
    const float d_logits_mul_ = d_logits_cast_2_ * 1.0f;
    const float d_logits_mul_2_ = d_logits_mul_ * 0.0f;
    const float d_logits_add_ = d_logits_mul_4_ + d_logits_mul_2_;
    d_logits_add[i] = d_logits_add_;
}

// of_pieces, of forward/loss/ReduceSum  f32 [1, 195]
// of_pieces_2, of backward/d_logits/ReduceSum  f32 [1, 195]
extern "C" __global__ void k53_of_pieces_2(
    const float* __restrict__ loss_cast,
    const float* __restrict__ d_logits_cast,
    float* __restrict__ of_pieces,
    float* __restrict__ of_pieces_2
) {
    __shared__ float part_float[256];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float sum = 0.0f;
    for (int col = thread; col < 256; col += 256) {
        const int at = row * 256 + col;
        const float loss_cast_ = loss_cast[at];
        const float loss_mul_5_ = loss_cast_ * 1.0f;
        sum = sum + loss_mul_5_;
    }
    part_float[thread] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float of_pieces_ = part_float[0];
    __syncthreads();
    if (thread == 0) {
        of_pieces[row] = of_pieces_;
    }
    float sum_2 = 0.0f;
    for (int col = thread; col < 256; col += 256) {
        const int at_2 = row * 256 + col;
        const float d_logits_cast_ = d_logits_cast[at_2];
        const float d_logits_mul_5_ = d_logits_cast_ * 1.0f;
        sum_2 = sum_2 + d_logits_mul_5_;
    }
    part_float[thread] = sum_2;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float of_pieces_2_ = part_float[0];
    __syncthreads();
    if (thread == 0) {
        of_pieces_2[row] = of_pieces_2_;
    }
}

// of_all, of forward/loss/ReduceSum  f32 [1]
// of_all_2, of backward/d_logits/ReduceSum  f32 [1]
// d_logits_div, of backward/d_logits/Div  f32 []
extern "C" __global__ void k54_d_logits_div(
    const float* __restrict__ of_pieces,
    const float* __restrict__ of_pieces_2,
    float* __restrict__ of_all,
    float* __restrict__ d_logits_div
) {
    __shared__ float part_float[256];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float sum = 0.0f;
    for (int col = thread; col < 195; col += 256) {
        const float of_pieces_ = of_pieces[col];
        sum = sum + of_pieces_;
    }
    part_float[thread] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float of_all_ = part_float[0];
    __syncthreads();
    if (thread == 0) {
        of_all[row] = of_all_;
    }
    float sum_2 = 0.0f;
    for (int col = thread; col < 195; col += 256) {
        const float of_pieces_2_ = of_pieces_2[col];
        sum_2 = sum_2 + of_pieces_2_;
    }
    part_float[thread] = sum_2;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float of_all_2_ = part_float[0];
    __syncthreads();
    const float d_logits_div_ = 1.0f / of_all_2_;
    if (thread == 0) {
        d_logits_div[row] = d_logits_div_;
    }
}

// loss_reducemax, of forward/loss/ReduceMax  f32 [768, 1]
// loss_sub, of forward/loss/Sub  f32 [768, 65]
// loss_reducesum_2, of forward/loss/ReduceSum.2  f32 [768, 1]
// loss_log, of forward/loss/Log  f32 [768, 1]
// loss_reducesum_3, of forward/loss/ReduceSum.3  f32 [768]
// loss_reducemax_2, of forward/loss/ReduceMax.2  f32 [768, 1]
// loss_exp_2, of forward/loss/Exp.2  f32 [768, 65]
// loss_reducesum_5, of forward/loss/ReduceSum.5  f32 [768, 1]
// d_logits_reducemax, of backward/d_logits/ReduceMax  i64 [768, 1]
// d_logits_reducesum_2, of backward/d_logits/ReduceSum.2  f32 [768, 1]
// d_logits  f32 [768, 65]
extern "C" __global__ void k55_d_logits(
    const float* __restrict__ linear_17,
    const float* __restrict__ loss_add,
    const float* __restrict__ d_logits_add,
    const float* __restrict__ d_logits_div,
    float* __restrict__ loss_sub,
    float* __restrict__ loss_reducesum_3,
    float* __restrict__ loss_exp_2,
    float* __restrict__ d_logits
) {
    __shared__ float part_float[128];
    __shared__ long long part_long_long[128];
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
    for (int col = thread; col < 65; col += 128) {
        const float linear_17__2 = linear_17[row * 65 + col];
        const float loss_sub_ = linear_17__2 - loss_reducemax_;
        loss_sub[row * 65 + col] = loss_sub_;
    }
    float sum_2 = 0.0f;
    for (int col = thread; col < 65; col += 128) {
        const float loss_sub__2 = loss_sub[row * 65 + col];
        const float loss_exp_ = expf(loss_sub__2);
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
    const float loss_log_ = logf(loss_reducesum_2_);
    float sum_3 = 0.0f;
    for (int col = thread; col < 65; col += 128) {
        const float loss_add_ = loss_add[row * 65 + col];
        const bool loss_equal_2_ = loss_add_ == 0.0f;
        const float loss_sub__3 = loss_sub[row * 65 + col];
        const float loss_sub_2_ = loss_sub__3 - loss_log_;
        const float loss_mul_6_ = loss_add_ * loss_sub_2_;
        const float loss_where_2_ = loss_equal_2_ ? 0.0f : loss_mul_6_;
        sum_3 = sum_3 + loss_where_2_;
    }
    part_float[thread] = sum_3;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float loss_reducesum_3_ = part_float[0];
    __syncthreads();
    if (thread == 0) {
        loss_reducesum_3[row] = loss_reducesum_3_;
    }
    float sum_4 = -INF_F;
    for (int col = thread; col < 65; col += 128) {
        const float linear_17__3 = linear_17[row * 65 + col];
        sum_4 = larger(sum_4, linear_17__3);
    }
    part_float[thread] = sum_4;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = larger(part_float[thread], part_float[thread + half]); }
        __syncthreads();
    }
    const float loss_reducemax_2_ = part_float[0];
    __syncthreads();
    for (int col = thread; col < 65; col += 128) {
        const float linear_17__4 = linear_17[row * 65 + col];
        const float loss_sub_3_ = linear_17__4 - loss_reducemax_2_;
        const float loss_exp_2_ = expf(loss_sub_3_);
        loss_exp_2[row * 65 + col] = loss_exp_2_;
    }
    float sum_5 = 0.0f;
    for (int col = thread; col < 65; col += 128) {
        const float loss_exp_2__2 = loss_exp_2[row * 65 + col];
        sum_5 = sum_5 + loss_exp_2__2;
    }
    part_float[thread] = sum_5;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float loss_reducesum_5_ = part_float[0];
    __syncthreads();
    long long sum_6 = LEAST;
    for (int col = thread; col < 65; col += 128) {
        const float d_logits_add_ = d_logits_add[row * 65 + col];
        const bool d_logits_cast_3_ = d_logits_add_ != 0.0f;
        const long long d_logits_cast_4_ = (long long)d_logits_cast_3_;
        sum_6 = larger(sum_6, d_logits_cast_4_);
    }
    part_long_long[thread] = sum_6;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_long_long[thread] = larger(part_long_long[thread], part_long_long[thread + half]); }
        __syncthreads();
    }
    const long long d_logits_reducemax_ = part_long_long[0];
    __syncthreads();
    float sum_7 = 0.0f;
    for (int col = thread; col < 65; col += 128) {
        const float d_logits_add__2 = d_logits_add[row * 65 + col];
        sum_7 = sum_7 + d_logits_add__2;
    }
    part_float[thread] = sum_7;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float d_logits_reducesum_2_ = part_float[0];
    __syncthreads();
    for (int col = thread; col < 65; col += 128) {
        const bool d_logits_cast_5_ = d_logits_reducemax_ != 0ll;
        const float d_logits_div_ = d_logits_div[0];
        const float loss_exp_2__3 = loss_exp_2[row * 65 + col];
        const float cross_entropy_1_ = loss_exp_2__3 / loss_reducesum_5_;
        const float d_logits_mul_6_ = cross_entropy_1_ * d_logits_reducesum_2_;
        const float d_logits_add__3 = d_logits_add[row * 65 + col];
        const float d_logits_sub_ = d_logits_mul_6_ - d_logits_add__3;
        const float d_logits_mul_7_ = d_logits_div_ * d_logits_sub_;
        const float d_logits_ = d_logits_cast_5_ ? d_logits_mul_7_ : 0.0f;
        d_logits[row * 65 + col] = d_logits_;
    }
}

// loss_reducesum_4, of forward/loss/ReduceSum.4  f32 []
// loss  f32 []
extern "C" __global__ void k56_loss(
    const float* __restrict__ loss_reducesum_3,
    const float* __restrict__ of_all,
    float* __restrict__ loss
) {
    __shared__ float part_float[256];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float sum = 0.0f;
    for (int col = thread; col < 768; col += 256) {
        const float loss_reducesum_3_ = loss_reducesum_3[col];
        const float loss_neg_ = -loss_reducesum_3_;
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
    const float of_all_ = of_all[0];
    const float loss_ = loss_reducesum_4_ / of_all_;
    if (thread == 0) {
        loss[row] = loss_;
    }
}

// linear_grad_matmul, of backward/linear_grad/MatMul  f32 [768, 128]
// layer_norm_grad_mul, of backward/layer_norm_grad/Mul  f32 [768, 1, 128, 1]
// layer_norm_grad_mul_2, of backward/layer_norm_grad/Mul.2  f32 [768, 1, 128, 1]
extern "C" __global__ void k57_layer_norm_grad_mul_2(
    const float* __restrict__ d_logits,
    const float* __restrict__ head_weight,
    const float* __restrict__ add_5,
    const float* __restrict__ layer_norm_1_9,
    const float* __restrict__ norm_weight,
    float* __restrict__ linear_grad_matmul,
    float* __restrict__ layer_norm_grad_mul,
    float* __restrict__ layer_norm_grad_mul_2
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
            float x_6 = 0.0f;
            if (m < 768 && k < 65) {
                const float d_logits_ = d_logits[m * 65 + k];
                x_6 = d_logits_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_6;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_7 = 0.0f;
            if (n < 128 && k < 65) {
                const float head_weight_ = head_weight[k * 128 + n];
                x_7 = head_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_7;
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
                const float linear_grad_matmul_ = sums[u * 4 + w];
                linear_grad_matmul[m * 128 + n] = linear_grad_matmul_;
                const float add_5_ = add_5[m * 128 + n];
                const int at = 0;
                const float layer_norm_1_9_ = layer_norm_1_9[m * 3 + at];
                const float layer_norm_grad_sub_ = add_5_ - layer_norm_1_9_;
                const int at_2 = 0 + 1;
                const float layer_norm_1_9__2 = layer_norm_1_9[m * 3 + at_2];
                const float layer_norm_grad_mul_ = layer_norm_grad_sub_ * layer_norm_1_9__2;
                layer_norm_grad_mul[m * 128 + n] = layer_norm_grad_mul_;
                const float norm_weight_ = norm_weight[n];
                const float layer_norm_grad_mul_2_ = linear_grad_matmul_ * norm_weight_;
                layer_norm_grad_mul_2[m * 128 + n] = layer_norm_grad_mul_2_;
            }
        }
    }
}

// d_head_weight  f32 [65, 128]
// head_weight_new_add_2, of update/head_weight_new/Add.2  f32 [65, 128]
// exp_avg_head_weight_new  f32 [65, 128]
// exp_avg_sq_head_weight_new  f32 [65, 128]
extern "C" __global__ void k58_exp_avg_sq_head_weight_new(
    const float* __restrict__ d_logits,
    const float* __restrict__ layer_norm_9_add_2,
    const float* __restrict__ head_weight,
    const float* __restrict__ exp_avg_head_weight,
    const float* __restrict__ exp_avg_sq_head_weight,
    float* __restrict__ exp_avg_head_weight_new,
    float* __restrict__ exp_avg_sq_head_weight_new
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
            float x_6 = 0.0f;
            if (m < 65 && k < 768) {
                const float d_logits_ = d_logits[k * 65 + m];
                x_6 = d_logits_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_6;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_7 = 0.0f;
            if (n < 128 && k < 768) {
                const float layer_norm_9_add_2_ = layer_norm_9_add_2[k * 128 + n];
                x_7 = layer_norm_9_add_2_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_7;
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
                const float head_weight_new_mul_2_ = 0.0f * head_weight_;
                const float head_weight_new_add_2_ = d_head_weight_ + head_weight_new_mul_2_;
                const float exp_avg_head_weight_ = exp_avg_head_weight[m * 128 + n];
                const float head_weight_new_sub_2_ = head_weight_new_add_2_ - exp_avg_head_weight_;
                const float head_weight_new_mul_3_ = 0.1f * head_weight_new_sub_2_;
                const float exp_avg_head_weight_new_ = exp_avg_head_weight_ + head_weight_new_mul_3_;
                exp_avg_head_weight_new[m * 128 + n] = exp_avg_head_weight_new_;
                const float exp_avg_sq_head_weight_ = exp_avg_sq_head_weight[m * 128 + n];
                const float head_weight_new_mul_4_ = 0.999f * exp_avg_sq_head_weight_;
                const float head_weight_new_mul_5_ = 0.001f * head_weight_new_add_2_;
                const float head_weight_new_mul_6_ = head_weight_new_mul_5_ * head_weight_new_add_2_;
                const float exp_avg_sq_head_weight_new_ = head_weight_new_mul_4_ + head_weight_new_mul_6_;
                exp_avg_sq_head_weight_new[m * 128 + n] = exp_avg_sq_head_weight_new_;
            }
        }
    }
}

// layer_norm_grad_reducemean, of backward/layer_norm_grad/ReduceMean  f32 [768, 1, 1, 1]
// layer_norm_grad_reducemean_2, of backward/layer_norm_grad/ReduceMean.2  f32 [768, 1, 1, 1]
// layer_norm_grad_mul_6, of backward/layer_norm_grad/Mul.6  f32 [768, 1, 128, 1]
extern "C" __global__ void k59_layer_norm_grad_mul_6(
    const float* __restrict__ layer_norm_grad_mul_2,
    const float* __restrict__ layer_norm_grad_mul,
    const float* __restrict__ layer_norm_1_9,
    float* __restrict__ layer_norm_grad_mul_6
) {
    __shared__ float part_float[128];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float sum = 0.0f;
    for (int col = thread; col < 128; col += 128) {
        const float layer_norm_grad_mul_2_ = layer_norm_grad_mul_2[row * 128 + col];
        const float layer_norm_grad_mul_ = layer_norm_grad_mul[row * 128 + col];
        const float layer_norm_grad_mul_3_ = layer_norm_grad_mul_2_ * layer_norm_grad_mul_;
        sum = sum + layer_norm_grad_mul_3_;
    }
    part_float[thread] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float layer_norm_grad_reducemean_ = part_float[0] / 128.0f;
    __syncthreads();
    float sum_2 = 0.0f;
    for (int col = thread; col < 128; col += 128) {
        const float layer_norm_grad_mul_2__2 = layer_norm_grad_mul_2[row * 128 + col];
        sum_2 = sum_2 + layer_norm_grad_mul_2__2;
    }
    part_float[thread] = sum_2;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float layer_norm_grad_reducemean_2_ = part_float[0] / 128.0f;
    __syncthreads();
    for (int col = thread; col < 128; col += 128) {
        const float layer_norm_grad_mul_2__3 = layer_norm_grad_mul_2[row * 128 + col];
        const float layer_norm_grad_mul__2 = layer_norm_grad_mul[row * 128 + col];
        const float layer_norm_grad_mul_4_ = layer_norm_grad_mul__2 * layer_norm_grad_reducemean_;
        const float layer_norm_grad_sub_2_ = layer_norm_grad_mul_2__3 - layer_norm_grad_mul_4_;
        const float layer_norm_grad_sub_3_ = layer_norm_grad_sub_2_ - layer_norm_grad_reducemean_2_;
        const int at = 0 + 1;
        const float layer_norm_1_9_ = layer_norm_1_9[row * 3 + at];
        const float layer_norm_grad_mul_6_ = layer_norm_grad_sub_3_ * layer_norm_1_9_;
        layer_norm_grad_mul_6[row * 128 + col] = layer_norm_grad_mul_6_;
    }
}

// layer_norm_grad_reducesum, of backward/layer_norm_grad/ReduceSum  f32 [1, 128]
// layer_norm_grad_reducesum_2, of backward/layer_norm_grad/ReduceSum.2  f32 [1, 128]
// d_blocks_3_project_bias  f32 [128]
// blocks_3_project_bias_new_add_2, of update/blocks_3_project_bias_new/Add.2  f32 [128]
// exp_avg_blocks_3_project_bias_new  f32 [128]
// exp_avg_sq_blocks_3_project_bias_new  f32 [128]
// norm_weight_new_add_2, of update/norm_weight_new/Add.2  f32 [128]
// exp_avg_norm_weight_new  f32 [128]
// exp_avg_sq_norm_weight_new  f32 [128]
// norm_bias_new_add_2, of update/norm_bias_new/Add.2  f32 [128]
// exp_avg_norm_bias_new  f32 [128]
// exp_avg_sq_norm_bias_new  f32 [128]
extern "C" __global__ void k60_exp_avg_sq_norm_bias_new(
    const float* __restrict__ linear_grad_matmul,
    const float* __restrict__ layer_norm_grad_mul,
    const float* __restrict__ layer_norm_grad_mul_6,
    const float* __restrict__ blocks_3_project_bias,
    const float* __restrict__ exp_avg_blocks_3_project_bias,
    const float* __restrict__ exp_avg_sq_blocks_3_project_bias,
    const float* __restrict__ norm_weight,
    const float* __restrict__ exp_avg_norm_weight,
    const float* __restrict__ exp_avg_sq_norm_weight,
    const float* __restrict__ norm_bias,
    const float* __restrict__ exp_avg_norm_bias,
    const float* __restrict__ exp_avg_sq_norm_bias,
    float* __restrict__ exp_avg_blocks_3_project_bias_new,
    float* __restrict__ exp_avg_sq_blocks_3_project_bias_new,
    float* __restrict__ exp_avg_norm_weight_new,
    float* __restrict__ exp_avg_sq_norm_weight_new,
    float* __restrict__ exp_avg_norm_bias_new,
    float* __restrict__ exp_avg_sq_norm_bias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 128) { return; }
    float layer_norm_grad_reducesum_ = 0.0f;
    for (int k = 0; k < 768; k++) {
        const float linear_grad_matmul_ = linear_grad_matmul[k * 128 + i];
        const float layer_norm_grad_mul_ = layer_norm_grad_mul[k * 128 + i];
        const float layer_norm_grad_mul_5_ = linear_grad_matmul_ * layer_norm_grad_mul_;
        layer_norm_grad_reducesum_ = layer_norm_grad_reducesum_ + layer_norm_grad_mul_5_;
    }
    float layer_norm_grad_reducesum_2_ = 0.0f;
    for (int k_2 = 0; k_2 < 768; k_2++) {
        const float linear_grad_matmul__2 = linear_grad_matmul[k_2 * 128 + i];
        layer_norm_grad_reducesum_2_ = layer_norm_grad_reducesum_2_ + linear_grad_matmul__2;
    }
    float d_blocks_3_project_bias_ = 0.0f;
    for (int k_3 = 0; k_3 < 768; k_3++) {
        const float layer_norm_grad_mul_6_ = layer_norm_grad_mul_6[k_3 * 128 + i];
        d_blocks_3_project_bias_ = d_blocks_3_project_bias_ + layer_norm_grad_mul_6_;
    }
    const float blocks_3_project_bias_ = blocks_3_project_bias[i];
    const float blocks_3_project_bias_new_mul_2_ = 0.0f * blocks_3_project_bias_;
    const float blocks_3_project_bias_new_add_2_ = d_blocks_3_project_bias_ + blocks_3_project_bias_new_mul_2_;
    const float exp_avg_blocks_3_project_bias_ = exp_avg_blocks_3_project_bias[i];
    const float blocks_3_project_bias_new_sub_2_ = blocks_3_project_bias_new_add_2_ - exp_avg_blocks_3_project_bias_;
    const float blocks_3_project_bias_new_mul_3_ = 0.1f * blocks_3_project_bias_new_sub_2_;
    const float exp_avg_blocks_3_project_bias_new_ = exp_avg_blocks_3_project_bias_ + blocks_3_project_bias_new_mul_3_;
    exp_avg_blocks_3_project_bias_new[i] = exp_avg_blocks_3_project_bias_new_;
    const float exp_avg_sq_blocks_3_project_bias_ = exp_avg_sq_blocks_3_project_bias[i];
    const float blocks_3_project_bias_new_mul_4_ = 0.999f * exp_avg_sq_blocks_3_project_bias_;
    const float blocks_3_project_bias_new_mul_5_ = 0.001f * blocks_3_project_bias_new_add_2_;
    const float blocks_3_project_bias_new_mul_6_ = blocks_3_project_bias_new_mul_5_ * blocks_3_project_bias_new_add_2_;
    const float exp_avg_sq_blocks_3_project_bias_new_ = blocks_3_project_bias_new_mul_4_ + blocks_3_project_bias_new_mul_6_;
    exp_avg_sq_blocks_3_project_bias_new[i] = exp_avg_sq_blocks_3_project_bias_new_;
    const float norm_weight_ = norm_weight[i];
    const float norm_weight_new_mul_2_ = 0.0f * norm_weight_;
    const float norm_weight_new_add_2_ = layer_norm_grad_reducesum_ + norm_weight_new_mul_2_;
    const float exp_avg_norm_weight_ = exp_avg_norm_weight[i];
    const float norm_weight_new_sub_2_ = norm_weight_new_add_2_ - exp_avg_norm_weight_;
    const float norm_weight_new_mul_3_ = 0.1f * norm_weight_new_sub_2_;
    const float exp_avg_norm_weight_new_ = exp_avg_norm_weight_ + norm_weight_new_mul_3_;
    exp_avg_norm_weight_new[i] = exp_avg_norm_weight_new_;
    const float exp_avg_sq_norm_weight_ = exp_avg_sq_norm_weight[i];
    const float norm_weight_new_mul_4_ = 0.999f * exp_avg_sq_norm_weight_;
    const float norm_weight_new_mul_5_ = 0.001f * norm_weight_new_add_2_;
    const float norm_weight_new_mul_6_ = norm_weight_new_mul_5_ * norm_weight_new_add_2_;
    const float exp_avg_sq_norm_weight_new_ = norm_weight_new_mul_4_ + norm_weight_new_mul_6_;
    exp_avg_sq_norm_weight_new[i] = exp_avg_sq_norm_weight_new_;
    const float norm_bias_ = norm_bias[i];
    const float norm_bias_new_mul_2_ = 0.0f * norm_bias_;
    const float norm_bias_new_add_2_ = layer_norm_grad_reducesum_2_ + norm_bias_new_mul_2_;
    const float exp_avg_norm_bias_ = exp_avg_norm_bias[i];
    const float norm_bias_new_sub_2_ = norm_bias_new_add_2_ - exp_avg_norm_bias_;
    const float norm_bias_new_mul_3_ = 0.1f * norm_bias_new_sub_2_;
    const float exp_avg_norm_bias_new_ = exp_avg_norm_bias_ + norm_bias_new_mul_3_;
    exp_avg_norm_bias_new[i] = exp_avg_norm_bias_new_;
    const float exp_avg_sq_norm_bias_ = exp_avg_sq_norm_bias[i];
    const float norm_bias_new_mul_4_ = 0.999f * exp_avg_sq_norm_bias_;
    const float norm_bias_new_mul_5_ = 0.001f * norm_bias_new_add_2_;
    const float norm_bias_new_mul_6_ = norm_bias_new_mul_5_ * norm_bias_new_add_2_;
    const float exp_avg_sq_norm_bias_new_ = norm_bias_new_mul_4_ + norm_bias_new_mul_6_;
    exp_avg_sq_norm_bias_new[i] = exp_avg_sq_norm_bias_new_;
}

// linear_grad_2_matmul, of backward/linear_grad_2/MatMul  f32 [768, 512]
// gelu_tanh_grad  f32 [12, 64, 512]
extern "C" __global__ void k61_gelu_tanh_grad(
    const float* __restrict__ layer_norm_grad_mul_6,
    const float* __restrict__ blocks_3_project_weight,
    const float* __restrict__ gelu_tanh_grad_tanh,
    const float* __restrict__ linear_15,
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
            float x_6 = 0.0f;
            if (m < 768 && k < 128) {
                const float layer_norm_grad_mul_6_ = layer_norm_grad_mul_6[m * 128 + k];
                x_6 = layer_norm_grad_mul_6_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_6;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_7 = 0.0f;
            if (n < 512 && k < 128) {
                const float blocks_3_project_weight_ = blocks_3_project_weight[k * 512 + n];
                x_7 = blocks_3_project_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_7;
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
                const float linear_grad_2_matmul_ = sums[u * 4 + w];
                const float gelu_tanh_grad_tanh_ = gelu_tanh_grad_tanh[m * 512 + n];
                const float gelu_tanh_grad_add_3_ = 1.0f + gelu_tanh_grad_tanh_;
                const float gelu_tanh_grad_div_ = gelu_tanh_grad_add_3_ / 2.0f;
                const float linear_15_ = linear_15[m * 512 + n];
                const float gelu_tanh_grad_mul_8_ = gelu_tanh_grad_tanh_ * gelu_tanh_grad_tanh_;
                const float gelu_tanh_grad_sub_ = 1.0f - gelu_tanh_grad_mul_8_;
                const float gelu_tanh_grad_mul_9_ = linear_15_ * gelu_tanh_grad_sub_;
                const float gelu_tanh_grad_mul_5_ = 0.134145f * linear_15_;
                const float gelu_tanh_grad_mul_6_ = gelu_tanh_grad_mul_5_ * linear_15_;
                const float gelu_tanh_grad_add_2_ = 1.0f + gelu_tanh_grad_mul_6_;
                const float gelu_tanh_grad_mul_7_ = 0.7978846f * gelu_tanh_grad_add_2_;
                const float gelu_tanh_grad_mul_10_ = gelu_tanh_grad_mul_9_ * gelu_tanh_grad_mul_7_;
                const float gelu_tanh_grad_div_2_ = gelu_tanh_grad_mul_10_ / 2.0f;
                const float gelu_tanh_grad_add_4_ = gelu_tanh_grad_div_ + gelu_tanh_grad_div_2_;
                const float gelu_tanh_grad_ = linear_grad_2_matmul_ * gelu_tanh_grad_add_4_;
                gelu_tanh_grad[m * 512 + n] = gelu_tanh_grad_;
            }
        }
    }
}

// d_blocks_3_project_weight  f32 [128, 512]
// blocks_3_project_weight_new_add_2, of update/blocks_3_project_weight_new/Add.2  f32 [128, 512]
// exp_avg_blocks_3_project_weight_new  f32 [128, 512]
// exp_avg_sq_blocks_3_project_weight_new  f32 [128, 512]
extern "C" __global__ void k62_exp_avg_sq_blocks_3_project_weight_new(
    const float* __restrict__ layer_norm_grad_mul_6,
    const float* __restrict__ gelu_tanh_4,
    const float* __restrict__ blocks_3_project_weight,
    const float* __restrict__ exp_avg_blocks_3_project_weight,
    const float* __restrict__ exp_avg_sq_blocks_3_project_weight,
    float* __restrict__ exp_avg_blocks_3_project_weight_new,
    float* __restrict__ exp_avg_sq_blocks_3_project_weight_new
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
            float x_6 = 0.0f;
            if (m < 128 && k < 768) {
                const float layer_norm_grad_mul_6_ = layer_norm_grad_mul_6[k * 128 + m];
                x_6 = layer_norm_grad_mul_6_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_6;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_7 = 0.0f;
            if (n < 512 && k < 768) {
                const float gelu_tanh_4_ = gelu_tanh_4[k * 512 + n];
                x_7 = gelu_tanh_4_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_7;
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
                const float blocks_3_project_weight_new_mul_2_ = 0.0f * blocks_3_project_weight_;
                const float blocks_3_project_weight_new_add_2_ = d_blocks_3_project_weight_ + blocks_3_project_weight_new_mul_2_;
                const float exp_avg_blocks_3_project_weight_ = exp_avg_blocks_3_project_weight[m * 512 + n];
                const float blocks_3_project_weight_new_sub_2_ = blocks_3_project_weight_new_add_2_ - exp_avg_blocks_3_project_weight_;
                const float blocks_3_project_weight_new_mul_3_ = 0.1f * blocks_3_project_weight_new_sub_2_;
                const float exp_avg_blocks_3_project_weight_new_ = exp_avg_blocks_3_project_weight_ + blocks_3_project_weight_new_mul_3_;
                exp_avg_blocks_3_project_weight_new[m * 512 + n] = exp_avg_blocks_3_project_weight_new_;
                const float exp_avg_sq_blocks_3_project_weight_ = exp_avg_sq_blocks_3_project_weight[m * 512 + n];
                const float blocks_3_project_weight_new_mul_4_ = 0.999f * exp_avg_sq_blocks_3_project_weight_;
                const float blocks_3_project_weight_new_mul_5_ = 0.001f * blocks_3_project_weight_new_add_2_;
                const float blocks_3_project_weight_new_mul_6_ = blocks_3_project_weight_new_mul_5_ * blocks_3_project_weight_new_add_2_;
                const float exp_avg_sq_blocks_3_project_weight_new_ = blocks_3_project_weight_new_mul_4_ + blocks_3_project_weight_new_mul_6_;
                exp_avg_sq_blocks_3_project_weight_new[m * 512 + n] = exp_avg_sq_blocks_3_project_weight_new_;
            }
        }
    }
}

// linear_grad_3_matmul, of backward/linear_grad_3/MatMul  f32 [768, 128]
// layer_norm_grad_2_mul_2, of backward/layer_norm_grad_2/Mul.2  f32 [768, 1, 128, 1]
extern "C" __global__ void k63_layer_norm_grad_2_mul_2(
    const float* __restrict__ gelu_tanh_grad,
    const float* __restrict__ blocks_3_expand_weight,
    const float* __restrict__ blocks_3_norm2_weight,
    float* __restrict__ linear_grad_3_matmul,
    float* __restrict__ layer_norm_grad_2_mul_2
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
            float x_6 = 0.0f;
            if (m < 768 && k < 512) {
                const float gelu_tanh_grad_ = gelu_tanh_grad[m * 512 + k];
                x_6 = gelu_tanh_grad_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_6;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_7 = 0.0f;
            if (n < 128 && k < 512) {
                const float blocks_3_expand_weight_ = blocks_3_expand_weight[k * 128 + n];
                x_7 = blocks_3_expand_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_7;
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
                const float linear_grad_3_matmul_ = sums[u * 4 + w];
                linear_grad_3_matmul[m * 128 + n] = linear_grad_3_matmul_;
                const float blocks_3_norm2_weight_ = blocks_3_norm2_weight[n];
                const float layer_norm_grad_2_mul_2_ = linear_grad_3_matmul_ * blocks_3_norm2_weight_;
                layer_norm_grad_2_mul_2[m * 128 + n] = layer_norm_grad_2_mul_2_;
            }
        }
    }
}

// d_blocks_3_expand_weight  f32 [512, 128]
// blocks_3_expand_weight_new_add_2, of update/blocks_3_expand_weight_new/Add.2  f32 [512, 128]
// exp_avg_blocks_3_expand_weight_new  f32 [512, 128]
// exp_avg_sq_blocks_3_expand_weight_new  f32 [512, 128]
extern "C" __global__ void k64_exp_avg_sq_blocks_3_expand_weight_new(
    const float* __restrict__ gelu_tanh_grad,
    const float* __restrict__ layer_norm_8_add_2,
    const float* __restrict__ blocks_3_expand_weight,
    const float* __restrict__ exp_avg_blocks_3_expand_weight,
    const float* __restrict__ exp_avg_sq_blocks_3_expand_weight,
    float* __restrict__ exp_avg_blocks_3_expand_weight_new,
    float* __restrict__ exp_avg_sq_blocks_3_expand_weight_new
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
            float x_6 = 0.0f;
            if (m < 512 && k < 768) {
                const float gelu_tanh_grad_ = gelu_tanh_grad[k * 512 + m];
                x_6 = gelu_tanh_grad_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_6;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_7 = 0.0f;
            if (n < 128 && k < 768) {
                const float layer_norm_8_add_2_ = layer_norm_8_add_2[k * 128 + n];
                x_7 = layer_norm_8_add_2_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_7;
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
                const float blocks_3_expand_weight_new_mul_2_ = 0.0f * blocks_3_expand_weight_;
                const float blocks_3_expand_weight_new_add_2_ = d_blocks_3_expand_weight_ + blocks_3_expand_weight_new_mul_2_;
                const float exp_avg_blocks_3_expand_weight_ = exp_avg_blocks_3_expand_weight[m * 128 + n];
                const float blocks_3_expand_weight_new_sub_2_ = blocks_3_expand_weight_new_add_2_ - exp_avg_blocks_3_expand_weight_;
                const float blocks_3_expand_weight_new_mul_3_ = 0.1f * blocks_3_expand_weight_new_sub_2_;
                const float exp_avg_blocks_3_expand_weight_new_ = exp_avg_blocks_3_expand_weight_ + blocks_3_expand_weight_new_mul_3_;
                exp_avg_blocks_3_expand_weight_new[m * 128 + n] = exp_avg_blocks_3_expand_weight_new_;
                const float exp_avg_sq_blocks_3_expand_weight_ = exp_avg_sq_blocks_3_expand_weight[m * 128 + n];
                const float blocks_3_expand_weight_new_mul_4_ = 0.999f * exp_avg_sq_blocks_3_expand_weight_;
                const float blocks_3_expand_weight_new_mul_5_ = 0.001f * blocks_3_expand_weight_new_add_2_;
                const float blocks_3_expand_weight_new_mul_6_ = blocks_3_expand_weight_new_mul_5_ * blocks_3_expand_weight_new_add_2_;
                const float exp_avg_sq_blocks_3_expand_weight_new_ = blocks_3_expand_weight_new_mul_4_ + blocks_3_expand_weight_new_mul_6_;
                exp_avg_sq_blocks_3_expand_weight_new[m * 128 + n] = exp_avg_sq_blocks_3_expand_weight_new_;
            }
        }
    }
}

// d_blocks_3_expand_bias  f32 [512]
// blocks_3_expand_bias_new_add_2, of update/blocks_3_expand_bias_new/Add.2  f32 [512]
// exp_avg_blocks_3_expand_bias_new  f32 [512]
// exp_avg_sq_blocks_3_expand_bias_new  f32 [512]
extern "C" __global__ void k65_exp_avg_sq_blocks_3_expand_bias_new(
    const float* __restrict__ gelu_tanh_grad,
    const float* __restrict__ blocks_3_expand_bias,
    const float* __restrict__ exp_avg_blocks_3_expand_bias,
    const float* __restrict__ exp_avg_sq_blocks_3_expand_bias,
    float* __restrict__ exp_avg_blocks_3_expand_bias_new,
    float* __restrict__ exp_avg_sq_blocks_3_expand_bias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 512) { return; }
    float d_blocks_3_expand_bias_ = 0.0f;
    for (int k = 0; k < 768; k++) {
        const float gelu_tanh_grad_ = gelu_tanh_grad[k * 512 + i];
        d_blocks_3_expand_bias_ = d_blocks_3_expand_bias_ + gelu_tanh_grad_;
    }
    const float blocks_3_expand_bias_ = blocks_3_expand_bias[i];
    const float blocks_3_expand_bias_new_mul_2_ = 0.0f * blocks_3_expand_bias_;
    const float blocks_3_expand_bias_new_add_2_ = d_blocks_3_expand_bias_ + blocks_3_expand_bias_new_mul_2_;
    const float exp_avg_blocks_3_expand_bias_ = exp_avg_blocks_3_expand_bias[i];
    const float blocks_3_expand_bias_new_sub_2_ = blocks_3_expand_bias_new_add_2_ - exp_avg_blocks_3_expand_bias_;
    const float blocks_3_expand_bias_new_mul_3_ = 0.1f * blocks_3_expand_bias_new_sub_2_;
    const float exp_avg_blocks_3_expand_bias_new_ = exp_avg_blocks_3_expand_bias_ + blocks_3_expand_bias_new_mul_3_;
    exp_avg_blocks_3_expand_bias_new[i] = exp_avg_blocks_3_expand_bias_new_;
    const float exp_avg_sq_blocks_3_expand_bias_ = exp_avg_sq_blocks_3_expand_bias[i];
    const float blocks_3_expand_bias_new_mul_4_ = 0.999f * exp_avg_sq_blocks_3_expand_bias_;
    const float blocks_3_expand_bias_new_mul_5_ = 0.001f * blocks_3_expand_bias_new_add_2_;
    const float blocks_3_expand_bias_new_mul_6_ = blocks_3_expand_bias_new_mul_5_ * blocks_3_expand_bias_new_add_2_;
    const float exp_avg_sq_blocks_3_expand_bias_new_ = blocks_3_expand_bias_new_mul_4_ + blocks_3_expand_bias_new_mul_6_;
    exp_avg_sq_blocks_3_expand_bias_new[i] = exp_avg_sq_blocks_3_expand_bias_new_;
}

// layer_norm_grad_2_reducemean, of backward/layer_norm_grad_2/ReduceMean  f32 [768, 1, 1, 1]
// layer_norm_grad_2_reducemean_2, of backward/layer_norm_grad_2/ReduceMean.2  f32 [768, 1, 1, 1]
// d_x  f32 [12, 64, 128]
extern "C" __global__ void k66_d_x(
    const float* __restrict__ layer_norm_grad_2_mul_2,
    const float* __restrict__ layer_norm_grad_2_mul,
    const float* __restrict__ layer_norm_grad_mul_6,
    const float* __restrict__ layer_norm_1_8,
    float* __restrict__ d_x
) {
    __shared__ float part_float[128];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float sum = 0.0f;
    for (int col = thread; col < 128; col += 128) {
        const float layer_norm_grad_2_mul_2_ = layer_norm_grad_2_mul_2[row * 128 + col];
        const float layer_norm_grad_2_mul_ = layer_norm_grad_2_mul[row * 128 + col];
        const float layer_norm_grad_2_mul_3_ = layer_norm_grad_2_mul_2_ * layer_norm_grad_2_mul_;
        sum = sum + layer_norm_grad_2_mul_3_;
    }
    part_float[thread] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float layer_norm_grad_2_reducemean_ = part_float[0] / 128.0f;
    __syncthreads();
    float sum_2 = 0.0f;
    for (int col = thread; col < 128; col += 128) {
        const float layer_norm_grad_2_mul_2__2 = layer_norm_grad_2_mul_2[row * 128 + col];
        sum_2 = sum_2 + layer_norm_grad_2_mul_2__2;
    }
    part_float[thread] = sum_2;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float layer_norm_grad_2_reducemean_2_ = part_float[0] / 128.0f;
    __syncthreads();
    for (int col = thread; col < 128; col += 128) {
        const float layer_norm_grad_mul_6_ = layer_norm_grad_mul_6[row * 128 + col];
        const float layer_norm_grad_2_mul_2__3 = layer_norm_grad_2_mul_2[row * 128 + col];
        const float layer_norm_grad_2_mul__2 = layer_norm_grad_2_mul[row * 128 + col];
        const float layer_norm_grad_2_mul_4_ = layer_norm_grad_2_mul__2 * layer_norm_grad_2_reducemean_;
        const float layer_norm_grad_2_sub_2_ = layer_norm_grad_2_mul_2__3 - layer_norm_grad_2_mul_4_;
        const float layer_norm_grad_2_sub_3_ = layer_norm_grad_2_sub_2_ - layer_norm_grad_2_reducemean_2_;
        const int at = 0 + 1;
        const float layer_norm_1_8_ = layer_norm_1_8[row * 3 + at];
        const float layer_norm_grad_2_mul_6_ = layer_norm_grad_2_sub_3_ * layer_norm_1_8_;
        const float d_x_ = layer_norm_grad_mul_6_ + layer_norm_grad_2_mul_6_;
        d_x[row * 128 + col] = d_x_;
    }
}

// linear_grad_4_matmul, of backward/linear_grad_4/MatMul  f32 [768, 128]
extern "C" __global__ void k68_linear_grad_4_matmul(
    const float* __restrict__ d_x,
    const float* __restrict__ blocks_3_attention_out_weight,
    float* __restrict__ linear_grad_4_matmul
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
            float x_6 = 0.0f;
            if (m < 768 && k < 128) {
                const float d_x_ = d_x[m * 128 + k];
                x_6 = d_x_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_6;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_7 = 0.0f;
            if (n < 128 && k < 128) {
                const float blocks_3_attention_out_weight_ = blocks_3_attention_out_weight[k * 128 + n];
                x_7 = blocks_3_attention_out_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_7;
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
                const float linear_grad_4_matmul_ = sums[u * 4 + w];
                linear_grad_4_matmul[m * 128 + n] = linear_grad_4_matmul_;
            }
        }
    }
}

// d_blocks_3_attention_out_weight  f32 [128, 128]
// blocks_3_attention_out_weight_new_add_2, of update/blocks_3_attention_out_weight_new/Add.2  f32 [128, 128]
// exp_avg_blocks_3_attention_out_weight_new  f32 [128, 128]
// exp_avg_sq_blocks_3_attention_out_weight_new  f32 [128, 128]
extern "C" __global__ void k69_exp_avg_sq_blocks_3_attention_out_weight_new(
    const float* __restrict__ d_x,
    const float* __restrict__ y_5,
    const float* __restrict__ blocks_3_attention_out_weight,
    const float* __restrict__ exp_avg_blocks_3_attention_out_weight,
    const float* __restrict__ exp_avg_sq_blocks_3_attention_out_weight,
    float* __restrict__ exp_avg_blocks_3_attention_out_weight_new,
    float* __restrict__ exp_avg_sq_blocks_3_attention_out_weight_new
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
            float x_6 = 0.0f;
            if (m < 128 && k < 768) {
                const float d_x_ = d_x[k * 128 + m];
                x_6 = d_x_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_6;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_7 = 0.0f;
            if (n < 128 && k < 768) {
                const float y_5_ = y_5[(k / 64) * 8192 + (n / 32) * 2048 + (k % 64) * 32 + (n % 32)];
                x_7 = y_5_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_7;
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
                const float blocks_3_attention_out_weight_new_mul_2_ = 0.0f * blocks_3_attention_out_weight_;
                const float blocks_3_attention_out_weight_new_add_2_ = d_blocks_3_attention_out_weight_ + blocks_3_attention_out_weight_new_mul_2_;
                const float exp_avg_blocks_3_attention_out_weight_ = exp_avg_blocks_3_attention_out_weight[m * 128 + n];
                const float blocks_3_attention_out_weight_new_sub_2_ = blocks_3_attention_out_weight_new_add_2_ - exp_avg_blocks_3_attention_out_weight_;
                const float blocks_3_attention_out_weight_new_mul_3_ = 0.1f * blocks_3_attention_out_weight_new_sub_2_;
                const float exp_avg_blocks_3_attention_out_weight_new_ = exp_avg_blocks_3_attention_out_weight_ + blocks_3_attention_out_weight_new_mul_3_;
                exp_avg_blocks_3_attention_out_weight_new[m * 128 + n] = exp_avg_blocks_3_attention_out_weight_new_;
                const float exp_avg_sq_blocks_3_attention_out_weight_ = exp_avg_sq_blocks_3_attention_out_weight[m * 128 + n];
                const float blocks_3_attention_out_weight_new_mul_4_ = 0.999f * exp_avg_sq_blocks_3_attention_out_weight_;
                const float blocks_3_attention_out_weight_new_mul_5_ = 0.001f * blocks_3_attention_out_weight_new_add_2_;
                const float blocks_3_attention_out_weight_new_mul_6_ = blocks_3_attention_out_weight_new_mul_5_ * blocks_3_attention_out_weight_new_add_2_;
                const float exp_avg_sq_blocks_3_attention_out_weight_new_ = blocks_3_attention_out_weight_new_mul_4_ + blocks_3_attention_out_weight_new_mul_6_;
                exp_avg_sq_blocks_3_attention_out_weight_new[m * 128 + n] = exp_avg_sq_blocks_3_attention_out_weight_new_;
            }
        }
    }
}

// attention_grad_reducemax, of backward/attention_grad/ReduceMax  i64 [12, 4, 64, 1]
// attention_grad_where_2, of backward/attention_grad/Where.2  f32 [12, 4, 64, 64]
// attention_grad_reducemax_2, of backward/attention_grad/ReduceMax.2  f32 [12, 4, 64, 1]
// attention_grad_exp, of backward/attention_grad/Exp  f32 [12, 4, 64, 64]
// attention_grad_reducesum, of backward/attention_grad/ReduceSum  f32 [12, 4, 64, 1]
// attention_grad_where_3, of backward/attention_grad/Where.3  f32 [12, 4, 64, 64]
// attention_grad_mul_6, of backward/attention_grad/Mul.6  f32 [12, 4, 64, 64]
extern "C" __global__ void k73_attention_grad_mul_6(
    const bool* __restrict__ attention_grad_and,
    const float* __restrict__ attention_grad_matmul,
    float* __restrict__ attention_grad_where_2,
    float* __restrict__ attention_grad_exp,
    float* __restrict__ attention_grad_where_3,
    float* __restrict__ attention_grad_mul_6
) {
    __shared__ long long part_long_long[64];
    __shared__ float part_float[64];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    long long sum = LEAST;
    for (int col = thread; col < 64; col += 64) {
        const bool attention_grad_and_ = attention_grad_and[row * 64 + col];
        const long long attention_grad_cast_ = (long long)attention_grad_and_;
        sum = larger(sum, attention_grad_cast_);
    }
    part_long_long[thread] = sum;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (thread < half) { part_long_long[thread] = larger(part_long_long[thread], part_long_long[thread + half]); }
        __syncthreads();
    }
    const long long attention_grad_reducemax_ = part_long_long[0];
    __syncthreads();
    for (int col = thread; col < 64; col += 64) {
        const bool attention_grad_cast_2_ = attention_grad_reducemax_ != 0ll;
        const bool attention_grad_and__2 = attention_grad_and[row * 64 + col];
        const float attention_grad_matmul_ = attention_grad_matmul[row * 64 + col];
        const float attention_grad_mul_ = attention_grad_matmul_ * 0.17677669f;
        const float attention_grad_where_ = attention_grad_and__2 ? attention_grad_mul_ : (-INF_F);
        const float attention_grad_where_2_ = attention_grad_cast_2_ ? attention_grad_where_ : 0.0f;
        attention_grad_where_2[row * 64 + col] = attention_grad_where_2_;
    }
    float sum_2 = -INF_F;
    for (int col = thread; col < 64; col += 64) {
        const float attention_grad_where_2__2 = attention_grad_where_2[row * 64 + col];
        sum_2 = larger(sum_2, attention_grad_where_2__2);
    }
    part_float[thread] = sum_2;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = larger(part_float[thread], part_float[thread + half]); }
        __syncthreads();
    }
    const float attention_grad_reducemax_2_ = part_float[0];
    __syncthreads();
    for (int col = thread; col < 64; col += 64) {
        const float attention_grad_where_2__3 = attention_grad_where_2[row * 64 + col];
        const float attention_grad_sub_ = attention_grad_where_2__3 - attention_grad_reducemax_2_;
        const float attention_grad_exp_ = expf(attention_grad_sub_);
        attention_grad_exp[row * 64 + col] = attention_grad_exp_;
    }
    float sum_3 = 0.0f;
    for (int col = thread; col < 64; col += 64) {
        const float attention_grad_exp__2 = attention_grad_exp[row * 64 + col];
        sum_3 = sum_3 + attention_grad_exp__2;
    }
    part_float[thread] = sum_3;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float attention_grad_reducesum_ = part_float[0];
    __syncthreads();
    for (int col = thread; col < 64; col += 64) {
        const bool attention_grad_and__3 = attention_grad_and[row * 64 + col];
        const float attention_grad_exp__3 = attention_grad_exp[row * 64 + col];
        const float attention_grad_div_ = attention_grad_exp__3 / attention_grad_reducesum_;
        const float attention_grad_where_3_ = attention_grad_and__3 ? attention_grad_div_ : 0.0f;
        attention_grad_where_3[row * 64 + col] = attention_grad_where_3_;
    }
    for (int col = thread; col < 64; col += 64) {
        const float attention_grad_where_3__2 = attention_grad_where_3[row * 64 + col];
        const float attention_grad_mul_6_ = attention_grad_where_3__2 * 1.0f;
        attention_grad_mul_6[row * 64 + col] = attention_grad_mul_6_;
    }
}

// attention_grad_matmul_2, of backward/attention_grad/MatMul.2  f32 [12, 4, 64, 64]
extern "C" __global__ void k74_attention_grad_matmul_2(
    const float* __restrict__ linear_grad_4_matmul,
    const float* __restrict__ linear_13,
    float* __restrict__ attention_grad_matmul_2
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
            float x_6 = 0.0f;
            if (m < 64 && k < 32) {
                const int at = (stack % 4) * 32 + k;
                const int at_2 = (stack / 4) * 64 + m;
                const float linear_grad_4_matmul_ = linear_grad_4_matmul[at_2 * 128 + at];
                x_6 = linear_grad_4_matmul_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_6;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_7 = 0.0f;
            if (n < 64 && k < 32) {
                const int at_3 = 0 + 2;
                const int at_4 = at_3 * 128 + (stack % 4) * 32 + k;
                const float linear_13_ = linear_13[(stack / 4) * 24576 + n * 384 + at_4];
                x_7 = linear_13_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_7;
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
                const float attention_grad_matmul_2_ = sums[u * 4 + w];
                attention_grad_matmul_2[stack * 4096 + m * 64 + n] = attention_grad_matmul_2_;
            }
        }
    }
}

// attention_grad_reducesum_2, of backward/attention_grad/ReduceSum.2  f32 [12, 4, 64, 1]
extern "C" __global__ void k75_attention_grad_reducesum_2(
    const float* __restrict__ linear_grad_4_matmul,
    const float* __restrict__ y_5,
    float* __restrict__ attention_grad_reducesum_2
) {
    __shared__ float part_float[32];
    const int row = (int)blockIdx.x;
    const int thread = (int)threadIdx.x;
    float sum = 0.0f;
    for (int col = thread; col < 32; col += 32) {
        const int at = (row / 64 % 4) * 32 + col;
        const int at_2 = (row / 256) * 64 + (row % 64);
        const float linear_grad_4_matmul_ = linear_grad_4_matmul[at_2 * 128 + at];
        const float y_5_ = y_5[row * 32 + col];
        const float attention_grad_mul_3_ = linear_grad_4_matmul_ * y_5_;
        sum = sum + attention_grad_mul_3_;
    }
    part_float[thread] = sum;
    __syncthreads();
    for (int half = 16; half > 0; half /= 2) {
        if (thread < half) { part_float[thread] = part_float[thread] + part_float[thread + half]; }
        __syncthreads();
    }
    const float attention_grad_reducesum_2_ = part_float[0];
    __syncthreads();
    if (thread == 0) {
        attention_grad_reducesum_2[row] = attention_grad_reducesum_2_;
    }
}

// attention_grad_mul_5, of backward/attention_grad/Mul.5  f32 [12, 4, 64, 64]
extern "C" __global__ void k76_attention_grad_mul_5(
    const float* __restrict__ attention_grad_where_3,
    const float* __restrict__ attention_grad_matmul_2,
    const float* __restrict__ attention_grad_reducesum_2,
    float* __restrict__ attention_grad_mul_5
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 196608) { return; }
    const float attention_grad_where_3_ = attention_grad_where_3[i];
    const float attention_grad_matmul_2_ = attention_grad_matmul_2[i];
    const float attention_grad_mul_2_ = attention_grad_matmul_2_ * 1.0f;
    const float attention_grad_reducesum_2_ = attention_grad_reducesum_2[i / 64];
    const float attention_grad_sub_2_ = attention_grad_mul_2_ - attention_grad_reducesum_2_;
    const float attention_grad_mul_4_ = attention_grad_where_3_ * attention_grad_sub_2_;
    const float attention_grad_mul_5_ = attention_grad_mul_4_ * 0.17677669f;
    attention_grad_mul_5[i] = attention_grad_mul_5_;
}

// attention_grad  f32 [12, 4, 64, 32]
extern "C" __global__ void k77_attention_grad(
    const float* __restrict__ attention_grad_mul_5,
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
            float x_6 = 0.0f;
            if (m < 64 && k < 64) {
                const float attention_grad_mul_5_ = attention_grad_mul_5[stack * 4096 + m * 64 + k];
                x_6 = attention_grad_mul_5_;
            }
            tile_a_float[(t % 16) * 16 + t / 16] = x_6;
        }
        for (int t = thread; t < 256; t += 256) {
            const int n = left + t % 16;
            const int k = k0 + t / 16;
            float x_7 = 0.0f;
            if (n < 32 && k < 64) {
                const int at = 0 + 1;
                const int at_2 = at * 128 + (stack % 4) * 32 + n;
                const float linear_13_ = linear_13[(stack / 4) * 24576 + k * 384 + at_2];
                x_7 = linear_13_;
            }
            tile_b_float[(t / 16) * 16 + t % 16] = x_7;
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
extern "C" __global__ void k78_attention_grad_1(
    const float* __restrict__ attention_grad_mul_5,
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
            float x_6 = 0.0f;
            if (m < 64 && k < 64) {
                const float attention_grad_mul_5_ = attention_grad_mul_5[stack * 4096 + k * 64 + m];
                x_6 = attention_grad_mul_5_;
            }
            tile_a_float[(t % 16) * 16 + t / 16] = x_6;
        }
        for (int t = thread; t < 256; t += 256) {
            const int n = left + t % 16;
            const int k = k0 + t / 16;
            float x_7 = 0.0f;
            if (n < 32 && k < 64) {
                const int at = 0;
                const int at_2 = at * 128 + (stack % 4) * 32 + n;
                const float linear_13_ = linear_13[(stack / 4) * 24576 + k * 384 + at_2];
                x_7 = linear_13_;
            }
            tile_b_float[(t / 16) * 16 + t % 16] = x_7;
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

// d_part  f32 [12, 4, 64, 32]
extern "C" __global__ void k79_d_part(
    const float* __restrict__ attention_grad_mul_6,
    const float* __restrict__ linear_grad_4_matmul,
    float* __restrict__ d_part
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
            float x_6 = 0.0f;
            if (m < 64 && k < 64) {
                const float attention_grad_mul_6_ = attention_grad_mul_6[stack * 4096 + k * 64 + m];
                x_6 = attention_grad_mul_6_;
            }
            tile_a_float[(t % 16) * 16 + t / 16] = x_6;
        }
        for (int t = thread; t < 256; t += 256) {
            const int n = left + t % 16;
            const int k = k0 + t / 16;
            float x_7 = 0.0f;
            if (n < 32 && k < 64) {
                const int at = (stack % 4) * 32 + n;
                const int at_2 = (stack / 4) * 64 + k;
                const float linear_grad_4_matmul_ = linear_grad_4_matmul[at_2 * 128 + at];
                x_7 = linear_grad_4_matmul_;
            }
            tile_b_float[(t / 16) * 16 + t % 16] = x_7;
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
                const float d_part_ = sums[u * 1 + w];
                d_part[stack * 2048 + m * 32 + n] = d_part_;
            }
        }
    }
}

// d_qkv  f32 [12, 64, 3, 4, 32]
extern "C" __global__ void k80_d_qkv(
    const float* __restrict__ d_part,
    const float* __restrict__ attention_grad_1,
    const float* __restrict__ attention_grad,
    float* __restrict__ d_qkv
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 294912) { return; }
    const int far = i / 128 % 3 - 2;
    const float d_part_ = d_part[(i / 24576) * 8192 + (i / 32 % 4) * 2048 + (i / 384 % 64) * 32 + (i % 32)];
    const float d_qkv_pad_ = (far >= 0 && far < 1) ? d_part_ : 0.0f;
    const int far_2 = i / 128 % 3 - 1;
    const float attention_grad_1_ = attention_grad_1[(i / 24576) * 8192 + (i / 32 % 4) * 2048 + (i / 384 % 64) * 32 + (i % 32)];
    const float d_qkv_pad_2_ = (far_2 >= 0 && far_2 < 1) ? attention_grad_1_ : 0.0f;
    const float d_qkv_add_ = d_qkv_pad_ + d_qkv_pad_2_;
    const int far_3 = i / 128 % 3;
    const float attention_grad_ = attention_grad[(i / 24576) * 8192 + (i / 32 % 4) * 2048 + (i / 384 % 64) * 32 + (i % 32)];
    const float d_qkv_pad_3_ = (far_3 >= 0 && far_3 < 1) ? attention_grad_ : 0.0f;
    const float d_qkv_ = d_qkv_add_ + d_qkv_pad_3_;
    d_qkv[i] = d_qkv_;
}

// linear_grad_5_matmul, of backward/linear_grad_5/MatMul  f32 [768, 128]
// layer_norm_grad_3_mul_2, of backward/layer_norm_grad_3/Mul.2  f32 [768, 1, 128, 1]
extern "C" __global__ void k81_layer_norm_grad_3_mul_2(
    const float* __restrict__ d_qkv,
    const float* __restrict__ blocks_3_attention_qkv_weight,
    const float* __restrict__ blocks_3_norm1_weight,
    float* __restrict__ linear_grad_5_matmul,
    float* __restrict__ layer_norm_grad_3_mul_2
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
            float x_6 = 0.0f;
            if (m < 768 && k < 384) {
                const float d_qkv_ = d_qkv[m * 384 + k];
                x_6 = d_qkv_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_6;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_7 = 0.0f;
            if (n < 128 && k < 384) {
                const float blocks_3_attention_qkv_weight_ = blocks_3_attention_qkv_weight[k * 128 + n];
                x_7 = blocks_3_attention_qkv_weight_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_7;
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
                const float linear_grad_5_matmul_ = sums[u * 4 + w];
                linear_grad_5_matmul[m * 128 + n] = linear_grad_5_matmul_;
                const float blocks_3_norm1_weight_ = blocks_3_norm1_weight[n];
                const float layer_norm_grad_3_mul_2_ = linear_grad_5_matmul_ * blocks_3_norm1_weight_;
                layer_norm_grad_3_mul_2[m * 128 + n] = layer_norm_grad_3_mul_2_;
            }
        }
    }
}

// d_blocks_3_attention_qkv_weight  f32 [384, 128]
// blocks_3_attention_qkv_weight_new_add_2, of update/blocks_3_attention_qkv_weight_new/Add.2  f32 [384, 128]
// exp_avg_blocks_3_attention_qkv_weight_new  f32 [384, 128]
// exp_avg_sq_blocks_3_attention_qkv_weight_new  f32 [384, 128]
extern "C" __global__ void k82_exp_avg_sq_blocks_3_attention_qkv_weight_new(
    const float* __restrict__ d_qkv,
    const float* __restrict__ layer_norm_7_add_2,
    const float* __restrict__ blocks_3_attention_qkv_weight,
    const float* __restrict__ exp_avg_blocks_3_attention_qkv_weight,
    const float* __restrict__ exp_avg_sq_blocks_3_attention_qkv_weight,
    float* __restrict__ exp_avg_blocks_3_attention_qkv_weight_new,
    float* __restrict__ exp_avg_sq_blocks_3_attention_qkv_weight_new
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
            float x_6 = 0.0f;
            if (m < 384 && k < 768) {
                const float d_qkv_ = d_qkv[k * 384 + m];
                x_6 = d_qkv_;
            }
            tile_a_float[(t % 16) * 64 + t / 16] = x_6;
        }
        for (int t = thread; t < 1024; t += 256) {
            const int n = left + t % 64;
            const int k = k0 + t / 64;
            float x_7 = 0.0f;
            if (n < 128 && k < 768) {
                const float layer_norm_7_add_2_ = layer_norm_7_add_2[k * 128 + n];
                x_7 = layer_norm_7_add_2_;
            }
            tile_b_float[(t / 64) * 64 + t % 64] = x_7;
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
                const float blocks_3_attention_qkv_weight_new_mul_2_ = 0.0f * blocks_3_attention_qkv_weight_;
                const float blocks_3_attention_qkv_weight_new_add_2_ = d_blocks_3_attention_qkv_weight_ + blocks_3_attention_qkv_weight_new_mul_2_;
                const float exp_avg_blocks_3_attention_qkv_weight_ = exp_avg_blocks_3_attention_qkv_weight[m * 128 + n];
                const float blocks_3_attention_qkv_weight_new_sub_2_ = blocks_3_attention_qkv_weight_new_add_2_ - exp_avg_blocks_3_attention_qkv_weight_;
                const float blocks_3_attention_qkv_weight_new_mul_3_ = 0.1f * blocks_3_attention_qkv_weight_new_sub_2_;
                const float exp_avg_blocks_3_attention_qkv_weight_new_ = exp_avg_blocks_3_attention_qkv_weight_ + blocks_3_attention_qkv_weight_new_mul_3_;
                exp_avg_blocks_3_attention_qkv_weight_new[m * 128 + n] = exp_avg_blocks_3_attention_qkv_weight_new_;
                const float exp_avg_sq_blocks_3_attention_qkv_weight_ = exp_avg_sq_blocks_3_attention_qkv_weight[m * 128 + n];
                const float blocks_3_attention_qkv_weight_new_mul_4_ = 0.999f * exp_avg_sq_blocks_3_attention_qkv_weight_;
                const float blocks_3_attention_qkv_weight_new_mul_5_ = 0.001f * blocks_3_attention_qkv_weight_new_add_2_;
                const float blocks_3_attention_qkv_weight_new_mul_6_ = blocks_3_attention_qkv_weight_new_mul_5_ * blocks_3_attention_qkv_weight_new_add_2_;
                const float exp_avg_sq_blocks_3_attention_qkv_weight_new_ = blocks_3_attention_qkv_weight_new_mul_4_ + blocks_3_attention_qkv_weight_new_mul_6_;
                exp_avg_sq_blocks_3_attention_qkv_weight_new[m * 128 + n] = exp_avg_sq_blocks_3_attention_qkv_weight_new_;
            }
        }
    }
}

// d_blocks_3_attention_qkv_bias  f32 [384]
// blocks_3_attention_qkv_bias_new_add_2, of update/blocks_3_attention_qkv_bias_new/Add.2  f32 [384]
// exp_avg_blocks_3_attention_qkv_bias_new  f32 [384]
// exp_avg_sq_blocks_3_attention_qkv_bias_new  f32 [384]
extern "C" __global__ void k83_exp_avg_sq_blocks_3_attention_qkv_bias_new(
    const float* __restrict__ d_qkv,
    const float* __restrict__ blocks_3_attention_qkv_bias,
    const float* __restrict__ exp_avg_blocks_3_attention_qkv_bias,
    const float* __restrict__ exp_avg_sq_blocks_3_attention_qkv_bias,
    float* __restrict__ exp_avg_blocks_3_attention_qkv_bias_new,
    float* __restrict__ exp_avg_sq_blocks_3_attention_qkv_bias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 384) { return; }
    float d_blocks_3_attention_qkv_bias_ = 0.0f;
    for (int k = 0; k < 768; k++) {
        const float d_qkv_ = d_qkv[k * 384 + i];
        d_blocks_3_attention_qkv_bias_ = d_blocks_3_attention_qkv_bias_ + d_qkv_;
    }
    const float blocks_3_attention_qkv_bias_ = blocks_3_attention_qkv_bias[i];
    const float blocks_3_attention_qkv_bias_new_mul_2_ = 0.0f * blocks_3_attention_qkv_bias_;
    const float blocks_3_attention_qkv_bias_new_add_2_ = d_blocks_3_attention_qkv_bias_ + blocks_3_attention_qkv_bias_new_mul_2_;
    const float exp_avg_blocks_3_attention_qkv_bias_ = exp_avg_blocks_3_attention_qkv_bias[i];
    const float blocks_3_attention_qkv_bias_new_sub_2_ = blocks_3_attention_qkv_bias_new_add_2_ - exp_avg_blocks_3_attention_qkv_bias_;
    const float blocks_3_attention_qkv_bias_new_mul_3_ = 0.1f * blocks_3_attention_qkv_bias_new_sub_2_;
    const float exp_avg_blocks_3_attention_qkv_bias_new_ = exp_avg_blocks_3_attention_qkv_bias_ + blocks_3_attention_qkv_bias_new_mul_3_;
    exp_avg_blocks_3_attention_qkv_bias_new[i] = exp_avg_blocks_3_attention_qkv_bias_new_;
    const float exp_avg_sq_blocks_3_attention_qkv_bias_ = exp_avg_sq_blocks_3_attention_qkv_bias[i];
    const float blocks_3_attention_qkv_bias_new_mul_4_ = 0.999f * exp_avg_sq_blocks_3_attention_qkv_bias_;
    const float blocks_3_attention_qkv_bias_new_mul_5_ = 0.001f * blocks_3_attention_qkv_bias_new_add_2_;
    const float blocks_3_attention_qkv_bias_new_mul_6_ = blocks_3_attention_qkv_bias_new_mul_5_ * blocks_3_attention_qkv_bias_new_add_2_;
    const float exp_avg_sq_blocks_3_attention_qkv_bias_new_ = blocks_3_attention_qkv_bias_new_mul_4_ + blocks_3_attention_qkv_bias_new_mul_6_;
    exp_avg_sq_blocks_3_attention_qkv_bias_new[i] = exp_avg_sq_blocks_3_attention_qkv_bias_new_;
}

// layer_norm_grad_9_reducesum, of backward/layer_norm_grad_9/ReduceSum  f32 [1, 128]
// layer_norm_grad_9_reducesum_2, of backward/layer_norm_grad_9/ReduceSum.2  f32 [1, 128]
// blocks_0_norm1_weight_new_add_2, of update/blocks_0_norm1_weight_new/Add.2  f32 [128]
// exp_avg_blocks_0_norm1_weight_new  f32 [128]
// exp_avg_sq_blocks_0_norm1_weight_new  f32 [128]
// blocks_0_norm1_bias_new_add_2, of update/blocks_0_norm1_bias_new/Add.2  f32 [128]
// exp_avg_blocks_0_norm1_bias_new  f32 [128]
// exp_avg_sq_blocks_0_norm1_bias_new  f32 [128]
extern "C" __global__ void k160_exp_avg_sq_blocks_0_norm1_bias_new(
    const float* __restrict__ linear_grad_17_matmul,
    const float* __restrict__ layer_norm_grad_9_mul,
    const float* __restrict__ blocks_0_norm1_weight,
    const float* __restrict__ exp_avg_blocks_0_norm1_weight,
    const float* __restrict__ exp_avg_sq_blocks_0_norm1_weight,
    const float* __restrict__ blocks_0_norm1_bias,
    const float* __restrict__ exp_avg_blocks_0_norm1_bias,
    const float* __restrict__ exp_avg_sq_blocks_0_norm1_bias,
    float* __restrict__ exp_avg_blocks_0_norm1_weight_new,
    float* __restrict__ exp_avg_sq_blocks_0_norm1_weight_new,
    float* __restrict__ exp_avg_blocks_0_norm1_bias_new,
    float* __restrict__ exp_avg_sq_blocks_0_norm1_bias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 128) { return; }
    float layer_norm_grad_9_reducesum_ = 0.0f;
    for (int k = 0; k < 768; k++) {
        const float linear_grad_17_matmul_ = linear_grad_17_matmul[k * 128 + i];
        const float layer_norm_grad_9_mul_ = layer_norm_grad_9_mul[k * 128 + i];
        const float layer_norm_grad_9_mul_5_ = linear_grad_17_matmul_ * layer_norm_grad_9_mul_;
        layer_norm_grad_9_reducesum_ = layer_norm_grad_9_reducesum_ + layer_norm_grad_9_mul_5_;
    }
    float layer_norm_grad_9_reducesum_2_ = 0.0f;
    for (int k_2 = 0; k_2 < 768; k_2++) {
        const float linear_grad_17_matmul__2 = linear_grad_17_matmul[k_2 * 128 + i];
        layer_norm_grad_9_reducesum_2_ = layer_norm_grad_9_reducesum_2_ + linear_grad_17_matmul__2;
    }
    const float blocks_0_norm1_weight_ = blocks_0_norm1_weight[i];
    const float blocks_0_norm1_weight_new_mul_2_ = 0.0f * blocks_0_norm1_weight_;
    const float blocks_0_norm1_weight_new_add_2_ = layer_norm_grad_9_reducesum_ + blocks_0_norm1_weight_new_mul_2_;
    const float exp_avg_blocks_0_norm1_weight_ = exp_avg_blocks_0_norm1_weight[i];
    const float blocks_0_norm1_weight_new_sub_2_ = blocks_0_norm1_weight_new_add_2_ - exp_avg_blocks_0_norm1_weight_;
    const float blocks_0_norm1_weight_new_mul_3_ = 0.1f * blocks_0_norm1_weight_new_sub_2_;
    const float exp_avg_blocks_0_norm1_weight_new_ = exp_avg_blocks_0_norm1_weight_ + blocks_0_norm1_weight_new_mul_3_;
    exp_avg_blocks_0_norm1_weight_new[i] = exp_avg_blocks_0_norm1_weight_new_;
    const float exp_avg_sq_blocks_0_norm1_weight_ = exp_avg_sq_blocks_0_norm1_weight[i];
    const float blocks_0_norm1_weight_new_mul_4_ = 0.999f * exp_avg_sq_blocks_0_norm1_weight_;
    const float blocks_0_norm1_weight_new_mul_5_ = 0.001f * blocks_0_norm1_weight_new_add_2_;
    const float blocks_0_norm1_weight_new_mul_6_ = blocks_0_norm1_weight_new_mul_5_ * blocks_0_norm1_weight_new_add_2_;
    const float exp_avg_sq_blocks_0_norm1_weight_new_ = blocks_0_norm1_weight_new_mul_4_ + blocks_0_norm1_weight_new_mul_6_;
    exp_avg_sq_blocks_0_norm1_weight_new[i] = exp_avg_sq_blocks_0_norm1_weight_new_;
    const float blocks_0_norm1_bias_ = blocks_0_norm1_bias[i];
    const float blocks_0_norm1_bias_new_mul_2_ = 0.0f * blocks_0_norm1_bias_;
    const float blocks_0_norm1_bias_new_add_2_ = layer_norm_grad_9_reducesum_2_ + blocks_0_norm1_bias_new_mul_2_;
    const float exp_avg_blocks_0_norm1_bias_ = exp_avg_blocks_0_norm1_bias[i];
    const float blocks_0_norm1_bias_new_sub_2_ = blocks_0_norm1_bias_new_add_2_ - exp_avg_blocks_0_norm1_bias_;
    const float blocks_0_norm1_bias_new_mul_3_ = 0.1f * blocks_0_norm1_bias_new_sub_2_;
    const float exp_avg_blocks_0_norm1_bias_new_ = exp_avg_blocks_0_norm1_bias_ + blocks_0_norm1_bias_new_mul_3_;
    exp_avg_blocks_0_norm1_bias_new[i] = exp_avg_blocks_0_norm1_bias_new_;
    const float exp_avg_sq_blocks_0_norm1_bias_ = exp_avg_sq_blocks_0_norm1_bias[i];
    const float blocks_0_norm1_bias_new_mul_4_ = 0.999f * exp_avg_sq_blocks_0_norm1_bias_;
    const float blocks_0_norm1_bias_new_mul_5_ = 0.001f * blocks_0_norm1_bias_new_add_2_;
    const float blocks_0_norm1_bias_new_mul_6_ = blocks_0_norm1_bias_new_mul_5_ * blocks_0_norm1_bias_new_add_2_;
    const float exp_avg_sq_blocks_0_norm1_bias_new_ = blocks_0_norm1_bias_new_mul_4_ + blocks_0_norm1_bias_new_mul_6_;
    exp_avg_sq_blocks_0_norm1_bias_new[i] = exp_avg_sq_blocks_0_norm1_bias_new_;
}

// reshape_15  f32 [64, 128]
// positions_weight_new_add_2, of update/positions_weight_new/Add.2  f32 [64, 128]
// exp_avg_positions_weight_new  f32 [64, 128]
// exp_avg_sq_positions_weight_new  f32 [64, 128]
extern "C" __global__ void k161_exp_avg_sq_positions_weight_new(
    const float* __restrict__ add_9,
    const float* __restrict__ positions_weight,
    const float* __restrict__ exp_avg_positions_weight,
    const float* __restrict__ exp_avg_sq_positions_weight,
    float* __restrict__ exp_avg_positions_weight_new,
    float* __restrict__ exp_avg_sq_positions_weight_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 8192) { return; }
    float reshape_15_ = 0.0f;
    for (int k = 0; k < 12; k++) {
        const float add_9_ = add_9[k * 8192 + i];
        reshape_15_ = reshape_15_ + add_9_;
    }
    const float positions_weight_ = positions_weight[i];
    const float positions_weight_new_mul_2_ = 0.0f * positions_weight_;
    const float positions_weight_new_add_2_ = reshape_15_ + positions_weight_new_mul_2_;
    const float exp_avg_positions_weight_ = exp_avg_positions_weight[i];
    const float positions_weight_new_sub_2_ = positions_weight_new_add_2_ - exp_avg_positions_weight_;
    const float positions_weight_new_mul_3_ = 0.1f * positions_weight_new_sub_2_;
    const float exp_avg_positions_weight_new_ = exp_avg_positions_weight_ + positions_weight_new_mul_3_;
    exp_avg_positions_weight_new[i] = exp_avg_positions_weight_new_;
    const float exp_avg_sq_positions_weight_ = exp_avg_sq_positions_weight[i];
    const float positions_weight_new_mul_4_ = 0.999f * exp_avg_sq_positions_weight_;
    const float positions_weight_new_mul_5_ = 0.001f * positions_weight_new_add_2_;
    const float positions_weight_new_mul_6_ = positions_weight_new_mul_5_ * positions_weight_new_add_2_;
    const float exp_avg_sq_positions_weight_new_ = positions_weight_new_mul_4_ + positions_weight_new_mul_6_;
    exp_avg_sq_positions_weight_new[i] = exp_avg_sq_positions_weight_new_;
}

// rank, of d_symbols_weight  i64 [768, 1]
extern "C" __global__ void k162_rank(
    const long long* __restrict__ x,
    long long* __restrict__ rank
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 768) { return; }
    const long long x_ = x[i];
    int before = 0;
    for (int j = 0; j < 768; j++) {
        const long long x__2 = x[j];
        if (x__2 < x_ || false || ((x__2 == x_ || false) && j < i)) { before++; }
    }
    const long long rank_ = (long long)before;
    rank[i] = rank_;
}

// places, of d_symbols_weight  i64 [768, 1]
extern "C" __global__ void k163_places(
    const long long* __restrict__ rank,
    const long long* __restrict__ numbers,
    long long* __restrict__ places
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 768) { return; }
    long long places_ = 0ll;
    for (int k = 0; k < 768; k++) {
        const long long rank_ = rank[k];
        const int place = (int)rank_;
        if ((place == i || place + 768 == i)) {
            const long long numbers_ = numbers[k];
            places_ = numbers_;
        }
    }
    places[i] = places_;
}

// begins, of d_symbols_weight  i64 [66]
extern "C" __global__ void k164_begins(
    const long long* __restrict__ x,
    long long* __restrict__ begins
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 66) { return; }
    int before = 0;
    for (int k = 0; k < 768; k++) {
        const long long x_ = x[k];
        if ((int)x_ < i) { before++; }
    }
    const long long begins_ = (long long)before;
    begins[i] = begins_;
}

// d_symbols_weight  f32 [65, 128]
// symbols_weight_new_add_2, of update/symbols_weight_new/Add.2  f32 [65, 128]
// exp_avg_symbols_weight_new  f32 [65, 128]
// exp_avg_sq_symbols_weight_new  f32 [65, 128]
extern "C" __global__ void k165_exp_avg_sq_symbols_weight_new(
    const long long* __restrict__ begins,
    const long long* __restrict__ places,
    const float* __restrict__ add_9,
    const float* __restrict__ symbols_weight,
    const float* __restrict__ exp_avg_symbols_weight,
    const float* __restrict__ exp_avg_sq_symbols_weight,
    float* __restrict__ exp_avg_symbols_weight_new,
    float* __restrict__ exp_avg_sq_symbols_weight_new
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
        const float add_9_ = add_9[at_3 * 128 + (i % 128)];
        d_symbols_weight_ += add_9_;
    }
    const float symbols_weight_ = symbols_weight[i];
    const float symbols_weight_new_mul_2_ = 0.0f * symbols_weight_;
    const float symbols_weight_new_add_2_ = d_symbols_weight_ + symbols_weight_new_mul_2_;
    const float exp_avg_symbols_weight_ = exp_avg_symbols_weight[i];
    const float symbols_weight_new_sub_2_ = symbols_weight_new_add_2_ - exp_avg_symbols_weight_;
    const float symbols_weight_new_mul_3_ = 0.1f * symbols_weight_new_sub_2_;
    const float exp_avg_symbols_weight_new_ = exp_avg_symbols_weight_ + symbols_weight_new_mul_3_;
    exp_avg_symbols_weight_new[i] = exp_avg_symbols_weight_new_;
    const float exp_avg_sq_symbols_weight_ = exp_avg_sq_symbols_weight[i];
    const float symbols_weight_new_mul_4_ = 0.999f * exp_avg_sq_symbols_weight_;
    const float symbols_weight_new_mul_5_ = 0.001f * symbols_weight_new_add_2_;
    const float symbols_weight_new_mul_6_ = symbols_weight_new_mul_5_ * symbols_weight_new_add_2_;
    const float exp_avg_sq_symbols_weight_new_ = symbols_weight_new_mul_4_ + symbols_weight_new_mul_6_;
    exp_avg_sq_symbols_weight_new[i] = exp_avg_sq_symbols_weight_new_;
}

// symbols_weight_new_add, of update/symbols_weight_new/Add  i64 []
// symbols_weight_new_pow_2, of update/symbols_weight_new/Pow.2  f64 []
// symbols_weight_new_div, of update/symbols_weight_new/Div  f64 []
// step_symbols_weight_new  i64 []
// positions_weight_new_add, of update/positions_weight_new/Add  i64 []
// positions_weight_new_pow_2, of update/positions_weight_new/Pow.2  f64 []
// positions_weight_new_div, of update/positions_weight_new/Div  f64 []
// step_positions_weight_new  i64 []
// blocks_0_norm1_weight_new_add, of update/blocks_0_norm1_weight_new/Add  i64 []
// blocks_0_norm1_weight_new_pow_2, of update/blocks_0_norm1_weight_new/Pow.2  f64 []
// blocks_0_norm1_weight_new_div, of update/blocks_0_norm1_weight_new/Div  f64 []
// step_blocks_0_norm1_weight_new  i64 []
// blocks_0_norm1_bias_new_add, of update/blocks_0_norm1_bias_new/Add  i64 []
// blocks_0_norm1_bias_new_pow_2, of update/blocks_0_norm1_bias_new/Pow.2  f64 []
// blocks_0_norm1_bias_new_div, of update/blocks_0_norm1_bias_new/Div  f64 []
// step_blocks_0_norm1_bias_new  i64 []
extern "C" __global__ void k166_step_blocks_0_norm1_bias_new(
    const long long* __restrict__ step_symbols_weight,
    const double* __restrict__ lr,
    const long long* __restrict__ step_positions_weight,
    const long long* __restrict__ step_blocks_0_norm1_weight,
    const long long* __restrict__ step_blocks_0_norm1_bias,
    double* __restrict__ symbols_weight_new_pow_2,
    double* __restrict__ symbols_weight_new_div,
    long long* __restrict__ step_symbols_weight_new,
    double* __restrict__ positions_weight_new_pow_2,
    double* __restrict__ positions_weight_new_div,
    long long* __restrict__ step_positions_weight_new,
    double* __restrict__ blocks_0_norm1_weight_new_pow_2,
    double* __restrict__ blocks_0_norm1_weight_new_div,
    long long* __restrict__ step_blocks_0_norm1_weight_new,
    double* __restrict__ blocks_0_norm1_bias_new_pow_2,
    double* __restrict__ blocks_0_norm1_bias_new_div,
    long long* __restrict__ step_blocks_0_norm1_bias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 1) { return; }
    const long long step_symbols_weight_ = step_symbols_weight[0];
    const long long symbols_weight_new_add_ = step_symbols_weight_ + 1ll;
    const double symbols_weight_new_cast_ = (double)symbols_weight_new_add_;
    const double symbols_weight_new_pow_ = pow(0.999, symbols_weight_new_cast_);
    const double symbols_weight_new_sub_3_ = 1.0 - symbols_weight_new_pow_;
    const double symbols_weight_new_pow_2_ = pow(symbols_weight_new_sub_3_, (-0.5));
    symbols_weight_new_pow_2[i] = symbols_weight_new_pow_2_;
    const double lr_ = lr[0];
    const double symbols_weight_new_cast_4_ = (double)symbols_weight_new_add_;
    const double symbols_weight_new_pow_3_ = pow(0.9, symbols_weight_new_cast_4_);
    const double symbols_weight_new_sub_4_ = 1.0 - symbols_weight_new_pow_3_;
    const double symbols_weight_new_div_ = lr_ / symbols_weight_new_sub_4_;
    symbols_weight_new_div[i] = symbols_weight_new_div_;
    const long long step_symbols_weight_new_ = step_symbols_weight_ + 1ll;
    step_symbols_weight_new[i] = step_symbols_weight_new_;
    const long long step_positions_weight_ = step_positions_weight[0];
    const long long positions_weight_new_add_ = step_positions_weight_ + 1ll;
    const double positions_weight_new_cast_ = (double)positions_weight_new_add_;
    const double positions_weight_new_pow_ = pow(0.999, positions_weight_new_cast_);
    const double positions_weight_new_sub_3_ = 1.0 - positions_weight_new_pow_;
    const double positions_weight_new_pow_2_ = pow(positions_weight_new_sub_3_, (-0.5));
    positions_weight_new_pow_2[i] = positions_weight_new_pow_2_;
    const double positions_weight_new_cast_4_ = (double)positions_weight_new_add_;
    const double positions_weight_new_pow_3_ = pow(0.9, positions_weight_new_cast_4_);
    const double positions_weight_new_sub_4_ = 1.0 - positions_weight_new_pow_3_;
    const double positions_weight_new_div_ = lr_ / positions_weight_new_sub_4_;
    positions_weight_new_div[i] = positions_weight_new_div_;
    const long long step_positions_weight_new_ = step_positions_weight_ + 1ll;
    step_positions_weight_new[i] = step_positions_weight_new_;
    const long long step_blocks_0_norm1_weight_ = step_blocks_0_norm1_weight[0];
    const long long blocks_0_norm1_weight_new_add_ = step_blocks_0_norm1_weight_ + 1ll;
    const double blocks_0_norm1_weight_new_cast_ = (double)blocks_0_norm1_weight_new_add_;
    const double blocks_0_norm1_weight_new_pow_ = pow(0.999, blocks_0_norm1_weight_new_cast_);
    const double blocks_0_norm1_weight_new_sub_3_ = 1.0 - blocks_0_norm1_weight_new_pow_;
    const double blocks_0_norm1_weight_new_pow_2_ = pow(blocks_0_norm1_weight_new_sub_3_, (-0.5));
    blocks_0_norm1_weight_new_pow_2[i] = blocks_0_norm1_weight_new_pow_2_;
    const double blocks_0_norm1_weight_new_cast_4_ = (double)blocks_0_norm1_weight_new_add_;
    const double blocks_0_norm1_weight_new_pow_3_ = pow(0.9, blocks_0_norm1_weight_new_cast_4_);
    const double blocks_0_norm1_weight_new_sub_4_ = 1.0 - blocks_0_norm1_weight_new_pow_3_;
    const double blocks_0_norm1_weight_new_div_ = lr_ / blocks_0_norm1_weight_new_sub_4_;
    blocks_0_norm1_weight_new_div[i] = blocks_0_norm1_weight_new_div_;
    const long long step_blocks_0_norm1_weight_new_ = step_blocks_0_norm1_weight_ + 1ll;
    step_blocks_0_norm1_weight_new[i] = step_blocks_0_norm1_weight_new_;
    const long long step_blocks_0_norm1_bias_ = step_blocks_0_norm1_bias[0];
    const long long blocks_0_norm1_bias_new_add_ = step_blocks_0_norm1_bias_ + 1ll;
    const double blocks_0_norm1_bias_new_cast_ = (double)blocks_0_norm1_bias_new_add_;
    const double blocks_0_norm1_bias_new_pow_ = pow(0.999, blocks_0_norm1_bias_new_cast_);
    const double blocks_0_norm1_bias_new_sub_3_ = 1.0 - blocks_0_norm1_bias_new_pow_;
    const double blocks_0_norm1_bias_new_pow_2_ = pow(blocks_0_norm1_bias_new_sub_3_, (-0.5));
    blocks_0_norm1_bias_new_pow_2[i] = blocks_0_norm1_bias_new_pow_2_;
    const double blocks_0_norm1_bias_new_cast_4_ = (double)blocks_0_norm1_bias_new_add_;
    const double blocks_0_norm1_bias_new_pow_3_ = pow(0.9, blocks_0_norm1_bias_new_cast_4_);
    const double blocks_0_norm1_bias_new_sub_4_ = 1.0 - blocks_0_norm1_bias_new_pow_3_;
    const double blocks_0_norm1_bias_new_div_ = lr_ / blocks_0_norm1_bias_new_sub_4_;
    blocks_0_norm1_bias_new_div[i] = blocks_0_norm1_bias_new_div_;
    const long long step_blocks_0_norm1_bias_new_ = step_blocks_0_norm1_bias_ + 1ll;
    step_blocks_0_norm1_bias_new[i] = step_blocks_0_norm1_bias_new_;
}

// symbols_weight_new  f32 [65, 128]
extern "C" __global__ void k167_symbols_weight_new(
    const float* __restrict__ symbols_weight,
    const double* __restrict__ lr,
    const double* __restrict__ symbols_weight_new_div,
    const float* __restrict__ exp_avg_symbols_weight_new,
    const float* __restrict__ exp_avg_sq_symbols_weight_new,
    const double* __restrict__ symbols_weight_new_pow_2,
    float* __restrict__ symbols_weight_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 8320) { return; }
    const float symbols_weight_ = symbols_weight[i];
    const double lr_ = lr[0];
    const double symbols_weight_new_mul_ = lr_ * 0.01;
    const double symbols_weight_new_sub_ = 1.0 - symbols_weight_new_mul_;
    const float symbols_weight_new_cast_3_ = (float)symbols_weight_new_sub_;
    const float symbols_weight_new_mul_8_ = symbols_weight_ * symbols_weight_new_cast_3_;
    const double symbols_weight_new_div_ = symbols_weight_new_div[0];
    const float symbols_weight_new_cast_5_ = (float)symbols_weight_new_div_;
    const float exp_avg_symbols_weight_new_ = exp_avg_symbols_weight_new[i];
    const float symbols_weight_new_mul_9_ = symbols_weight_new_cast_5_ * exp_avg_symbols_weight_new_;
    const float exp_avg_sq_symbols_weight_new_ = exp_avg_sq_symbols_weight_new[i];
    const float symbols_weight_new_sqrt_ = sqrtf(exp_avg_sq_symbols_weight_new_);
    const double symbols_weight_new_pow_2_ = symbols_weight_new_pow_2[0];
    const float symbols_weight_new_cast_2_ = (float)symbols_weight_new_pow_2_;
    const float symbols_weight_new_mul_7_ = symbols_weight_new_sqrt_ * symbols_weight_new_cast_2_;
    const float symbols_weight_new_add_5_ = symbols_weight_new_mul_7_ + 1e-8f;
    const float symbols_weight_new_div_2_ = symbols_weight_new_mul_9_ / symbols_weight_new_add_5_;
    const float symbols_weight_new_ = symbols_weight_new_mul_8_ - symbols_weight_new_div_2_;
    symbols_weight_new[i] = symbols_weight_new_;
}

// positions_weight_new  f32 [64, 128]
extern "C" __global__ void k168_positions_weight_new(
    const float* __restrict__ positions_weight,
    const double* __restrict__ lr,
    const double* __restrict__ positions_weight_new_div,
    const float* __restrict__ exp_avg_positions_weight_new,
    const float* __restrict__ exp_avg_sq_positions_weight_new,
    const double* __restrict__ positions_weight_new_pow_2,
    float* __restrict__ positions_weight_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 8192) { return; }
    const float positions_weight_ = positions_weight[i];
    const double lr_ = lr[0];
    const double positions_weight_new_mul_ = lr_ * 0.01;
    const double positions_weight_new_sub_ = 1.0 - positions_weight_new_mul_;
    const float positions_weight_new_cast_3_ = (float)positions_weight_new_sub_;
    const float positions_weight_new_mul_8_ = positions_weight_ * positions_weight_new_cast_3_;
    const double positions_weight_new_div_ = positions_weight_new_div[0];
    const float positions_weight_new_cast_5_ = (float)positions_weight_new_div_;
    const float exp_avg_positions_weight_new_ = exp_avg_positions_weight_new[i];
    const float positions_weight_new_mul_9_ = positions_weight_new_cast_5_ * exp_avg_positions_weight_new_;
    const float exp_avg_sq_positions_weight_new_ = exp_avg_sq_positions_weight_new[i];
    const float positions_weight_new_sqrt_ = sqrtf(exp_avg_sq_positions_weight_new_);
    const double positions_weight_new_pow_2_ = positions_weight_new_pow_2[0];
    const float positions_weight_new_cast_2_ = (float)positions_weight_new_pow_2_;
    const float positions_weight_new_mul_7_ = positions_weight_new_sqrt_ * positions_weight_new_cast_2_;
    const float positions_weight_new_add_5_ = positions_weight_new_mul_7_ + 1e-8f;
    const float positions_weight_new_div_2_ = positions_weight_new_mul_9_ / positions_weight_new_add_5_;
    const float positions_weight_new_ = positions_weight_new_mul_8_ - positions_weight_new_div_2_;
    positions_weight_new[i] = positions_weight_new_;
}

// blocks_0_norm1_weight_new  f32 [128]
// blocks_0_norm1_bias_new  f32 [128]
extern "C" __global__ void k169_blocks_0_norm1_bias_new(
    const float* __restrict__ blocks_0_norm1_weight,
    const double* __restrict__ lr,
    const double* __restrict__ blocks_0_norm1_weight_new_div,
    const float* __restrict__ exp_avg_blocks_0_norm1_weight_new,
    const float* __restrict__ exp_avg_sq_blocks_0_norm1_weight_new,
    const double* __restrict__ blocks_0_norm1_weight_new_pow_2,
    const float* __restrict__ blocks_0_norm1_bias,
    const double* __restrict__ blocks_0_norm1_bias_new_div,
    const float* __restrict__ exp_avg_blocks_0_norm1_bias_new,
    const float* __restrict__ exp_avg_sq_blocks_0_norm1_bias_new,
    const double* __restrict__ blocks_0_norm1_bias_new_pow_2,
    float* __restrict__ blocks_0_norm1_weight_new,
    float* __restrict__ blocks_0_norm1_bias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 128) { return; }
    const float blocks_0_norm1_weight_ = blocks_0_norm1_weight[i];
    const double lr_ = lr[0];
    const double blocks_0_norm1_weight_new_mul_ = lr_ * 0.01;
    const double blocks_0_norm1_weight_new_sub_ = 1.0 - blocks_0_norm1_weight_new_mul_;
    const float blocks_0_norm1_weight_new_cast_3_ = (float)blocks_0_norm1_weight_new_sub_;
    const float blocks_0_norm1_weight_new_mul_8_ = blocks_0_norm1_weight_ * blocks_0_norm1_weight_new_cast_3_;
    const double blocks_0_norm1_weight_new_div_ = blocks_0_norm1_weight_new_div[0];
    const float blocks_0_norm1_weight_new_cast_5_ = (float)blocks_0_norm1_weight_new_div_;
    const float exp_avg_blocks_0_norm1_weight_new_ = exp_avg_blocks_0_norm1_weight_new[i];
    const float blocks_0_norm1_weight_new_mul_9_ = blocks_0_norm1_weight_new_cast_5_ * exp_avg_blocks_0_norm1_weight_new_;
    const float exp_avg_sq_blocks_0_norm1_weight_new_ = exp_avg_sq_blocks_0_norm1_weight_new[i];
    const float blocks_0_norm1_weight_new_sqrt_ = sqrtf(exp_avg_sq_blocks_0_norm1_weight_new_);
    const double blocks_0_norm1_weight_new_pow_2_ = blocks_0_norm1_weight_new_pow_2[0];
    const float blocks_0_norm1_weight_new_cast_2_ = (float)blocks_0_norm1_weight_new_pow_2_;
    const float blocks_0_norm1_weight_new_mul_7_ = blocks_0_norm1_weight_new_sqrt_ * blocks_0_norm1_weight_new_cast_2_;
    const float blocks_0_norm1_weight_new_add_5_ = blocks_0_norm1_weight_new_mul_7_ + 1e-8f;
    const float blocks_0_norm1_weight_new_div_2_ = blocks_0_norm1_weight_new_mul_9_ / blocks_0_norm1_weight_new_add_5_;
    const float blocks_0_norm1_weight_new_ = blocks_0_norm1_weight_new_mul_8_ - blocks_0_norm1_weight_new_div_2_;
    blocks_0_norm1_weight_new[i] = blocks_0_norm1_weight_new_;
    const float blocks_0_norm1_bias_ = blocks_0_norm1_bias[i];
    const double blocks_0_norm1_bias_new_mul_ = lr_ * 0.01;
    const double blocks_0_norm1_bias_new_sub_ = 1.0 - blocks_0_norm1_bias_new_mul_;
    const float blocks_0_norm1_bias_new_cast_3_ = (float)blocks_0_norm1_bias_new_sub_;
    const float blocks_0_norm1_bias_new_mul_8_ = blocks_0_norm1_bias_ * blocks_0_norm1_bias_new_cast_3_;
    const double blocks_0_norm1_bias_new_div_ = blocks_0_norm1_bias_new_div[0];
    const float blocks_0_norm1_bias_new_cast_5_ = (float)blocks_0_norm1_bias_new_div_;
    const float exp_avg_blocks_0_norm1_bias_new_ = exp_avg_blocks_0_norm1_bias_new[i];
    const float blocks_0_norm1_bias_new_mul_9_ = blocks_0_norm1_bias_new_cast_5_ * exp_avg_blocks_0_norm1_bias_new_;
    const float exp_avg_sq_blocks_0_norm1_bias_new_ = exp_avg_sq_blocks_0_norm1_bias_new[i];
    const float blocks_0_norm1_bias_new_sqrt_ = sqrtf(exp_avg_sq_blocks_0_norm1_bias_new_);
    const double blocks_0_norm1_bias_new_pow_2_ = blocks_0_norm1_bias_new_pow_2[0];
    const float blocks_0_norm1_bias_new_cast_2_ = (float)blocks_0_norm1_bias_new_pow_2_;
    const float blocks_0_norm1_bias_new_mul_7_ = blocks_0_norm1_bias_new_sqrt_ * blocks_0_norm1_bias_new_cast_2_;
    const float blocks_0_norm1_bias_new_add_5_ = blocks_0_norm1_bias_new_mul_7_ + 1e-8f;
    const float blocks_0_norm1_bias_new_div_2_ = blocks_0_norm1_bias_new_mul_9_ / blocks_0_norm1_bias_new_add_5_;
    const float blocks_0_norm1_bias_new_ = blocks_0_norm1_bias_new_mul_8_ - blocks_0_norm1_bias_new_div_2_;
    blocks_0_norm1_bias_new[i] = blocks_0_norm1_bias_new_;
}

// blocks_0_attention_qkv_weight_new  f32 [384, 128]
extern "C" __global__ void k171_blocks_0_attention_qkv_weight_new(
    const float* __restrict__ blocks_0_attention_qkv_weight,
    const double* __restrict__ lr,
    const double* __restrict__ blocks_0_attention_qkv_weight_new_div,
    const float* __restrict__ exp_avg_blocks_0_attention_qkv_weight_new,
    const float* __restrict__ exp_avg_sq_blocks_0_attention_qkv_weight_new,
    const double* __restrict__ blocks_0_attention_qkv_weight_new_pow_2,
    float* __restrict__ blocks_0_attention_qkv_weight_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 49152) { return; }
    const float blocks_0_attention_qkv_weight_ = blocks_0_attention_qkv_weight[i];
    const double lr_ = lr[0];
    const double blocks_0_attention_qkv_weight_new_mul_ = lr_ * 0.01;
    const double blocks_0_attention_qkv_weight_new_sub_ = 1.0 - blocks_0_attention_qkv_weight_new_mul_;
    const float blocks_0_attention_qkv_weight_new_cast_3_ = (float)blocks_0_attention_qkv_weight_new_sub_;
    const float blocks_0_attention_qkv_weight_new_mul_8_ = blocks_0_attention_qkv_weight_ * blocks_0_attention_qkv_weight_new_cast_3_;
    const double blocks_0_attention_qkv_weight_new_div_ = blocks_0_attention_qkv_weight_new_div[0];
    const float blocks_0_attention_qkv_weight_new_cast_5_ = (float)blocks_0_attention_qkv_weight_new_div_;
    const float exp_avg_blocks_0_attention_qkv_weight_new_ = exp_avg_blocks_0_attention_qkv_weight_new[i];
    const float blocks_0_attention_qkv_weight_new_mul_9_ = blocks_0_attention_qkv_weight_new_cast_5_ * exp_avg_blocks_0_attention_qkv_weight_new_;
    const float exp_avg_sq_blocks_0_attention_qkv_weight_new_ = exp_avg_sq_blocks_0_attention_qkv_weight_new[i];
    const float blocks_0_attention_qkv_weight_new_sqrt_ = sqrtf(exp_avg_sq_blocks_0_attention_qkv_weight_new_);
    const double blocks_0_attention_qkv_weight_new_pow_2_ = blocks_0_attention_qkv_weight_new_pow_2[0];
    const float blocks_0_attention_qkv_weight_new_cast_2_ = (float)blocks_0_attention_qkv_weight_new_pow_2_;
    const float blocks_0_attention_qkv_weight_new_mul_7_ = blocks_0_attention_qkv_weight_new_sqrt_ * blocks_0_attention_qkv_weight_new_cast_2_;
    const float blocks_0_attention_qkv_weight_new_add_5_ = blocks_0_attention_qkv_weight_new_mul_7_ + 1e-8f;
    const float blocks_0_attention_qkv_weight_new_div_2_ = blocks_0_attention_qkv_weight_new_mul_9_ / blocks_0_attention_qkv_weight_new_add_5_;
    const float blocks_0_attention_qkv_weight_new_ = blocks_0_attention_qkv_weight_new_mul_8_ - blocks_0_attention_qkv_weight_new_div_2_;
    blocks_0_attention_qkv_weight_new[i] = blocks_0_attention_qkv_weight_new_;
}

// blocks_0_attention_qkv_bias_new  f32 [384]
extern "C" __global__ void k172_blocks_0_attention_qkv_bias_new(
    const float* __restrict__ blocks_0_attention_qkv_bias,
    const double* __restrict__ lr,
    const double* __restrict__ blocks_0_attention_qkv_bias_new_div,
    const float* __restrict__ exp_avg_blocks_0_attention_qkv_bias_new,
    const float* __restrict__ exp_avg_sq_blocks_0_attention_qkv_bias_new,
    const double* __restrict__ blocks_0_attention_qkv_bias_new_pow_2,
    float* __restrict__ blocks_0_attention_qkv_bias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 384) { return; }
    const float blocks_0_attention_qkv_bias_ = blocks_0_attention_qkv_bias[i];
    const double lr_ = lr[0];
    const double blocks_0_attention_qkv_bias_new_mul_ = lr_ * 0.01;
    const double blocks_0_attention_qkv_bias_new_sub_ = 1.0 - blocks_0_attention_qkv_bias_new_mul_;
    const float blocks_0_attention_qkv_bias_new_cast_3_ = (float)blocks_0_attention_qkv_bias_new_sub_;
    const float blocks_0_attention_qkv_bias_new_mul_8_ = blocks_0_attention_qkv_bias_ * blocks_0_attention_qkv_bias_new_cast_3_;
    const double blocks_0_attention_qkv_bias_new_div_ = blocks_0_attention_qkv_bias_new_div[0];
    const float blocks_0_attention_qkv_bias_new_cast_5_ = (float)blocks_0_attention_qkv_bias_new_div_;
    const float exp_avg_blocks_0_attention_qkv_bias_new_ = exp_avg_blocks_0_attention_qkv_bias_new[i];
    const float blocks_0_attention_qkv_bias_new_mul_9_ = blocks_0_attention_qkv_bias_new_cast_5_ * exp_avg_blocks_0_attention_qkv_bias_new_;
    const float exp_avg_sq_blocks_0_attention_qkv_bias_new_ = exp_avg_sq_blocks_0_attention_qkv_bias_new[i];
    const float blocks_0_attention_qkv_bias_new_sqrt_ = sqrtf(exp_avg_sq_blocks_0_attention_qkv_bias_new_);
    const double blocks_0_attention_qkv_bias_new_pow_2_ = blocks_0_attention_qkv_bias_new_pow_2[0];
    const float blocks_0_attention_qkv_bias_new_cast_2_ = (float)blocks_0_attention_qkv_bias_new_pow_2_;
    const float blocks_0_attention_qkv_bias_new_mul_7_ = blocks_0_attention_qkv_bias_new_sqrt_ * blocks_0_attention_qkv_bias_new_cast_2_;
    const float blocks_0_attention_qkv_bias_new_add_5_ = blocks_0_attention_qkv_bias_new_mul_7_ + 1e-8f;
    const float blocks_0_attention_qkv_bias_new_div_2_ = blocks_0_attention_qkv_bias_new_mul_9_ / blocks_0_attention_qkv_bias_new_add_5_;
    const float blocks_0_attention_qkv_bias_new_ = blocks_0_attention_qkv_bias_new_mul_8_ - blocks_0_attention_qkv_bias_new_div_2_;
    blocks_0_attention_qkv_bias_new[i] = blocks_0_attention_qkv_bias_new_;
}

// blocks_0_attention_out_weight_new  f32 [128, 128]
extern "C" __global__ void k173_blocks_0_attention_out_weight_new(
    const float* __restrict__ blocks_0_attention_out_weight,
    const double* __restrict__ lr,
    const double* __restrict__ blocks_0_attention_out_weight_new_div,
    const float* __restrict__ exp_avg_blocks_0_attention_out_weight_new,
    const float* __restrict__ exp_avg_sq_blocks_0_attention_out_weight_new,
    const double* __restrict__ blocks_0_attention_out_weight_new_pow_2,
    float* __restrict__ blocks_0_attention_out_weight_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 16384) { return; }
    const float blocks_0_attention_out_weight_ = blocks_0_attention_out_weight[i];
    const double lr_ = lr[0];
    const double blocks_0_attention_out_weight_new_mul_ = lr_ * 0.01;
    const double blocks_0_attention_out_weight_new_sub_ = 1.0 - blocks_0_attention_out_weight_new_mul_;
    const float blocks_0_attention_out_weight_new_cast_3_ = (float)blocks_0_attention_out_weight_new_sub_;
    const float blocks_0_attention_out_weight_new_mul_8_ = blocks_0_attention_out_weight_ * blocks_0_attention_out_weight_new_cast_3_;
    const double blocks_0_attention_out_weight_new_div_ = blocks_0_attention_out_weight_new_div[0];
    const float blocks_0_attention_out_weight_new_cast_5_ = (float)blocks_0_attention_out_weight_new_div_;
    const float exp_avg_blocks_0_attention_out_weight_new_ = exp_avg_blocks_0_attention_out_weight_new[i];
    const float blocks_0_attention_out_weight_new_mul_9_ = blocks_0_attention_out_weight_new_cast_5_ * exp_avg_blocks_0_attention_out_weight_new_;
    const float exp_avg_sq_blocks_0_attention_out_weight_new_ = exp_avg_sq_blocks_0_attention_out_weight_new[i];
    const float blocks_0_attention_out_weight_new_sqrt_ = sqrtf(exp_avg_sq_blocks_0_attention_out_weight_new_);
    const double blocks_0_attention_out_weight_new_pow_2_ = blocks_0_attention_out_weight_new_pow_2[0];
    const float blocks_0_attention_out_weight_new_cast_2_ = (float)blocks_0_attention_out_weight_new_pow_2_;
    const float blocks_0_attention_out_weight_new_mul_7_ = blocks_0_attention_out_weight_new_sqrt_ * blocks_0_attention_out_weight_new_cast_2_;
    const float blocks_0_attention_out_weight_new_add_5_ = blocks_0_attention_out_weight_new_mul_7_ + 1e-8f;
    const float blocks_0_attention_out_weight_new_div_2_ = blocks_0_attention_out_weight_new_mul_9_ / blocks_0_attention_out_weight_new_add_5_;
    const float blocks_0_attention_out_weight_new_ = blocks_0_attention_out_weight_new_mul_8_ - blocks_0_attention_out_weight_new_div_2_;
    blocks_0_attention_out_weight_new[i] = blocks_0_attention_out_weight_new_;
}

// blocks_0_attention_out_bias_new  f32 [128]
extern "C" __global__ void k174_blocks_0_attention_out_bias_new(
    const float* __restrict__ blocks_0_attention_out_bias,
    const double* __restrict__ lr,
    const double* __restrict__ blocks_0_attention_out_bias_new_div,
    const float* __restrict__ exp_avg_blocks_0_attention_out_bias_new,
    const float* __restrict__ exp_avg_sq_blocks_0_attention_out_bias_new,
    const double* __restrict__ blocks_0_attention_out_bias_new_pow_2,
    float* __restrict__ blocks_0_attention_out_bias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 128) { return; }
    const float blocks_0_attention_out_bias_ = blocks_0_attention_out_bias[i];
    const double lr_ = lr[0];
    const double blocks_0_attention_out_bias_new_mul_ = lr_ * 0.01;
    const double blocks_0_attention_out_bias_new_sub_ = 1.0 - blocks_0_attention_out_bias_new_mul_;
    const float blocks_0_attention_out_bias_new_cast_3_ = (float)blocks_0_attention_out_bias_new_sub_;
    const float blocks_0_attention_out_bias_new_mul_8_ = blocks_0_attention_out_bias_ * blocks_0_attention_out_bias_new_cast_3_;
    const double blocks_0_attention_out_bias_new_div_ = blocks_0_attention_out_bias_new_div[0];
    const float blocks_0_attention_out_bias_new_cast_5_ = (float)blocks_0_attention_out_bias_new_div_;
    const float exp_avg_blocks_0_attention_out_bias_new_ = exp_avg_blocks_0_attention_out_bias_new[i];
    const float blocks_0_attention_out_bias_new_mul_9_ = blocks_0_attention_out_bias_new_cast_5_ * exp_avg_blocks_0_attention_out_bias_new_;
    const float exp_avg_sq_blocks_0_attention_out_bias_new_ = exp_avg_sq_blocks_0_attention_out_bias_new[i];
    const float blocks_0_attention_out_bias_new_sqrt_ = sqrtf(exp_avg_sq_blocks_0_attention_out_bias_new_);
    const double blocks_0_attention_out_bias_new_pow_2_ = blocks_0_attention_out_bias_new_pow_2[0];
    const float blocks_0_attention_out_bias_new_cast_2_ = (float)blocks_0_attention_out_bias_new_pow_2_;
    const float blocks_0_attention_out_bias_new_mul_7_ = blocks_0_attention_out_bias_new_sqrt_ * blocks_0_attention_out_bias_new_cast_2_;
    const float blocks_0_attention_out_bias_new_add_5_ = blocks_0_attention_out_bias_new_mul_7_ + 1e-8f;
    const float blocks_0_attention_out_bias_new_div_2_ = blocks_0_attention_out_bias_new_mul_9_ / blocks_0_attention_out_bias_new_add_5_;
    const float blocks_0_attention_out_bias_new_ = blocks_0_attention_out_bias_new_mul_8_ - blocks_0_attention_out_bias_new_div_2_;
    blocks_0_attention_out_bias_new[i] = blocks_0_attention_out_bias_new_;
}

// blocks_0_expand_weight_new  f32 [512, 128]
extern "C" __global__ void k177_blocks_0_expand_weight_new(
    const float* __restrict__ blocks_0_expand_weight,
    const double* __restrict__ lr,
    const double* __restrict__ blocks_0_expand_weight_new_div,
    const float* __restrict__ exp_avg_blocks_0_expand_weight_new,
    const float* __restrict__ exp_avg_sq_blocks_0_expand_weight_new,
    const double* __restrict__ blocks_0_expand_weight_new_pow_2,
    float* __restrict__ blocks_0_expand_weight_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 65536) { return; }
    const float blocks_0_expand_weight_ = blocks_0_expand_weight[i];
    const double lr_ = lr[0];
    const double blocks_0_expand_weight_new_mul_ = lr_ * 0.01;
    const double blocks_0_expand_weight_new_sub_ = 1.0 - blocks_0_expand_weight_new_mul_;
    const float blocks_0_expand_weight_new_cast_3_ = (float)blocks_0_expand_weight_new_sub_;
    const float blocks_0_expand_weight_new_mul_8_ = blocks_0_expand_weight_ * blocks_0_expand_weight_new_cast_3_;
    const double blocks_0_expand_weight_new_div_ = blocks_0_expand_weight_new_div[0];
    const float blocks_0_expand_weight_new_cast_5_ = (float)blocks_0_expand_weight_new_div_;
    const float exp_avg_blocks_0_expand_weight_new_ = exp_avg_blocks_0_expand_weight_new[i];
    const float blocks_0_expand_weight_new_mul_9_ = blocks_0_expand_weight_new_cast_5_ * exp_avg_blocks_0_expand_weight_new_;
    const float exp_avg_sq_blocks_0_expand_weight_new_ = exp_avg_sq_blocks_0_expand_weight_new[i];
    const float blocks_0_expand_weight_new_sqrt_ = sqrtf(exp_avg_sq_blocks_0_expand_weight_new_);
    const double blocks_0_expand_weight_new_pow_2_ = blocks_0_expand_weight_new_pow_2[0];
    const float blocks_0_expand_weight_new_cast_2_ = (float)blocks_0_expand_weight_new_pow_2_;
    const float blocks_0_expand_weight_new_mul_7_ = blocks_0_expand_weight_new_sqrt_ * blocks_0_expand_weight_new_cast_2_;
    const float blocks_0_expand_weight_new_add_5_ = blocks_0_expand_weight_new_mul_7_ + 1e-8f;
    const float blocks_0_expand_weight_new_div_2_ = blocks_0_expand_weight_new_mul_9_ / blocks_0_expand_weight_new_add_5_;
    const float blocks_0_expand_weight_new_ = blocks_0_expand_weight_new_mul_8_ - blocks_0_expand_weight_new_div_2_;
    blocks_0_expand_weight_new[i] = blocks_0_expand_weight_new_;
}

// blocks_0_expand_bias_new  f32 [512]
extern "C" __global__ void k178_blocks_0_expand_bias_new(
    const float* __restrict__ blocks_0_expand_bias,
    const double* __restrict__ lr,
    const double* __restrict__ blocks_0_expand_bias_new_div,
    const float* __restrict__ exp_avg_blocks_0_expand_bias_new,
    const float* __restrict__ exp_avg_sq_blocks_0_expand_bias_new,
    const double* __restrict__ blocks_0_expand_bias_new_pow_2,
    float* __restrict__ blocks_0_expand_bias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 512) { return; }
    const float blocks_0_expand_bias_ = blocks_0_expand_bias[i];
    const double lr_ = lr[0];
    const double blocks_0_expand_bias_new_mul_ = lr_ * 0.01;
    const double blocks_0_expand_bias_new_sub_ = 1.0 - blocks_0_expand_bias_new_mul_;
    const float blocks_0_expand_bias_new_cast_3_ = (float)blocks_0_expand_bias_new_sub_;
    const float blocks_0_expand_bias_new_mul_8_ = blocks_0_expand_bias_ * blocks_0_expand_bias_new_cast_3_;
    const double blocks_0_expand_bias_new_div_ = blocks_0_expand_bias_new_div[0];
    const float blocks_0_expand_bias_new_cast_5_ = (float)blocks_0_expand_bias_new_div_;
    const float exp_avg_blocks_0_expand_bias_new_ = exp_avg_blocks_0_expand_bias_new[i];
    const float blocks_0_expand_bias_new_mul_9_ = blocks_0_expand_bias_new_cast_5_ * exp_avg_blocks_0_expand_bias_new_;
    const float exp_avg_sq_blocks_0_expand_bias_new_ = exp_avg_sq_blocks_0_expand_bias_new[i];
    const float blocks_0_expand_bias_new_sqrt_ = sqrtf(exp_avg_sq_blocks_0_expand_bias_new_);
    const double blocks_0_expand_bias_new_pow_2_ = blocks_0_expand_bias_new_pow_2[0];
    const float blocks_0_expand_bias_new_cast_2_ = (float)blocks_0_expand_bias_new_pow_2_;
    const float blocks_0_expand_bias_new_mul_7_ = blocks_0_expand_bias_new_sqrt_ * blocks_0_expand_bias_new_cast_2_;
    const float blocks_0_expand_bias_new_add_5_ = blocks_0_expand_bias_new_mul_7_ + 1e-8f;
    const float blocks_0_expand_bias_new_div_2_ = blocks_0_expand_bias_new_mul_9_ / blocks_0_expand_bias_new_add_5_;
    const float blocks_0_expand_bias_new_ = blocks_0_expand_bias_new_mul_8_ - blocks_0_expand_bias_new_div_2_;
    blocks_0_expand_bias_new[i] = blocks_0_expand_bias_new_;
}

// blocks_0_project_bias_new  f32 [128]
// blocks_1_norm1_weight_new  f32 [128]
// blocks_1_norm1_bias_new  f32 [128]
extern "C" __global__ void k181_blocks_1_norm1_bias_new(
    const float* __restrict__ blocks_0_project_bias,
    const double* __restrict__ lr,
    const double* __restrict__ blocks_0_project_bias_new_div,
    const float* __restrict__ exp_avg_blocks_0_project_bias_new,
    const float* __restrict__ exp_avg_sq_blocks_0_project_bias_new,
    const double* __restrict__ blocks_0_project_bias_new_pow_2,
    const float* __restrict__ blocks_1_norm1_weight,
    const double* __restrict__ blocks_1_norm1_weight_new_div,
    const float* __restrict__ exp_avg_blocks_1_norm1_weight_new,
    const float* __restrict__ exp_avg_sq_blocks_1_norm1_weight_new,
    const double* __restrict__ blocks_1_norm1_weight_new_pow_2,
    const float* __restrict__ blocks_1_norm1_bias,
    const double* __restrict__ blocks_1_norm1_bias_new_div,
    const float* __restrict__ exp_avg_blocks_1_norm1_bias_new,
    const float* __restrict__ exp_avg_sq_blocks_1_norm1_bias_new,
    const double* __restrict__ blocks_1_norm1_bias_new_pow_2,
    float* __restrict__ blocks_0_project_bias_new,
    float* __restrict__ blocks_1_norm1_weight_new,
    float* __restrict__ blocks_1_norm1_bias_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 128) { return; }
    const float blocks_0_project_bias_ = blocks_0_project_bias[i];
    const double lr_ = lr[0];
    const double blocks_0_project_bias_new_mul_ = lr_ * 0.01;
    const double blocks_0_project_bias_new_sub_ = 1.0 - blocks_0_project_bias_new_mul_;
    const float blocks_0_project_bias_new_cast_3_ = (float)blocks_0_project_bias_new_sub_;
    const float blocks_0_project_bias_new_mul_8_ = blocks_0_project_bias_ * blocks_0_project_bias_new_cast_3_;
    const double blocks_0_project_bias_new_div_ = blocks_0_project_bias_new_div[0];
    const float blocks_0_project_bias_new_cast_5_ = (float)blocks_0_project_bias_new_div_;
    const float exp_avg_blocks_0_project_bias_new_ = exp_avg_blocks_0_project_bias_new[i];
    const float blocks_0_project_bias_new_mul_9_ = blocks_0_project_bias_new_cast_5_ * exp_avg_blocks_0_project_bias_new_;
    const float exp_avg_sq_blocks_0_project_bias_new_ = exp_avg_sq_blocks_0_project_bias_new[i];
    const float blocks_0_project_bias_new_sqrt_ = sqrtf(exp_avg_sq_blocks_0_project_bias_new_);
    const double blocks_0_project_bias_new_pow_2_ = blocks_0_project_bias_new_pow_2[0];
    const float blocks_0_project_bias_new_cast_2_ = (float)blocks_0_project_bias_new_pow_2_;
    const float blocks_0_project_bias_new_mul_7_ = blocks_0_project_bias_new_sqrt_ * blocks_0_project_bias_new_cast_2_;
    const float blocks_0_project_bias_new_add_5_ = blocks_0_project_bias_new_mul_7_ + 1e-8f;
    const float blocks_0_project_bias_new_div_2_ = blocks_0_project_bias_new_mul_9_ / blocks_0_project_bias_new_add_5_;
    const float blocks_0_project_bias_new_ = blocks_0_project_bias_new_mul_8_ - blocks_0_project_bias_new_div_2_;
    blocks_0_project_bias_new[i] = blocks_0_project_bias_new_;
    const float blocks_1_norm1_weight_ = blocks_1_norm1_weight[i];
    const double blocks_1_norm1_weight_new_mul_ = lr_ * 0.01;
    const double blocks_1_norm1_weight_new_sub_ = 1.0 - blocks_1_norm1_weight_new_mul_;
    const float blocks_1_norm1_weight_new_cast_3_ = (float)blocks_1_norm1_weight_new_sub_;
    const float blocks_1_norm1_weight_new_mul_8_ = blocks_1_norm1_weight_ * blocks_1_norm1_weight_new_cast_3_;
    const double blocks_1_norm1_weight_new_div_ = blocks_1_norm1_weight_new_div[0];
    const float blocks_1_norm1_weight_new_cast_5_ = (float)blocks_1_norm1_weight_new_div_;
    const float exp_avg_blocks_1_norm1_weight_new_ = exp_avg_blocks_1_norm1_weight_new[i];
    const float blocks_1_norm1_weight_new_mul_9_ = blocks_1_norm1_weight_new_cast_5_ * exp_avg_blocks_1_norm1_weight_new_;
    const float exp_avg_sq_blocks_1_norm1_weight_new_ = exp_avg_sq_blocks_1_norm1_weight_new[i];
    const float blocks_1_norm1_weight_new_sqrt_ = sqrtf(exp_avg_sq_blocks_1_norm1_weight_new_);
    const double blocks_1_norm1_weight_new_pow_2_ = blocks_1_norm1_weight_new_pow_2[0];
    const float blocks_1_norm1_weight_new_cast_2_ = (float)blocks_1_norm1_weight_new_pow_2_;
    const float blocks_1_norm1_weight_new_mul_7_ = blocks_1_norm1_weight_new_sqrt_ * blocks_1_norm1_weight_new_cast_2_;
    const float blocks_1_norm1_weight_new_add_5_ = blocks_1_norm1_weight_new_mul_7_ + 1e-8f;
    const float blocks_1_norm1_weight_new_div_2_ = blocks_1_norm1_weight_new_mul_9_ / blocks_1_norm1_weight_new_add_5_;
    const float blocks_1_norm1_weight_new_ = blocks_1_norm1_weight_new_mul_8_ - blocks_1_norm1_weight_new_div_2_;
    blocks_1_norm1_weight_new[i] = blocks_1_norm1_weight_new_;
    const float blocks_1_norm1_bias_ = blocks_1_norm1_bias[i];
    const double blocks_1_norm1_bias_new_mul_ = lr_ * 0.01;
    const double blocks_1_norm1_bias_new_sub_ = 1.0 - blocks_1_norm1_bias_new_mul_;
    const float blocks_1_norm1_bias_new_cast_3_ = (float)blocks_1_norm1_bias_new_sub_;
    const float blocks_1_norm1_bias_new_mul_8_ = blocks_1_norm1_bias_ * blocks_1_norm1_bias_new_cast_3_;
    const double blocks_1_norm1_bias_new_div_ = blocks_1_norm1_bias_new_div[0];
    const float blocks_1_norm1_bias_new_cast_5_ = (float)blocks_1_norm1_bias_new_div_;
    const float exp_avg_blocks_1_norm1_bias_new_ = exp_avg_blocks_1_norm1_bias_new[i];
    const float blocks_1_norm1_bias_new_mul_9_ = blocks_1_norm1_bias_new_cast_5_ * exp_avg_blocks_1_norm1_bias_new_;
    const float exp_avg_sq_blocks_1_norm1_bias_new_ = exp_avg_sq_blocks_1_norm1_bias_new[i];
    const float blocks_1_norm1_bias_new_sqrt_ = sqrtf(exp_avg_sq_blocks_1_norm1_bias_new_);
    const double blocks_1_norm1_bias_new_pow_2_ = blocks_1_norm1_bias_new_pow_2[0];
    const float blocks_1_norm1_bias_new_cast_2_ = (float)blocks_1_norm1_bias_new_pow_2_;
    const float blocks_1_norm1_bias_new_mul_7_ = blocks_1_norm1_bias_new_sqrt_ * blocks_1_norm1_bias_new_cast_2_;
    const float blocks_1_norm1_bias_new_add_5_ = blocks_1_norm1_bias_new_mul_7_ + 1e-8f;
    const float blocks_1_norm1_bias_new_div_2_ = blocks_1_norm1_bias_new_mul_9_ / blocks_1_norm1_bias_new_add_5_;
    const float blocks_1_norm1_bias_new_ = blocks_1_norm1_bias_new_mul_8_ - blocks_1_norm1_bias_new_div_2_;
    blocks_1_norm1_bias_new[i] = blocks_1_norm1_bias_new_;
}

// head_weight_new_add, of update/head_weight_new/Add  i64 []
// head_weight_new_pow_2, of update/head_weight_new/Pow.2  f64 []
// head_weight_new_div, of update/head_weight_new/Div  f64 []
// step_head_weight_new  i64 []
extern "C" __global__ void k218_step_head_weight_new(
    const long long* __restrict__ step_head_weight,
    const double* __restrict__ lr,
    double* __restrict__ head_weight_new_pow_2,
    double* __restrict__ head_weight_new_div,
    long long* __restrict__ step_head_weight_new
) {
    const int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
    if (i >= 1) { return; }
    const long long step_head_weight_ = step_head_weight[0];
    const long long head_weight_new_add_ = step_head_weight_ + 1ll;
    const double head_weight_new_cast_ = (double)head_weight_new_add_;
    const double head_weight_new_pow_ = pow(0.999, head_weight_new_cast_);
    const double head_weight_new_sub_3_ = 1.0 - head_weight_new_pow_;
    const double head_weight_new_pow_2_ = pow(head_weight_new_sub_3_, (-0.5));
    head_weight_new_pow_2[i] = head_weight_new_pow_2_;
    const double lr_ = lr[0];
    const double head_weight_new_cast_4_ = (double)head_weight_new_add_;
    const double head_weight_new_pow_3_ = pow(0.9, head_weight_new_cast_4_);
    const double head_weight_new_sub_4_ = 1.0 - head_weight_new_pow_3_;
    const double head_weight_new_div_ = lr_ / head_weight_new_sub_4_;
    head_weight_new_div[i] = head_weight_new_div_;
    const long long step_head_weight_new_ = step_head_weight_ + 1ll;
    step_head_weight_new[i] = step_head_weight_new_;
}

// Launches, in order: kernel, blocks, threads, arguments.
//   k00_add<<<384, 256>>>(x, symbols_weight, positions_weight, add)
//   k01_layer_norm_add_2<<<768, 128>>>(add, blocks_0_norm1_weight, blocks_0_norm1_bias, layer_norm_reducemean, layer_norm_sub, layer_norm_div, layer_norm_add_2)
//   k02_layer_norm_1<<<9, 256>>>(layer_norm_reducemean, layer_norm_div, layer_norm_1)
//   k03_linear<<<72, 256>>>(layer_norm_add_2, blocks_0_attention_qkv_weight, blocks_0_attention_qkv_bias, linear)
//   k04_y_2_matmul<<<48, 256>>>(linear, y_2_matmul)
//   k05_y_4_lessorequal<<<16, 256>>>(constant_20, y_2_lessorequal, y_3_lessorequal, y_4_lessorequal)
//   k06_y_4_and<<<768, 256>>>(y_2_lessorequal, y_3_lessorequal, y_4_lessorequal, y_2_and, y_3_and, y_4_and)
//   k07_y_4_reducemax<<<3072, 64>>>(y_2_and, y_2_matmul, y_3_and, y_4_and, y_2_where_2, y_2_exp, y_2_mul_2, y_3_reducemax, y_4_reducemax)
//   k08_y_2<<<384, 256>>>(y_2_mul_2, linear, y_2)
//   k09_x_2<<<24, 256>>>(y_2, blocks_0_attention_out_weight, add, blocks_0_attention_out_bias, x_2)
//   k10_layer_norm_grad_9_mul<<<768, 128>>>(x_2, blocks_0_norm2_weight, blocks_0_norm2_bias, add, layer_norm_1, layer_norm_2_reducemean, layer_norm_2_sub, layer_norm_2_div, layer_norm_2_add_2, layer_norm_grad_9_mul)
//   k02_layer_norm_1<<<9, 256>>>(layer_norm_2_reducemean, layer_norm_2_div, layer_norm_1_2)
//   k12_gelu_tanh_grad_4_tanh<<<96, 256>>>(layer_norm_2_add_2, blocks_0_expand_weight, blocks_0_expand_bias, linear_3, gelu_tanh, gelu_tanh_grad_4_tanh)
//   k13_add_2<<<24, 256>>>(gelu_tanh, blocks_0_project_weight, x_2, blocks_0_project_bias, add_2)
//   k10_layer_norm_grad_9_mul<<<768, 128>>>(add_2, blocks_1_norm1_weight, blocks_1_norm1_bias, x_2, layer_norm_1_2, layer_norm_3_reducemean, layer_norm_3_sub, layer_norm_3_div, layer_norm_3_add_2, layer_norm_grad_8_mul)
//   k02_layer_norm_1<<<9, 256>>>(layer_norm_3_reducemean, layer_norm_3_div, layer_norm_1_3)
//   k03_linear<<<72, 256>>>(layer_norm_3_add_2, blocks_1_attention_qkv_weight, blocks_1_attention_qkv_bias, linear_5)
//   k17_y_3_where_2<<<48, 256>>>(linear_5, y_3_reducemax, y_3_and, y_3_where_2)
//   k18_y_3_mul_2<<<3072, 64>>>(y_3_where_2, y_3_and, y_3_exp, y_3_mul_2)
//   k08_y_2<<<384, 256>>>(y_3_mul_2, linear_5, y_3)
//   k09_x_2<<<24, 256>>>(y_3, blocks_1_attention_out_weight, add_2, blocks_1_attention_out_bias, x_3)
//   k10_layer_norm_grad_9_mul<<<768, 128>>>(x_3, blocks_1_norm2_weight, blocks_1_norm2_bias, add_2, layer_norm_1_3, layer_norm_4_reducemean, layer_norm_4_sub, layer_norm_4_div, layer_norm_4_add_2, layer_norm_grad_7_mul)
//   k02_layer_norm_1<<<9, 256>>>(layer_norm_4_reducemean, layer_norm_4_div, layer_norm_1_4)
//   k12_gelu_tanh_grad_4_tanh<<<96, 256>>>(layer_norm_4_add_2, blocks_1_expand_weight, blocks_1_expand_bias, linear_7, gelu_tanh_2, gelu_tanh_grad_3_tanh)
//   k13_add_2<<<24, 256>>>(gelu_tanh_2, blocks_1_project_weight, x_3, blocks_1_project_bias, add_3)
//   k10_layer_norm_grad_9_mul<<<768, 128>>>(add_3, blocks_2_norm1_weight, blocks_2_norm1_bias, x_3, layer_norm_1_4, layer_norm_5_reducemean, layer_norm_5_sub, layer_norm_5_div, layer_norm_5_add_2, layer_norm_grad_6_mul)
//   k02_layer_norm_1<<<9, 256>>>(layer_norm_5_reducemean, layer_norm_5_div, layer_norm_1_5)
//   k03_linear<<<72, 256>>>(layer_norm_5_add_2, blocks_2_attention_qkv_weight, blocks_2_attention_qkv_bias, linear_9)
//   k17_y_3_where_2<<<48, 256>>>(linear_9, y_4_reducemax, y_4_and, y_4_where_2)
//   k18_y_3_mul_2<<<3072, 64>>>(y_4_where_2, y_4_and, y_4_exp, y_4_mul_2)
//   k08_y_2<<<384, 256>>>(y_4_mul_2, linear_9, y_4)
//   k09_x_2<<<24, 256>>>(y_4, blocks_2_attention_out_weight, add_3, blocks_2_attention_out_bias, x_4)
//   k10_layer_norm_grad_9_mul<<<768, 128>>>(x_4, blocks_2_norm2_weight, blocks_2_norm2_bias, add_3, layer_norm_1_5, layer_norm_6_reducemean, layer_norm_6_sub, layer_norm_6_div, layer_norm_6_add_2, layer_norm_grad_5_mul)
//   k02_layer_norm_1<<<9, 256>>>(layer_norm_6_reducemean, layer_norm_6_div, layer_norm_1_6)
//   k12_gelu_tanh_grad_4_tanh<<<96, 256>>>(layer_norm_6_add_2, blocks_2_expand_weight, blocks_2_expand_bias, linear_11, gelu_tanh_3, gelu_tanh_grad_2_tanh)
//   k13_add_2<<<24, 256>>>(gelu_tanh_3, blocks_2_project_weight, x_4, blocks_2_project_bias, add_4)
//   k10_layer_norm_grad_9_mul<<<768, 128>>>(add_4, blocks_3_norm1_weight, blocks_3_norm1_bias, x_4, layer_norm_1_6, layer_norm_7_reducemean, layer_norm_7_sub, layer_norm_7_div, layer_norm_7_add_2, layer_norm_grad_4_mul)
//   k02_layer_norm_1<<<9, 256>>>(layer_norm_7_reducemean, layer_norm_7_div, layer_norm_1_7)
//   k03_linear<<<72, 256>>>(layer_norm_7_add_2, blocks_3_attention_qkv_weight, blocks_3_attention_qkv_bias, linear_13)
//   k04_y_2_matmul<<<48, 256>>>(linear_13, y_5_matmul)
//   k40_y_5_lessorequal<<<16, 256>>>(constant_20, y_5_lessorequal)
//   k41_y_5_and<<<768, 256>>>(y_5_lessorequal, y_5_and)
//   k42_y_5_mul_2<<<3072, 64>>>(y_5_and, y_5_matmul, y_5_where_2, y_5_exp, y_5_mul_2)
//   k08_y_2<<<384, 256>>>(y_5_mul_2, linear_13, y_5)
//   k09_x_2<<<24, 256>>>(y_5, blocks_3_attention_out_weight, add_4, blocks_3_attention_out_bias, x_5)
//   k10_layer_norm_grad_9_mul<<<768, 128>>>(x_5, blocks_3_norm2_weight, blocks_3_norm2_bias, add_4, layer_norm_1_7, layer_norm_8_reducemean, layer_norm_8_sub, layer_norm_8_div, layer_norm_8_add_2, layer_norm_grad_3_mul)
//   k02_layer_norm_1<<<9, 256>>>(layer_norm_8_reducemean, layer_norm_8_div, layer_norm_1_8)
//   k12_gelu_tanh_grad_4_tanh<<<96, 256>>>(layer_norm_8_add_2, blocks_3_expand_weight, blocks_3_expand_bias, linear_15, gelu_tanh_4, gelu_tanh_grad_tanh)
//   k13_add_2<<<24, 256>>>(gelu_tanh_4, blocks_3_project_weight, x_5, blocks_3_project_bias, add_5)
//   k10_layer_norm_grad_9_mul<<<768, 128>>>(add_5, norm_weight, norm_bias, x_5, layer_norm_1_8, layer_norm_9_reducemean, layer_norm_9_sub, layer_norm_9_div, layer_norm_9_add_2, layer_norm_grad_2_mul)
//   k02_layer_norm_1<<<9, 256>>>(layer_norm_9_reducemean, layer_norm_9_div, layer_norm_1_9)
//   k51_linear_17<<<24, 256>>>(layer_norm_9_add_2, head_weight, linear_17)
//   k52_d_logits_add<<<195, 256>>>(y, constant_30, loss_cast, loss_add, d_logits_cast, d_logits_add)
//   k53_of_pieces_2<<<195, 256>>>(loss_cast, d_logits_cast, of_pieces, of_pieces_2)
//   k54_d_logits_div<<<1, 256>>>(of_pieces, of_pieces_2, of_all, d_logits_div)
//   k55_d_logits<<<768, 128>>>(linear_17, loss_add, d_logits_add, d_logits_div, loss_sub, loss_reducesum_3, loss_exp_2, d_logits)
//   k56_loss<<<1, 256>>>(loss_reducesum_3, of_all, loss)
//   k57_layer_norm_grad_mul_2<<<24, 256>>>(d_logits, head_weight, add_5, layer_norm_1_9, norm_weight, linear_grad_matmul, layer_norm_grad_mul, layer_norm_grad_mul_2)
//   k58_exp_avg_sq_head_weight_new<<<4, 256>>>(d_logits, layer_norm_9_add_2, head_weight, exp_avg_head_weight, exp_avg_sq_head_weight, exp_avg_head_weight_new, exp_avg_sq_head_weight_new)
//   k59_layer_norm_grad_mul_6<<<768, 128>>>(layer_norm_grad_mul_2, layer_norm_grad_mul, layer_norm_1_9, layer_norm_grad_mul_6)
//   k60_exp_avg_sq_norm_bias_new<<<1, 256>>>(linear_grad_matmul, layer_norm_grad_mul, layer_norm_grad_mul_6, blocks_3_project_bias, exp_avg_blocks_3_project_bias, exp_avg_sq_blocks_3_project_bias, norm_weight, exp_avg_norm_weight, exp_avg_sq_norm_weight, norm_bias, exp_avg_norm_bias, exp_avg_sq_norm_bias, exp_avg_blocks_3_project_bias_new, exp_avg_sq_blocks_3_project_bias_new, exp_avg_norm_weight_new, exp_avg_sq_norm_weight_new, exp_avg_norm_bias_new, exp_avg_sq_norm_bias_new)
//   k61_gelu_tanh_grad<<<96, 256>>>(layer_norm_grad_mul_6, blocks_3_project_weight, gelu_tanh_grad_tanh, linear_15, gelu_tanh_grad)
//   k62_exp_avg_sq_blocks_3_project_weight_new<<<16, 256>>>(layer_norm_grad_mul_6, gelu_tanh_4, blocks_3_project_weight, exp_avg_blocks_3_project_weight, exp_avg_sq_blocks_3_project_weight, exp_avg_blocks_3_project_weight_new, exp_avg_sq_blocks_3_project_weight_new)
//   k63_layer_norm_grad_2_mul_2<<<24, 256>>>(gelu_tanh_grad, blocks_3_expand_weight, blocks_3_norm2_weight, linear_grad_3_matmul, layer_norm_grad_2_mul_2)
//   k64_exp_avg_sq_blocks_3_expand_weight_new<<<16, 256>>>(gelu_tanh_grad, layer_norm_8_add_2, blocks_3_expand_weight, exp_avg_blocks_3_expand_weight, exp_avg_sq_blocks_3_expand_weight, exp_avg_blocks_3_expand_weight_new, exp_avg_sq_blocks_3_expand_weight_new)
//   k65_exp_avg_sq_blocks_3_expand_bias_new<<<2, 256>>>(gelu_tanh_grad, blocks_3_expand_bias, exp_avg_blocks_3_expand_bias, exp_avg_sq_blocks_3_expand_bias, exp_avg_blocks_3_expand_bias_new, exp_avg_sq_blocks_3_expand_bias_new)
//   k66_d_x<<<768, 128>>>(layer_norm_grad_2_mul_2, layer_norm_grad_2_mul, layer_norm_grad_mul_6, layer_norm_1_8, d_x)
//   k60_exp_avg_sq_norm_bias_new<<<1, 256>>>(linear_grad_3_matmul, layer_norm_grad_2_mul, d_x, blocks_3_attention_out_bias, exp_avg_blocks_3_attention_out_bias, exp_avg_sq_blocks_3_attention_out_bias, blocks_3_norm2_weight, exp_avg_blocks_3_norm2_weight, exp_avg_sq_blocks_3_norm2_weight, blocks_3_norm2_bias, exp_avg_blocks_3_norm2_bias, exp_avg_sq_blocks_3_norm2_bias, exp_avg_blocks_3_attention_out_bias_new, exp_avg_sq_blocks_3_attention_out_bias_new, exp_avg_blocks_3_norm2_weight_new, exp_avg_sq_blocks_3_norm2_weight_new, exp_avg_blocks_3_norm2_bias_new, exp_avg_sq_blocks_3_norm2_bias_new)
//   k68_linear_grad_4_matmul<<<24, 256>>>(d_x, blocks_3_attention_out_weight, linear_grad_4_matmul)
//   k69_exp_avg_sq_blocks_3_attention_out_weight_new<<<4, 256>>>(d_x, y_5, blocks_3_attention_out_weight, exp_avg_blocks_3_attention_out_weight, exp_avg_sq_blocks_3_attention_out_weight, exp_avg_blocks_3_attention_out_weight_new, exp_avg_sq_blocks_3_attention_out_weight_new)
//   k04_y_2_matmul<<<48, 256>>>(linear_13, attention_grad_matmul)
//   k40_y_5_lessorequal<<<16, 256>>>(constant_20, attention_grad_lessorequal)
//   k41_y_5_and<<<768, 256>>>(attention_grad_lessorequal, attention_grad_and)
//   k73_attention_grad_mul_6<<<3072, 64>>>(attention_grad_and, attention_grad_matmul, attention_grad_where_2, attention_grad_exp, attention_grad_where_3, attention_grad_mul_6)
//   k74_attention_grad_matmul_2<<<48, 256>>>(linear_grad_4_matmul, linear_13, attention_grad_matmul_2)
//   k75_attention_grad_reducesum_2<<<3072, 32>>>(linear_grad_4_matmul, y_5, attention_grad_reducesum_2)
//   k76_attention_grad_mul_5<<<768, 256>>>(attention_grad_where_3, attention_grad_matmul_2, attention_grad_reducesum_2, attention_grad_mul_5)
//   k77_attention_grad<<<384, 256>>>(attention_grad_mul_5, linear_13, attention_grad)
//   k78_attention_grad_1<<<384, 256>>>(attention_grad_mul_5, linear_13, attention_grad_1)
//   k79_d_part<<<384, 256>>>(attention_grad_mul_6, linear_grad_4_matmul, d_part)
//   k80_d_qkv<<<1152, 256>>>(d_part, attention_grad_1, attention_grad, d_qkv)
//   k81_layer_norm_grad_3_mul_2<<<24, 256>>>(d_qkv, blocks_3_attention_qkv_weight, blocks_3_norm1_weight, linear_grad_5_matmul, layer_norm_grad_3_mul_2)
//   k82_exp_avg_sq_blocks_3_attention_qkv_weight_new<<<12, 256>>>(d_qkv, layer_norm_7_add_2, blocks_3_attention_qkv_weight, exp_avg_blocks_3_attention_qkv_weight, exp_avg_sq_blocks_3_attention_qkv_weight, exp_avg_blocks_3_attention_qkv_weight_new, exp_avg_sq_blocks_3_attention_qkv_weight_new)
//   k83_exp_avg_sq_blocks_3_attention_qkv_bias_new<<<2, 256>>>(d_qkv, blocks_3_attention_qkv_bias, exp_avg_blocks_3_attention_qkv_bias, exp_avg_sq_blocks_3_attention_qkv_bias, exp_avg_blocks_3_attention_qkv_bias_new, exp_avg_sq_blocks_3_attention_qkv_bias_new)
//   k66_d_x<<<768, 128>>>(layer_norm_grad_3_mul_2, layer_norm_grad_3_mul, d_x, layer_norm_1_7, add_6)
//   k60_exp_avg_sq_norm_bias_new<<<1, 256>>>(linear_grad_5_matmul, layer_norm_grad_3_mul, add_6, blocks_2_project_bias, exp_avg_blocks_2_project_bias, exp_avg_sq_blocks_2_project_bias, blocks_3_norm1_weight, exp_avg_blocks_3_norm1_weight, exp_avg_sq_blocks_3_norm1_weight, blocks_3_norm1_bias, exp_avg_blocks_3_norm1_bias, exp_avg_sq_blocks_3_norm1_bias, exp_avg_blocks_2_project_bias_new, exp_avg_sq_blocks_2_project_bias_new, exp_avg_blocks_3_norm1_weight_new, exp_avg_sq_blocks_3_norm1_weight_new, exp_avg_blocks_3_norm1_bias_new, exp_avg_sq_blocks_3_norm1_bias_new)
//   k61_gelu_tanh_grad<<<96, 256>>>(add_6, blocks_2_project_weight, gelu_tanh_grad_2_tanh, linear_11, gelu_tanh_grad_2)
//   k62_exp_avg_sq_blocks_3_project_weight_new<<<16, 256>>>(add_6, gelu_tanh_3, blocks_2_project_weight, exp_avg_blocks_2_project_weight, exp_avg_sq_blocks_2_project_weight, exp_avg_blocks_2_project_weight_new, exp_avg_sq_blocks_2_project_weight_new)
//   k63_layer_norm_grad_2_mul_2<<<24, 256>>>(gelu_tanh_grad_2, blocks_2_expand_weight, blocks_2_norm2_weight, linear_grad_7_matmul, layer_norm_grad_4_mul_2)
//   k64_exp_avg_sq_blocks_3_expand_weight_new<<<16, 256>>>(gelu_tanh_grad_2, layer_norm_6_add_2, blocks_2_expand_weight, exp_avg_blocks_2_expand_weight, exp_avg_sq_blocks_2_expand_weight, exp_avg_blocks_2_expand_weight_new, exp_avg_sq_blocks_2_expand_weight_new)
//   k65_exp_avg_sq_blocks_3_expand_bias_new<<<2, 256>>>(gelu_tanh_grad_2, blocks_2_expand_bias, exp_avg_blocks_2_expand_bias, exp_avg_sq_blocks_2_expand_bias, exp_avg_blocks_2_expand_bias_new, exp_avg_sq_blocks_2_expand_bias_new)
//   k66_d_x<<<768, 128>>>(layer_norm_grad_4_mul_2, layer_norm_grad_4_mul, add_6, layer_norm_1_6, d_x_2)
//   k60_exp_avg_sq_norm_bias_new<<<1, 256>>>(linear_grad_7_matmul, layer_norm_grad_4_mul, d_x_2, blocks_2_attention_out_bias, exp_avg_blocks_2_attention_out_bias, exp_avg_sq_blocks_2_attention_out_bias, blocks_2_norm2_weight, exp_avg_blocks_2_norm2_weight, exp_avg_sq_blocks_2_norm2_weight, blocks_2_norm2_bias, exp_avg_blocks_2_norm2_bias, exp_avg_sq_blocks_2_norm2_bias, exp_avg_blocks_2_attention_out_bias_new, exp_avg_sq_blocks_2_attention_out_bias_new, exp_avg_blocks_2_norm2_weight_new, exp_avg_sq_blocks_2_norm2_weight_new, exp_avg_blocks_2_norm2_bias_new, exp_avg_sq_blocks_2_norm2_bias_new)
//   k68_linear_grad_4_matmul<<<24, 256>>>(d_x_2, blocks_2_attention_out_weight, linear_grad_8_matmul)
//   k69_exp_avg_sq_blocks_3_attention_out_weight_new<<<4, 256>>>(d_x_2, y_4, blocks_2_attention_out_weight, exp_avg_blocks_2_attention_out_weight, exp_avg_sq_blocks_2_attention_out_weight, exp_avg_blocks_2_attention_out_weight_new, exp_avg_sq_blocks_2_attention_out_weight_new)
//   k04_y_2_matmul<<<48, 256>>>(linear_9, attention_grad_2_matmul)
//   k40_y_5_lessorequal<<<16, 256>>>(constant_20, attention_grad_2_lessorequal)
//   k41_y_5_and<<<768, 256>>>(attention_grad_2_lessorequal, attention_grad_2_and)
//   k73_attention_grad_mul_6<<<3072, 64>>>(attention_grad_2_and, attention_grad_2_matmul, attention_grad_2_where_2, attention_grad_2_exp, attention_grad_2_where_3, attention_grad_2_mul_6)
//   k74_attention_grad_matmul_2<<<48, 256>>>(linear_grad_8_matmul, linear_9, attention_grad_2_matmul_2)
//   k75_attention_grad_reducesum_2<<<3072, 32>>>(linear_grad_8_matmul, y_4, attention_grad_2_reducesum_2)
//   k76_attention_grad_mul_5<<<768, 256>>>(attention_grad_2_where_3, attention_grad_2_matmul_2, attention_grad_2_reducesum_2, attention_grad_2_mul_5)
//   k77_attention_grad<<<384, 256>>>(attention_grad_2_mul_5, linear_9, attention_grad_2)
//   k78_attention_grad_1<<<384, 256>>>(attention_grad_2_mul_5, linear_9, attention_grad_1_2)
//   k79_d_part<<<384, 256>>>(attention_grad_2_mul_6, linear_grad_8_matmul, d_part_2)
//   k80_d_qkv<<<1152, 256>>>(d_part_2, attention_grad_1_2, attention_grad_2, d_qkv_2)
//   k81_layer_norm_grad_3_mul_2<<<24, 256>>>(d_qkv_2, blocks_2_attention_qkv_weight, blocks_2_norm1_weight, linear_grad_9_matmul, layer_norm_grad_5_mul_2)
//   k82_exp_avg_sq_blocks_3_attention_qkv_weight_new<<<12, 256>>>(d_qkv_2, layer_norm_5_add_2, blocks_2_attention_qkv_weight, exp_avg_blocks_2_attention_qkv_weight, exp_avg_sq_blocks_2_attention_qkv_weight, exp_avg_blocks_2_attention_qkv_weight_new, exp_avg_sq_blocks_2_attention_qkv_weight_new)
//   k83_exp_avg_sq_blocks_3_attention_qkv_bias_new<<<2, 256>>>(d_qkv_2, blocks_2_attention_qkv_bias, exp_avg_blocks_2_attention_qkv_bias, exp_avg_sq_blocks_2_attention_qkv_bias, exp_avg_blocks_2_attention_qkv_bias_new, exp_avg_sq_blocks_2_attention_qkv_bias_new)
//   k66_d_x<<<768, 128>>>(layer_norm_grad_5_mul_2, layer_norm_grad_5_mul, d_x_2, layer_norm_1_5, add_7)
//   k60_exp_avg_sq_norm_bias_new<<<1, 256>>>(linear_grad_9_matmul, layer_norm_grad_5_mul, add_7, blocks_1_project_bias, exp_avg_blocks_1_project_bias, exp_avg_sq_blocks_1_project_bias, blocks_2_norm1_weight, exp_avg_blocks_2_norm1_weight, exp_avg_sq_blocks_2_norm1_weight, blocks_2_norm1_bias, exp_avg_blocks_2_norm1_bias, exp_avg_sq_blocks_2_norm1_bias, exp_avg_blocks_1_project_bias_new, exp_avg_sq_blocks_1_project_bias_new, exp_avg_blocks_2_norm1_weight_new, exp_avg_sq_blocks_2_norm1_weight_new, exp_avg_blocks_2_norm1_bias_new, exp_avg_sq_blocks_2_norm1_bias_new)
//   k61_gelu_tanh_grad<<<96, 256>>>(add_7, blocks_1_project_weight, gelu_tanh_grad_3_tanh, linear_7, gelu_tanh_grad_3)
//   k62_exp_avg_sq_blocks_3_project_weight_new<<<16, 256>>>(add_7, gelu_tanh_2, blocks_1_project_weight, exp_avg_blocks_1_project_weight, exp_avg_sq_blocks_1_project_weight, exp_avg_blocks_1_project_weight_new, exp_avg_sq_blocks_1_project_weight_new)
//   k63_layer_norm_grad_2_mul_2<<<24, 256>>>(gelu_tanh_grad_3, blocks_1_expand_weight, blocks_1_norm2_weight, linear_grad_11_matmul, layer_norm_grad_6_mul_2)
//   k64_exp_avg_sq_blocks_3_expand_weight_new<<<16, 256>>>(gelu_tanh_grad_3, layer_norm_4_add_2, blocks_1_expand_weight, exp_avg_blocks_1_expand_weight, exp_avg_sq_blocks_1_expand_weight, exp_avg_blocks_1_expand_weight_new, exp_avg_sq_blocks_1_expand_weight_new)
//   k65_exp_avg_sq_blocks_3_expand_bias_new<<<2, 256>>>(gelu_tanh_grad_3, blocks_1_expand_bias, exp_avg_blocks_1_expand_bias, exp_avg_sq_blocks_1_expand_bias, exp_avg_blocks_1_expand_bias_new, exp_avg_sq_blocks_1_expand_bias_new)
//   k66_d_x<<<768, 128>>>(layer_norm_grad_6_mul_2, layer_norm_grad_6_mul, add_7, layer_norm_1_4, d_x_3)
//   k60_exp_avg_sq_norm_bias_new<<<1, 256>>>(linear_grad_11_matmul, layer_norm_grad_6_mul, d_x_3, blocks_1_attention_out_bias, exp_avg_blocks_1_attention_out_bias, exp_avg_sq_blocks_1_attention_out_bias, blocks_1_norm2_weight, exp_avg_blocks_1_norm2_weight, exp_avg_sq_blocks_1_norm2_weight, blocks_1_norm2_bias, exp_avg_blocks_1_norm2_bias, exp_avg_sq_blocks_1_norm2_bias, exp_avg_blocks_1_attention_out_bias_new, exp_avg_sq_blocks_1_attention_out_bias_new, exp_avg_blocks_1_norm2_weight_new, exp_avg_sq_blocks_1_norm2_weight_new, exp_avg_blocks_1_norm2_bias_new, exp_avg_sq_blocks_1_norm2_bias_new)
//   k68_linear_grad_4_matmul<<<24, 256>>>(d_x_3, blocks_1_attention_out_weight, linear_grad_12_matmul)
//   k69_exp_avg_sq_blocks_3_attention_out_weight_new<<<4, 256>>>(d_x_3, y_3, blocks_1_attention_out_weight, exp_avg_blocks_1_attention_out_weight, exp_avg_sq_blocks_1_attention_out_weight, exp_avg_blocks_1_attention_out_weight_new, exp_avg_sq_blocks_1_attention_out_weight_new)
//   k04_y_2_matmul<<<48, 256>>>(linear_5, attention_grad_3_matmul)
//   k40_y_5_lessorequal<<<16, 256>>>(constant_20, attention_grad_3_lessorequal)
//   k41_y_5_and<<<768, 256>>>(attention_grad_3_lessorequal, attention_grad_3_and)
//   k73_attention_grad_mul_6<<<3072, 64>>>(attention_grad_3_and, attention_grad_3_matmul, attention_grad_3_where_2, attention_grad_3_exp, attention_grad_3_where_3, attention_grad_3_mul_6)
//   k74_attention_grad_matmul_2<<<48, 256>>>(linear_grad_12_matmul, linear_5, attention_grad_3_matmul_2)
//   k75_attention_grad_reducesum_2<<<3072, 32>>>(linear_grad_12_matmul, y_3, attention_grad_3_reducesum_2)
//   k76_attention_grad_mul_5<<<768, 256>>>(attention_grad_3_where_3, attention_grad_3_matmul_2, attention_grad_3_reducesum_2, attention_grad_3_mul_5)
//   k77_attention_grad<<<384, 256>>>(attention_grad_3_mul_5, linear_5, attention_grad_3)
//   k78_attention_grad_1<<<384, 256>>>(attention_grad_3_mul_5, linear_5, attention_grad_1_3)
//   k79_d_part<<<384, 256>>>(attention_grad_3_mul_6, linear_grad_12_matmul, d_part_3)
//   k80_d_qkv<<<1152, 256>>>(d_part_3, attention_grad_1_3, attention_grad_3, d_qkv_3)
//   k81_layer_norm_grad_3_mul_2<<<24, 256>>>(d_qkv_3, blocks_1_attention_qkv_weight, blocks_1_norm1_weight, linear_grad_13_matmul, layer_norm_grad_7_mul_2)
//   k82_exp_avg_sq_blocks_3_attention_qkv_weight_new<<<12, 256>>>(d_qkv_3, layer_norm_3_add_2, blocks_1_attention_qkv_weight, exp_avg_blocks_1_attention_qkv_weight, exp_avg_sq_blocks_1_attention_qkv_weight, exp_avg_blocks_1_attention_qkv_weight_new, exp_avg_sq_blocks_1_attention_qkv_weight_new)
//   k83_exp_avg_sq_blocks_3_attention_qkv_bias_new<<<2, 256>>>(d_qkv_3, blocks_1_attention_qkv_bias, exp_avg_blocks_1_attention_qkv_bias, exp_avg_sq_blocks_1_attention_qkv_bias, exp_avg_blocks_1_attention_qkv_bias_new, exp_avg_sq_blocks_1_attention_qkv_bias_new)
//   k66_d_x<<<768, 128>>>(layer_norm_grad_7_mul_2, layer_norm_grad_7_mul, d_x_3, layer_norm_1_3, add_8)
//   k60_exp_avg_sq_norm_bias_new<<<1, 256>>>(linear_grad_13_matmul, layer_norm_grad_7_mul, add_8, blocks_0_project_bias, exp_avg_blocks_0_project_bias, exp_avg_sq_blocks_0_project_bias, blocks_1_norm1_weight, exp_avg_blocks_1_norm1_weight, exp_avg_sq_blocks_1_norm1_weight, blocks_1_norm1_bias, exp_avg_blocks_1_norm1_bias, exp_avg_sq_blocks_1_norm1_bias, exp_avg_blocks_0_project_bias_new, exp_avg_sq_blocks_0_project_bias_new, exp_avg_blocks_1_norm1_weight_new, exp_avg_sq_blocks_1_norm1_weight_new, exp_avg_blocks_1_norm1_bias_new, exp_avg_sq_blocks_1_norm1_bias_new)
//   k61_gelu_tanh_grad<<<96, 256>>>(add_8, blocks_0_project_weight, gelu_tanh_grad_4_tanh, linear_3, gelu_tanh_grad_4)
//   k62_exp_avg_sq_blocks_3_project_weight_new<<<16, 256>>>(add_8, gelu_tanh, blocks_0_project_weight, exp_avg_blocks_0_project_weight, exp_avg_sq_blocks_0_project_weight, exp_avg_blocks_0_project_weight_new, exp_avg_sq_blocks_0_project_weight_new)
//   k63_layer_norm_grad_2_mul_2<<<24, 256>>>(gelu_tanh_grad_4, blocks_0_expand_weight, blocks_0_norm2_weight, linear_grad_15_matmul, layer_norm_grad_8_mul_2)
//   k64_exp_avg_sq_blocks_3_expand_weight_new<<<16, 256>>>(gelu_tanh_grad_4, layer_norm_2_add_2, blocks_0_expand_weight, exp_avg_blocks_0_expand_weight, exp_avg_sq_blocks_0_expand_weight, exp_avg_blocks_0_expand_weight_new, exp_avg_sq_blocks_0_expand_weight_new)
//   k65_exp_avg_sq_blocks_3_expand_bias_new<<<2, 256>>>(gelu_tanh_grad_4, blocks_0_expand_bias, exp_avg_blocks_0_expand_bias, exp_avg_sq_blocks_0_expand_bias, exp_avg_blocks_0_expand_bias_new, exp_avg_sq_blocks_0_expand_bias_new)
//   k66_d_x<<<768, 128>>>(layer_norm_grad_8_mul_2, layer_norm_grad_8_mul, add_8, layer_norm_1_2, d_x_4)
//   k60_exp_avg_sq_norm_bias_new<<<1, 256>>>(linear_grad_15_matmul, layer_norm_grad_8_mul, d_x_4, blocks_0_attention_out_bias, exp_avg_blocks_0_attention_out_bias, exp_avg_sq_blocks_0_attention_out_bias, blocks_0_norm2_weight, exp_avg_blocks_0_norm2_weight, exp_avg_sq_blocks_0_norm2_weight, blocks_0_norm2_bias, exp_avg_blocks_0_norm2_bias, exp_avg_sq_blocks_0_norm2_bias, exp_avg_blocks_0_attention_out_bias_new, exp_avg_sq_blocks_0_attention_out_bias_new, exp_avg_blocks_0_norm2_weight_new, exp_avg_sq_blocks_0_norm2_weight_new, exp_avg_blocks_0_norm2_bias_new, exp_avg_sq_blocks_0_norm2_bias_new)
//   k68_linear_grad_4_matmul<<<24, 256>>>(d_x_4, blocks_0_attention_out_weight, linear_grad_16_matmul)
//   k69_exp_avg_sq_blocks_3_attention_out_weight_new<<<4, 256>>>(d_x_4, y_2, blocks_0_attention_out_weight, exp_avg_blocks_0_attention_out_weight, exp_avg_sq_blocks_0_attention_out_weight, exp_avg_blocks_0_attention_out_weight_new, exp_avg_sq_blocks_0_attention_out_weight_new)
//   k04_y_2_matmul<<<48, 256>>>(linear, attention_grad_4_matmul)
//   k40_y_5_lessorequal<<<16, 256>>>(constant_20, attention_grad_4_lessorequal)
//   k41_y_5_and<<<768, 256>>>(attention_grad_4_lessorequal, attention_grad_4_and)
//   k73_attention_grad_mul_6<<<3072, 64>>>(attention_grad_4_and, attention_grad_4_matmul, attention_grad_4_where_2, attention_grad_4_exp, attention_grad_4_where_3, attention_grad_4_mul_6)
//   k74_attention_grad_matmul_2<<<48, 256>>>(linear_grad_16_matmul, linear, attention_grad_4_matmul_2)
//   k75_attention_grad_reducesum_2<<<3072, 32>>>(linear_grad_16_matmul, y_2, attention_grad_4_reducesum_2)
//   k76_attention_grad_mul_5<<<768, 256>>>(attention_grad_4_where_3, attention_grad_4_matmul_2, attention_grad_4_reducesum_2, attention_grad_4_mul_5)
//   k77_attention_grad<<<384, 256>>>(attention_grad_4_mul_5, linear, attention_grad_4)
//   k78_attention_grad_1<<<384, 256>>>(attention_grad_4_mul_5, linear, attention_grad_1_4)
//   k79_d_part<<<384, 256>>>(attention_grad_4_mul_6, linear_grad_16_matmul, d_part_4)
//   k80_d_qkv<<<1152, 256>>>(d_part_4, attention_grad_1_4, attention_grad_4, d_qkv_4)
//   k81_layer_norm_grad_3_mul_2<<<24, 256>>>(d_qkv_4, blocks_0_attention_qkv_weight, blocks_0_norm1_weight, linear_grad_17_matmul, layer_norm_grad_9_mul_2)
//   k82_exp_avg_sq_blocks_3_attention_qkv_weight_new<<<12, 256>>>(d_qkv_4, layer_norm_add_2, blocks_0_attention_qkv_weight, exp_avg_blocks_0_attention_qkv_weight, exp_avg_sq_blocks_0_attention_qkv_weight, exp_avg_blocks_0_attention_qkv_weight_new, exp_avg_sq_blocks_0_attention_qkv_weight_new)
//   k83_exp_avg_sq_blocks_3_attention_qkv_bias_new<<<2, 256>>>(d_qkv_4, blocks_0_attention_qkv_bias, exp_avg_blocks_0_attention_qkv_bias, exp_avg_sq_blocks_0_attention_qkv_bias, exp_avg_blocks_0_attention_qkv_bias_new, exp_avg_sq_blocks_0_attention_qkv_bias_new)
//   k66_d_x<<<768, 128>>>(layer_norm_grad_9_mul_2, layer_norm_grad_9_mul, d_x_4, layer_norm_1, add_9)
//   k160_exp_avg_sq_blocks_0_norm1_bias_new<<<1, 256>>>(linear_grad_17_matmul, layer_norm_grad_9_mul, blocks_0_norm1_weight, exp_avg_blocks_0_norm1_weight, exp_avg_sq_blocks_0_norm1_weight, blocks_0_norm1_bias, exp_avg_blocks_0_norm1_bias, exp_avg_sq_blocks_0_norm1_bias, exp_avg_blocks_0_norm1_weight_new, exp_avg_sq_blocks_0_norm1_weight_new, exp_avg_blocks_0_norm1_bias_new, exp_avg_sq_blocks_0_norm1_bias_new)
//   k161_exp_avg_sq_positions_weight_new<<<32, 256>>>(add_9, positions_weight, exp_avg_positions_weight, exp_avg_sq_positions_weight, exp_avg_positions_weight_new, exp_avg_sq_positions_weight_new)
//   k162_rank<<<3, 256>>>(x, rank)
//   k163_places<<<3, 256>>>(rank, numbers, places)
//   k164_begins<<<1, 256>>>(x, begins)
//   k165_exp_avg_sq_symbols_weight_new<<<33, 256>>>(begins, places, add_9, symbols_weight, exp_avg_symbols_weight, exp_avg_sq_symbols_weight, exp_avg_symbols_weight_new, exp_avg_sq_symbols_weight_new)
//   k166_step_blocks_0_norm1_bias_new<<<1, 256>>>(step_symbols_weight, lr, step_positions_weight, step_blocks_0_norm1_weight, step_blocks_0_norm1_bias, symbols_weight_new_pow_2, symbols_weight_new_div, step_symbols_weight_new, positions_weight_new_pow_2, positions_weight_new_div, step_positions_weight_new, blocks_0_norm1_weight_new_pow_2, blocks_0_norm1_weight_new_div, step_blocks_0_norm1_weight_new, blocks_0_norm1_bias_new_pow_2, blocks_0_norm1_bias_new_div, step_blocks_0_norm1_bias_new)
//   k167_symbols_weight_new<<<33, 256>>>(symbols_weight, lr, symbols_weight_new_div, exp_avg_symbols_weight_new, exp_avg_sq_symbols_weight_new, symbols_weight_new_pow_2, symbols_weight_new)
//   k168_positions_weight_new<<<32, 256>>>(positions_weight, lr, positions_weight_new_div, exp_avg_positions_weight_new, exp_avg_sq_positions_weight_new, positions_weight_new_pow_2, positions_weight_new)
//   k169_blocks_0_norm1_bias_new<<<1, 256>>>(blocks_0_norm1_weight, lr, blocks_0_norm1_weight_new_div, exp_avg_blocks_0_norm1_weight_new, exp_avg_sq_blocks_0_norm1_weight_new, blocks_0_norm1_weight_new_pow_2, blocks_0_norm1_bias, blocks_0_norm1_bias_new_div, exp_avg_blocks_0_norm1_bias_new, exp_avg_sq_blocks_0_norm1_bias_new, blocks_0_norm1_bias_new_pow_2, blocks_0_norm1_weight_new, blocks_0_norm1_bias_new)
//   k166_step_blocks_0_norm1_bias_new<<<1, 256>>>(step_blocks_0_attention_qkv_weight, lr, step_blocks_0_attention_qkv_bias, step_blocks_0_attention_out_weight, step_blocks_0_attention_out_bias, blocks_0_attention_qkv_weight_new_pow_2, blocks_0_attention_qkv_weight_new_div, step_blocks_0_attention_qkv_weight_new, blocks_0_attention_qkv_bias_new_pow_2, blocks_0_attention_qkv_bias_new_div, step_blocks_0_attention_qkv_bias_new, blocks_0_attention_out_weight_new_pow_2, blocks_0_attention_out_weight_new_div, step_blocks_0_attention_out_weight_new, blocks_0_attention_out_bias_new_pow_2, blocks_0_attention_out_bias_new_div, step_blocks_0_attention_out_bias_new)
//   k171_blocks_0_attention_qkv_weight_new<<<192, 256>>>(blocks_0_attention_qkv_weight, lr, blocks_0_attention_qkv_weight_new_div, exp_avg_blocks_0_attention_qkv_weight_new, exp_avg_sq_blocks_0_attention_qkv_weight_new, blocks_0_attention_qkv_weight_new_pow_2, blocks_0_attention_qkv_weight_new)
//   k172_blocks_0_attention_qkv_bias_new<<<2, 256>>>(blocks_0_attention_qkv_bias, lr, blocks_0_attention_qkv_bias_new_div, exp_avg_blocks_0_attention_qkv_bias_new, exp_avg_sq_blocks_0_attention_qkv_bias_new, blocks_0_attention_qkv_bias_new_pow_2, blocks_0_attention_qkv_bias_new)
//   k173_blocks_0_attention_out_weight_new<<<64, 256>>>(blocks_0_attention_out_weight, lr, blocks_0_attention_out_weight_new_div, exp_avg_blocks_0_attention_out_weight_new, exp_avg_sq_blocks_0_attention_out_weight_new, blocks_0_attention_out_weight_new_pow_2, blocks_0_attention_out_weight_new)
//   k174_blocks_0_attention_out_bias_new<<<1, 256>>>(blocks_0_attention_out_bias, lr, blocks_0_attention_out_bias_new_div, exp_avg_blocks_0_attention_out_bias_new, exp_avg_sq_blocks_0_attention_out_bias_new, blocks_0_attention_out_bias_new_pow_2, blocks_0_attention_out_bias_new)
//   k166_step_blocks_0_norm1_bias_new<<<1, 256>>>(step_blocks_0_norm2_weight, lr, step_blocks_0_norm2_bias, step_blocks_0_expand_weight, step_blocks_0_expand_bias, blocks_0_norm2_weight_new_pow_2, blocks_0_norm2_weight_new_div, step_blocks_0_norm2_weight_new, blocks_0_norm2_bias_new_pow_2, blocks_0_norm2_bias_new_div, step_blocks_0_norm2_bias_new, blocks_0_expand_weight_new_pow_2, blocks_0_expand_weight_new_div, step_blocks_0_expand_weight_new, blocks_0_expand_bias_new_pow_2, blocks_0_expand_bias_new_div, step_blocks_0_expand_bias_new)
//   k169_blocks_0_norm1_bias_new<<<1, 256>>>(blocks_0_norm2_weight, lr, blocks_0_norm2_weight_new_div, exp_avg_blocks_0_norm2_weight_new, exp_avg_sq_blocks_0_norm2_weight_new, blocks_0_norm2_weight_new_pow_2, blocks_0_norm2_bias, blocks_0_norm2_bias_new_div, exp_avg_blocks_0_norm2_bias_new, exp_avg_sq_blocks_0_norm2_bias_new, blocks_0_norm2_bias_new_pow_2, blocks_0_norm2_weight_new, blocks_0_norm2_bias_new)
//   k177_blocks_0_expand_weight_new<<<256, 256>>>(blocks_0_expand_weight, lr, blocks_0_expand_weight_new_div, exp_avg_blocks_0_expand_weight_new, exp_avg_sq_blocks_0_expand_weight_new, blocks_0_expand_weight_new_pow_2, blocks_0_expand_weight_new)
//   k178_blocks_0_expand_bias_new<<<2, 256>>>(blocks_0_expand_bias, lr, blocks_0_expand_bias_new_div, exp_avg_blocks_0_expand_bias_new, exp_avg_sq_blocks_0_expand_bias_new, blocks_0_expand_bias_new_pow_2, blocks_0_expand_bias_new)
//   k166_step_blocks_0_norm1_bias_new<<<1, 256>>>(step_blocks_0_project_weight, lr, step_blocks_0_project_bias, step_blocks_1_norm1_weight, step_blocks_1_norm1_bias, blocks_0_project_weight_new_pow_2, blocks_0_project_weight_new_div, step_blocks_0_project_weight_new, blocks_0_project_bias_new_pow_2, blocks_0_project_bias_new_div, step_blocks_0_project_bias_new, blocks_1_norm1_weight_new_pow_2, blocks_1_norm1_weight_new_div, step_blocks_1_norm1_weight_new, blocks_1_norm1_bias_new_pow_2, blocks_1_norm1_bias_new_div, step_blocks_1_norm1_bias_new)
//   k177_blocks_0_expand_weight_new<<<256, 256>>>(blocks_0_project_weight, lr, blocks_0_project_weight_new_div, exp_avg_blocks_0_project_weight_new, exp_avg_sq_blocks_0_project_weight_new, blocks_0_project_weight_new_pow_2, blocks_0_project_weight_new)
//   k181_blocks_1_norm1_bias_new<<<1, 256>>>(blocks_0_project_bias, lr, blocks_0_project_bias_new_div, exp_avg_blocks_0_project_bias_new, exp_avg_sq_blocks_0_project_bias_new, blocks_0_project_bias_new_pow_2, blocks_1_norm1_weight, blocks_1_norm1_weight_new_div, exp_avg_blocks_1_norm1_weight_new, exp_avg_sq_blocks_1_norm1_weight_new, blocks_1_norm1_weight_new_pow_2, blocks_1_norm1_bias, blocks_1_norm1_bias_new_div, exp_avg_blocks_1_norm1_bias_new, exp_avg_sq_blocks_1_norm1_bias_new, blocks_1_norm1_bias_new_pow_2, blocks_0_project_bias_new, blocks_1_norm1_weight_new, blocks_1_norm1_bias_new)
//   k166_step_blocks_0_norm1_bias_new<<<1, 256>>>(step_blocks_1_attention_qkv_weight, lr, step_blocks_1_attention_qkv_bias, step_blocks_1_attention_out_weight, step_blocks_1_attention_out_bias, blocks_1_attention_qkv_weight_new_pow_2, blocks_1_attention_qkv_weight_new_div, step_blocks_1_attention_qkv_weight_new, blocks_1_attention_qkv_bias_new_pow_2, blocks_1_attention_qkv_bias_new_div, step_blocks_1_attention_qkv_bias_new, blocks_1_attention_out_weight_new_pow_2, blocks_1_attention_out_weight_new_div, step_blocks_1_attention_out_weight_new, blocks_1_attention_out_bias_new_pow_2, blocks_1_attention_out_bias_new_div, step_blocks_1_attention_out_bias_new)
//   k171_blocks_0_attention_qkv_weight_new<<<192, 256>>>(blocks_1_attention_qkv_weight, lr, blocks_1_attention_qkv_weight_new_div, exp_avg_blocks_1_attention_qkv_weight_new, exp_avg_sq_blocks_1_attention_qkv_weight_new, blocks_1_attention_qkv_weight_new_pow_2, blocks_1_attention_qkv_weight_new)
//   k172_blocks_0_attention_qkv_bias_new<<<2, 256>>>(blocks_1_attention_qkv_bias, lr, blocks_1_attention_qkv_bias_new_div, exp_avg_blocks_1_attention_qkv_bias_new, exp_avg_sq_blocks_1_attention_qkv_bias_new, blocks_1_attention_qkv_bias_new_pow_2, blocks_1_attention_qkv_bias_new)
//   k173_blocks_0_attention_out_weight_new<<<64, 256>>>(blocks_1_attention_out_weight, lr, blocks_1_attention_out_weight_new_div, exp_avg_blocks_1_attention_out_weight_new, exp_avg_sq_blocks_1_attention_out_weight_new, blocks_1_attention_out_weight_new_pow_2, blocks_1_attention_out_weight_new)
//   k174_blocks_0_attention_out_bias_new<<<1, 256>>>(blocks_1_attention_out_bias, lr, blocks_1_attention_out_bias_new_div, exp_avg_blocks_1_attention_out_bias_new, exp_avg_sq_blocks_1_attention_out_bias_new, blocks_1_attention_out_bias_new_pow_2, blocks_1_attention_out_bias_new)
//   k166_step_blocks_0_norm1_bias_new<<<1, 256>>>(step_blocks_1_norm2_weight, lr, step_blocks_1_norm2_bias, step_blocks_1_expand_weight, step_blocks_1_expand_bias, blocks_1_norm2_weight_new_pow_2, blocks_1_norm2_weight_new_div, step_blocks_1_norm2_weight_new, blocks_1_norm2_bias_new_pow_2, blocks_1_norm2_bias_new_div, step_blocks_1_norm2_bias_new, blocks_1_expand_weight_new_pow_2, blocks_1_expand_weight_new_div, step_blocks_1_expand_weight_new, blocks_1_expand_bias_new_pow_2, blocks_1_expand_bias_new_div, step_blocks_1_expand_bias_new)
//   k169_blocks_0_norm1_bias_new<<<1, 256>>>(blocks_1_norm2_weight, lr, blocks_1_norm2_weight_new_div, exp_avg_blocks_1_norm2_weight_new, exp_avg_sq_blocks_1_norm2_weight_new, blocks_1_norm2_weight_new_pow_2, blocks_1_norm2_bias, blocks_1_norm2_bias_new_div, exp_avg_blocks_1_norm2_bias_new, exp_avg_sq_blocks_1_norm2_bias_new, blocks_1_norm2_bias_new_pow_2, blocks_1_norm2_weight_new, blocks_1_norm2_bias_new)
//   k177_blocks_0_expand_weight_new<<<256, 256>>>(blocks_1_expand_weight, lr, blocks_1_expand_weight_new_div, exp_avg_blocks_1_expand_weight_new, exp_avg_sq_blocks_1_expand_weight_new, blocks_1_expand_weight_new_pow_2, blocks_1_expand_weight_new)
//   k178_blocks_0_expand_bias_new<<<2, 256>>>(blocks_1_expand_bias, lr, blocks_1_expand_bias_new_div, exp_avg_blocks_1_expand_bias_new, exp_avg_sq_blocks_1_expand_bias_new, blocks_1_expand_bias_new_pow_2, blocks_1_expand_bias_new)
//   k166_step_blocks_0_norm1_bias_new<<<1, 256>>>(step_blocks_1_project_weight, lr, step_blocks_1_project_bias, step_blocks_2_norm1_weight, step_blocks_2_norm1_bias, blocks_1_project_weight_new_pow_2, blocks_1_project_weight_new_div, step_blocks_1_project_weight_new, blocks_1_project_bias_new_pow_2, blocks_1_project_bias_new_div, step_blocks_1_project_bias_new, blocks_2_norm1_weight_new_pow_2, blocks_2_norm1_weight_new_div, step_blocks_2_norm1_weight_new, blocks_2_norm1_bias_new_pow_2, blocks_2_norm1_bias_new_div, step_blocks_2_norm1_bias_new)
//   k177_blocks_0_expand_weight_new<<<256, 256>>>(blocks_1_project_weight, lr, blocks_1_project_weight_new_div, exp_avg_blocks_1_project_weight_new, exp_avg_sq_blocks_1_project_weight_new, blocks_1_project_weight_new_pow_2, blocks_1_project_weight_new)
//   k181_blocks_1_norm1_bias_new<<<1, 256>>>(blocks_1_project_bias, lr, blocks_1_project_bias_new_div, exp_avg_blocks_1_project_bias_new, exp_avg_sq_blocks_1_project_bias_new, blocks_1_project_bias_new_pow_2, blocks_2_norm1_weight, blocks_2_norm1_weight_new_div, exp_avg_blocks_2_norm1_weight_new, exp_avg_sq_blocks_2_norm1_weight_new, blocks_2_norm1_weight_new_pow_2, blocks_2_norm1_bias, blocks_2_norm1_bias_new_div, exp_avg_blocks_2_norm1_bias_new, exp_avg_sq_blocks_2_norm1_bias_new, blocks_2_norm1_bias_new_pow_2, blocks_1_project_bias_new, blocks_2_norm1_weight_new, blocks_2_norm1_bias_new)
//   k166_step_blocks_0_norm1_bias_new<<<1, 256>>>(step_blocks_2_attention_qkv_weight, lr, step_blocks_2_attention_qkv_bias, step_blocks_2_attention_out_weight, step_blocks_2_attention_out_bias, blocks_2_attention_qkv_weight_new_pow_2, blocks_2_attention_qkv_weight_new_div, step_blocks_2_attention_qkv_weight_new, blocks_2_attention_qkv_bias_new_pow_2, blocks_2_attention_qkv_bias_new_div, step_blocks_2_attention_qkv_bias_new, blocks_2_attention_out_weight_new_pow_2, blocks_2_attention_out_weight_new_div, step_blocks_2_attention_out_weight_new, blocks_2_attention_out_bias_new_pow_2, blocks_2_attention_out_bias_new_div, step_blocks_2_attention_out_bias_new)
//   k171_blocks_0_attention_qkv_weight_new<<<192, 256>>>(blocks_2_attention_qkv_weight, lr, blocks_2_attention_qkv_weight_new_div, exp_avg_blocks_2_attention_qkv_weight_new, exp_avg_sq_blocks_2_attention_qkv_weight_new, blocks_2_attention_qkv_weight_new_pow_2, blocks_2_attention_qkv_weight_new)
//   k172_blocks_0_attention_qkv_bias_new<<<2, 256>>>(blocks_2_attention_qkv_bias, lr, blocks_2_attention_qkv_bias_new_div, exp_avg_blocks_2_attention_qkv_bias_new, exp_avg_sq_blocks_2_attention_qkv_bias_new, blocks_2_attention_qkv_bias_new_pow_2, blocks_2_attention_qkv_bias_new)
//   k173_blocks_0_attention_out_weight_new<<<64, 256>>>(blocks_2_attention_out_weight, lr, blocks_2_attention_out_weight_new_div, exp_avg_blocks_2_attention_out_weight_new, exp_avg_sq_blocks_2_attention_out_weight_new, blocks_2_attention_out_weight_new_pow_2, blocks_2_attention_out_weight_new)
//   k174_blocks_0_attention_out_bias_new<<<1, 256>>>(blocks_2_attention_out_bias, lr, blocks_2_attention_out_bias_new_div, exp_avg_blocks_2_attention_out_bias_new, exp_avg_sq_blocks_2_attention_out_bias_new, blocks_2_attention_out_bias_new_pow_2, blocks_2_attention_out_bias_new)
//   k166_step_blocks_0_norm1_bias_new<<<1, 256>>>(step_blocks_2_norm2_weight, lr, step_blocks_2_norm2_bias, step_blocks_2_expand_weight, step_blocks_2_expand_bias, blocks_2_norm2_weight_new_pow_2, blocks_2_norm2_weight_new_div, step_blocks_2_norm2_weight_new, blocks_2_norm2_bias_new_pow_2, blocks_2_norm2_bias_new_div, step_blocks_2_norm2_bias_new, blocks_2_expand_weight_new_pow_2, blocks_2_expand_weight_new_div, step_blocks_2_expand_weight_new, blocks_2_expand_bias_new_pow_2, blocks_2_expand_bias_new_div, step_blocks_2_expand_bias_new)
//   k169_blocks_0_norm1_bias_new<<<1, 256>>>(blocks_2_norm2_weight, lr, blocks_2_norm2_weight_new_div, exp_avg_blocks_2_norm2_weight_new, exp_avg_sq_blocks_2_norm2_weight_new, blocks_2_norm2_weight_new_pow_2, blocks_2_norm2_bias, blocks_2_norm2_bias_new_div, exp_avg_blocks_2_norm2_bias_new, exp_avg_sq_blocks_2_norm2_bias_new, blocks_2_norm2_bias_new_pow_2, blocks_2_norm2_weight_new, blocks_2_norm2_bias_new)
//   k177_blocks_0_expand_weight_new<<<256, 256>>>(blocks_2_expand_weight, lr, blocks_2_expand_weight_new_div, exp_avg_blocks_2_expand_weight_new, exp_avg_sq_blocks_2_expand_weight_new, blocks_2_expand_weight_new_pow_2, blocks_2_expand_weight_new)
//   k178_blocks_0_expand_bias_new<<<2, 256>>>(blocks_2_expand_bias, lr, blocks_2_expand_bias_new_div, exp_avg_blocks_2_expand_bias_new, exp_avg_sq_blocks_2_expand_bias_new, blocks_2_expand_bias_new_pow_2, blocks_2_expand_bias_new)
//   k166_step_blocks_0_norm1_bias_new<<<1, 256>>>(step_blocks_2_project_weight, lr, step_blocks_2_project_bias, step_blocks_3_norm1_weight, step_blocks_3_norm1_bias, blocks_2_project_weight_new_pow_2, blocks_2_project_weight_new_div, step_blocks_2_project_weight_new, blocks_2_project_bias_new_pow_2, blocks_2_project_bias_new_div, step_blocks_2_project_bias_new, blocks_3_norm1_weight_new_pow_2, blocks_3_norm1_weight_new_div, step_blocks_3_norm1_weight_new, blocks_3_norm1_bias_new_pow_2, blocks_3_norm1_bias_new_div, step_blocks_3_norm1_bias_new)
//   k177_blocks_0_expand_weight_new<<<256, 256>>>(blocks_2_project_weight, lr, blocks_2_project_weight_new_div, exp_avg_blocks_2_project_weight_new, exp_avg_sq_blocks_2_project_weight_new, blocks_2_project_weight_new_pow_2, blocks_2_project_weight_new)
//   k181_blocks_1_norm1_bias_new<<<1, 256>>>(blocks_2_project_bias, lr, blocks_2_project_bias_new_div, exp_avg_blocks_2_project_bias_new, exp_avg_sq_blocks_2_project_bias_new, blocks_2_project_bias_new_pow_2, blocks_3_norm1_weight, blocks_3_norm1_weight_new_div, exp_avg_blocks_3_norm1_weight_new, exp_avg_sq_blocks_3_norm1_weight_new, blocks_3_norm1_weight_new_pow_2, blocks_3_norm1_bias, blocks_3_norm1_bias_new_div, exp_avg_blocks_3_norm1_bias_new, exp_avg_sq_blocks_3_norm1_bias_new, blocks_3_norm1_bias_new_pow_2, blocks_2_project_bias_new, blocks_3_norm1_weight_new, blocks_3_norm1_bias_new)
//   k166_step_blocks_0_norm1_bias_new<<<1, 256>>>(step_blocks_3_attention_qkv_weight, lr, step_blocks_3_attention_qkv_bias, step_blocks_3_attention_out_weight, step_blocks_3_attention_out_bias, blocks_3_attention_qkv_weight_new_pow_2, blocks_3_attention_qkv_weight_new_div, step_blocks_3_attention_qkv_weight_new, blocks_3_attention_qkv_bias_new_pow_2, blocks_3_attention_qkv_bias_new_div, step_blocks_3_attention_qkv_bias_new, blocks_3_attention_out_weight_new_pow_2, blocks_3_attention_out_weight_new_div, step_blocks_3_attention_out_weight_new, blocks_3_attention_out_bias_new_pow_2, blocks_3_attention_out_bias_new_div, step_blocks_3_attention_out_bias_new)
//   k171_blocks_0_attention_qkv_weight_new<<<192, 256>>>(blocks_3_attention_qkv_weight, lr, blocks_3_attention_qkv_weight_new_div, exp_avg_blocks_3_attention_qkv_weight_new, exp_avg_sq_blocks_3_attention_qkv_weight_new, blocks_3_attention_qkv_weight_new_pow_2, blocks_3_attention_qkv_weight_new)
//   k172_blocks_0_attention_qkv_bias_new<<<2, 256>>>(blocks_3_attention_qkv_bias, lr, blocks_3_attention_qkv_bias_new_div, exp_avg_blocks_3_attention_qkv_bias_new, exp_avg_sq_blocks_3_attention_qkv_bias_new, blocks_3_attention_qkv_bias_new_pow_2, blocks_3_attention_qkv_bias_new)
//   k173_blocks_0_attention_out_weight_new<<<64, 256>>>(blocks_3_attention_out_weight, lr, blocks_3_attention_out_weight_new_div, exp_avg_blocks_3_attention_out_weight_new, exp_avg_sq_blocks_3_attention_out_weight_new, blocks_3_attention_out_weight_new_pow_2, blocks_3_attention_out_weight_new)
//   k174_blocks_0_attention_out_bias_new<<<1, 256>>>(blocks_3_attention_out_bias, lr, blocks_3_attention_out_bias_new_div, exp_avg_blocks_3_attention_out_bias_new, exp_avg_sq_blocks_3_attention_out_bias_new, blocks_3_attention_out_bias_new_pow_2, blocks_3_attention_out_bias_new)
//   k166_step_blocks_0_norm1_bias_new<<<1, 256>>>(step_blocks_3_norm2_weight, lr, step_blocks_3_norm2_bias, step_blocks_3_expand_weight, step_blocks_3_expand_bias, blocks_3_norm2_weight_new_pow_2, blocks_3_norm2_weight_new_div, step_blocks_3_norm2_weight_new, blocks_3_norm2_bias_new_pow_2, blocks_3_norm2_bias_new_div, step_blocks_3_norm2_bias_new, blocks_3_expand_weight_new_pow_2, blocks_3_expand_weight_new_div, step_blocks_3_expand_weight_new, blocks_3_expand_bias_new_pow_2, blocks_3_expand_bias_new_div, step_blocks_3_expand_bias_new)
//   k169_blocks_0_norm1_bias_new<<<1, 256>>>(blocks_3_norm2_weight, lr, blocks_3_norm2_weight_new_div, exp_avg_blocks_3_norm2_weight_new, exp_avg_sq_blocks_3_norm2_weight_new, blocks_3_norm2_weight_new_pow_2, blocks_3_norm2_bias, blocks_3_norm2_bias_new_div, exp_avg_blocks_3_norm2_bias_new, exp_avg_sq_blocks_3_norm2_bias_new, blocks_3_norm2_bias_new_pow_2, blocks_3_norm2_weight_new, blocks_3_norm2_bias_new)
//   k177_blocks_0_expand_weight_new<<<256, 256>>>(blocks_3_expand_weight, lr, blocks_3_expand_weight_new_div, exp_avg_blocks_3_expand_weight_new, exp_avg_sq_blocks_3_expand_weight_new, blocks_3_expand_weight_new_pow_2, blocks_3_expand_weight_new)
//   k178_blocks_0_expand_bias_new<<<2, 256>>>(blocks_3_expand_bias, lr, blocks_3_expand_bias_new_div, exp_avg_blocks_3_expand_bias_new, exp_avg_sq_blocks_3_expand_bias_new, blocks_3_expand_bias_new_pow_2, blocks_3_expand_bias_new)
//   k166_step_blocks_0_norm1_bias_new<<<1, 256>>>(step_blocks_3_project_weight, lr, step_blocks_3_project_bias, step_norm_weight, step_norm_bias, blocks_3_project_weight_new_pow_2, blocks_3_project_weight_new_div, step_blocks_3_project_weight_new, blocks_3_project_bias_new_pow_2, blocks_3_project_bias_new_div, step_blocks_3_project_bias_new, norm_weight_new_pow_2, norm_weight_new_div, step_norm_weight_new, norm_bias_new_pow_2, norm_bias_new_div, step_norm_bias_new)
//   k177_blocks_0_expand_weight_new<<<256, 256>>>(blocks_3_project_weight, lr, blocks_3_project_weight_new_div, exp_avg_blocks_3_project_weight_new, exp_avg_sq_blocks_3_project_weight_new, blocks_3_project_weight_new_pow_2, blocks_3_project_weight_new)
//   k181_blocks_1_norm1_bias_new<<<1, 256>>>(blocks_3_project_bias, lr, blocks_3_project_bias_new_div, exp_avg_blocks_3_project_bias_new, exp_avg_sq_blocks_3_project_bias_new, blocks_3_project_bias_new_pow_2, norm_weight, norm_weight_new_div, exp_avg_norm_weight_new, exp_avg_sq_norm_weight_new, norm_weight_new_pow_2, norm_bias, norm_bias_new_div, exp_avg_norm_bias_new, exp_avg_sq_norm_bias_new, norm_bias_new_pow_2, blocks_3_project_bias_new, norm_weight_new, norm_bias_new)
//   k218_step_head_weight_new<<<1, 256>>>(step_head_weight, lr, head_weight_new_pow_2, head_weight_new_div, step_head_weight_new)
//   k167_symbols_weight_new<<<33, 256>>>(head_weight, lr, head_weight_new_div, exp_avg_head_weight_new, exp_avg_sq_head_weight_new, head_weight_new_pow_2, head_weight_new)
// Results: loss.
// What lasts from run to run, at the end:
//   symbols_weight = symbols_weight_new
//   positions_weight = positions_weight_new
//   blocks_0_norm1_weight = blocks_0_norm1_weight_new
//   blocks_0_norm1_bias = blocks_0_norm1_bias_new
//   blocks_0_attention_qkv_weight = blocks_0_attention_qkv_weight_new
//   blocks_0_attention_qkv_bias = blocks_0_attention_qkv_bias_new
//   blocks_0_attention_out_weight = blocks_0_attention_out_weight_new
//   blocks_0_attention_out_bias = blocks_0_attention_out_bias_new
//   blocks_0_norm2_weight = blocks_0_norm2_weight_new
//   blocks_0_norm2_bias = blocks_0_norm2_bias_new
//   blocks_0_expand_weight = blocks_0_expand_weight_new
//   blocks_0_expand_bias = blocks_0_expand_bias_new
//   blocks_0_project_weight = blocks_0_project_weight_new
//   blocks_0_project_bias = blocks_0_project_bias_new
//   blocks_1_norm1_weight = blocks_1_norm1_weight_new
//   blocks_1_norm1_bias = blocks_1_norm1_bias_new
//   blocks_1_attention_qkv_weight = blocks_1_attention_qkv_weight_new
//   blocks_1_attention_qkv_bias = blocks_1_attention_qkv_bias_new
//   blocks_1_attention_out_weight = blocks_1_attention_out_weight_new
//   blocks_1_attention_out_bias = blocks_1_attention_out_bias_new
//   blocks_1_norm2_weight = blocks_1_norm2_weight_new
//   blocks_1_norm2_bias = blocks_1_norm2_bias_new
//   blocks_1_expand_weight = blocks_1_expand_weight_new
//   blocks_1_expand_bias = blocks_1_expand_bias_new
//   blocks_1_project_weight = blocks_1_project_weight_new
//   blocks_1_project_bias = blocks_1_project_bias_new
//   blocks_2_norm1_weight = blocks_2_norm1_weight_new
//   blocks_2_norm1_bias = blocks_2_norm1_bias_new
//   blocks_2_attention_qkv_weight = blocks_2_attention_qkv_weight_new
//   blocks_2_attention_qkv_bias = blocks_2_attention_qkv_bias_new
//   blocks_2_attention_out_weight = blocks_2_attention_out_weight_new
//   blocks_2_attention_out_bias = blocks_2_attention_out_bias_new
//   blocks_2_norm2_weight = blocks_2_norm2_weight_new
//   blocks_2_norm2_bias = blocks_2_norm2_bias_new
//   blocks_2_expand_weight = blocks_2_expand_weight_new
//   blocks_2_expand_bias = blocks_2_expand_bias_new
//   blocks_2_project_weight = blocks_2_project_weight_new
//   blocks_2_project_bias = blocks_2_project_bias_new
//   blocks_3_norm1_weight = blocks_3_norm1_weight_new
//   blocks_3_norm1_bias = blocks_3_norm1_bias_new
//   blocks_3_attention_qkv_weight = blocks_3_attention_qkv_weight_new
//   blocks_3_attention_qkv_bias = blocks_3_attention_qkv_bias_new
//   blocks_3_attention_out_weight = blocks_3_attention_out_weight_new
//   blocks_3_attention_out_bias = blocks_3_attention_out_bias_new
//   blocks_3_norm2_weight = blocks_3_norm2_weight_new
//   blocks_3_norm2_bias = blocks_3_norm2_bias_new
//   blocks_3_expand_weight = blocks_3_expand_weight_new
//   blocks_3_expand_bias = blocks_3_expand_bias_new
//   blocks_3_project_weight = blocks_3_project_weight_new
//   blocks_3_project_bias = blocks_3_project_bias_new
//   norm_weight = norm_weight_new
//   norm_bias = norm_bias_new
//   head_weight = head_weight_new
//   step_symbols_weight = step_symbols_weight_new
//   exp_avg_symbols_weight = exp_avg_symbols_weight_new
//   exp_avg_sq_symbols_weight = exp_avg_sq_symbols_weight_new
//   step_positions_weight = step_positions_weight_new
//   exp_avg_positions_weight = exp_avg_positions_weight_new
//   exp_avg_sq_positions_weight = exp_avg_sq_positions_weight_new
//   step_blocks_0_norm1_weight = step_blocks_0_norm1_weight_new
//   exp_avg_blocks_0_norm1_weight = exp_avg_blocks_0_norm1_weight_new
//   exp_avg_sq_blocks_0_norm1_weight = exp_avg_sq_blocks_0_norm1_weight_new
//   step_blocks_0_norm1_bias = step_blocks_0_norm1_bias_new
//   exp_avg_blocks_0_norm1_bias = exp_avg_blocks_0_norm1_bias_new
//   exp_avg_sq_blocks_0_norm1_bias = exp_avg_sq_blocks_0_norm1_bias_new
//   step_blocks_0_attention_qkv_weight = step_blocks_0_attention_qkv_weight_new
//   exp_avg_blocks_0_attention_qkv_weight = exp_avg_blocks_0_attention_qkv_weight_new
//   exp_avg_sq_blocks_0_attention_qkv_weight = exp_avg_sq_blocks_0_attention_qkv_weight_new
//   step_blocks_0_attention_qkv_bias = step_blocks_0_attention_qkv_bias_new
//   exp_avg_blocks_0_attention_qkv_bias = exp_avg_blocks_0_attention_qkv_bias_new
//   exp_avg_sq_blocks_0_attention_qkv_bias = exp_avg_sq_blocks_0_attention_qkv_bias_new
//   step_blocks_0_attention_out_weight = step_blocks_0_attention_out_weight_new
//   exp_avg_blocks_0_attention_out_weight = exp_avg_blocks_0_attention_out_weight_new
//   exp_avg_sq_blocks_0_attention_out_weight = exp_avg_sq_blocks_0_attention_out_weight_new
//   step_blocks_0_attention_out_bias = step_blocks_0_attention_out_bias_new
//   exp_avg_blocks_0_attention_out_bias = exp_avg_blocks_0_attention_out_bias_new
//   exp_avg_sq_blocks_0_attention_out_bias = exp_avg_sq_blocks_0_attention_out_bias_new
//   step_blocks_0_norm2_weight = step_blocks_0_norm2_weight_new
//   exp_avg_blocks_0_norm2_weight = exp_avg_blocks_0_norm2_weight_new
//   exp_avg_sq_blocks_0_norm2_weight = exp_avg_sq_blocks_0_norm2_weight_new
//   step_blocks_0_norm2_bias = step_blocks_0_norm2_bias_new
//   exp_avg_blocks_0_norm2_bias = exp_avg_blocks_0_norm2_bias_new
//   exp_avg_sq_blocks_0_norm2_bias = exp_avg_sq_blocks_0_norm2_bias_new
//   step_blocks_0_expand_weight = step_blocks_0_expand_weight_new
//   exp_avg_blocks_0_expand_weight = exp_avg_blocks_0_expand_weight_new
//   exp_avg_sq_blocks_0_expand_weight = exp_avg_sq_blocks_0_expand_weight_new
//   step_blocks_0_expand_bias = step_blocks_0_expand_bias_new
//   exp_avg_blocks_0_expand_bias = exp_avg_blocks_0_expand_bias_new
//   exp_avg_sq_blocks_0_expand_bias = exp_avg_sq_blocks_0_expand_bias_new
//   step_blocks_0_project_weight = step_blocks_0_project_weight_new
//   exp_avg_blocks_0_project_weight = exp_avg_blocks_0_project_weight_new
//   exp_avg_sq_blocks_0_project_weight = exp_avg_sq_blocks_0_project_weight_new
//   step_blocks_0_project_bias = step_blocks_0_project_bias_new
//   exp_avg_blocks_0_project_bias = exp_avg_blocks_0_project_bias_new
//   exp_avg_sq_blocks_0_project_bias = exp_avg_sq_blocks_0_project_bias_new
//   step_blocks_1_norm1_weight = step_blocks_1_norm1_weight_new
//   exp_avg_blocks_1_norm1_weight = exp_avg_blocks_1_norm1_weight_new
//   exp_avg_sq_blocks_1_norm1_weight = exp_avg_sq_blocks_1_norm1_weight_new
//   step_blocks_1_norm1_bias = step_blocks_1_norm1_bias_new
//   exp_avg_blocks_1_norm1_bias = exp_avg_blocks_1_norm1_bias_new
//   exp_avg_sq_blocks_1_norm1_bias = exp_avg_sq_blocks_1_norm1_bias_new
//   step_blocks_1_attention_qkv_weight = step_blocks_1_attention_qkv_weight_new
//   exp_avg_blocks_1_attention_qkv_weight = exp_avg_blocks_1_attention_qkv_weight_new
//   exp_avg_sq_blocks_1_attention_qkv_weight = exp_avg_sq_blocks_1_attention_qkv_weight_new
//   step_blocks_1_attention_qkv_bias = step_blocks_1_attention_qkv_bias_new
//   exp_avg_blocks_1_attention_qkv_bias = exp_avg_blocks_1_attention_qkv_bias_new
//   exp_avg_sq_blocks_1_attention_qkv_bias = exp_avg_sq_blocks_1_attention_qkv_bias_new
//   step_blocks_1_attention_out_weight = step_blocks_1_attention_out_weight_new
//   exp_avg_blocks_1_attention_out_weight = exp_avg_blocks_1_attention_out_weight_new
//   exp_avg_sq_blocks_1_attention_out_weight = exp_avg_sq_blocks_1_attention_out_weight_new
//   step_blocks_1_attention_out_bias = step_blocks_1_attention_out_bias_new
//   exp_avg_blocks_1_attention_out_bias = exp_avg_blocks_1_attention_out_bias_new
//   exp_avg_sq_blocks_1_attention_out_bias = exp_avg_sq_blocks_1_attention_out_bias_new
//   step_blocks_1_norm2_weight = step_blocks_1_norm2_weight_new
//   exp_avg_blocks_1_norm2_weight = exp_avg_blocks_1_norm2_weight_new
//   exp_avg_sq_blocks_1_norm2_weight = exp_avg_sq_blocks_1_norm2_weight_new
//   step_blocks_1_norm2_bias = step_blocks_1_norm2_bias_new
//   exp_avg_blocks_1_norm2_bias = exp_avg_blocks_1_norm2_bias_new
//   exp_avg_sq_blocks_1_norm2_bias = exp_avg_sq_blocks_1_norm2_bias_new
//   step_blocks_1_expand_weight = step_blocks_1_expand_weight_new
//   exp_avg_blocks_1_expand_weight = exp_avg_blocks_1_expand_weight_new
//   exp_avg_sq_blocks_1_expand_weight = exp_avg_sq_blocks_1_expand_weight_new
//   step_blocks_1_expand_bias = step_blocks_1_expand_bias_new
//   exp_avg_blocks_1_expand_bias = exp_avg_blocks_1_expand_bias_new
//   exp_avg_sq_blocks_1_expand_bias = exp_avg_sq_blocks_1_expand_bias_new
//   step_blocks_1_project_weight = step_blocks_1_project_weight_new
//   exp_avg_blocks_1_project_weight = exp_avg_blocks_1_project_weight_new
//   exp_avg_sq_blocks_1_project_weight = exp_avg_sq_blocks_1_project_weight_new
//   step_blocks_1_project_bias = step_blocks_1_project_bias_new
//   exp_avg_blocks_1_project_bias = exp_avg_blocks_1_project_bias_new
//   exp_avg_sq_blocks_1_project_bias = exp_avg_sq_blocks_1_project_bias_new
//   step_blocks_2_norm1_weight = step_blocks_2_norm1_weight_new
//   exp_avg_blocks_2_norm1_weight = exp_avg_blocks_2_norm1_weight_new
//   exp_avg_sq_blocks_2_norm1_weight = exp_avg_sq_blocks_2_norm1_weight_new
//   step_blocks_2_norm1_bias = step_blocks_2_norm1_bias_new
//   exp_avg_blocks_2_norm1_bias = exp_avg_blocks_2_norm1_bias_new
//   exp_avg_sq_blocks_2_norm1_bias = exp_avg_sq_blocks_2_norm1_bias_new
//   step_blocks_2_attention_qkv_weight = step_blocks_2_attention_qkv_weight_new
//   exp_avg_blocks_2_attention_qkv_weight = exp_avg_blocks_2_attention_qkv_weight_new
//   exp_avg_sq_blocks_2_attention_qkv_weight = exp_avg_sq_blocks_2_attention_qkv_weight_new
//   step_blocks_2_attention_qkv_bias = step_blocks_2_attention_qkv_bias_new
//   exp_avg_blocks_2_attention_qkv_bias = exp_avg_blocks_2_attention_qkv_bias_new
//   exp_avg_sq_blocks_2_attention_qkv_bias = exp_avg_sq_blocks_2_attention_qkv_bias_new
//   step_blocks_2_attention_out_weight = step_blocks_2_attention_out_weight_new
//   exp_avg_blocks_2_attention_out_weight = exp_avg_blocks_2_attention_out_weight_new
//   exp_avg_sq_blocks_2_attention_out_weight = exp_avg_sq_blocks_2_attention_out_weight_new
//   step_blocks_2_attention_out_bias = step_blocks_2_attention_out_bias_new
//   exp_avg_blocks_2_attention_out_bias = exp_avg_blocks_2_attention_out_bias_new
//   exp_avg_sq_blocks_2_attention_out_bias = exp_avg_sq_blocks_2_attention_out_bias_new
//   step_blocks_2_norm2_weight = step_blocks_2_norm2_weight_new
//   exp_avg_blocks_2_norm2_weight = exp_avg_blocks_2_norm2_weight_new
//   exp_avg_sq_blocks_2_norm2_weight = exp_avg_sq_blocks_2_norm2_weight_new
//   step_blocks_2_norm2_bias = step_blocks_2_norm2_bias_new
//   exp_avg_blocks_2_norm2_bias = exp_avg_blocks_2_norm2_bias_new
//   exp_avg_sq_blocks_2_norm2_bias = exp_avg_sq_blocks_2_norm2_bias_new
//   step_blocks_2_expand_weight = step_blocks_2_expand_weight_new
//   exp_avg_blocks_2_expand_weight = exp_avg_blocks_2_expand_weight_new
//   exp_avg_sq_blocks_2_expand_weight = exp_avg_sq_blocks_2_expand_weight_new
//   step_blocks_2_expand_bias = step_blocks_2_expand_bias_new
//   exp_avg_blocks_2_expand_bias = exp_avg_blocks_2_expand_bias_new
//   exp_avg_sq_blocks_2_expand_bias = exp_avg_sq_blocks_2_expand_bias_new
//   step_blocks_2_project_weight = step_blocks_2_project_weight_new
//   exp_avg_blocks_2_project_weight = exp_avg_blocks_2_project_weight_new
//   exp_avg_sq_blocks_2_project_weight = exp_avg_sq_blocks_2_project_weight_new
//   step_blocks_2_project_bias = step_blocks_2_project_bias_new
//   exp_avg_blocks_2_project_bias = exp_avg_blocks_2_project_bias_new
//   exp_avg_sq_blocks_2_project_bias = exp_avg_sq_blocks_2_project_bias_new
//   step_blocks_3_norm1_weight = step_blocks_3_norm1_weight_new
//   exp_avg_blocks_3_norm1_weight = exp_avg_blocks_3_norm1_weight_new
//   exp_avg_sq_blocks_3_norm1_weight = exp_avg_sq_blocks_3_norm1_weight_new
//   step_blocks_3_norm1_bias = step_blocks_3_norm1_bias_new
//   exp_avg_blocks_3_norm1_bias = exp_avg_blocks_3_norm1_bias_new
//   exp_avg_sq_blocks_3_norm1_bias = exp_avg_sq_blocks_3_norm1_bias_new
//   step_blocks_3_attention_qkv_weight = step_blocks_3_attention_qkv_weight_new
//   exp_avg_blocks_3_attention_qkv_weight = exp_avg_blocks_3_attention_qkv_weight_new
//   exp_avg_sq_blocks_3_attention_qkv_weight = exp_avg_sq_blocks_3_attention_qkv_weight_new
//   step_blocks_3_attention_qkv_bias = step_blocks_3_attention_qkv_bias_new
//   exp_avg_blocks_3_attention_qkv_bias = exp_avg_blocks_3_attention_qkv_bias_new
//   exp_avg_sq_blocks_3_attention_qkv_bias = exp_avg_sq_blocks_3_attention_qkv_bias_new
//   step_blocks_3_attention_out_weight = step_blocks_3_attention_out_weight_new
//   exp_avg_blocks_3_attention_out_weight = exp_avg_blocks_3_attention_out_weight_new
//   exp_avg_sq_blocks_3_attention_out_weight = exp_avg_sq_blocks_3_attention_out_weight_new
//   step_blocks_3_attention_out_bias = step_blocks_3_attention_out_bias_new
//   exp_avg_blocks_3_attention_out_bias = exp_avg_blocks_3_attention_out_bias_new
//   exp_avg_sq_blocks_3_attention_out_bias = exp_avg_sq_blocks_3_attention_out_bias_new
//   step_blocks_3_norm2_weight = step_blocks_3_norm2_weight_new
//   exp_avg_blocks_3_norm2_weight = exp_avg_blocks_3_norm2_weight_new
//   exp_avg_sq_blocks_3_norm2_weight = exp_avg_sq_blocks_3_norm2_weight_new
//   step_blocks_3_norm2_bias = step_blocks_3_norm2_bias_new
//   exp_avg_blocks_3_norm2_bias = exp_avg_blocks_3_norm2_bias_new
//   exp_avg_sq_blocks_3_norm2_bias = exp_avg_sq_blocks_3_norm2_bias_new
//   step_blocks_3_expand_weight = step_blocks_3_expand_weight_new
//   exp_avg_blocks_3_expand_weight = exp_avg_blocks_3_expand_weight_new
//   exp_avg_sq_blocks_3_expand_weight = exp_avg_sq_blocks_3_expand_weight_new
//   step_blocks_3_expand_bias = step_blocks_3_expand_bias_new
//   exp_avg_blocks_3_expand_bias = exp_avg_blocks_3_expand_bias_new
//   exp_avg_sq_blocks_3_expand_bias = exp_avg_sq_blocks_3_expand_bias_new
//   step_blocks_3_project_weight = step_blocks_3_project_weight_new
//   exp_avg_blocks_3_project_weight = exp_avg_blocks_3_project_weight_new
//   exp_avg_sq_blocks_3_project_weight = exp_avg_sq_blocks_3_project_weight_new
//   step_blocks_3_project_bias = step_blocks_3_project_bias_new
//   exp_avg_blocks_3_project_bias = exp_avg_blocks_3_project_bias_new
//   exp_avg_sq_blocks_3_project_bias = exp_avg_sq_blocks_3_project_bias_new
//   step_norm_weight = step_norm_weight_new
//   exp_avg_norm_weight = exp_avg_norm_weight_new
//   exp_avg_sq_norm_weight = exp_avg_sq_norm_weight_new
//   step_norm_bias = step_norm_bias_new
//   exp_avg_norm_bias = exp_avg_norm_bias_new
//   exp_avg_sq_norm_bias = exp_avg_sq_norm_bias_new
//   step_head_weight = step_head_weight_new
//   exp_avg_head_weight = exp_avg_head_weight_new
//   exp_avg_sq_head_weight = exp_avg_sq_head_weight_new
