//! `einsum`: sums of products along labelled axes. Made of `diagonal`, `sum`, `permute`, `reshape`,
//! `mul` and `matmul`, with their rules.

mod equation;

use crate::ops::prelude::*;
use equation::{Equation, Label, error};

const NAME: &str = "einsum";

/// A tensor whose axes have labels, each of them once.
struct LabelledOperand {
    tensor: Tensor,
    labels: Vec<Label>,
}

impl LabelledOperand {
    /// The operand with repeated labels brought down to the diagonal.
    fn new(i: usize, tensor: &Tensor, labels: &[Label]) -> Result<LabelledOperand> {
        let mut this = LabelledOperand { tensor: tensor.clone(), labels: labels.to_vec() };
        let twice = |labels: &[Label]| {
            labels.iter().enumerate().find_map(|(a, label)| {
                let b = labels[a + 1..].iter().position(|l| l == label)?;
                Some((a, a + 1 + b, *label))
            })
        };
        while let Some((a, b, label)) = twice(&this.labels) {
            let shape = this.tensor.shape();
            if shape[a] != shape[b] {
                let (m, n) = (shape[a], shape[b]);
                let why = format!("{label} is repeated in operand {i} with sizes {m} and {n}");
                return Err(Error::shape(NAME, &[&tensor.shape()], why));
            }
            this.tensor = this.tensor.try_diagonal(0, a as i64, b as i64)?;
            this.labels.remove(b);
            this.labels.remove(a);
            this.labels.push(label);
        }
        Ok(this)
    }

    fn size(&self, label: Label) -> Option<usize> {
        let axis = self.labels.iter().position(|l| *l == label)?;
        Some(self.tensor.shape()[axis])
    }

    fn has(&self, label: Label) -> bool {
        self.labels.contains(&label)
    }

    /// Without the axes of size 1 that another operand stretches.
    fn squeezed(self, sizes: &[(Label, usize)]) -> Result<LabelledOperand> {
        let shape = self.tensor.shape();
        let full = |l: Label| sizes.iter().find(|(m, _)| *m == l).is_some_and(|(_, n)| *n == 1);
        let kept = |a: &usize| shape[*a] != 1 || full(self.labels[*a]);
        let kept: Vec<usize> = (0..shape.rank()).filter(kept).collect();
        if kept.len() == shape.rank() {
            return Ok(self);
        }
        let dims: Vec<usize> = kept.iter().map(|&a| shape[a]).collect();
        let labels = kept.iter().map(|&a| self.labels[a]).collect();
        Ok(LabelledOperand { tensor: self.tensor.try_reshape(dims)?, labels })
    }

    /// Summed over the labels that `keep` does not want.
    fn summed(self, keep: impl Fn(Label) -> bool) -> Result<LabelledOperand> {
        let gone: Vec<i64> =
            (0..self.labels.len()).filter(|&a| !keep(self.labels[a])).map(|a| a as i64).collect();
        if gone.is_empty() {
            return Ok(self);
        }
        let tensor = self.tensor.try_sum(gone.as_slice(), false)?;
        Ok(LabelledOperand {
            tensor,
            labels: self.labels.into_iter().filter(|l| keep(*l)).collect(),
        })
    }

    /// The tensor with its axes in the order of `labels`, which are all of them.
    fn ordered(&self, labels: &[Label]) -> Result<Tensor> {
        if self.labels == labels {
            return Ok(self.tensor.clone());
        }
        let axis = |l: &Label| self.labels.iter().position(|m| m == l).expect("its own") as i64;
        self.tensor.try_permute(&labels.iter().map(axis).collect::<Vec<_>>())
    }

    /// The number of positions of these labels together.
    fn count(&self, labels: &[Label]) -> usize {
        labels.iter().filter_map(|l| self.size(*l)).product()
    }

    /// The axes of each group of labels as one, in this order.
    fn grouped(&self, groups: &[&[Label]]) -> Result<Tensor> {
        let sizes: Vec<usize> = groups.iter().map(|g| self.count(g)).collect();
        self.ordered(&groups.concat())?.try_reshape(sizes)
    }
}

/// The size of each label, if the operands agree; size 1 stretches.
fn sizes(operands: &[LabelledOperand]) -> Result<Vec<(Label, usize)>> {
    let mut out: Vec<(Label, usize, usize)> = Vec::new();
    for (i, operand) in operands.iter().enumerate() {
        for (&label, &n) in operand.labels.iter().zip(operand.tensor.shape().iter()) {
            match out.iter_mut().find(|(l, ..)| *l == label) {
                None => out.push((label, n, i)),
                Some((_, m, at)) if *m == 1 => (*m, *at) = (n, i),
                Some((_, m, at)) if n != 1 && n != *m => {
                    return error(format!(
                        "{label} has size {m} in operand {at} and {n} in operand {i}; they must be equal, or one of them 1"
                    ));
                }
                Some(_) => {}
            }
        }
    }
    Ok(out.into_iter().map(|(label, n, _)| (label, n)).collect())
}

/// The product of two operands, summed over the labels that `keep` does not want.
fn contract(
    a: LabelledOperand,
    b: LabelledOperand,
    keep: impl Fn(Label) -> bool,
) -> Result<LabelledOperand> {
    let a = a.summed(|l| b.has(l) || keep(l))?;
    let b = b.summed(|l| a.has(l) || keep(l))?;
    let of_a = |wanted: &dyn Fn(Label) -> bool| -> Vec<Label> {
        a.labels.iter().copied().filter(|l| wanted(*l)).collect()
    };
    let shared = of_a(&|l| b.has(l) && keep(l));
    let inner = of_a(&|l| b.has(l) && !keep(l));
    let left = of_a(&|l| !b.has(l));
    let right: Vec<Label> = b.labels.iter().copied().filter(|l| !a.has(*l)).collect();
    let labels = [&shared[..], &left, &right].concat();
    if labels.len() > MAX_RANK {
        return error(format!(
            "a product on the way has {} axes; a tensor has at most 8",
            labels.len()
        ));
    }
    let size = |l: &Label| a.size(*l).or_else(|| b.size(*l)).expect("a label of one of them");
    let out: Vec<usize> = labels.iter().map(size).collect();
    let product = if inner.is_empty() {
        let ones = |t: Tensor, rank: usize| -> Result<Tensor> {
            let dims = [t.shape().dims(), &vec![1; rank]].concat();
            t.try_reshape(dims)
        };
        // With the axes of the other one of size 1, where they are not shared.
        let left = ones(a.ordered(&[&shared[..], &left].concat())?, right.len())?;
        let rows: Vec<usize> = shared
            .iter()
            .map(size)
            .chain(vec![1; labels.len() - shared.len() - right.len()])
            .chain(right.iter().map(size))
            .collect();
        let right = b.ordered(&[&shared[..], &right].concat())?.try_reshape(rows)?;
        left.try_mul(&right)?
    } else if shared.is_empty() {
        a.grouped(&[&left, &inner])?.try_matmul(&b.grouped(&[&inner, &right])?)?
    } else {
        a.grouped(&[&shared, &left, &inner])?.try_matmul(&b.grouped(&[&shared, &inner, &right])?)?
    };
    Ok(LabelledOperand { tensor: product.try_reshape(out)?, labels })
}

/// The pair of operands whose product is the smallest; the first of them where there are several.
fn cheapest(
    operands: &[LabelledOperand],
    keep: impl Fn(Label, usize, usize) -> bool,
) -> (usize, usize) {
    let mut best = (f64::INFINITY, (0, 1));
    for i in 0..operands.len() {
        for j in i + 1..operands.len() {
            let (a, b) = (&operands[i], &operands[j]);
            let own = a.labels.iter().map(|l| (*l, a.size(*l)));
            let rest = b.labels.iter().filter(|l| !a.has(**l)).map(|l| (*l, b.size(*l)));
            let sizes = own.chain(rest).filter(|(l, _)| keep(*l, i, j));
            let size: f64 = sizes.map(|(_, n)| n.unwrap_or(1) as f64).product();
            if size < best.0 {
                best = (size, (i, j));
            }
        }
    }
    best.1
}

impl Tensor {
    /// Sums of products along labelled axes, in Einstein's notation. The equation gives each axis
    /// of each operand a letter, and names the axes of the result behind an arrow: `"ij,jk->ik"` is
    /// the matrix product, `c[i, k] = sum over j of a[i, j] * b[j, k]`.
    ///
    /// - A label that is not in the output is summed over.
    /// - A label that is repeated in one operand takes the diagonal: `"ii->i"`, `"ii->"` (the
    ///   trace).
    /// - Three dots stand for all axes that have no letter, aligned at the last:
    ///   `"...ij,...jk->...ik"`. Left out of the output, they are summed over.
    /// - Without an arrow the output is the ellipsis, then all labels that occur once, in
    ///   alphabetical order (capitals first).
    /// - Any number of operands. They are multiplied in pairs, always those with the smallest
    ///   product next; sums over shared labels are products of matrices. Spaces are ignored.
    ///
    /// Sizes of a label must be equal, or 1, which stretches (but not within one operand). Dtypes
    /// are promoted; no bools. Errors name the label and both sizes. Gradient: that of the products
    /// and sums; for `c = "ij,jk->ik"` it is `da = "ik,jk->ij"` of `g` and `b`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let a = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    /// assert_eq!(Tensor::einsum("ij,jk->ik", &[&a, &a]).to_vec::<f32>(), [7.0, 10.0, 15.0, 22.0]);
    /// assert_eq!(Tensor::einsum("ii->", &[&a]).item(), 5.0);
    /// assert_eq!(Tensor::einsum("ij->j", &[&a]).to_vec::<f32>(), [4.0, 6.0]);
    /// ```
    #[track_caller]
    pub fn einsum(equation: &str, operands: &[&Tensor]) -> Tensor {
        match Tensor::try_einsum(equation, operands) {
            Ok(t) => t,
            Err(e) => crate::error::raise(e),
        }
    }

    /// Like [`Tensor::einsum`], but returns the error.
    #[track_caller]
    pub fn try_einsum(equation: &str, operands: &[&Tensor]) -> Result<Tensor> {
        let shapes: Vec<Shape> = operands.iter().map(|t| t.shape()).collect();
        let equation = Equation::read(equation, &shapes)?;
        let labelled = operands.iter().zip(&equation.inputs).enumerate();
        let mut left = labelled
            .map(|(i, (t, labels))| LabelledOperand::new(i, t, labels))
            .collect::<Result<Vec<_>>>()?;
        let sizes = sizes(&left)?;
        left = left.into_iter().map(|o| o.squeezed(&sizes)).collect::<Result<_>>()?;
        let wanted = |l: Label| equation.output.contains(&l);
        while left.len() > 1 {
            let others = |l: Label, i: usize, j: usize| {
                left.iter().enumerate().any(|(k, o)| k != i && k != j && o.has(l))
            };
            let (i, j) = match left.len() {
                2 => (0, 1),
                _ => cheapest(&left, |l, i, j| wanted(l) || others(l, i, j)),
            };
            let b = left.remove(j);
            let a = std::mem::replace(
                &mut left[i],
                LabelledOperand { tensor: b.tensor.clone(), labels: Vec::new() },
            );
            let keep = |l: Label| wanted(l) || left.iter().any(|o| o.has(l));
            left[i] = contract(a, b, keep)?;
        }
        let Some(last) = left.pop() else { unreachable!("an equation has one operand at least") };
        last.summed(wanted)?.ordered(&equation.output)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    family: Family::Linalg,
    signature: "Tensor::einsum(\"ij,jk->ik\", &[&a, &b])",
    python: &[Binding::by_hand("einsum", "an equation and a list of tensors")
        .no_method()
        .no_function()],
    formula: "the sum of the products of the operands over all labels that are not in the output",
    gradient: "of each operand: einsum of g and the other operands, with its own labels as the output",
    at_kinks: "",
    samples: |g| {
        let cases: [(&str, &str, &[&[usize]]); 14] = [
            ("a product of matrices", "ij,jk->ik", &[&[2, 3], &[3, 4]]),
            ("transposed, without an arrow", "kj,ik", &[&[3, 2], &[4, 3]]),
            ("a batch", "bij,bjk->bik", &[&[2, 3, 4], &[2, 4, 2]]),
            ("several axes in each place", "abcd,cebf->fade", &[&[2, 3, 2, 2], &[2, 2, 3, 2]]),
            ("ellipsis that broadcasts", "...ij,...j->...i", &[&[2, 1, 3, 4], &[5, 4]]),
            ("ellipsis summed over", "...i->i", &[&[2, 3, 4]]),
            ("diagonal", "iji->ij", &[&[3, 2, 3]]),
            ("trace", "ii", &[&[3, 3]]),
            ("three operands", "ij,jk,kl->il", &[&[2, 3], &[3, 4], &[4, 2]]),
            ("a label in three operands", "bi,bi,bj->bj", &[&[2, 3], &[2, 3], &[2, 4]]),
            ("outer product", "i,j->ji", &[&[3], &[2]]),
            ("sums of one operand only", "ijk,jl->l", &[&[2, 3, 2], &[3, 4]]),
            ("0-d", ",i->i", &[&[], &[3]]),
            ("empty", "ij,jk->ik", &[&[2, 0], &[0, 3]]),
        ];
        let mut out: Vec<Sample> = cases
            .into_iter()
            .map(|(note, equation, shapes)| {
                let inputs = shapes.iter().map(|s| normal(g, *s)).collect();
                Sample::new(note, inputs, move |x| {
                    Tensor::try_einsum(equation, &x.iter().collect::<Vec<_>>())
                })
            })
            .collect();
        out.push(Sample::new("an operand used twice", vec![normal(g, [2, 3])], |x| {
            Tensor::try_einsum("ij,kj->ik", &[&x[0], &x[0]])
        }));
        out
    },
    mistakes: &[],
};

#[cfg(test)]
mod tests;
