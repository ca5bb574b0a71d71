fn inf_f() -> f32 { var bits = 0x7f800000u; return bitcast<f32>(bits); }
fn nan_f() -> f32 { var bits = 0x7fc00000u; return bitcast<f32>(bits); }
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn is_inf(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u; }
fn of_bf16(x: u32) -> f32 { return bitcast<f32>(x << 16u); }
fn to_bf16(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    if (is_nan(x)) { return (bits >> 16u) | 64u; }
    return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}
fn larger(a: f32, b: f32) -> f32 { return select(b, a, a > b || is_nan(a)); }
fn smaller(a: f32, b: f32) -> f32 { return select(b, a, a < b || is_nan(a)); }
fn tanh_safe(x: f32) -> f32 { return select(tanh(clamp(x, -15.0, 15.0)), x, is_nan(x)); }
fn atan_safe(x: f32) -> f32 { return select(atan(x), x, is_nan(x)); }
fn power(x: f32, y: f32) -> f32 {
    if (y == 0.0) { return 1.0; }
    if (is_nan(x) || is_nan(y)) { return nan_f(); }
    let size = pow(abs(x), y);
    if (x >= 0.0) { return size; }
    if (floor(y) != y) { return select(nan_f(), size, is_inf(x)); }
    return select(size, -size, floor(y * 0.5) != y * 0.5);
}
fn modulo(a: f32, b: f32) -> f32 { return a - b * floor(a / b); }
fn remainder(a: f32, b: f32) -> f32 { return a - b * trunc(a / b); }
fn quotient(a: i32, b: i32) -> i32 { if (b == 0) { return 0; } return a / b; }
fn modulo_whole(a: i32, b: i32) -> i32 {
    if (b == 0) { return 0; }
    let r = a % b;
    return select(r, r + b, r != 0 && (r < 0) != (b < 0));
}
fn power_whole(x: i32, y: i32) -> i32 {
    var out = 1;
    for (var k = 0; k < y; k++) { out *= x; }
    return out;
}
// The error function: a series near 0, a continued fraction of the rest.
fn erf(x: f32) -> f32 {
    let size = abs(x);
    if (size < 2.5) {
        var term = size;
        var sum = size;
        for (var n = 1; n < 40; n++) {
            term *= -size * size / f32(n);
            sum += term / f32(2 * n + 1);
        }
        return sign(x) * sum * 1.1283791671;
    }
    var fraction = 0.0;
    for (var n = 24; n > 0; n--) { fraction = 0.5 * f32(n) / (size + fraction); }
    return sign(x) * (1.0 - exp(-size * size) * 0.5641895835 / (size + fraction));
}
fn high(a: u32, b: u32) -> u32 {
    let a0 = a & 0xffffu; let a1 = a >> 16u; let b0 = b & 0xffffu; let b1 = b >> 16u;
    let middle = a1 * b0 + ((a0 * b0) >> 16u);
    let low = (middle & 0xffffu) + a0 * b1;
    return a1 * b1 + (middle >> 16u) + (low >> 16u);
}
fn philox(s0: u32, s1: u32, r0: u32, r1: u32, draw: u32, place: u32) -> vec4<u32> {
    var c = vec4<u32>(place, draw, r0, r1);
    var k0 = s0; var k1 = s1;
    for (var round = 0; round < 10; round++) {
        let a = high(c.x, 0xd2511f53u); let b = high(c.z, 0xcd9e8d57u);
        c = vec4<u32>(b ^ c.y ^ k0, c.z * 0xcd9e8d57u, a ^ c.w ^ k1, c.x * 0xd2511f53u);
        k0 += 0x9e3779b9u; k1 += 0xbb67ae85u;
    }
    return c;
}
fn uniform(s0: u32, s1: u32, r0: u32, r1: u32, draw: u32, place: u32) -> f32 {
    return f32(philox(s0, s1, r0, r1, draw, place).x >> 8u) / 16777216.0;
}
fn normal(s0: u32, s1: u32, r0: u32, r1: u32, draw: u32, place: u32) -> f32 {
    let c = philox(s0, s1, r0, r1, draw, place);
    let radius = sqrt(-2.0 * log((f32(c.x >> 8u) + 0.5) / 16777216.0));
    return radius * cos(6.2831853 * (f32(c.y >> 8u) + 0.5) / 16777216.0);
}
fn seed(s0: u32, s1: u32, r0: u32, r1: u32, draw: u32, place: u32) -> i32 {
    return bitcast<i32>(philox(s0, s1, r0, r1, draw, place).x);
}
fn is_kept(s0: u32, s1: u32, threshold: u32, stack: u32, row: u32, column: u32) -> bool {
    return philox(s0, s1, stack, 0u, row, column / 4u)[column % 4u] >= threshold;
}
