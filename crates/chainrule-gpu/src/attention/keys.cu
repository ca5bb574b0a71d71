// The gradients of keys and values, ds^T q and w^T g: rows are keys, columns queries.
template <typename E, int W, bool CAUSAL, int M, typename K, typename P>
static __device__ __forceinline__ void attention_keys(
    Heads<E> q, Heads<E> k, Heads<E> v, Heads<E> g, const float* logs, const float* delta, Written<E> dk, Written<E> dv,
    int inner, int queries, int keys, float scale,
    K mask, P dropout
) {
    using T = typename E::Element;
    constexpr int D = padded<E>(W);
    constexpr int C = columns_of(D * sizeof(T)), TILE = C * (D + 8), ROWS = 64 * M;
    constexpr int N = M == 1 && D * sizeof(T) <= 128 ? 32 : 16;
    __shared__ __align__(16) T tile_q[2][TILE];
    __shared__ __align__(16) T tile_g[2][TILE];
    __shared__ float tile_most[2][K::IS_THERE ? C : 1], tile_log[2][C], tile_mean[2][C];
    const int thread = (int)threadIdx.x, lane = thread % 32;
    const int tiles = (keys + ROWS - 1) / ROWS;
    const int stack = (int)blockIdx.x / tiles;
    const int from = (int)blockIdx.x % tiles * ROWS;
    const int top = from + thread / 32 * 16 * M;
    const T* of_q = q.of(stack, inner);
    const T* of_g = g.of(stack, inner);
    const int begin = CAUSAL ? from : 0;
    logs += (K::IS_THERE ? 2 : 1) * (size_t)stack * queries;
    delta += (size_t)stack * queries;
    const auto share_sums = [&](int to, int top) {
        if (thread >= C) { return; }
        const int row = min(top + thread, queries - 1);
        if constexpr (K::IS_THERE) { tile_most[to][thread] = logs[2 * row]; }
        tile_log[to][thread] = logs[K::IS_THERE ? 2 * row + 1 : row] * LOG2_E;
        tile_mean[to][thread] = delta[row];
    };
    if (begin < queries) {
        share_rows<T, W, D, C>(tile_q[0], of_q, q.row, begin, queries, thread);
        share_rows<T, W, D, C>(tile_g[0], of_g, g.row, begin, queries, thread);
        share_sums(0, begin);
    }
    typename E::template Rows<D> a[M], up[M];
    #pragma unroll
    for (int m = 0; m < M; m++) {
        E::template take_rows<W, D>(a[m], k.of(stack, inner), k.row, top + 16 * m, keys, lane);
    }
    #pragma unroll
    for (int m = 0; m < M; m++) {
        E::template take_rows<W, D>(up[m], v.of(stack, inner), v.row, top + 16 * m, keys, lane);
    }
    float of_keys[M][D / 8][4] = {}, of_values[M][D / 8][4] = {};
    const float factor = scale * LOG2_E;
    for (int left = begin; left < queries; left += C) {
        const int now = (left - begin) / C % 2;
        arrive();
        __syncthreads();
        if (left + C < queries) {
            share_rows<T, W, D, C>(tile_q[1 - now], of_q, q.row, left + C, queries, thread);
            share_rows<T, W, D, C>(tile_g[1 - now], of_g, g.row, left + C, queries, thread);
            share_sums(1 - now, left + C);
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
            if constexpr (K::IS_THERE) {
                mask_scores<CAUSAL, true>(
                    s, mask, stack, inner, scale, top, first, keys, queries, lane
                );
            }
            const bool whole =
                K::IS_THERE || (first + N <= queries && (!CAUSAL || top + 16 * M - 1 <= first));
            #pragma unroll
            for (int j = 0; j < N / 8; j++) {
                unsigned int bits[M];
                if constexpr (P::IS_THERE) {
                    #pragma unroll
                    for (int m = 0; m < M; m++) {
                        bits[m] =
                            kept_in_columns(dropout, stack, top + 16 * m, first + 8 * j, lane);
                    }
                }
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
                            const float x = s[m][j][h];
                            const float w = !seen ? 0.0f : power_of_2(
                                K::IS_THERE ? (x - tile_most[now][place]) * LOG2_E - log
                                            : x * factor - log
                            );
                            s[m][j][h] = w;
                            float slope = d[m][j][h];
                            if constexpr (P::IS_THERE) {
                                const bool is_kept = bits[m] >> h & 1u;
                                s[m][j][h] = is_kept ? w : 0.0f;
                                slope = is_kept ? slope * dropout.kept : 0.0f;
                            }
                            d[m][j][h] = w * (slope - mean);
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
        put_rows<E, W, D>(dk.of(stack, inner), dk.row, of_keys[m], scale, scale, row, keys, lane);
        put_rows<E, W, D>(dv.of(stack, inner), dv.row, of_values[m], dropout.kept, dropout.kept, row, keys, lane);
    }
}
