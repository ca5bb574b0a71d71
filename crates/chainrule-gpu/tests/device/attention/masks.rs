//! Masks of each form that broadcasts to the scores.

use chainrule::{Attention, DType, Generator, Tensor};

use super::{PRECISIONS, case, check_all};
use crate::common::Case;

/// A mask of bools with a row that sees nothing where it has several.
fn bools(dims: &[usize], g: &mut Generator) -> Tensor {
    let seen = Tensor::rand(dims, DType::F32, g).try_gt(0.4).unwrap();
    let rank = dims.len();
    if dims[rank - 2] < 3 {
        return seen;
    }
    let shown: Vec<bool> = (0..dims[rank - 2]).map(|i| i != 2).collect();
    let shown = Tensor::from_slice(&shown, [dims[rank - 2], 1]);
    let both = [seen, shown].map(|x| x.to_dtype(DType::F32));
    both[0].try_mul(&both[1]).unwrap().try_gt(0.5).unwrap()
}

/// The same as numbers that are added: minus infinity for what is not seen.
fn numbers(dims: &[usize], g: &mut Generator) -> Tensor {
    let more = Tensor::randn(dims, DType::F32, g);
    let none = Tensor::full((), f64::NEG_INFINITY, DType::F32);
    bools(dims, g).try_where(&more, &none).unwrap()
}

/// Queries and keys, and the mask's shape for two sequences of two heads.
const FORMS: [(usize, usize, &[usize]); 8] = [
    (17, 17, &[17, 17]),
    (70, 65, &[2, 1, 1, 65]),
    (70, 70, &[2, 2, 70, 70]),
    (15, 40, &[1, 2, 15, 40]),
    (65, 16, &[2, 1, 65, 16]),
    (16, 15, &[2, 1, 16, 1]),
    (1, 200, &[1, 200]),
    (200, 1, &[200, 1]),
];

fn sides(queries: usize, keys: usize, width: usize, g: &mut Generator) -> [Tensor; 3] {
    [queries, keys, keys].map(|rows| Tensor::randn([2, 2, rows, width], DType::F32, g))
}

/// A case of each form, dtype and precision, causal and not.
pub fn cases() -> Vec<Case> {
    let mut g = Generator::manual_seed(8);
    let mut cases: Vec<Case> = Vec::new();
    for (i, (queries, keys, dims)) in FORMS.into_iter().enumerate() {
        for causal in [false, true] {
            let width = [16, 24, 32, 5][(i + usize::from(causal)) % 4];
            let three = sides(queries, keys, width, &mut g);
            let (seen, more) = (bools(dims, &mut g), numbers(dims, &mut g));
            // Bools as an argument, numbers as a constant.
            let all = [&three[..], &[seen]].concat();
            let f = |x: &[Tensor]| {
                let mask = Some(x[3].clone());
                x[0].try_attention(
                    &x[1],
                    &x[2],
                    &Attention { mask, causal, ..Attention::default() },
                )
            };
            let name = format!("{queries} of {keys}, a mask {dims:?}, causal {causal}");
            cases.extend(PRECISIONS.map(|p| case(&format!("{name}, bools"), &f, &all, p)));
            let f = |x: &[Tensor]| {
                let mask = Some(more.clone());
                x[0].try_attention(
                    &x[1],
                    &x[2],
                    &Attention { mask, causal, ..Attention::default() },
                )
            };
            cases.extend(PRECISIONS.map(|p| case(&format!("{name}, numbers"), &f, &three, p)));
        }
    }
    cases
}

#[test]
fn masks_are_those_of_the_whole_square() {
    let cases = cases();
    let square = |c: &Case| c.name.starts_with("70 of 65").then_some([70, 65]);
    check_all(&cases, square, "masks");
}

/// A row whose mask is large everywhere has the weights of one without: the logarithm of its sum is
/// less than a rounding of its largest score.
pub fn large_cases() -> Vec<Case> {
    let mut g = Generator::manual_seed(9);
    let mut cases: Vec<Case> = Vec::new();
    for large in [-1e4, -1e9, f64::from(f32::MIN)] {
        let three = sides(20, 20, 16, &mut g);
        let rows: Vec<f64> = (0..20).map(|i| if i % 3 == 1 { large } else { 0.0 }).collect();
        let mask = Tensor::from_slice(&rows, [20, 1]).to_dtype(DType::F32);
        let f = |x: &[Tensor]| {
            let options = Attention { mask: Some(mask.clone()), ..Attention::default() };
            x[0].try_attention(&x[1], &x[2], &options)
        };
        // In f64 such numbers leave the digits of the scores, in f32 they leave none.
        let reference = |x: &[Tensor]| match large < -1e5 {
            true => {
                let scores = x[0].try_matmul(&x[1].try_transpose(-1, -2)?)?.try_mul(0.25)?;
                let lost = mask.try_lt(0.0)?.try_where(&scores, 0.0)?.detach();
                scores.try_sub(&lost)?.try_softmax(-1)?.try_matmul(&x[2])
            }
            false => f(x),
        };
        let made = PRECISIONS.map(|(precision, part)| {
            // The scores lose what a rounding of the mask is.
            let part = if large < -1e5 { part } else { part + 1e-3 };
            super::case_like(&format!("{large}"), &f, &reference, &three, (precision, part))
        });
        cases.extend(made);
    }
    cases
}

#[test]
fn large_numbers_of_a_mask_leave_the_weights_whole() {
    check_all(&large_cases(), |_| None, "large");
}

/// The gradient of a mask that is added is a square anyway; the others are those of the kernels.
#[test]
fn a_mask_has_its_gradient() {
    let mut g = Generator::manual_seed(10);
    let mut all = sides(17, 20, 24, &mut g).to_vec();
    all.push(Tensor::randn([2, 1, 17, 20], DType::F32, &mut g));
    let f = |x: &[Tensor]| {
        let options = Attention { mask: Some(x[3].clone()), ..Attention::causal() };
        x[0].try_attention(&x[1], &x[2], &options)
    };
    let cases = PRECISIONS.map(|precision| case("a mask's gradient", &f, &all, precision));
    check_all(&cases, |_| None, "mask-gradient");
}
