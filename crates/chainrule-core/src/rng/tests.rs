//! The streams against PyTorch: bit for bit, or as a digest of all bits of a long sweep.

use std::collections::BTreeMap;

use safetensors::SafeTensors;

use super::*;

/// The 64-bit FNV-1a digest of the little-endian bytes of `values`.
pub(super) fn digest<T: Copy, const N: usize>(values: &[T], bytes: impl Fn(T) -> [u8; N]) -> u64 {
    values.iter().flat_map(|&v| bytes(v)).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The contents of `generator.safetensors` for one seed: draws it again, key by key, as bytes.
fn draw_reference(seed: u64) -> BTreeMap<String, Vec<u8>> {
    let mut g = Generator::manual_seed(seed);
    let mut drawn = BTreeMap::new();
    let mut put = |name: &str, bytes: Vec<u8>| drawn.insert(format!("{seed}.{name}"), bytes);
    let f32_bytes = |v: &[f32]| v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let f64_bytes = |v: &[f64]| v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let i64_bytes = |v: &[i64]| v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();

    let (mut singles, mut doubles, mut indices) = ([0.0; 270], [0.0; 40], [0; 32]);
    g.fill_uniform_f32(&mut singles[..40]);
    put("rand_f32_40", f32_bytes(&singles[..40]));
    g.fill_uniform_f64(&mut doubles[..20]);
    put("rand_f64_20", f64_bytes(&doubles[..20]));
    for n in [5, 16, 270] {
        g.fill_normal_f32(&mut singles[..n]);
        put(&format!("randn_f32_{n}"), f32_bytes(&singles[..n]));
    }
    g.fill_normal_f64(&mut doubles);
    put("randn_f64_40", f64_bytes(&doubles));
    g.fill_randint(0, 182_625, &mut indices).unwrap();
    put("randint_182625_32", i64_bytes(&indices));
    put("randperm_100", i64_bytes(&g.randperm(100)));
    let chosen: Vec<i64> = (0..30)
        .flat_map(|_| g.multinomial(&SOFTMAX_27.map(f32::from_bits), 1, true).unwrap())
        .collect();
    put("multinomial_p27_x30", i64_bytes(&chosen));
    g.fill_uniform_f32(&mut singles[..4]);
    put("rand_after", f32_bytes(&singles[..4]));
    drawn
}

/// `torch.softmax(torch.linspace(-1, 1, 27), 0)`, the bits that PyTorch prints.
const SOFTMAX_27: [u32; 27] = [
    0x3c3bb076, 0x3c4ab25f, 0x3c5ae778, 0x3c6c6854, 0x3c7f4f79, 0x3c89dcc7, 0x3c94e2c1, 0x3ca0ca5f,
    0x3cada5ac, 0x3cbb8825, 0x3cca86d5, 0x3cdab873, 0x3cec358d, 0x3cff18a2, 0x3d09bf29, 0x3d14c2c5,
    0x3d20a7d4, 0x3d2d805e, 0x3d3b5fdb, 0x3d4a5b51, 0x3d5a8975, 0x3d6c02cd, 0x3d7ee1d6, 0x3d89a192,
    0x3d94a2d0, 0x3da08551, 0x3dad5b19,
];

#[test]
fn every_key_of_the_reference_file_is_equal_in_every_bit() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/generator.safetensors");
    let file = std::fs::read(path).unwrap();
    let reference = SafeTensors::deserialize(&file).unwrap();
    let mut drawn = BTreeMap::new();
    for seed in [0, 42, 1337, 2_147_483_647] {
        drawn.append(&mut draw_reference(seed));
    }
    assert_eq!(reference.len(), drawn.len());
    for (name, tensor) in reference.tensors() {
        assert_eq!(drawn[&name], tensor.data(), "{name}");
    }
}

// The expected values from here on were printed by PyTorch 2.15 (x86-64, AVX2, glibc). For many
// numbers the value is the FNV-1a digest of all their bytes.

fn digest_f32(values: &[f32]) -> u64 {
    digest(values, f32::to_le_bytes)
}

fn digest_f64(values: &[f64]) -> u64 {
    digest(values, f64::to_le_bytes)
}

fn digest_i64(values: &[i64]) -> u64 {
    digest(values, i64::to_le_bytes)
}

fn normal_f32(g: &mut Generator, n: usize) -> Vec<f32> {
    let mut out = vec![0.0; n];
    g.fill_normal_f32(&mut out);
    out
}

fn normal_f64(g: &mut Generator, n: usize) -> Vec<f64> {
    let mut out = vec![0.0; n];
    g.fill_normal_f64(&mut out);
    out
}

/// The bits of the next `torch.rand(1)`: shows that nothing more or less was drawn before it.
fn next_bits(g: &mut Generator) -> u32 {
    let mut next = [0.0];
    g.fill_uniform_f32(&mut next);
    next[0].to_bits()
}

#[test]
fn normal_f32_numbers_of_every_length_to_100() {
    let mut g = Generator::manual_seed(3);
    let all: Vec<f32> = (0..=100).flat_map(|n| normal_f32(&mut g, n)).collect();
    assert_eq!(digest_f32(&all), 0x7f51_2b2c_6809_afbb);
    assert_eq!(next_bits(&mut g), 1_041_824_328);
}

/// In f64 the last bit of some numbers depends on the system's library: glibc on a processor that
/// has FMA made the expected ones.
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
#[test]
fn normal_f64_numbers_of_every_length_to_100() {
    let mut g = Generator::manual_seed(3);
    let all: Vec<f64> = (0..=100).flat_map(|n| normal_f64(&mut g, n)).collect();
    assert_eq!(digest_f64(&all), 0x1b22_bb1c_a1f6_92b2);
    assert_eq!(next_bits(&mut g), 1_036_168_056);
}

/// Long enough that an operation fused the other way cannot hide; a seed above 32 bits.
#[test]
fn a_long_run_of_normal_numbers() {
    let all = normal_f32(&mut Generator::manual_seed((1 << 40) + 5), 100_003);
    assert_eq!(digest_f32(&all), 0x965c_7740_964d_7662);
}

/// One kept number for both types, which longer calls leave alone.
#[test]
fn the_kept_normal_number_is_shared_by_f32_and_f64() {
    let g = &mut Generator::manual_seed(11);
    assert_eq!(normal_f32(g, 1)[0].to_bits(), 0x3f3c_d549);
    assert_eq!(normal_f64(g, 1)[0].to_bits(), 0x3fff_2286_9b64_df1e);
    let expected = [0xbfe6_62a5_15e8_feb7, 0xbff4_d635_c707_0254, 0xbfe0_6ca4_da4b_1100];
    assert_eq!(normal_f64(g, 3), expected.map(f64::from_bits));
    assert_eq!(normal_f32(g, 2), [0xbe8a_0b93, 0x3e7c_17d5].map(f32::from_bits));
    normal_f32(g, 16);
    assert_eq!(normal_f32(g, 1)[0].to_bits(), 0x3ef7_c50e);
    assert_eq!(normal_f32(g, 1)[0].to_bits(), 0x3ec4_4ddb);
    normal_f64(g, 17);
    assert_eq!(normal_f64(g, 1)[0].to_bits(), 0xbfbf_982e_939c_7131);
}

#[test]
fn integers_of_every_width() {
    let cases: [(i64, i64, [i64; 5]); 16] = [
        (0, 1, [0, 0, 0, 0, 0]),
        (0, 2, [0, 1, 1, 0, 0]),
        (-5, 5, [-1, -2, -3, 0, 4]),
        (0, 27, [3, 19, 25, 25, 3]),
        (-3, 1000, [308, 397, 466, 73, 216]),
        (0, (1 << 28) - 1, [189108313, 172810342, 161228081, 9703358, 10206311]),
        (0, 1 << 28, [98672033, 138587255, 254799200, 86881750, 79675600]),
        (-7, (1 << 28) - 7, [2753663, 220183142, 24385190, 154014441, 66313319]),
        (0, 1 << 31, [2147247803, 870421179, 555616591, 619758326, 227425080]),
        (0, (1 << 32) - 1, [3723695332, 832347654, 1598055191, 840523889, 2624840297]),
        (0, 1 << 32, [742351541, 522284341, 2342748335, 1811292640, 2612448454]),
        (0, (1 << 40) + 1, [304031550114, 841482249507, 671165443314, 250398630267, 363938028903]),
        (
            -(1 << 62),
            1 << 62,
            [
                3210700920623823030,
                3931902745505970900,
                2282289184949904621,
                3975422697996597780,
                -3962945995284772759,
            ],
        ),
        (
            i64::MIN,
            i64::MAX,
            [
                -7668815679565389645,
                4289249791802431275,
                2512446332431634219,
                -8708564122683953543,
                -3686211767866390794,
            ],
        ),
        (
            i64::MAX - 1,
            i64::MAX,
            [
                9223372036854775806,
                9223372036854775806,
                9223372036854775806,
                9223372036854775806,
                9223372036854775806,
            ],
        ),
        (
            i64::MIN,
            i64::MIN + 3,
            [i64::MIN, -9223372036854775806, -9223372036854775806, i64::MIN, i64::MIN],
        ),
    ];
    let mut g = Generator::manual_seed(12);
    let mut drawn = [0; 5];
    for (low, high, expected) in cases {
        g.fill_randint(low, high, &mut drawn).unwrap();
        assert_eq!(drawn, expected, "low {low}, high {high}");
    }
    g.fill_randint(0, 100, &mut drawn[..1]).unwrap();
    assert_eq!(drawn[0], 82);
}

/// The same as comparing the uniform numbers, for every length and from any place of the stream.
#[test]
fn bernoulli_draws_are_uniform_numbers_below_p() {
    for p in [0.0, 1e-300, 0.3, 0.5, 0.999, 1.0] {
        let (mut ones, mut uniform) = (Generator::manual_seed(3), Generator::manual_seed(3));
        for n in [1, 0, 7, 8, 255, 256, 257, 1000] {
            let (mut out, mut u) = (vec![7; n], vec![0.0; n]);
            ones.fill_bernoulli(p, &mut out);
            uniform.fill_uniform_f64(&mut u);
            let wanted: Vec<u8> = u.iter().map(|&u| u8::from(u < p)).collect();
            assert_eq!(out, wanted, "p {p}, {n} draws");
            // An odd number of words, so that pairs straddle the blocks.
            assert_eq!(ones.random_u32(), uniform.random_u32());
        }
    }
}

#[test]
fn an_empty_range_is_an_error_and_draws_nothing() {
    let mut g = Generator::manual_seed(1);
    let error = g.fill_randint(3, 3, &mut [0]).unwrap_err();
    assert_eq!(error.to_string(), "randint: needs low < high, got low 3 and high 3");
    assert!(g.fill_randint(i64::MAX, i64::MIN, &mut []).is_err());
    assert_eq!(g, Generator::manual_seed(1));
}

#[test]
fn permutations_of_every_length_to_1000() {
    let mut g = Generator::manual_seed(13);
    let all: Vec<i64> = (0..=1000).flat_map(|n| g.randperm(n)).collect();
    assert_eq!(digest_i64(&all), 0xedb6_a6f5_cd5c_e9a5);
    assert_eq!(Generator::manual_seed(1).randperm(10), [5, 6, 1, 2, 0, 8, 9, 3, 7, 4]);
}

/// The order of draws above 214,748,363 numbers, here of 12: computed from the draws of
/// NumPy's `RandomState(21)`.
/// (By hand both sides of that bound were compared with PyTorch: 1.7 GB are too much for a test.)
#[test]
fn permutations_too_long_for_32_bit_draws() {
    let mut order: Vec<i64> = (0..12).collect();
    Stream::of(21).shuffle_inside_out(&mut order);
    assert_eq!(order, [8, 5, 2, 10, 6, 4, 0, 7, 11, 3, 9, 1]);
}

/// Draws 1, 2, 3, 10 and 40 of 50 weights without and with replacement.
fn draws_of_50<P: Probability>(g: &mut Generator, weights: &[P]) -> Vec<Vec<i64>> {
    let counts = [1, 2, 3, 10, 40].into_iter().flat_map(|c| [(c, false), (c, true)]);
    counts.map(|(count, again)| g.multinomial(weights, count, again).unwrap()).collect()
}

#[test]
fn multinomial_draws_with_weights_of_zero() {
    let mut g = Generator::manual_seed(14);
    let weights: Vec<f32> = (0..50).map(|i| (i * 37 % 11) as f32 / 4.0).collect();
    let drawn = draws_of_50(&mut g, &weights);
    assert_eq!(drawn[6], [30, 15, 19, 17, 38, 32, 4, 43, 27, 10]);
    assert_eq!(drawn[7], [19, 30, 30, 42, 21, 41, 41, 21, 36, 32]);
    assert_eq!(digest_i64(&drawn.concat()), 0xa294_0196_95c8_705d);
    assert_eq!(next_bits(&mut g), 1_050_681_650);
    let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
    let drawn = draws_of_50(&mut g, &weights);
    assert_eq!(drawn[6], [32, 29, 16, 6, 46, 18, 2, 15, 19, 43]);
    assert_eq!(drawn[7], [30, 32, 32, 34, 41, 20, 20, 18, 24, 2]);
    assert_eq!(digest_i64(&drawn.concat()), 0x6de3_a1c4_d5cd_8a41);
    assert_eq!(next_bits(&mut g), 1_046_297_576);
}

#[test]
fn multinomial_draws_of_a_thousand_weights() {
    let mut g = Generator::manual_seed(15);
    let all = |g: &mut Generator, draw: &dyn Fn(&mut Generator, usize, bool) -> Vec<i64>| {
        let counts = [1, 5, 1000].into_iter().flat_map(|c| [(c, true), (c, false)]);
        digest_i64(&counts.flat_map(|(c, again)| draw(g, c, again)).collect::<Vec<_>>())
    };
    let mut p = [0_f32; 1000];
    g.fill_uniform_f32(&mut p);
    let drawn = all(&mut g, &|g, count, again| g.multinomial(&p, count, again).unwrap());
    assert_eq!(drawn, 0x4efd_faa3_8c61_02f7);
    let mut p = [0_f64; 1000];
    g.fill_uniform_f64(&mut p);
    let drawn = all(&mut g, &|g, count, again| g.multinomial(&p, count, again).unwrap());
    assert_eq!(drawn, 0x1944_4974_a548_70f3);
}

/// The seed is one where exponentials of the wrong precision change the order.
#[test]
fn a_multinomial_draw_of_all_of_5000_weights() {
    let mut g = Generator::manual_seed(33);
    let mut p = [0_f32; 5000];
    g.fill_uniform_f32(&mut p);
    assert_eq!(digest_i64(&g.multinomial(&p, 5000, false).unwrap()), 0x2347_22c7_01db_80e1);
}

/// Scores overflow to infinity here; of equal ones the first category wins.
#[test]
fn multinomial_draws_of_the_largest_weights() {
    let mut g = Generator::manual_seed(19);
    let drawn = [(); 12].map(|()| g.multinomial(&[f32::MAX; 40], 1, true).unwrap()[0]);
    assert_eq!(drawn, [1, 0, 1, 0, 0, 1, 0, 0, 1, 2, 1, 0]);
}

#[test]
fn multinomial_says_what_is_wrong() {
    let message = |probs: &[f64], count, again| {
        Generator::default().multinomial(probs, count, again).unwrap_err().to_string()
    };
    assert_eq!(message(&[1.0], 0, true), "multinomial: needs at least 1 draw, got count 0");
    assert_eq!(
        message(&[0.0, 0.0], 1, true),
        "multinomial: needs a weight above 0, got 2 weights and none is"
    );
    for again in [true, false] {
        assert!(message(&[], 1, again).ends_with("got 0 weights and none is"));
        for (bad, name) in [(-0.5, "-0.5"), (f64::INFINITY, "inf"), (f64::NAN, "NaN")] {
            let expected = format!(
                "multinomial: weights must be finite and not negative, got {name} at index 1"
            );
            assert_eq!(message(&[1.0, bad], 2, again), expected);
        }
    }
    assert_eq!(
        message(&[1.0, 0.0, 0.0], 2, false),
        "multinomial: 2 draws without replacement need as many weights above 0, got 1; \
         draw fewer or with replacement"
    );
    assert_eq!(
        message(&[f64::MAX, f64::MAX], 2, true),
        "multinomial: the sum of the weights overflows; divide them by the largest"
    );
}

/// Weights so small or so large that scores become 0 or infinite still give only possible draws.
#[test]
fn multinomial_never_draws_a_weight_of_zero() {
    let mut g = Generator::manual_seed(16);
    for weight in [f32::from_bits(1), f32::MIN_POSITIVE, 1.0, f32::MAX / 4.0] {
        let probs = [0.0, weight, 0.0, weight, 0.0, 0.0];
        for _ in 0..200 {
            for (count, again) in [(1, true), (2, false), (5, true)] {
                let drawn = g.multinomial(&probs, count, again).unwrap();
                assert!(drawn.iter().all(|&i| i == 1 || i == 3), "{weight}: {drawn:?}");
            }
        }
    }
}

/// Both ways of drawing hit each category as often as its weight says: with 100,000 draws of
/// p = 0.1 to 0.4 the standard deviation of a count is at most 155.
#[test]
fn multinomial_follows_the_weights() {
    let mut g = Generator::manual_seed(17);
    let weights = [1.0, 2.0, 3.0, 4.0];
    let singles = (0..100_000).map(|_| g.multinomial(&weights, 1, true).unwrap()[0]).collect();
    let many = g.multinomial(&weights, 100_000, true).unwrap();
    let drawn: [Vec<i64>; 2] = [singles, many];
    for draws in drawn {
        for (category, weight) in weights.iter().enumerate() {
            let count = draws.iter().filter(|&&i| i == category as i64).count() as f64;
            assert!((count - weight * 10_000.0).abs() < 800.0, "{category}: {count}");
        }
    }
}

#[test]
fn state_bytes_are_those_of_pytorch() {
    let digest_of = |g: &Generator| digest(&g.state().to_bytes(), |b| [b]);
    let mut g = Generator::manual_seed((1 << 63) + 9);
    assert_eq!(digest_of(&g), 0x1698_2acf_8fa4_64a6);
    next_bits(&mut g);
    assert_eq!(digest_of(&g), 0xf842_1163_aa3b_9403);
    normal_f32(&mut g, 3);
    assert_eq!(digest_of(&g), 0xa334_a060_5959_b828, "with a kept normal number");
    g.fill_uniform_f32(&mut [0.0; 615]);
    assert_eq!(digest_of(&g), 0x5257_02ed_5525_5ce8, "with a used-up block");
    next_bits(&mut g);
    g.fill_uniform_f64(&mut [0.0; 3]);
    assert_eq!(digest_of(&g), 0xe16d_bed3_9e7c_500d, "in the second block");

    // PyTorch's bytes, then, as the digests say; and what PyTorch draws next from them.
    let mut loaded = Generator::default();
    loaded.set_state(&GeneratorState::from_bytes(&g.state().to_bytes()).unwrap());
    assert_eq!(loaded, g);
    assert_eq!(normal_f32(&mut loaded, 1)[0].to_bits(), 1_055_244_099);
    let mut integers = [0; 3];
    loaded.fill_randint(0, 1000, &mut integers).unwrap();
    assert_eq!(integers, [381, 12, 487]);
}

#[test]
fn a_damaged_state_is_an_error() {
    let mut g = Generator::manual_seed(5);
    normal_f64(&mut g, 1);
    let good = g.state().to_bytes();
    assert_eq!(GeneratorState::from_bytes(&good), Ok(g.state()));
    let message = |at: usize, new: &[u8]| {
        let mut bytes = good.clone();
        bytes[at..at + new.len()].copy_from_slice(new);
        GeneratorState::from_bytes(&bytes).unwrap_err().to_string()
    };
    let framed = |reason: &str| {
        format!("generator state: {reason}; give the bytes of a saved state, unchanged")
    };
    assert_eq!(message(12, &[0]), framed("the generator was never seeded"));
    assert_eq!(message(16, &[0x71, 2]), framed("at most 624 words can be used, got 625"));
    assert_eq!(
        message(23, &[0xff]),
        framed("at most 624 words can be used, got 18374686479671623684")
    );
    assert_eq!(message(8, &[0, 0]), framed("4 words used and 0 left do not fit together"));
    assert_eq!(
        message(24 + 8 * 3, &[0, 0, 0, 0, 1]),
        framed("word 3 is 4294967296, above 32 bits")
    );
    assert_eq!(message(24, &[0; 4992]), framed("every word is 0, from which only zeros come"));
    assert_eq!(message(5024, &f64::NAN.to_le_bytes()), framed("the kept normal number is NaN"));
    for length in [0, 1, 5055] {
        let error = GeneratorState::from_bytes(&good[..length]).unwrap_err().to_string();
        assert_eq!(error, framed(&format!("has 5056 bytes, got {length}")));
    }
}

/// One test for all that touches the default generator, since tests run on several threads.
#[test]
fn the_default_generator_is_shared_and_survives_a_panic() {
    manual_seed(42);
    let first = with_default(|g| g.random_u64());
    manual_seed(42);
    let thread = std::thread::spawn(|| with_default(|g| g.random_u64()));
    assert_eq!(thread.join().unwrap(), first);
    let panics = std::thread::spawn(|| with_default(|_| panic!("on purpose")));
    assert!(panics.join().is_err());
    manual_seed(42);
    assert_eq!(with_default(|g| g.random_u64()), first);
    assert_eq!(Generator::default().initial_seed(), 67_280_421_310_721);
}
