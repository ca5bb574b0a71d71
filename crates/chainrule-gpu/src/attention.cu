// Attention that never holds the square of scores, by the units for matrices: operands and results
// of bf16 or f32, sums of f32. A block of four warps has M tiles of 16 rows for each and walks over tiles
// of 64 columns, or 32 of wide rows, of which the next is on its way while one is computed.
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
template <typename E>
using Heads = Stack<const typename E::Element>;
template <typename E>
using Written = Stack<typename E::Element>;

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
// The same of f32 rounded to 11 bits, with 8 between.
static __device__ __forceinline__ void multiply_tf32(
    float* c, const unsigned int* a, unsigned int b0, unsigned int b1
) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1)
    );
}
static __device__ __forceinline__ unsigned int to_tf32(float x) {
    unsigned int out;
    // Volatile, so that it is done again in place of being kept.
    asm volatile("cvt.rna.tf32.f32 %0, %1;" : "=r"(out) : "f"(x));
    return out;
}
static __device__ __forceinline__ unsigned int shared_at(const void* row) {
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
static __device__ __forceinline__ void send(void* to, const void* from, bool is_there) {
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

// Columns of a tile with rows of so many bytes, so that two of keys and two of values fit into
// shared memory.
static __device__ constexpr int columns_of(int bytes) {
    return bytes > 256 ? 16 : bytes > 128 ? 32 : 64;
}

// Begins to copy a tile of rows for all warps, 16 bytes at a time.
template <typename T, int D, int C>
static __device__ __forceinline__ void share_rows(
    T* tile, const T* x, size_t row, int top, int rows, int thread
) {
    constexpr int SOME = 16 / sizeof(T);
    #pragma unroll
    for (int t = thread; t < C * D / SOME; t += 128) {
        const int r = t / (D / SOME), c = t % (D / SOME) * SOME;
        const bool is_there = top + r < rows;
        send(tile + r * (D + 8) + c, x + (size_t)(is_there ? top + r : 0) * row + c, is_there);
    }
}

// Operands and results of bf16.
struct Bf16 {
    using Element = unsigned short;
    template <int D>
    struct Rows {
        unsigned int of[D / 16][4];
    };

    // 16 rows as left operands, from row `top` on; zeros below the last row.
    template <int D>
    static __device__ __forceinline__ void take_rows(
        Rows<D>& a, const Element* x, size_t row, int top, int rows, int lane
    ) {
        const int first = top + lane / 4, second = first + 8;
        #pragma unroll
        for (int k = 0; k < D / 16; k++) {
            const Element* at = x + 16 * k + 2 * (lane % 4);
            const unsigned int* one = (const unsigned int*)(at + (size_t)first * row);
            const unsigned int* two = (const unsigned int*)(at + (size_t)second * row);
            a.of[k][0] = first < rows ? one[0] : 0u;
            a.of[k][1] = second < rows ? two[0] : 0u;
            a.of[k][2] = first < rows ? one[4] : 0u;
            a.of[k][3] = second < rows ? two[4] : 0u;
        }
    }

    // A thread's share of the product of one of its two rows with another one.
    template <int D>
    static __device__ __forceinline__ float dot(Rows<D>& a, Rows<D>& b, int half) {
        float sum = 0.0f;
        #pragma unroll
        for (int k = 0; k < D / 16; k++) {
            #pragma unroll
            for (int i = half; i < 4; i += 2) {
                const unsigned int one = a.of[k][i], two = b.of[k][i];
                sum += of_bf16((Element)one) * of_bf16((Element)two);
                sum += of_bf16((Element)(one >> 16)) * of_bf16((Element)(two >> 16));
            }
        }
        return sum;
    }

    // s = a b^T for N rows of b that are shared.
    template <int D, int M, int N>
    static __device__ __forceinline__ void scores(
        float (&s)[M][N / 8][4], Rows<D> (&a)[M], const Element* b, int lane
    ) {
        const Element* at = b + (lane / 16 * 8 + lane % 8) * (D + 8) + lane / 8 % 2 * 8;
        #pragma unroll
        for (int k = 0; k < D / 16; k++) {
            #pragma unroll
            for (int j = 0; j < N / 16; j++) {
                unsigned int w[4];
                fetch(w, at + 16 * j * (D + 8) + 16 * k);
                #pragma unroll
                for (int m = 0; m < M; m++) {
                    multiply(s[m][2 * j], a[m].of[k], w[0], w[1]);
                    multiply(s[m][2 * j + 1], a[m].of[k], w[2], w[3]);
                }
            }
        }
    }

    // c += s b, with s rounded, for N rows of b that are shared.
    template <int D, int M, int N>
    static __device__ __forceinline__ void add_product(
        float (&c)[M][D / 8][4], float (&s)[M][N / 8][4], const Element* b, int lane
    ) {
        const Element* at = b + (lane / 8 % 2 * 8 + lane % 8) * (D + 8) + lane / 16 * 8;
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

    static __device__ __forceinline__ void put_two(Element* to, float one, float two) {
        *(unsigned int*)to = pair(one, two);
    }
};

// Operands and results of f32: rounded to 11 bits, or, where TERMS is 3, as sums of two such numbers,
// whose products lack the smallest term alone.
template <int TERMS>
struct Floats {
    using Element = float;
    template <int D>
    struct Rows {
        float of[D / 8][4];
    };

    template <int D>
    static __device__ __forceinline__ void take_rows(
        Rows<D>& a, const Element* x, size_t row, int top, int rows, int lane
    ) {
        const int first = top + lane / 4, second = first + 8;
        #pragma unroll
        for (int k = 0; k < D / 8; k++) {
            const Element* at = x + 8 * k + 2 * (lane % 4);
            #pragma unroll
            for (int i = 0; i < 2; i++) {
                a.of[k][2 * i] = first < rows ? at[(size_t)first * row + i] : 0.0f;
                a.of[k][2 * i + 1] = second < rows ? at[(size_t)second * row + i] : 0.0f;
            }
        }
    }

    template <int D>
    static __device__ __forceinline__ float dot(Rows<D>& a, Rows<D>& b, int half) {
        float sum = 0.0f;
        #pragma unroll
        for (int k = 0; k < D / 8; k++) {
            sum += a.of[k][half] * b.of[k][half];
            sum += a.of[k][half + 2] * b.of[k][half + 2];
        }
        return sum;
    }

    // The two numbers of 11 bits whose sum a number nearly is.
    struct Split {
        unsigned int high[4], low[4];
        template <int N>
        __device__ __forceinline__ void of(const float* x) {
            #pragma unroll
            for (int i = 0; i < N; i++) {
                high[i] = to_tf32(x[i]);
                if (TERMS == 3) { low[i] = to_tf32(x[i] - __int_as_float((int)high[i])); }
            }
        }
    };

    static __device__ __forceinline__ void add(float* c, const Split& a, const Split& b) {
        if (TERMS == 3) {
            multiply_tf32(c, a.low, b.high[0], b.high[1]);
            multiply_tf32(c, a.high, b.low[0], b.low[1]);
        }
        multiply_tf32(c, a.high, b.high[0], b.high[1]);
    }

    // The numbers between are taken in pairs that stand side by side, by both operands alike.
    template <int D, int M, int N>
    static __device__ __forceinline__ void scores(
        float (&s)[M][N / 8][4], Rows<D> (&a)[M], const Element* b, int lane
    ) {
        const Element* at = b + lane / 4 * (D + 8) + 2 * (lane % 4);
        #pragma unroll
        for (int k = 0; k < D / 8; k++) {
            #pragma unroll
            for (int m = 0; m < M; m++) {
                Split left, right;
                left.template of<4>(a[m].of[k]);
                #pragma unroll
                for (int j = 0; j < N / 8; j++) {
                    const float* two = at + 8 * j * (D + 8) + 8 * k;
                    const float both[2] = {two[0], two[1]};
                    right.template of<2>(both);
                    add(s[m][j], left, right);
                }
            }
        }
    }

    template <int D, int M, int N>
    static __device__ __forceinline__ void add_product(
        float (&c)[M][D / 8][4], float (&s)[M][N / 8][4], const Element* b, int lane
    ) {
        const Element* at = b + 2 * (lane % 4) * (D + 8) + lane / 4;
        #pragma unroll
        for (int k = 0; k < N / 8; k++) {
            #pragma unroll
            for (int m = 0; m < M; m++) {
                const float own[4] = {s[m][k][0], s[m][k][2], s[m][k][1], s[m][k][3]};
                Split left, right;
                left.template of<4>(own);
                #pragma unroll
                for (int n = 0; n < D / 8; n++) {
                    const float* one = at + 8 * k * (D + 8) + 8 * n;
                    const float both[2] = {one[0], one[D + 8]};
                    right.template of<2>(both);
                    add(c[m][n], left, right);
                }
            }
        }
    }

    static __device__ __forceinline__ void put_two(Element* to, float one, float two) {
        to[0] = one;
        to[1] = two;
    }
};

template <int M, int N>
static __device__ __forceinline__ void clear(float (&s)[M][N][4]) {
    #pragma unroll
    for (int m = 0; m < M; m++) {
        #pragma unroll
        for (int j = 0; j < N; j++) { s[m][j][0] = s[m][j][1] = s[m][j][2] = s[m][j][3] = 0.0f; }
    }
}

template <typename E, int D>
static __device__ __forceinline__ void put_rows(
    typename E::Element* y, size_t row, float (&c)[D / 8][4], float above, float below, int top,
    int rows, int lane
) {
    const int first = top + lane / 4, second = first + 8;
    #pragma unroll
    for (int n = 0; n < D / 8; n++) {
        typename E::Element* at = y + 8 * n + 2 * (lane % 4);
        if (first < rows) {
            E::put_two(at + (size_t)first * row, c[n][0] * above, c[n][1] * above);
        }
        if (second < rows) {
            E::put_two(at + (size_t)second * row, c[n][2] * below, c[n][3] * below);
        }
    }
}

// softmax(scale q k^T) v, and the logarithms of the rows' sums: each tile of columns changes the
// largest score so far, by which all before is scaled. The factor is positive.
template <typename E, int D, bool CAUSAL, int M>
static __device__ __forceinline__ void attention_forward(
    Heads<E> q, Heads<E> k, Heads<E> v, Written<E> y, float* logs, int inner, int queries, int keys, float scale
) {
    using T = typename E::Element;
    constexpr int C = columns_of(D * sizeof(T)), TILE = C * (D + 8), ROWS = 64 * M;
    __shared__ __align__(16) T tile_k[2][TILE];
    __shared__ __align__(16) T tile_v[2][TILE];
    const int thread = (int)threadIdx.x, lane = thread % 32;
    const int tiles = (queries + ROWS - 1) / ROWS;
    const int stack = (int)blockIdx.x / tiles;
    // The last rows see most, and begin first.
    const int from = (tiles - 1 - (int)blockIdx.x % tiles) * ROWS;
    const int top = from + thread / 32 * 16 * M;
    const T* of_k = k.of(stack, inner);
    const T* of_v = v.of(stack, inner);
    share_rows<T, D, C>(tile_k[0], of_k, k.row, 0, keys, thread);
    share_rows<T, D, C>(tile_v[0], of_v, v.row, 0, keys, thread);
    typename E::template Rows<D> a[M];
    #pragma unroll
    for (int m = 0; m < M; m++) {
        E::template take_rows<D>(a[m], q.of(stack, inner), q.row, top + 16 * m, queries, lane);
    }
    float c[M][D / 8][4] = {};
    float most[M][2], sum[M][2];
    #pragma unroll
    for (int m = 0; m < M; m++) {
        most[m][0] = most[m][1] = -INF_F;
        sum[m][0] = sum[m][1] = 0.0f;
    }
    const float factor = scale * LOG2_E;
    const int end = CAUSAL ? min(keys, from + ROWS) : keys;
    for (int left = 0; left < end; left += C) {
        const int now = left / C % 2;
        arrive();
        __syncthreads();
        if (left + C < end) {
            share_rows<T, D, C>(tile_k[1 - now], of_k, k.row, left + C, keys, thread);
            share_rows<T, D, C>(tile_v[1 - now], of_v, v.row, left + C, keys, thread);
        }
        if (CAUSAL && left >= top + 16 * M) { continue; }
        float s[M][C / 8][4];
        clear(s);
        E::template scores<D, M, C>(s, a, tile_k[now], lane);
        if (left + C > keys || (CAUSAL && left + C - 1 > top)) {
            #pragma unroll
            for (int m = 0; m < M; m++) {
                #pragma unroll
                for (int j = 0; j < C / 8; j++) {
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
                for (int j = 0; j < C / 8; j++) {
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
                for (int j = 0; j < C / 8; j++) {
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
        E::template add_product<D, M, C>(c, s, tile_v[now], lane);
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
        put_rows<E, D>(y.of(stack, inner), y.row, c[m], above, below, top + 16 * m, queries, lane);
    }
}

// The gradient of queries: ds k with ds = w (g v^T - delta) scale, where w are the weights again and
// delta is each row's sum of g y, which the gradient of keys needs too.
template <typename E, int D, bool CAUSAL, int M>
static __device__ __forceinline__ void attention_queries(
    Heads<E> q, Heads<E> k, Heads<E> v, Heads<E> g, Heads<E> y, const float* logs, Written<E> dq, float* delta,
    int inner, int queries, int keys, float scale
) {
    using T = typename E::Element;
    constexpr int C = columns_of(D * sizeof(T)), TILE = C * (D + 8), ROWS = 64 * M, N = C < 32 ? C : 32;
    __shared__ __align__(16) T tile_k[2][TILE];
    __shared__ __align__(16) T tile_v[2][TILE];
    const int thread = (int)threadIdx.x, lane = thread % 32;
    const int tiles = (queries + ROWS - 1) / ROWS;
    const int stack = (int)blockIdx.x / tiles;
    const int from = (tiles - 1 - (int)blockIdx.x % tiles) * ROWS;
    const int top = from + thread / 32 * 16 * M;
    const T* of_k = k.of(stack, inner);
    const T* of_v = v.of(stack, inner);
    share_rows<T, D, C>(tile_k[0], of_k, k.row, 0, keys, thread);
    share_rows<T, D, C>(tile_v[0], of_v, v.row, 0, keys, thread);
    typename E::template Rows<D> a[M], up[M];
    #pragma unroll
    for (int m = 0; m < M; m++) {
        E::template take_rows<D>(a[m], y.of(stack, inner), y.row, top + 16 * m, queries, lane);
    }
    #pragma unroll
    for (int m = 0; m < M; m++) {
        E::template take_rows<D>(up[m], g.of(stack, inner), g.row, top + 16 * m, queries, lane);
    }
    float log[M][2], mean[M][2];
    #pragma unroll
    for (int m = 0; m < M; m++) {
        #pragma unroll
        for (int h = 0; h < 2; h++) {
            float sum = E::template dot<D>(a[m], up[m], h);
            sum += across(sum, 1);
            sum += across(sum, 2);
            mean[m][h] = sum;
            const int row = top + 16 * m + lane / 4 + 8 * h;
            if (lane % 4 == 0 && row < queries) { delta[(size_t)stack * queries + row] = sum; }
            log[m][h] = logs[(size_t)stack * queries + min(row, queries - 1)] * LOG2_E;
        }
    }
    #pragma unroll
    for (int m = 0; m < M; m++) {
        E::template take_rows<D>(a[m], q.of(stack, inner), q.row, top + 16 * m, queries, lane);
    }
    float c[M][D / 8][4] = {};
    const float factor = scale * LOG2_E;
    const int end = CAUSAL ? min(keys, from + ROWS) : keys;
    for (int left = 0; left < end; left += C) {
        const int now = left / C % 2;
        arrive();
        __syncthreads();
        if (left + C < end) {
            share_rows<T, D, C>(tile_k[1 - now], of_k, k.row, left + C, keys, thread);
            share_rows<T, D, C>(tile_v[1 - now], of_v, v.row, left + C, keys, thread);
        }
        #pragma unroll
        for (int part = 0; part < C; part += N) {
            const int begin = left + part;
            if (begin >= end || (CAUSAL && begin >= top + 16 * M)) { continue; }
            float s[M][N / 8][4], d[M][N / 8][4];
            clear(s);
            E::template scores<D, M, N>(s, a, tile_k[now] + part * (D + 8), lane);
            clear(d);
            E::template scores<D, M, N>(d, up, tile_v[now] + part * (D + 8), lane);
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
            E::template add_product<D, M, N>(c, s, tile_k[now] + part * (D + 8), lane);
        }
    }
    #pragma unroll
    for (int m = 0; m < M; m++) {
        put_rows<E, D>(dq.of(stack, inner), dq.row, c[m], scale, scale, top + 16 * m, queries, lane);
    }
}

// The gradients of keys and values, ds^T q and w^T g: rows are keys, columns queries.
template <typename E, int D, bool CAUSAL, int M>
static __device__ __forceinline__ void attention_keys(
    Heads<E> q, Heads<E> k, Heads<E> v, Heads<E> g, const float* logs, const float* delta, Written<E> dk, Written<E> dv,
    int inner, int queries, int keys, float scale
) {
    using T = typename E::Element;
    constexpr int C = columns_of(D * sizeof(T)), TILE = C * (D + 8), ROWS = 64 * M;
    constexpr int N = M == 1 && D * sizeof(T) <= 128 ? 32 : 16;
    __shared__ __align__(16) T tile_q[2][TILE];
    __shared__ __align__(16) T tile_g[2][TILE];
    __shared__ float tile_log[2][C], tile_mean[2][C];
    const int thread = (int)threadIdx.x, lane = thread % 32;
    const int tiles = (keys + ROWS - 1) / ROWS;
    const int stack = (int)blockIdx.x / tiles;
    const int from = (int)blockIdx.x % tiles * ROWS;
    const int top = from + thread / 32 * 16 * M;
    const T* of_q = q.of(stack, inner);
    const T* of_g = g.of(stack, inner);
    const int begin = CAUSAL ? from : 0;
    logs += (size_t)stack * queries;
    delta += (size_t)stack * queries;
    if (begin < queries) {
        share_rows<T, D, C>(tile_q[0], of_q, q.row, begin, queries, thread);
        share_rows<T, D, C>(tile_g[0], of_g, g.row, begin, queries, thread);
        if (thread < C) {
            const int row = min(begin + thread, queries - 1);
            tile_log[0][thread] = logs[row] * LOG2_E;
            tile_mean[0][thread] = delta[row];
        }
    }
    typename E::template Rows<D> a[M], up[M];
    #pragma unroll
    for (int m = 0; m < M; m++) {
        E::template take_rows<D>(a[m], k.of(stack, inner), k.row, top + 16 * m, keys, lane);
    }
    #pragma unroll
    for (int m = 0; m < M; m++) {
        E::template take_rows<D>(up[m], v.of(stack, inner), v.row, top + 16 * m, keys, lane);
    }
    float of_keys[M][D / 8][4] = {}, of_values[M][D / 8][4] = {};
    const float factor = scale * LOG2_E;
    for (int left = begin; left < queries; left += C) {
        const int now = (left - begin) / C % 2;
        arrive();
        __syncthreads();
        if (left + C < queries) {
            share_rows<T, D, C>(tile_q[1 - now], of_q, q.row, left + C, queries, thread);
            share_rows<T, D, C>(tile_g[1 - now], of_g, g.row, left + C, queries, thread);
            if (thread < C) {
                const int row = min(left + C + thread, queries - 1);
                tile_log[1 - now][thread] = logs[row] * LOG2_E;
                tile_mean[1 - now][thread] = delta[row];
            }
        }
        #pragma unroll
        for (int part = 0; part < C; part += N) {
            const int first = left + part;
            if (first >= queries || (CAUSAL && first + N <= top)) { continue; }
            float s[M][N / 8][4], d[M][N / 8][4];
            clear(s);
            E::template scores<D, M, N>(s, a, tile_q[now] + part * (D + 8), lane);
            clear(d);
            E::template scores<D, M, N>(d, up, tile_g[now] + part * (D + 8), lane);
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
            E::template add_product<D, M, N>(of_values, s, tile_g[now] + part * (D + 8), lane);
            E::template add_product<D, M, N>(of_keys, d, tile_q[now] + part * (D + 8), lane);
        }
    }
    #pragma unroll
    for (int m = 0; m < M; m++) {
        const int row = top + 16 * m;
        put_rows<E, D>(dk.of(stack, inner), dk.row, of_keys[m], scale, scale, row, keys, lane);
        put_rows<E, D>(dv.of(stack, inner), dv.row, of_values[m], 1.0f, 1.0f, row, keys, lane);
    }
}
