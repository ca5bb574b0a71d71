//! Dropout of the weights: the processor's choice for the same seed.

use chainrule::{Attention, DType, Generator, Tensor};
use chainrule_core::kernels::counter::philox;

use super::{PRECISIONS, case, case_like, check_all};
use crate::common::Case;

fn sides(queries: usize, keys: usize, width: usize, g: &mut Generator) -> [Tensor; 3] {
    [queries, keys, keys].map(|rows| Tensor::randn([2, 2, rows, width], DType::F32, g))
}

#[test]
fn dropped_weights_are_those_of_the_processor() {
    let mut g = Generator::manual_seed(12);
    let mut cases: Vec<Case> = Vec::new();
    let sizes = [(70, 70, 16), (17, 65, 24), (65, 15, 40), (1, 9, 5), (130, 40, 128)];
    for (i, (queries, keys, width)) in sizes.into_iter().enumerate() {
        for causal in [false, true] {
            let dropout_p = [0.3, 0.1, 0.75, 0.5, 1.0][i];
            let masked = i % 2 == 1;
            let mask = Tensor::rand([2, 1, 1, keys], DType::F32, &mut g).try_gt(0.3).unwrap();
            let mask = masked.then_some(mask);
            // Of all 64 bits.
            let seed = 0xfedc_ba98_7654_3210 + i as u64;
            let options = Attention { causal, mask, dropout_p, seed, ..Attention::default() };
            let all = sides(queries, keys, width, &mut g);
            let f = |x: &[Tensor]| x[0].try_attention(&x[1], &x[2], &options);
            let name = format!("{queries} of {keys} of {width}, {dropout_p}, causal {causal}");
            cases.extend(PRECISIONS.map(|precision| case(&name, &f, &all, precision)));
        }
    }
    let square = |c: &Case| c.name.starts_with("70 of 70").then_some([70, 70]);
    check_all(&cases, square, "dropout");
}

/// The seed that a device draws, from the words of its stream.
fn drawn(draw: u32) -> u64 {
    // The test gives 7 as the seed and 1 as the run.
    let words = philox([0, draw, 1, 0], [7, 0]);
    u64::from(words[1]) << 32 | u64::from(words[0])
}

#[test]
fn a_drawn_seed_is_that_of_the_devices_stream() {
    let mut g = Generator::manual_seed(13);
    let all = sides(40, 33, 16, &mut g);
    let f = |x: &[Tensor]| {
        let mut g = Generator::manual_seed(1);
        // Another draw before it, whose number is in the stream.
        let noise = Tensor::try_rand([1], DType::F32, &mut g)?.try_mul(0.0)?;
        let options = Attention::causal().with_dropout(0.4, &mut g);
        x[0].try_add(&noise)?.try_attention(&x[1], &x[2], &options)
    };
    let reference = |x: &[Tensor]| {
        let options = Attention { dropout_p: 0.4, seed: drawn(1), ..Attention::causal() };
        x[0].try_attention(&x[1], &x[2], &options)
    };
    let cases = PRECISIONS.map(|p| case_like("drawn", &f, &reference, &all, p));
    check_all(&cases, |_| None, "drawn");
}
