//! The names model in small steps, forward and backward.

use super::*;

/// The names model in small steps, as its textbook has it.
pub(crate) fn chunked(p: &[Tensor], x: &Tensor, y: &Tensor, n: usize) -> Tensor {
    let emb = p[0].embedding(x);
    let embcat = emb.reshape([n as i64, -1]);
    let hprebn = embcat.matmul(&p[1]) + &p[2];
    let n = n as f64;
    let bnmeani: Tensor = 1.0 / n * hprebn.sum(0, true);
    let bndiff = &hprebn - &bnmeani;
    let bndiff2 = bndiff.pow(2.0);
    let bnvar: Tensor = 1.0 / (n - 1.0) * bndiff2.sum(0, true);
    let bnvar_inv = (&bnvar + 1e-5).pow(-0.5);
    let bnraw = &bndiff * &bnvar_inv;
    let hpreact = &p[5] * &bnraw + &p[6];
    let h = hpreact.tanh();
    let logits = h.matmul(&p[3]) + &p[4];
    let logit_maxes = logits.max_axis(1, true).0;
    let norm_logits = &logits - &logit_maxes;
    let counts = norm_logits.exp();
    let counts_sum = counts.sum(1, true);
    let counts_sum_inv = counts_sum.pow(-1.0);
    let probs = &counts * &counts_sum_inv;
    let logprobs = probs.log();
    let loss = -(logprobs.gather(1, &y.reshape([-1, 1])).sum_all() / n);
    loss.named("loss")
}

/// Parameters of a small names model, and a batch.
pub(super) fn small(dtype: DType) -> (Vec<Tensor>, Tensor, Tensor) {
    let mut g = Generator::manual_seed(5);
    let shapes: [(&str, &[usize]); 7] = [
        ("C", &[7, 2]),
        ("W1", &[6, 5]),
        ("b1", &[5]),
        ("W2", &[5, 7]),
        ("b2", &[7]),
        ("bngain", &[1, 5]),
        ("bnbias", &[1, 5]),
    ];
    let parameters = shapes
        .iter()
        .map(|(name, shape)| Tensor::randn(*shape, dtype, &mut g).parameter().named(name))
        .collect();
    let x = Tensor::randint(0, 7, [4, 3], &mut g);
    let y = Tensor::randint(0, 7, [4], &mut g);
    (parameters, x, y)
}

pub(crate) fn chunked_program(dtype: DType) -> (Program, Vec<Tensor>, Tensor, Tensor) {
    let (p, x, y) = small(dtype);
    let program = Program::trace([("x", &x), ("y", &y)], |args| {
        let loss = chunked(&p, &args[0], &args[1], 4);
        loss.backward();
        Ok([loss].into_iter().chain(p.iter().map(|p| p.grad().unwrap())).collect())
    });
    (program.unwrap(), p, x, y)
}

#[test]
fn the_chunked_model_is_bit_for_bit_that_of_the_eager_mode() {
    for dtype in [DType::F32, DType::F64] {
        let (program, p, x, y) = chunked_program(dtype);
        assert!(p.iter().all(|p| p.grad().is_none()), "a trace leaves no gradients");
        let optimized = program.optimized();
        for program in [&program, &optimized] {
            for seed in 0..2 {
                let mut g = Generator::manual_seed(seed);
                p.iter().for_each(|p| {
                    p.set(&Tensor::randn(p.shape(), dtype, &mut g));
                    p.zero_grad();
                });
                let out = program.run(&[&x, &y]).unwrap();
                let loss = chunked(&p, &x, &y, 4);
                loss.backward();
                assert_eq!(bits(&out[0]), bits(&loss));
                for (got, p) in out[1..].iter().zip(&p) {
                    assert_eq!(bits(got), bits(&p.grad().unwrap()), "{:?}", p.name());
                    p.zero_grad();
                }
            }
        }
    }
}

#[test]
fn any_intermediate_can_be_asked_for() {
    let (program, p, x, y) = chunked_program(DType::F64);
    let asked = program.optimized().run_with(&[&x, &y], &["hpreact", "d_logits"]).unwrap();
    let [.., hpreact, d_logits] = &asked[..] else { panic!("two more") };
    chainrule_core::record_all(|| chunked(&p, &x, &y, 4)).backward();
    assert_eq!(hpreact.shape(), [4, 5]);
    assert_eq!(d_logits.shape(), [4, 7]);
    // The gradient of a bias is the sum over the rows.
    assert_eq!(bits(&d_logits.sum(0, false)), bits(&p[4].grad().unwrap()));
    let error = program.run_with(&[&x, &y], &["nothing"]).unwrap_err().to_string();
    assert!(error.contains("there is no value `nothing`") && error.contains("hpreact"), "{error}");
}

#[test]
fn the_listing_has_the_names_of_the_source() {
    let text = chunked_program(DType::F32).0.optimized().to_string();
    let line = |start: &str| {
        let found = text.lines().find(|l| l.trim_start().starts_with(start));
        found
            .unwrap_or_else(|| panic!("no `{start}` in\n{text}"))
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(line("parameter W1 "), "parameter W1 f32 [6, 5]");
    assert_eq!(line("hpreact ="), "hpreact = mul + bnbias f32 [4, 5] names.rs:17");
    assert_eq!(
        line("d_hpreact ="),
        "d_hpreact = tanh_grad(h, d_h) f32 [4, 5] rule of tanh, names.rs:18"
    );
    assert_eq!(
        line("d_W2 ="),
        "d_W2 = permute_2 @ d_logits f32 [5, 7] rule of matmul, names.rs:19"
    );
    assert_eq!(line("return"), "return loss, d_C, d_W1, d_b1, d_W2, d_b2, d_bngain, d_bnbias");
}
