//! Dropout of the weights: the processor's choice for the same seed.

use chainrule::program::Program;
use chainrule::{Attention, DType, Generator, Result, Tensor};
use chainrule_core::kernels::counter::philox;
use chainrule_gpu::{Dialect, KernelModule, Products};

use super::{PRECISIONS, case, case_like, check_all};
use crate::common::{Case, given, results};

fn sides(queries: usize, keys: usize, width: usize, g: &mut Generator) -> [Tensor; 3] {
    [queries, keys, keys].map(|rows| Tensor::randn([2, 2, rows, width], DType::F32, g))
}

/// Cases with seeds that are known, of each precision.
pub fn cases() -> Vec<Case> {
    let mut g = Generator::manual_seed(12);
    let mut cases: Vec<Case> = Vec::new();
    let sizes = [(70, 70, 16), (17, 65, 24), (65, 15, 40), (1, 9, 5), (130, 40, 128)];
    for (i, (queries, keys, width)) in sizes.into_iter().enumerate() {
        for causal in [false, true] {
            let dropout_p = [0.3, 0.1, 0.75, 0.5, 1.0][i];
            let masked = i % 2 == 1;
            let mask = Tensor::rand([2, 1, 1, keys], DType::F32, &mut g).try_gt(0.3).unwrap();
            let mask = masked.then_some(mask);
            // A seed of all 64 bits.
            let seed = 0xfedc_ba98_7654_3210 + i as u64;
            let options = Attention { causal, mask, dropout_p, seed, ..Attention::default() };
            let all = sides(queries, keys, width, &mut g);
            let f = |x: &[Tensor]| x[0].try_attention(&x[1], &x[2], &options);
            let name = format!("{queries} of {keys} of {width}, {dropout_p}, causal {causal}");
            cases.extend(PRECISIONS.map(|precision| case(&name, &f, &all, precision)));
        }
    }
    cases
}

#[test]
fn dropped_weights_are_those_of_the_processor() {
    let cases = cases();
    let square = |c: &Case| c.name.starts_with("70 of 70").then_some([70, 70]);
    check_all(&cases, square, "dropout");
}

/// The seed of the second draw of run 1 with the seed 7, of which WebGPU has one word.
pub fn drawn(is_narrow: bool) -> u64 {
    let [low, high, ..] = philox([0, 1, 1, 0], [7, 0]);
    match is_narrow {
        true => i64::from(low.cast_signed()).cast_unsigned(),
        false => u64::from(high) << 32 | u64::from(low),
    }
}

/// Queries, keys and values, and an attention whose seed is drawn after another number.
pub fn drawing() -> ([Tensor; 3], impl Fn(&[Tensor]) -> Result<Tensor>) {
    let all = sides(40, 33, 16, &mut Generator::manual_seed(13));
    let f = |x: &[Tensor]| {
        let mut g = Generator::manual_seed(1);
        let noise = Tensor::try_rand([1], DType::F32, &mut g)?.try_mul(0.0)?;
        let options = Attention::causal().with_dropout(0.4, &mut g);
        x[0].try_add(&noise)?.try_attention(&x[1], &x[2], &options)
    };
    (all, f)
}

/// The same with a seed that is known.
pub fn with_seed(x: &[Tensor], seed: u64) -> Result<Tensor> {
    let options = Attention { dropout_p: 0.4, seed, ..Attention::causal() };
    x[0].try_attention(&x[1], &x[2], &options)
}

#[test]
fn a_drawn_seed_is_that_of_the_devices_stream() {
    let (all, f) = drawing();
    let reference = |x: &[Tensor]| with_seed(x, drawn(false));
    let cases = PRECISIONS.map(|p| case_like("drawn", &f, &reference, &all, p));
    check_all(&cases, |_| None, "drawn");
}

/// A forward pass keeps as much as the probability says, and its gradient has the same mask: with
/// equal scores and unit vectors for values the result is the mask, and so is the gradient of the
/// values, turned.
#[test]
fn a_gradient_has_the_mask_of_its_forward_pass() {
    let n = 128;
    let zeros = Tensor::zeros([n, 16]);
    let units = Tensor::eye(n);
    let f = |x: &[Tensor]| {
        let options = Attention::default().with_dropout(0.3, &mut Generator::manual_seed(1));
        let own = [&x[0], &x[1], &x[2]].map(|x| x.parameter());
        let y = own[0].try_attention(&own[1], &own[2], &options)?;
        y.try_mul(&x[2])?.sum_all().try_backward()?;
        Ok(vec![y.detach(), own[2].grad().unwrap()])
    };
    let inputs = [zeros.clone(), zeros, units];
    let names = ["q", "k", "v"].into_iter().zip(&inputs);
    let program = Program::trace(names, f).unwrap();
    for (precision, _) in PRECISIONS {
        let products =
            Products { precision, from: usize::MAX, attention: true, ..Products::default() };
        let module = KernelModule::with_products(&program, Dialect::Cuda, products).unwrap();
        let given = given(&module, &inputs, &[]);
        let (program, inputs) = (program.clone(), inputs.to_vec());
        let name = format!("mask in {precision}");
        let (want, within) = (Vec::new(), Vec::new());
        let case = Case { name, module, given, want, within, program, inputs };
        let Some(got) = results(&[case], "mask") else { return };
        let [y, dv] = &got[0][..] else { panic!("two results") };
        let kept = y.iter().filter(|&&w| w != 0.0).count() as f64 / (n * n) as f64;
        // Five deviations of the mean of 16,384 choices.
        assert!((kept - 0.7).abs() < 0.018, "{precision}: {kept} are kept");
        let weight = 1.0 / 0.7 / n as f64;
        let is_weight = |w: f64| w == 0.0 || (w - weight).abs() < 0.01 * weight;
        assert!(y.iter().all(|&w| is_weight(w)), "{precision}");
        // The upstream gradient is 1 on the diagonal, so that of the values is the mask, turned.
        let places = (0..n).flat_map(|i| (0..n).map(move |j| (i, j)));
        let differ = |&(i, j): &(usize, usize)| (y[i * n + j] == 0.0) != (dv[j * n + i] == 0.0);
        assert_eq!(places.filter(differ).count(), 0, "{precision}");
    }
}
