// Masks of scores and dropout of weights. Both are read or drawn for the tile that is computed: the
// functions of kernels without them are empty.

// No mask.
struct Unmasked {
    static constexpr bool IS_THERE = false;
};
// Numbers that are added to scores, or bools that say which count: strides of 0 repeat them.
template <typename T>
struct Masked {
    static constexpr bool IS_THERE = true;
    const T* data;
    size_t far, near, row, column;
    __device__ __forceinline__ const T* of(int stack, int inner) const {
        return data + (stack / inner) * far + (stack % inner) * near;
    }
};
static __device__ __forceinline__ float masked(float score, float more) { return score + more; }
static __device__ __forceinline__ float masked(float score, bool counts) {
    return counts ? score : -INF_F;
}

// Scores as they go into the exponential: scaled and masked, minus infinity for those that do not
// count. Rows of TURNED tiles are keys.
template <bool CAUSAL, bool TURNED, typename T, int M, int N>
static __device__ __forceinline__ void mask_scores(
    float (&s)[M][N][4], const Masked<T>& mask, int stack, int inner, float scale, int top, int left,
    int rows, int columns, int lane
) {
    const T* data = mask.of(stack, inner);
    const size_t down = TURNED ? mask.column : mask.row, right = TURNED ? mask.row : mask.column;
    #pragma unroll
    for (int m = 0; m < M; m++) {
        #pragma unroll
        for (int j = 0; j < N; j++) {
            #pragma unroll
            for (int i = 0; i < 4; i++) {
                const int column = left + 8 * j + 2 * (lane % 4) + i % 2;
                const int row = top + 16 * m + lane / 4 + i / 2 * 8;
                const bool seen = !CAUSAL || (TURNED ? row <= column : column <= row);
                float x = -INF_F;
                if (seen && row < rows && column < columns) {
                    x = masked(s[m][j][i] * scale, data[(size_t)row * down + (size_t)column * right]);
                }
                s[m][j][i] = x;
            }
        }
    }
}
// The number that is taken from scores before the exponential: a row that sees nothing has none.
static __device__ __forceinline__ float largest(float most) { return most == -INF_F ? 0.0f : most; }

// No dropout.
struct Undropped {
    static constexpr bool IS_THERE = false;
    static constexpr float kept = 1.0f;
};
// A weight is kept where its random word is at least the threshold, and then multiplied.
struct Dropped {
    static constexpr bool IS_THERE = true;
    unsigned long long seed;
    unsigned int threshold;
    float kept;
    // One bit for each of four columns of a row, from `column` on, a multiple of 4.
    __device__ __forceinline__ unsigned int bits(int stack, int row, int column) const {
        unsigned int c[4] = {(unsigned int)column / 4, (unsigned int)row, (unsigned int)stack, 0u};
        philox_words(c, (unsigned int)seed, (unsigned int)(seed >> 32));
        unsigned int out = 0;
        #pragma unroll
        for (int i = 0; i < 4; i++) { out |= (unsigned int)(c[i] >= threshold) << i; }
        return out;
    }
};

// Which of a thread's four numbers of a tile are kept, one bit each. Two threads beside each other
// need the same words of two rows: each draws those of one.
static __device__ __forceinline__ unsigned int kept_in_rows(
    const Dropped& dropout, int stack, int top, int left, int lane
) {
    const int own = lane % 2;
    const unsigned int bits =
        dropout.bits(stack, top + lane / 4 + 8 * own, left + lane % 4 / 2 * 4);
    const unsigned int others = across(bits, 1);
    const unsigned int above = (own ? others : bits) >> 2 * own & 3u;
    const unsigned int below = (own ? bits : others) >> 2 * own & 3u;
    return above | below << 2;
}
// The same where rows are keys: four threads need the words of two queries and two groups of keys,
// and each draws one of these four.
static __device__ __forceinline__ unsigned int kept_in_columns(
    const Dropped& dropout, int stack, int top, int left, int lane
) {
    const int own = lane / 4 % 4;
    const int query = left + 2 * (lane % 4) + own % 2, key = top + lane / 16 * 4 + own / 2 * 8;
    unsigned int bits = dropout.bits(stack, query, key) << 4 * own;
    bits |= across(bits, 4);
    bits |= across(bits, 8);
    bits >>= own;
    return (bits & 1u) | (bits >> 3 & 2u) | (bits >> 6 & 4u) | (bits >> 9 & 8u);
}
