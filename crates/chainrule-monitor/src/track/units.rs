//! Counts of the points in a row at which all numbers of a unit have a property.

use chainrule_core::kernels::moments::{outside_columns, zero_columns};

use crate::numbers::{Number, Numbers};

/// Number of units of an output, and of contiguous numbers in each: the channels of pictures, and
/// the last axis otherwise.
pub(super) fn units(shape: &[usize]) -> (usize, usize) {
    match shape {
        [_, channels, inner @ ..] if inner.len() >= 2 => (*channels, inner.iter().product()),
        [_, .., last] => (*last, 1),
        _ => (usize::MAX, 1),
    }
}

/// A property of numbers.
#[derive(Clone, Copy)]
pub(super) enum Mark<T> {
    /// Exact zeros.
    Zero,
    /// Below the first or above the second bound.
    Outside(T, T),
}

impl<T: Number> Mark<T> {
    fn is_of(self, x: T) -> bool {
        match self {
            Mark::Zero => x == T::ZERO,
            Mark::Outside(low, high) => (x < low) | (x > high),
        }
    }
}

/// Counts, for each unit, the consecutive points at which all its numbers have a property. If fewer
/// numbers have it than a unit has, no unit does.
pub(super) fn count_runs<T: Number>(
    runs: &mut Vec<u32>,
    (units, inner): (usize, usize),
    values: &[T],
    may_be: bool,
    mark: Mark<T>,
) {
    runs.resize(units, 0);
    if !may_be {
        return runs.fill(0);
    }
    if inner == 1 {
        return count_columns(runs, values, mark);
    }
    // A unit that fires once need not be tested again.
    let mut left: Vec<usize> = (0..units).collect();
    for row in values.chunks(units * inner) {
        left.retain(|unit| row[unit * inner..][..inner].iter().all(|x| mark.is_of(*x)));
        if left.is_empty() {
            break;
        }
    }
    let mut left = left.into_iter().peekable();
    for (unit, run) in runs.iter_mut().enumerate() {
        *run = if left.next_if_eq(&unit).is_some() { *run + 1 } else { 0 };
    }
}

/// As [`count_runs`], for units that are columns: it tests all columns of a few rows at once, and
/// then whether a candidate is left.
fn count_columns<T: Number>(runs: &mut [u32], values: &[T], mark: Mark<T>) {
    const ROWS: usize = 8;
    let units = runs.len();
    let mut left = vec![1u32; units];
    for rows in values.chunks(ROWS * units) {
        match mark {
            Mark::Zero => zero_columns(rows, &mut left),
            Mark::Outside(low, high) => outside_columns(rows, (low, high), &mut left),
        }
        if left.iter().all(|left| *left == 0) {
            break;
        }
    }
    runs.iter_mut().zip(left).for_each(|(run, left)| *run = (*run + 1) * left);
}

/// Counts for each element the points in a row at which it was zero.
pub(super) fn count_zeros(runs: &mut Vec<u32>, numbers: &Numbers<'_>) {
    fn count<T: Number>(runs: &mut Vec<u32>, all: &[T]) {
        runs.resize(all.len(), 0);
        for (run, x) in runs.iter_mut().zip(all) {
            *run = if x.wide() == 0.0 { *run + 1 } else { 0 };
        }
    }
    match numbers {
        Numbers::F32(all) => count(runs, all),
        Numbers::F64(all) => count(runs, all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_columns_are_those_of_single_units() {
        let (rows, units) = (37, 19);
        let mut values: Vec<f32> = (0..rows * units).map(|i| (i % 5) as f32).collect();
        let dead = |unit: usize| unit.is_multiple_of(4);
        for (at, x) in values.iter_mut().enumerate() {
            *x = if dead(at % units) { 0.0 } else { *x };
        }
        // It fires once, for the last example.
        let last = values.len() - units;
        values[last + 8] = 1.0;
        let mut runs = vec![3; units];
        count_runs(&mut runs, (units, 1), &values, true, Mark::Zero);
        let expected: Vec<u32> =
            (0..units).map(|unit| if dead(unit) && unit != 8 { 4 } else { 0 }).collect();
        assert_eq!(runs, expected);
        count_runs(&mut runs, (units, 1), &values, false, Mark::Zero);
        assert_eq!(runs, vec![0; units]);
        count_runs(&mut runs, (units, 1), &values, true, Mark::Outside(-1.0, 0.5));
        let expected: Vec<u32> = (0..units)
            .map(|unit| {
                let mut column = values.iter().skip(unit).step_by(units);
                u32::from(column.all(|x| *x > 0.5))
            })
            .collect();
        assert_eq!(runs, expected);
    }
}
