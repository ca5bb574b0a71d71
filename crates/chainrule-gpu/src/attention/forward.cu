// softmax(scale q k^T + mask) v, and the logarithms of the rows' sums: each tile of columns changes
// the largest score so far, by which all before is scaled. The factor is positive. With a mask the
// largest score stands before the logarithm of what is summed less that: where a mask adds large
// numbers, the logarithm is less than a rounding of their sum.
template <typename E, int W, bool CAUSAL, int M, typename K, typename P>
static __device__ __forceinline__ void attention_forward(
    Heads<E> q, Heads<E> k, Heads<E> v, Written<E> y, float* logs, int inner, int queries, int keys, float scale,
    K mask, P dropout
) {
    using T = typename E::Element;
    constexpr int D = padded<E>(W);
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
    share_rows<T, W, D, C>(tile_k[0], of_k, k.row, 0, keys, thread);
    share_rows<T, W, D, C>(tile_v[0], of_v, v.row, 0, keys, thread);
    typename E::template Rows<D> a[M];
    #pragma unroll
    for (int m = 0; m < M; m++) {
        E::template take_rows<W, D>(a[m], q.of(stack, inner), q.row, top + 16 * m, queries, lane);
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
            share_rows<T, W, D, C>(tile_k[1 - now], of_k, k.row, left + C, keys, thread);
            share_rows<T, W, D, C>(tile_v[1 - now], of_v, v.row, left + C, keys, thread);
        }
        if (CAUSAL && left >= top + 16 * M) { continue; }
        float s[M][C / 8][4];
        clear(s);
        E::template scores<D, M, C>(s, a, tile_k[now], lane);
        if constexpr (K::IS_THERE) {
            mask_scores<CAUSAL, false>(
                s, mask, stack, inner, scale, top, left, queries, keys, lane
            );
        } else if (left + C > keys || (CAUSAL && left + C - 1 > top)) {
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
                // Without a mask all rows see column 0, so there is a largest score from the first
                // tile on.
                const float base = K::IS_THERE ? largest(high) : high * factor;
                const float shrink = power_of_2(
                    K::IS_THERE ? (most[m][h] - base) * LOG2_E : most[m][h] * factor - base
                );
                most[m][h] = high;
                float part = 0.0f;
                #pragma unroll
                for (int j = 0; j < C / 8; j++) {
                    #pragma unroll
                    for (int i = 2 * h; i < 2 * h + 2; i++) {
                        s[m][j][i] = power_of_2(
                            K::IS_THERE ? (s[m][j][i] - base) * LOG2_E : s[m][j][i] * factor - base
                        );
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
        if constexpr (P::IS_THERE) {
            #pragma unroll
            for (int m = 0; m < M; m++) {
                #pragma unroll
                for (int j = 0; j < C / 8; j++) {
                    const unsigned int bits =
                        kept_in_rows(dropout, stack, top + 16 * m, left + 8 * j, lane);
                    #pragma unroll
                    for (int i = 0; i < 4; i++) {
                        s[m][j][i] = bits >> i & 1u ? s[m][j][i] : 0.0f;
                    }
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
            const bool is_empty = K::IS_THERE && sum[m][h] == 0.0f;
            if (lane % 4 == 0 && row < queries) {
                const size_t at = (size_t)stack * queries + row;
                const float log = is_empty ? 0.0f : logf(sum[m][h]);
                if constexpr (K::IS_THERE) {
                    logs[2 * at] = largest(most[m][h]);
                    logs[2 * at + 1] = log;
                } else {
                    logs[at] = most[m][h] * scale + log;
                }
            }
            // A row that sees nothing is 0.
            sum[m][h] = is_empty ? 0.0f : dropout.kept / sum[m][h];
        }
        const float above = sum[m][0], below = sum[m][1];
        put_rows<E, W, D>(y.of(stack, inner), y.row, c[m], above, below, top + 16 * m, queries, lane);
    }
}
