//! Axes that are long enough to be taken in pieces, or sorted first.

use chainrule::{DType, Generator, Result, Tensor};
use chainrule_gpu::Dialect;

use crate::common::{Case, check};
use crate::samples::{case, with_gradients};

/// Sums, sorting and gathers of many elements, with their backward passes.
pub fn cases(dtype: DType, dialect: Dialect) -> Vec<Case> {
    let mut g = Generator::manual_seed(11);
    let rows = Tensor::randn([40, 5], dtype, &mut g);
    let line = Tensor::randn([3, 1000, 2], dtype, &mut g);
    // Equal ones keep their order.
    let many = Tensor::randint(-40, 40, [2, 301], &mut g).to_dtype(dtype);
    let index = Tensor::randint(0, 40, [700], &mut g);
    // Gradients of what is linear would be the same in each run, and so no part of the kernels.
    let embedded = |x: &[Tensor]| x[0].try_embedding(&index)?.try_sin();
    let picked = |x: &[Tensor]| x[0].try_index_select(1, &index)?.try_sin();
    let summed = |x: &[Tensor]| (x[0].try_cumsum(1)? * 0.1).try_sin();
    let turned = |x: &[Tensor]| (x[0].try_flip(&[1][..])?.try_cumsum(1)? * 0.1).try_sin();
    let sorted = |x: &[Tensor]| Ok(x[0].try_sort(1, true)?.0);
    let largest = |x: &[Tensor]| Ok(x[0].try_topk(7, 1, true, true)?.0);
    let part = |x: &Tensor, i: usize| (x * (0.1 * i as f64)).try_sin()?.try_sum(1, true);
    let parts = |x: &[Tensor]| (1..=40).map(|i| part(&x[0], i)).collect::<Result<Vec<Tensor>>>();
    // A sum and a row of more values than a kernel may take.
    let added = |x: &[Tensor]| {
        let parts = parts(x)?;
        let first = parts[0].clone();
        parts[1..].iter().try_fold(first, |sum, part| (sum * 0.9).try_add(&part.try_exp()?))
    };
    let joined = |x: &[Tensor]| Tensor::try_cat(&parts(x)?.iter().collect::<Vec<_>>(), 0);
    type Call<'a> = &'a dyn Fn(&[Tensor]) -> Result<Tensor>;
    let all: [(&str, Call<'_>, &Tensor); 8] = [
        ("embedding", &embedded, &rows),
        ("index_select", &picked, &line),
        ("cumsum", &summed, &line),
        ("cumsum of flipped", &turned, &line),
        ("sort", &sorted, &many),
        ("topk", &largest, &many),
        ("sum of many", &added, &rows),
        ("row of many", &joined, &rows),
    ];
    let one = |(name, call, x): (&str, Call<'_>, &Tensor)| {
        let f = |x: &[Tensor]| with_gradients(call, x);
        let mut case = case(&f, std::slice::from_ref(x), dtype, dialect).unwrap().unwrap();
        case.name = name.to_string();
        case
    };
    all.into_iter().map(one).collect()
}

#[test]
fn long_axes_give_the_same_values_as_kernels() {
    let cases = cases(DType::F64, Dialect::Cuda);
    let text = cases[0].module.text();
    assert!(text.contains("begins"), "{text}");
    let wrong = check(&cases, "long");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
