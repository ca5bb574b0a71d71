// Attention that never holds the square of scores, by the units for matrices: operands and results
// of bf16, sums of f32. A block of four warps has M tiles of 16 rows for each and walks over tiles
// of 64 columns, of which the next is on its way while one is computed.
//
// A warp holds a tile of 16 rows and 8 columns as four numbers a thread: two of row `lane / 4` and
// two of the row 8 below, in the columns from `2 * (lane % 4)`. Such tiles of results, rounded, are
// operands of the next product where they are.

#define LOG2_E 1.4426950408889634f

// The matrices of a stack: those of `inner` stand `near` apart, groups of them `far`.
template <typename T>
struct Stack {
    T* data;
    size_t far, near, row;
    __device__ __forceinline__ T* of(int stack, int inner) const {
        return data + (stack / inner) * far + (stack % inner) * near;
    }
};
using Heads = Stack<const unsigned short>;
using Written = Stack<unsigned short>;

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
static __device__ __forceinline__ unsigned int shared_at(const unsigned short* row) {
    return (unsigned int)__cvta_generic_to_shared(row);
}
// Four tiles of 8 rows of 16 bytes, whose addresses are those of the lanes in turn.
static __device__ __forceinline__ void fetch(unsigned int* b, const unsigned short* row) {
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3]) : "r"(shared_at(row)) : "memory"
    );
}
// The same, transposed.
static __device__ __forceinline__ void fetch_turned(unsigned int* b, const unsigned short* row) {
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3]) : "r"(shared_at(row)) : "memory"
    );
}
// Begins a copy of 16 bytes to shared memory: zeros where there are none.
static __device__ __forceinline__ void send(
    unsigned short* to, const unsigned short* from, bool is_there
) {
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16, %2;"
        :: "r"(shared_at(to)), "l"(from), "r"(is_there ? 16 : 0) : "memory"
    );
}
// Waits for all copies that this thread began.
static __device__ __forceinline__ void arrive() {
    asm volatile("cp.async.wait_all;" ::: "memory");
}
// 2^x.
static __device__ __forceinline__ float power_of_2(float x) {
    float out;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
    return out;
}
#endif

// Rows as left operands, 16 for each tile, from row `top` on; zeros below the last row.
template <int D, int M>
static __device__ __forceinline__ void take_rows(
    unsigned int (&a)[M][D / 16][4], const unsigned short* x, size_t row, int top, int rows, int lane
) {
    #pragma unroll
    for (int m = 0; m < M; m++) {
        const int first = top + 16 * m + lane / 4, second = first + 8;
        #pragma unroll
        for (int k = 0; k < D / 16; k++) {
            const unsigned short* at = x + 16 * k + 2 * (lane % 4);
            const unsigned int* one = (const unsigned int*)(at + (size_t)first * row);
            const unsigned int* two = (const unsigned int*)(at + (size_t)second * row);
            a[m][k][0] = first < rows ? one[0] : 0u;
            a[m][k][1] = second < rows ? two[0] : 0u;
            a[m][k][2] = first < rows ? one[4] : 0u;
            a[m][k][3] = second < rows ? two[4] : 0u;
        }
    }
}

// Begins to copy 64 rows for all warps.
template <int D>
static __device__ __forceinline__ void share_rows(
    unsigned short* tile, const unsigned short* x, size_t row, int top, int rows, int thread
) {
    #pragma unroll
    for (int t = thread; t < 64 * D / 8; t += 128) {
        const int r = t / (D / 8), c = t % (D / 8) * 8;
        const bool is_there = top + r < rows;
        send(tile + r * (D + 8) + c, x + (size_t)(is_there ? top + r : 0) * row + c, is_there);
    }
}

// s = a b^T for N rows of b that are shared.
template <int D, int M, int N>
static __device__ __forceinline__ void scores(
    float (&s)[M][N / 8][4], unsigned int (&a)[M][D / 16][4], const unsigned short* b, int lane
) {
    #pragma unroll
    for (int m = 0; m < M; m++) {
        #pragma unroll
        for (int j = 0; j < N / 8; j++) { s[m][j][0] = s[m][j][1] = s[m][j][2] = s[m][j][3] = 0.0f; }
    }
    const unsigned short* at = b + (lane / 16 * 8 + lane % 8) * (D + 8) + lane / 8 % 2 * 8;
    #pragma unroll
    for (int k = 0; k < D / 16; k++) {
        #pragma unroll
        for (int j = 0; j < N / 16; j++) {
            unsigned int w[4];
            fetch(w, at + 16 * j * (D + 8) + 16 * k);
            #pragma unroll
            for (int m = 0; m < M; m++) {
                multiply(s[m][2 * j], a[m][k], w[0], w[1]);
                multiply(s[m][2 * j + 1], a[m][k], w[2], w[3]);
            }
        }
    }
}

// c += s b, with s rounded, for N rows of b that are shared.
template <int D, int M, int N>
static __device__ __forceinline__ void add_product(
    float (&c)[M][D / 8][4], float (&s)[M][N / 8][4], const unsigned short* b, int lane
) {
    const unsigned short* at = b + (lane / 8 % 2 * 8 + lane % 8) * (D + 8) + lane / 16 * 8;
    #pragma unroll
    for (int k = 0; k < N / 16; k++) {
        unsigned int a[M][4];
        #pragma unroll
        for (int m = 0; m < M; m++) {
            float (&one)[4] = s[m][2 * k], (&two)[4] = s[m][2 * k + 1];
            a[m][0] = pair(one[0], one[1]);
            a[m][1] = pair(one[2], one[3]);
            a[m][2] = pair(two[0], two[1]);
            a[m][3] = pair(two[2], two[3]);
        }
        #pragma unroll
        for (int n = 0; n < D / 16; n++) {
            unsigned int w[4];
            fetch_turned(w, at + 16 * k * (D + 8) + 16 * n);
            #pragma unroll
            for (int m = 0; m < M; m++) {
                multiply(c[m][2 * n], a[m], w[0], w[1]);
                multiply(c[m][2 * n + 1], a[m], w[2], w[3]);
            }
        }
    }
}

template <int D>
static __device__ __forceinline__ void put_rows(
    unsigned short* y, size_t row, float (&c)[D / 8][4], float above, float below, int top, int rows,
    int lane
) {
    const int first = top + lane / 4, second = first + 8;
    #pragma unroll
    for (int n = 0; n < D / 8; n++) {
        unsigned short* at = y + 8 * n + 2 * (lane % 4);
        if (first < rows) {
            *(unsigned int*)(at + (size_t)first * row) = pair(c[n][0] * above, c[n][1] * above);
        }
        if (second < rows) {
            *(unsigned int*)(at + (size_t)second * row) = pair(c[n][2] * below, c[n][3] * below);
        }
    }
}

// softmax(scale q k^T) v, and the logarithms of the rows' sums: each tile of columns changes the
// largest score so far, by which all before is scaled. The factor is positive.
template <int D, bool CAUSAL, int M>
static __device__ __forceinline__ void attention_forward(
    Heads q, Heads k, Heads v, Written y, float* logs, int inner, int queries, int keys, float scale
) {
    constexpr int TILE = 64 * (D + 8), ROWS = 64 * M;
    __shared__ __align__(16) unsigned short tile_k[2][TILE];
    __shared__ __align__(16) unsigned short tile_v[2][TILE];
    const int thread = (int)threadIdx.x, lane = thread % 32;
    const int tiles = (queries + ROWS - 1) / ROWS;
    const int stack = (int)blockIdx.x / tiles;
    // The last rows see most, and begin first.
    const int from = (tiles - 1 - (int)blockIdx.x % tiles) * ROWS;
    const int top = from + thread / 32 * 16 * M;
    const unsigned short* of_k = k.of(stack, inner);
    const unsigned short* of_v = v.of(stack, inner);
    share_rows<D>(tile_k[0], of_k, k.row, 0, keys, thread);
    share_rows<D>(tile_v[0], of_v, v.row, 0, keys, thread);
    unsigned int a[M][D / 16][4];
    take_rows<D, M>(a, q.of(stack, inner), q.row, top, queries, lane);
    float c[M][D / 8][4] = {};
    float most[M][2], sum[M][2];
    #pragma unroll
    for (int m = 0; m < M; m++) {
        most[m][0] = most[m][1] = -INF_F;
        sum[m][0] = sum[m][1] = 0.0f;
    }
    const float factor = scale * LOG2_E;
    const int end = CAUSAL ? min(keys, from + ROWS) : keys;
    for (int left = 0; left < end; left += 64) {
        const int now = left / 64 % 2;
        arrive();
        __syncthreads();
        if (left + 64 < end) {
            share_rows<D>(tile_k[1 - now], of_k, k.row, left + 64, keys, thread);
            share_rows<D>(tile_v[1 - now], of_v, v.row, left + 64, keys, thread);
        }
        if (CAUSAL && left >= top + 16 * M) { continue; }
        float s[M][8][4];
        scores<D, M, 64>(s, a, tile_k[now], lane);
        if (left + 64 > keys || (CAUSAL && left + 63 > top)) {
            #pragma unroll
            for (int m = 0; m < M; m++) {
                #pragma unroll
                for (int j = 0; j < 8; j++) {
                    #pragma unroll
                    for (int i = 0; i < 4; i++) {
                        const int column = left + 8 * j + 2 * (lane % 4) + i % 2;
                        const int row = top + 16 * m + lane / 4 + i / 2 * 8;
                        const bool seen = column < keys && (!CAUSAL || column <= row);
                        s[m][j][i] = seen ? s[m][j][i] : -INF_F;
                    }
                }
            }
        }
        #pragma unroll
        for (int m = 0; m < M; m++) {
            #pragma unroll
            for (int h = 0; h < 2; h++) {
                float high = most[m][h];
                #pragma unroll
                for (int j = 0; j < 8; j++) {
                    high = fmaxf(high, fmaxf(s[m][j][2 * h], s[m][j][2 * h + 1]));
                }
                high = fmaxf(high, across(high, 1));
                high = fmaxf(high, across(high, 2));
                // Column 0 is seen by all rows, so there is a largest score from the first tile on.
                const float base = high * factor;
                const float shrink = power_of_2(most[m][h] * factor - base);
                most[m][h] = high;
                float part = 0.0f;
                #pragma unroll
                for (int j = 0; j < 8; j++) {
                    #pragma unroll
                    for (int i = 2 * h; i < 2 * h + 2; i++) {
                        s[m][j][i] = power_of_2(s[m][j][i] * factor - base);
                        part += s[m][j][i];
                    }
                }
                sum[m][h] = sum[m][h] * shrink + part;
                #pragma unroll
                for (int n = 0; n < D / 8; n++) {
                    c[m][n][2 * h] *= shrink;
                    c[m][n][2 * h + 1] *= shrink;
                }
            }
        }
        add_product<D, M, 64>(c, s, tile_v[now], lane);
    }
    #pragma unroll
    for (int m = 0; m < M; m++) {
        #pragma unroll
        for (int h = 0; h < 2; h++) {
            sum[m][h] += across(sum[m][h], 1);
            sum[m][h] += across(sum[m][h], 2);
            const int row = top + 16 * m + lane / 4 + 8 * h;
            if (lane % 4 == 0 && row < queries) {
                logs[(size_t)stack * queries + row] = most[m][h] * scale + logf(sum[m][h]);
            }
        }
        const float above = 1.0f / sum[m][0], below = 1.0f / sum[m][1];
        put_rows<D>(y.of(stack, inner), y.row, c[m], above, below, top + 16 * m, queries, lane);
    }
}

// The gradient of queries: ds k with ds = w (g v^T - delta) scale, where w are the weights again and
// delta is each row's sum of g y, which the gradient of keys needs too.
template <int D, bool CAUSAL, int M>
static __device__ __forceinline__ void attention_queries(
    Heads q, Heads k, Heads v, Heads g, Heads y, const float* logs, Written dq, float* delta,
    int inner, int queries, int keys, float scale
) {
    constexpr int TILE = 64 * (D + 8), ROWS = 64 * M, N = 32;
    __shared__ __align__(16) unsigned short tile_k[2][TILE];
    __shared__ __align__(16) unsigned short tile_v[2][TILE];
    const int thread = (int)threadIdx.x, lane = thread % 32;
    const int tiles = (queries + ROWS - 1) / ROWS;
    const int stack = (int)blockIdx.x / tiles;
    const int from = (tiles - 1 - (int)blockIdx.x % tiles) * ROWS;
    const int top = from + thread / 32 * 16 * M;
    const unsigned short* of_k = k.of(stack, inner);
    const unsigned short* of_v = v.of(stack, inner);
    share_rows<D>(tile_k[0], of_k, k.row, 0, keys, thread);
    share_rows<D>(tile_v[0], of_v, v.row, 0, keys, thread);
    unsigned int a[M][D / 16][4], up[M][D / 16][4];
    take_rows<D, M>(a, y.of(stack, inner), y.row, top, queries, lane);
    take_rows<D, M>(up, g.of(stack, inner), g.row, top, queries, lane);
    float log[M][2], mean[M][2];
    #pragma unroll
    for (int m = 0; m < M; m++) {
        #pragma unroll
        for (int h = 0; h < 2; h++) {
            float sum = 0.0f;
            #pragma unroll
            for (int n = 0; n < D / 16; n++) {
                #pragma unroll
                for (int i = h; i < 4; i += 2) {
                    const unsigned int one = a[m][n][i], two = up[m][n][i];
                    sum += of_bf16((unsigned short)one) * of_bf16((unsigned short)two);
                    sum += of_bf16((unsigned short)(one >> 16)) * of_bf16((unsigned short)(two >> 16));
                }
            }
            sum += across(sum, 1);
            sum += across(sum, 2);
            mean[m][h] = sum;
            const int row = top + 16 * m + lane / 4 + 8 * h;
            if (lane % 4 == 0 && row < queries) { delta[(size_t)stack * queries + row] = sum; }
            log[m][h] = logs[(size_t)stack * queries + min(row, queries - 1)] * LOG2_E;
        }
    }
    take_rows<D, M>(a, q.of(stack, inner), q.row, top, queries, lane);
    float c[M][D / 8][4] = {};
    const float factor = scale * LOG2_E;
    const int end = CAUSAL ? min(keys, from + ROWS) : keys;
    for (int left = 0; left < end; left += 64) {
        const int now = left / 64 % 2;
        arrive();
        __syncthreads();
        if (left + 64 < end) {
            share_rows<D>(tile_k[1 - now], of_k, k.row, left + 64, keys, thread);
            share_rows<D>(tile_v[1 - now], of_v, v.row, left + 64, keys, thread);
        }
        #pragma unroll
        for (int part = 0; part < 64; part += N) {
            const int begin = left + part;
            if (begin >= end || (CAUSAL && begin >= top + 16 * M)) { continue; }
            float s[M][N / 8][4], d[M][N / 8][4];
            scores<D, M, N>(s, a, tile_k[now] + part * (D + 8), lane);
            scores<D, M, N>(d, up, tile_v[now] + part * (D + 8), lane);
            const bool whole = begin + N <= keys && (!CAUSAL || begin + N - 1 <= top);
            #pragma unroll
            for (int m = 0; m < M; m++) {
                #pragma unroll
                for (int j = 0; j < N / 8; j++) {
                    #pragma unroll
                    for (int i = 0; i < 4; i++) {
                        const float w = power_of_2(s[m][j][i] * factor - log[m][i / 2]);
                        s[m][j][i] = w * (d[m][j][i] - mean[m][i / 2]);
                    }
                }
            }
            if (!whole) {
                #pragma unroll
                for (int m = 0; m < M; m++) {
                    #pragma unroll
                    for (int j = 0; j < N / 8; j++) {
                        #pragma unroll
                        for (int i = 0; i < 4; i++) {
                            const int column = begin + 8 * j + 2 * (lane % 4) + i % 2;
                            const int row = top + 16 * m + lane / 4 + i / 2 * 8;
                            const bool seen = column < keys && (!CAUSAL || column <= row);
                            s[m][j][i] = seen ? s[m][j][i] : 0.0f;
                        }
                    }
                }
            }
            add_product<D, M, N>(c, s, tile_k[now] + part * (D + 8), lane);
        }
    }
    #pragma unroll
    for (int m = 0; m < M; m++) {
        put_rows<D>(dq.of(stack, inner), dq.row, c[m], scale, scale, top + 16 * m, queries, lane);
    }
}

// The gradients of keys and values, ds^T q and w^T g: rows are keys, columns queries.
template <int D, bool CAUSAL, int M>
static __device__ __forceinline__ void attention_keys(
    Heads q, Heads k, Heads v, Heads g, const float* logs, const float* delta, Written dk, Written dv,
    int inner, int queries, int keys, float scale
) {
    constexpr int TILE = 64 * (D + 8), ROWS = 64 * M, N = M == 1 ? 32 : 16;
    __shared__ __align__(16) unsigned short tile_q[2][TILE];
    __shared__ __align__(16) unsigned short tile_g[2][TILE];
    __shared__ float tile_log[2][64], tile_mean[2][64];
    const int thread = (int)threadIdx.x, lane = thread % 32;
    const int tiles = (keys + ROWS - 1) / ROWS;
    const int stack = (int)blockIdx.x / tiles;
    const int from = (int)blockIdx.x % tiles * ROWS;
    const int top = from + thread / 32 * 16 * M;
    const unsigned short* of_q = q.of(stack, inner);
    const unsigned short* of_g = g.of(stack, inner);
    const int begin = CAUSAL ? from : 0;
    logs += (size_t)stack * queries;
    delta += (size_t)stack * queries;
    if (begin < queries) {
        share_rows<D>(tile_q[0], of_q, q.row, begin, queries, thread);
        share_rows<D>(tile_g[0], of_g, g.row, begin, queries, thread);
        if (thread < 64) {
            const int row = min(begin + thread, queries - 1);
            tile_log[0][thread] = logs[row] * LOG2_E;
            tile_mean[0][thread] = delta[row];
        }
    }
    unsigned int a[M][D / 16][4], up[M][D / 16][4];
    take_rows<D, M>(a, k.of(stack, inner), k.row, top, keys, lane);
    take_rows<D, M>(up, v.of(stack, inner), v.row, top, keys, lane);
    float of_keys[M][D / 8][4] = {}, of_values[M][D / 8][4] = {};
    const float factor = scale * LOG2_E;
    for (int left = begin; left < queries; left += 64) {
        const int now = (left - begin) / 64 % 2;
        arrive();
        __syncthreads();
        if (left + 64 < queries) {
            share_rows<D>(tile_q[1 - now], of_q, q.row, left + 64, queries, thread);
            share_rows<D>(tile_g[1 - now], of_g, g.row, left + 64, queries, thread);
            if (thread < 64) {
                const int row = min(left + 64 + thread, queries - 1);
                tile_log[1 - now][thread] = logs[row] * LOG2_E;
                tile_mean[1 - now][thread] = delta[row];
            }
        }
        #pragma unroll
        for (int part = 0; part < 64; part += N) {
            const int first = left + part;
            if (first >= queries || (CAUSAL && first + N <= top)) { continue; }
            float s[M][N / 8][4], d[M][N / 8][4];
            scores<D, M, N>(s, a, tile_q[now] + part * (D + 8), lane);
            scores<D, M, N>(d, up, tile_g[now] + part * (D + 8), lane);
            const bool whole = first + N <= queries && (!CAUSAL || top + 16 * M - 1 <= first);
            #pragma unroll
            for (int j = 0; j < N / 8; j++) {
                #pragma unroll
                for (int i = 0; i < 2; i++) {
                    const int place = part + 8 * j + 2 * (lane % 4) + i, column = left + place;
                    const float log = tile_log[now][place], mean = tile_mean[now][place];
                    #pragma unroll
                    for (int m = 0; m < M; m++) {
                        #pragma unroll
                        for (int h = i; h < 4; h += 2) {
                            const int row = top + 16 * m + lane / 4 + h / 2 * 8;
                            const bool seen = whole || (column < queries && (!CAUSAL || row <= column));
                            const float w = seen ? power_of_2(s[m][j][h] * factor - log) : 0.0f;
                            s[m][j][h] = w;
                            d[m][j][h] = w * (d[m][j][h] - mean);
                        }
                    }
                }
            }
            add_product<D, M, N>(of_values, s, tile_g[now] + part * (D + 8), lane);
            add_product<D, M, N>(of_keys, d, tile_q[now] + part * (D + 8), lane);
        }
    }
    #pragma unroll
    for (int m = 0; m < M; m++) {
        const int row = top + 16 * m;
        put_rows<D>(dk.of(stack, inner), dk.row, of_keys[m], scale, scale, row, keys, lane);
        put_rows<D>(dv.of(stack, inner), dv.row, of_values[m], 1.0f, 1.0f, row, keys, lane);
    }
}
