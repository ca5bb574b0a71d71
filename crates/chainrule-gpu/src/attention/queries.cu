// The gradient of queries: ds k with ds = w (g v^T - delta) scale, where w are the weights again and
// delta is each row's sum of g y, which the gradient of keys needs too.
template <typename E, int W, bool CAUSAL, int M, typename K, typename P>
static __device__ __forceinline__ void attention_queries(
    Heads<E> q, Heads<E> k, Heads<E> v, Heads<E> g, Heads<E> y, const float* logs, Written<E> dq, float* delta,
    int inner, int queries, int keys, float scale,
    K mask, P dropout
) {
    using T = typename E::Element;
    constexpr int D = padded<E>(W);
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
    share_rows<T, W, D, C>(tile_k[0], of_k, k.row, 0, keys, thread);
    share_rows<T, W, D, C>(tile_v[0], of_v, v.row, 0, keys, thread);
    typename E::template Rows<D> a[M], up[M];
    #pragma unroll
    for (int m = 0; m < M; m++) {
        E::template take_rows<W, D>(a[m], y.of(stack, inner), y.row, top + 16 * m, queries, lane);
    }
    #pragma unroll
    for (int m = 0; m < M; m++) {
        E::template take_rows<W, D>(up[m], g.of(stack, inner), g.row, top + 16 * m, queries, lane);
    }
    float most[M][2], log[M][2], mean[M][2];
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
            const size_t at = (size_t)stack * queries + min(row, queries - 1);
            if constexpr (K::IS_THERE) { most[m][h] = logs[2 * at]; }
            log[m][h] = logs[K::IS_THERE ? 2 * at + 1 : at] * LOG2_E;
        }
    }
    #pragma unroll
    for (int m = 0; m < M; m++) {
        E::template take_rows<W, D>(a[m], q.of(stack, inner), q.row, top + 16 * m, queries, lane);
    }
    float c[M][D / 8][4] = {};
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
        #pragma unroll
        for (int part = 0; part < C; part += N) {
            const int begin = left + part;
            if (begin >= end || (CAUSAL && begin >= top + 16 * M)) { continue; }
            float s[M][N / 8][4], d[M][N / 8][4];
            clear(s);
            E::template scores<D, M, N>(s, a, tile_k[now] + part * (D + 8), lane);
            clear(d);
            E::template scores<D, M, N>(d, up, tile_v[now] + part * (D + 8), lane);
            if constexpr (K::IS_THERE) {
                mask_scores<CAUSAL, false>(
                    s, mask, stack, inner, scale, top, begin, queries, keys, lane
                );
            }
            const bool whole = K::IS_THERE || (begin + N <= keys && (!CAUSAL || begin + N - 1 <= top));
            #pragma unroll
            for (int m = 0; m < M; m++) {
                #pragma unroll
                for (int j = 0; j < N / 8; j++) {
                    if constexpr (P::IS_THERE) {
                        const unsigned int bits =
                            kept_in_rows(dropout, stack, top + 16 * m, begin + 8 * j, lane);
                        #pragma unroll
                        for (int i = 0; i < 4; i++) {
                            d[m][j][i] = bits >> i & 1u ? d[m][j][i] * dropout.kept : 0.0f;
                        }
                    }
                    #pragma unroll
                    for (int i = 0; i < 4; i++) {
                        const float x = s[m][j][i];
                        const float w = power_of_2(
                            K::IS_THERE ? (x - most[m][i / 2]) * LOG2_E - log[m][i / 2]
                                        : x * factor - log[m][i / 2]
                        );
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
        put_rows<E, W, D>(dq.of(stack, inner), dq.row, c[m], scale, scale, top + 16 * m, queries, lane);
    }
}
