//! Rules on terms, with and without the facts that they need.

use super::super::rules::rules;
use super::super::term::{Base, Dims, Facts, Fun, ONE, Range, TermId, Terms, Var, ZERO};
use crate::ir::Id;

fn terms() -> Terms {
    Terms::new(&vec![true; rules().len()], vec![4, 3])
}

/// An atom over both axes, or the first only.
fn atom(terms: &mut Terms, id: u32, rank: u32, range: Option<Range>) -> TermId {
    let dims: Dims = (0..rank).map(|v| Some(Var(v))).collect();
    let b = terms.value_base(Id(id), dims, Facts { range, ..Facts::default() });
    terms.power(b, 1.0)
}

#[test]
fn a_quotient_of_equals_is_one_only_where_it_is_not_zero() {
    let t = &mut terms();
    for (range, cancels) in [
        (None, false),
        (Some(Range::NOT_NEGATIVE), false),
        (Some(Range::POSITIVE), true),
        (Some(Range::open(-2.0, 0.0)), true),
        (Some(Range::UNIT), false),
    ] {
        let x = atom(
            t,
            range
                .map_or(0, |r| r.low as u32 + 7 * r.closed[0] as u32 + r.high.min(50.0) as u32 + 1),
            1,
            range,
        );
        let inverse = t.pow(x, -1.0);
        let quotient = t.mul(x, inverse);
        assert_eq!(quotient == ONE, cancels, "{range:?}");
        // Powers of one sign always merge.
        let square = t.mul(x, x);
        assert_eq!(square, t.pow(x, 2.0));
    }
}

#[test]
fn roots_and_logarithms_need_a_sign() {
    let t = &mut terms();
    let (any, positive) = (atom(t, 1, 1, None), atom(t, 2, 1, Some(Range::POSITIVE)));
    for (x, known) in [(any, false), (positive, true)] {
        let root = t.pow(x, 0.5);
        assert_eq!(t.pow(root, 2.0) == x, known);
        let square = t.pow(x, 2.0);
        assert_eq!(t.pow(square, 0.5) == x, known);
        let log = t.apply(Fun::Log, x);
        assert_eq!(t.apply(Fun::Exp, log) == x, known);
        let exp = t.apply(Fun::Exp, x);
        assert_eq!(t.apply(Fun::Log, exp), x);
        let product = t.mul(exp, x);
        let log = t.apply(Fun::Log, product);
        assert_eq!(t.summands(log).len(), 1 + known as usize);
    }
    // A sum of squares and a positive number is positive.
    let square = t.pow(any, 2.0);
    let above = t.add(&[(square, 1.0), (ONE, 1e-5)]);
    assert!(t.range(above).is_positive());
    let root = t.pow(above, -0.5);
    assert_eq!(t.pow(root, -2.0), above);
}

#[test]
fn sums_along_axes() {
    let t = &mut terms();
    let (row, all) = (atom(t, 1, 1, None), atom(t, 2, 2, None));
    let product = t.mul(row, all);
    let sum = t.reduce_whole(&[Var(1)], product);
    let inner = t.reduce_whole(&[Var(1)], all);
    assert_eq!(sum, t.mul(row, inner));
    let count = t.reduce_whole(&[Var(1)], row);
    assert_eq!(count, t.scaled(row, 3.0));
    // Differences from a mean sum to zero.
    let mean = t.scaled(inner, 1.0 / 3.0);
    let apart = t.add(&[(all, 1.0), (mean, -1.0)]);
    assert_eq!(t.reduce_apart(&[Var(1)], apart), ZERO);
    let hot = t.hot_base(Id(3), [Some(Var(0)), None].into_iter().collect(), Var(1));
    let hot = t.power(hot, 1.0);
    let weighted = t.mul(hot, row);
    assert_eq!(t.reduce_whole(&[Var(1)], weighted), row);
    assert_eq!(t.mul(hot, hot), hot);
    // Along the rows it is a count, and unknown.
    let column = t.reduce_whole(&[Var(0)], hot);
    assert!(
        matches!(t.summands(column)[..], [(m, 1.0)] if matches!(t.get(t.factors(m)[0].0), Base::Reduce(..)))
    );
}
