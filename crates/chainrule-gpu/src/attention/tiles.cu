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

// Columns of rows in registers and shared memory: zeros behind those that there are.
template <typename E>
static __device__ constexpr int padded(int width) {
    return (width + E::STEP - 1) / E::STEP * E::STEP;
}

// Begins to copy a tile of rows for all warps, 16 bytes at a time.
template <typename T, int W, int D, int C>
static __device__ __forceinline__ void share_rows(
    T* tile, const T* x, size_t row, int top, int rows, int thread
) {
    constexpr int SOME = 16 / sizeof(T);
    #pragma unroll
    for (int t = thread; t < C * D / SOME; t += 128) {
        const int r = t / (D / SOME), c = t % (D / SOME) * SOME;
        const bool is_there = top + r < rows && c < W;
        const T* from = x + (size_t)(is_there ? top + r : 0) * row + (c < W ? c : 0);
        send(tile + r * (D + 8) + c, from, is_there);
    }
}

// Operands and results of bf16.
struct Bf16 {
    using Element = unsigned short;
    static constexpr int STEP = 16;
    template <int D>
    struct Rows {
        unsigned int of[D / 16][4];
    };

    // 16 rows as left operands, from row `top` on; zeros below the last row.
    template <int W, int D>
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
            const bool is_there = 16 * k + 8 < W;
            a.of[k][2] = is_there && first < rows ? one[4] : 0u;
            a.of[k][3] = is_there && second < rows ? two[4] : 0u;
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
    static constexpr int STEP = 8;
    template <int D>
    struct Rows {
        float of[D / 8][4];
    };

    template <int W, int D>
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

template <typename E, int W, int D>
static __device__ __forceinline__ void put_rows(
    typename E::Element* y, size_t row, float (&c)[D / 8][4], float above, float below, int top,
    int rows, int lane
) {
    const int first = top + lane / 4, second = first + 8;
    #pragma unroll
    for (int n = 0; n < W / 8; n++) {
        typename E::Element* at = y + 8 * n + 2 * (lane % 4);
        if (first < rows) {
            E::put_two(at + (size_t)first * row, c[n][0] * above, c[n][1] * above);
        }
        if (second < rows) {
            E::put_two(at + (size_t)second * row, c[n][2] * below, c[n][3] * below);
        }
    }
}
