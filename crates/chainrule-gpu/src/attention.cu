// Attention that never holds the square of scores, by the units for matrices: operands of bf16,
// sums of f32. A block of four warps has 64 rows, 16 a warp, and walks over tiles of 64 columns.
//
// A warp holds a tile of 16 rows and 8 columns as four numbers a thread: two of row `lane / 4` and
// two of the row 8 below, in the columns from `2 * (lane % 4)`. Such tiles of results, rounded, are
// operands of the next product where they are.

// The matrices of a stack: those of `inner` stand `near` apart, groups of them `far`.
struct Heads {
    const unsigned short* data;
    size_t far, near, row;
    __device__ __forceinline__ const unsigned short* of(int stack, int inner) const {
        return data + (stack / inner) * far + (stack % inner) * near;
    }
};

#ifndef CHAINRULE_SHIM
// c += a b, of 16 rows, 8 columns and 16 between.
static __device__ __forceinline__ void multiply(
    float* c, const unsigned int* a, unsigned int b0, unsigned int b1
) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1)
    );
}
// Four tiles of 8 rows of 16 bytes, whose addresses are those of the lanes in turn.
static __device__ __forceinline__ void fetch(unsigned int* b, const unsigned short* row) {
    unsigned int at = (unsigned int)__cvta_generic_to_shared(row);
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3]) : "r"(at) : "memory"
    );
}
// The same, transposed.
static __device__ __forceinline__ void fetch_turned(unsigned int* b, const unsigned short* row) {
    unsigned int at = (unsigned int)__cvta_generic_to_shared(row);
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3]) : "r"(at) : "memory"
    );
}
// The number of another thread of four.
static __device__ __forceinline__ float of_lane(float x, int other) {
    return __shfl_xor_sync(0xffffffffu, x, other);
}
#endif

static __device__ __forceinline__ unsigned int pair(float low, float high) {
    return (unsigned int)to_bf16(low) | (unsigned int)to_bf16(high) << 16;
}

// 16 rows as left operands, from row `top` on; zeros below the last row.
template <int D>
static __device__ __forceinline__ void take_rows(
    unsigned int (*a)[4], const unsigned short* x, size_t row, int top, int rows, int lane
) {
    const int first = top + lane / 4, second = first + 8;
    #pragma unroll
    for (int k = 0; k < D / 16; k++) {
        const unsigned short* at = x + 16 * k + 2 * (lane % 4);
        const unsigned int* one = (const unsigned int*)(at + (size_t)first * row);
        const unsigned int* two = (const unsigned int*)(at + (size_t)second * row);
        a[k][0] = first < rows ? one[0] : 0u;
        a[k][1] = second < rows ? two[0] : 0u;
        a[k][2] = first < rows ? one[4] : 0u;
        a[k][3] = second < rows ? two[4] : 0u;
    }
}

// 64 rows for all warps.
template <int D>
static __device__ __forceinline__ void share_rows(
    unsigned short* tile, const unsigned short* x, size_t row, int top, int rows, int thread
) {
    #pragma unroll
    for (int t = thread; t < 64 * D / 8; t += 128) {
        const int r = t / (D / 8), c = t % (D / 8) * 8;
        uint4 words = make_uint4(0u, 0u, 0u, 0u);
        if (top + r < rows) { words = *(const uint4*)(x + (size_t)(top + r) * row + c); }
        *(uint4*)(tile + r * (D + 8) + c) = words;
    }
}

// s = a b^T for the 64 rows of b that are shared.
template <int D>
static __device__ __forceinline__ void scores(
    float (*s)[4], unsigned int (*a)[4], const unsigned short* b, int lane
) {
    #pragma unroll
    for (int j = 0; j < 8; j++) { s[j][0] = s[j][1] = s[j][2] = s[j][3] = 0.0f; }
    const unsigned short* at = b + (lane / 16 * 8 + lane % 8) * (D + 8) + lane / 8 % 2 * 8;
    #pragma unroll
    for (int k = 0; k < D / 16; k++) {
        #pragma unroll
        for (int j = 0; j < 4; j++) {
            unsigned int w[4];
            fetch(w, at + 16 * j * (D + 8) + 16 * k);
            multiply(s[2 * j], a[k], w[0], w[1]);
            multiply(s[2 * j + 1], a[k], w[2], w[3]);
        }
    }
}

// c += s b, with s rounded, for the 64 rows of b that are shared.
template <int D>
static __device__ __forceinline__ void add_product(
    float (*c)[4], float (*s)[4], const unsigned short* b, int lane
) {
    const unsigned short* at = b + (lane / 8 % 2 * 8 + lane % 8) * (D + 8) + lane / 16 * 8;
    #pragma unroll
    for (int k = 0; k < 4; k++) {
        const unsigned int a[4] = {
            pair(s[2 * k][0], s[2 * k][1]), pair(s[2 * k][2], s[2 * k][3]),
            pair(s[2 * k + 1][0], s[2 * k + 1][1]), pair(s[2 * k + 1][2], s[2 * k + 1][3]),
        };
        #pragma unroll
        for (int n = 0; n < D / 16; n++) {
            unsigned int w[4];
            fetch_turned(w, at + 16 * k * (D + 8) + 16 * n);
            multiply(c[2 * n], a, w[0], w[1]);
            multiply(c[2 * n + 1], a, w[2], w[3]);
        }
    }
}

template <int D>
static __device__ __forceinline__ void put_rows(
    float* y, float (*c)[4], float above, float below, int top, int rows, int lane
) {
    const int first = top + lane / 4, second = first + 8;
    #pragma unroll
    for (int n = 0; n < D / 8; n++) {
        float* at = y + 8 * n + 2 * (lane % 4);
        if (first < rows) {
            at[(size_t)first * D] = c[n][0] * above;
            at[(size_t)first * D + 1] = c[n][1] * above;
        }
        if (second < rows) {
            at[(size_t)second * D] = c[n][2] * below;
            at[(size_t)second * D + 1] = c[n][3] * below;
        }
    }
}

// softmax(scale q k^T) v, and the logarithms of the rows' sums: each tile of columns changes the
// largest score so far, by which all before is scaled.
template <int D, bool CAUSAL>
static __device__ __forceinline__ void attention_forward(
    Heads q, Heads k, Heads v, float* y, float* logs, int inner, int queries, int keys, float scale
) {
    __shared__ __align__(16) unsigned short tile_k[64 * (D + 8)];
    __shared__ __align__(16) unsigned short tile_v[64 * (D + 8)];
    const int thread = (int)threadIdx.x, lane = thread % 32;
    const int tiles = (queries + 63) / 64;
    const int stack = (int)blockIdx.x / tiles;
    // The last rows see most, and begin first.
    const int from = (tiles - 1 - (int)blockIdx.x % tiles) * 64;
    const int top = from + thread / 32 * 16;
    const unsigned short* of_k = k.of(stack, inner);
    const unsigned short* of_v = v.of(stack, inner);
    unsigned int a[D / 16][4];
    take_rows<D>(a, q.of(stack, inner), q.row, top, queries, lane);
    float c[D / 8][4] = {};
    float most[2] = {-INF_F, -INF_F}, sum[2] = {0.0f, 0.0f};
    const int end = CAUSAL ? min(keys, from + 64) : keys;
    for (int left = 0; left < end; left += 64) {
        __syncthreads();
        share_rows<D>(tile_k, of_k, k.row, left, keys, thread);
        share_rows<D>(tile_v, of_v, v.row, left, keys, thread);
        __syncthreads();
        float s[8][4];
        scores<D>(s, a, tile_k, lane);
        const bool whole = left + 64 <= keys && (!CAUSAL || left + 64 <= from);
        float high[2] = {most[0], most[1]};
        #pragma unroll
        for (int j = 0; j < 8; j++) {
            #pragma unroll
            for (int i = 0; i < 4; i++) {
                const int column = left + 8 * j + 2 * (lane % 4) + i % 2;
                const int row = top + lane / 4 + i / 2 * 8;
                const bool seen = whole || (column < keys && (!CAUSAL || column <= row));
                s[j][i] = seen ? s[j][i] * scale : -INF_F;
                high[i / 2] = fmaxf(high[i / 2], s[j][i]);
            }
        }
        #pragma unroll
        for (int h = 0; h < 2; h++) {
            high[h] = fmaxf(high[h], of_lane(high[h], 1));
            high[h] = fmaxf(high[h], of_lane(high[h], 2));
            const float factor = most[h] == -INF_F ? 0.0f : __expf(most[h] - high[h]);
            most[h] = high[h];
            sum[h] *= factor;
            #pragma unroll
            for (int n = 0; n < D / 8; n++) {
                c[n][2 * h] *= factor;
                c[n][2 * h + 1] *= factor;
            }
        }
        #pragma unroll
        for (int j = 0; j < 8; j++) {
            #pragma unroll
            for (int i = 0; i < 4; i++) {
                const float e = most[i / 2] == -INF_F ? 0.0f : __expf(s[j][i] - most[i / 2]);
                s[j][i] = e;
                sum[i / 2] += e;
            }
        }
        add_product<D>(c, s, tile_v, lane);
    }
    #pragma unroll
    for (int h = 0; h < 2; h++) {
        sum[h] += of_lane(sum[h], 1);
        sum[h] += of_lane(sum[h], 2);
        const int row = top + lane / 4 + 8 * h;
        if (lane % 4 == 0 && row < queries) {
            logs[(size_t)stack * queries + row] = most[h] + logf(sum[h]);
        }
    }
    y += (size_t)stack * queries * D;
    put_rows<D>(y, c, 1.0f / sum[0], 1.0f / sum[1], top, queries, lane);
}

// The gradient of queries: ds k with ds = w (g v^T - delta) scale, where w are the weights again and
// delta is each row's sum of g y.
template <int D, bool CAUSAL>
static __device__ __forceinline__ void attention_queries(
    Heads q, Heads k, Heads v, Heads g, const float* logs, const float* delta, float* dq, int inner,
    int queries, int keys, float scale
) {
    __shared__ __align__(16) unsigned short tile_k[64 * (D + 8)];
    __shared__ __align__(16) unsigned short tile_v[64 * (D + 8)];
    const int thread = (int)threadIdx.x, lane = thread % 32;
    const int tiles = (queries + 63) / 64;
    const int stack = (int)blockIdx.x / tiles;
    const int from = (tiles - 1 - (int)blockIdx.x % tiles) * 64;
    const int top = from + thread / 32 * 16;
    const unsigned short* of_k = k.of(stack, inner);
    const unsigned short* of_v = v.of(stack, inner);
    unsigned int a[D / 16][4], up[D / 16][4];
    take_rows<D>(a, q.of(stack, inner), q.row, top, queries, lane);
    take_rows<D>(up, g.of(stack, inner), g.row, top, queries, lane);
    float log[2], mean[2];
    #pragma unroll
    for (int h = 0; h < 2; h++) {
        const int row = min(top + lane / 4 + 8 * h, queries - 1);
        log[h] = logs[(size_t)stack * queries + row];
        mean[h] = delta[(size_t)stack * queries + row];
    }
    float c[D / 8][4] = {};
    const int end = CAUSAL ? min(keys, from + 64) : keys;
    for (int left = 0; left < end; left += 64) {
        __syncthreads();
        share_rows<D>(tile_k, of_k, k.row, left, keys, thread);
        share_rows<D>(tile_v, of_v, v.row, left, keys, thread);
        __syncthreads();
        float s[8][4], d[8][4];
        scores<D>(s, a, tile_k, lane);
        scores<D>(d, up, tile_v, lane);
        #pragma unroll
        for (int j = 0; j < 8; j++) {
            #pragma unroll
            for (int i = 0; i < 4; i++) {
                const int column = left + 8 * j + 2 * (lane % 4) + i % 2;
                const int row = top + lane / 4 + i / 2 * 8;
                const bool seen = column < keys && (!CAUSAL || column <= row);
                const float w = seen ? __expf(s[j][i] * scale - log[i / 2]) : 0.0f;
                s[j][i] = w * (d[j][i] - mean[i / 2]);
            }
        }
        add_product<D>(c, s, tile_k, lane);
    }
    dq += (size_t)stack * queries * D;
    put_rows<D>(dq, c, scale, scale, top, queries, lane);
}

// The gradients of keys and values, ds^T q and w^T g: rows are keys, columns queries.
template <int D, bool CAUSAL>
static __device__ __forceinline__ void attention_keys(
    Heads q, Heads k, Heads v, Heads g, const float* logs, const float* delta, float* dk, float* dv,
    int inner, int queries, int keys, float scale
) {
    __shared__ __align__(16) unsigned short tile_q[64 * (D + 8)];
    __shared__ __align__(16) unsigned short tile_g[64 * (D + 8)];
    __shared__ float tile_log[64], tile_mean[64];
    const int thread = (int)threadIdx.x, lane = thread % 32;
    const int tiles = (keys + 63) / 64;
    const int stack = (int)blockIdx.x / tiles;
    const int from = (int)blockIdx.x % tiles * 64;
    const int top = from + thread / 32 * 16;
    const unsigned short* of_q = q.of(stack, inner);
    const unsigned short* of_g = g.of(stack, inner);
    unsigned int a[D / 16][4], up[D / 16][4];
    take_rows<D>(a, k.of(stack, inner), k.row, top, keys, lane);
    take_rows<D>(up, v.of(stack, inner), v.row, top, keys, lane);
    float of_keys[D / 8][4] = {}, of_values[D / 8][4] = {};
    for (int left = CAUSAL ? from : 0; left < queries; left += 64) {
        __syncthreads();
        share_rows<D>(tile_q, of_q, q.row, left, queries, thread);
        share_rows<D>(tile_g, of_g, g.row, left, queries, thread);
        if (thread < 64) {
            const int row = min(left + thread, queries - 1);
            tile_log[thread] = logs[(size_t)stack * queries + row];
            tile_mean[thread] = delta[(size_t)stack * queries + row];
        }
        __syncthreads();
        float s[8][4], d[8][4];
        scores<D>(s, a, tile_q, lane);
        scores<D>(d, up, tile_g, lane);
        #pragma unroll
        for (int j = 0; j < 8; j++) {
            #pragma unroll
            for (int i = 0; i < 4; i++) {
                const int place = 8 * j + 2 * (lane % 4) + i % 2, column = left + place;
                const int row = top + lane / 4 + i / 2 * 8;
                const bool seen = column < queries && row < keys && (!CAUSAL || row <= column);
                const float w = seen ? __expf(s[j][i] * scale - tile_log[place]) : 0.0f;
                s[j][i] = w;
                d[j][i] = w * (d[j][i] - tile_mean[place]);
            }
        }
        add_product<D>(of_values, s, tile_g, lane);
        add_product<D>(of_keys, d, tile_q, lane);
    }
    dk += (size_t)stack * keys * D;
    dv += (size_t)stack * keys * D;
    put_rows<D>(dk, of_keys, scale, scale, top, keys, lane);
    put_rows<D>(dv, of_values, 1.0f, 1.0f, top, keys, lane);
}
