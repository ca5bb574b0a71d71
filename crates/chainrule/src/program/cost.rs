//! What a program costs: operations and bytes.

use super::Program;
use super::ir::{Id, Instruction, Phase};
use crate::shape::Shape;
use crate::tensor::op::Kernel;

/// What a program costs, counted by the rules of [`Program::cost`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// How many instructions there are.
    pub instructions: usize,
    /// Operations on numbers.
    pub flops: u64,
    /// Bytes that the instructions read and write.
    pub bytes: u64,
}

impl std::ops::Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost {
            instructions: self.instructions + other.instructions,
            flops: self.flops + other.flops,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl Program {
    /// What the program costs.
    ///
    /// - A product of matrices `[m, k]` and `[k, n]` is `2 m n k` operations, and a convolution as many as the product that it is.
    /// - An elementwise op is one for each element of its result, whatever it computes: `exp` counts as much as `+`. A slope in one pass
    ///   (`tanh_grad`) is two: the slope, and the product with the gradient.
    /// - A reduction is one for each element that it takes.
    /// - A fused layer is what its textbook formula is in such steps.
    /// - What only moves elements is none.
    ///
    /// Bytes are those of all inputs and results of each instruction, as if each went to memory; a view moves none.
    ///
    /// ```
    /// use chainrule::{Tensor, program::Program};
    /// let (a, b) = (Tensor::ones([2, 3]), Tensor::ones([3, 4]));
    /// let program = Program::trace([("a", &a), ("b", &b)], |x| Ok(vec![x[0].matmul(&x[1]).exp()]))?;
    /// let cost = program.cost();
    /// assert_eq!((cost.instructions, cost.flops, cost.bytes), (2, 2 * 24 + 8, 4 * (6 + 12 + 8 + 8 + 8)));
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn cost(&self) -> Cost {
        self.instructions.iter().map(|i| self.cost_of(i)).fold(Cost::default(), |a, b| a + b)
    }

    /// The part of [`Program::cost`] that belongs to one phase.
    pub fn phase_cost(&self, phase: Phase) -> Cost {
        let part = self.instructions.iter().filter(|i| i.phase == phase);
        part.map(|i| self.cost_of(i)).fold(Cost::default(), |a, b| a + b)
    }

    fn cost_of(&self, instruction: &Instruction) -> Cost {
        let size = |id: &Id| {
            let meta = self.info(*id).meta;
            meta.shape.numel() as u64 * meta.dtype.size() as u64
        };
        let bytes = match instruction.op.kernel() {
            Kernel::View(_) => 0,
            _ => instruction.inputs.iter().chain(&instruction.outputs).map(size).sum(),
        };
        Cost { instructions: 1, flops: self.flops(instruction), bytes }
    }

    fn flops(&self, instruction: &Instruction) -> u64 {
        let input = |i: usize| instruction.inputs.get(i).map(|id| self.info(*id).meta.shape);
        let shape = |i: usize| input(i).unwrap_or(Shape::SCALAR);
        let numel = |i: usize| shape(i).numel() as u64;
        let result = self.info(instruction.result()).meta.shape;
        let out = result.numel() as u64;
        let name = instruction.op.name();
        let last = |s: Shape| s.last().map_or(1, |d| *d as u64);
        match name {
            "matmul" => return 2 * out * last(shape(0)),
            "linear" => {
                let bias = if instruction.inputs.len() > 2 { out } else { 0 };
                return 2 * out * last(shape(0)) + bias;
            }
            "linear_grad" => return self.linear_grad(instruction),
            "conv2d" => return 2 * out * numel(1) / shape(1)[0].max(1) as u64,
            "conv_transpose2d" => return 2 * numel(0) * numel(1) / shape(1)[0].max(1) as u64,
            "conv2d_weight_grad" => return 2 * numel(1) * out / result[0].max(1) as u64,
            "attention" => return attention([shape(0), shape(1), shape(2)], [1, 1]),
            "attention_grad" => return attention([shape(3), shape(4), shape(5)], [3, 2]),
            _ => {}
        }
        if let Some(each) = fused(name) {
            return each * numel(0).max(out);
        }
        match instruction.op.kernel() {
            Kernel::View(_) => 0,
            Kernel::Map(_) => out * if name.ends_with("_grad") { 2 } else { 1 },
            Kernel::Reduce(..) => numel(0),
            Kernel::Whole(_) => dense(name, &shape(0), out).unwrap_or(0),
        }
    }

    /// Two products, as far as they are wanted, and the sum of the rows.
    fn linear_grad(&self, instruction: &Instruction) -> u64 {
        let shape = |id: &Id| self.info(*id).meta.shape;
        let g = shape(&instruction.inputs[0]);
        let product =
            2 * g.numel() as u64 * shape(&instruction.inputs[1]).last().map_or(1, |d| *d as u64);
        let matrices = instruction.outputs.iter().filter(|id| shape(id).rank() > 1).count() as u64;
        let bias = instruction.outputs.iter().any(|id| shape(id).rank() == 1);
        matrices * product + if bias { g.numel() as u64 } else { 0 }
    }
}

/// So many products of scores with queries or keys and with values, and five steps of softmax on the scores.
fn attention([q, k, v]: [Shape; 3], [deep, wide]: [u64; 2]) -> u64 {
    let rank = q.rank();
    let pairs: u64 = q[..rank - 2].iter().map(|d| *d as u64).product();
    let scores = pairs * q[rank - 2] as u64 * k[rank - 2] as u64;
    scores * (2 * deep * q[rank - 1] as u64 + 2 * wide * v[rank - 1] as u64 + 5)
}

/// Operations for each element of the first input: those of the formula, step by step.
fn fused(name: &str) -> Option<u64> {
    Some(match name {
        // The largest, less it, exp, sum, divided; or, for the logarithm, less that of the sum.
        "softmax" | "log_softmax" | "cross_entropy" | "cross_entropy_probabilities" => 5,
        "softmax_grad" | "log_softmax_grad" => 4,
        "cross_entropy_grad" | "cross_entropy_probabilities_grad" => 2,
        // Mean, difference, square, sum, times 1 / root, gain, bias.
        "batch_norm" | "layer_norm" | "group_norm" | "instance_norm" => 7,
        "rms_norm" => 4,
        // Two sums, one of them of a product; two terms off; the factor.
        "batch_norm_grad" | "layer_norm_grad" | "group_norm_grad" => 8,
        "cosine_similarity" | "cosine_similarity_grad" => 6,
        "Sgd" => 2,
        "Lion" => 8,
        "Adagrad" | "RmsProp" => 7,
        "Adam" | "AdamW" => 12,
        // Losses of pairs: the loss and the sum.
        "mse" | "l1_loss" => 3,
        "bce" | "bce_with_logits" | "kl_div" | "huber" | "smooth_l1" | "hinge" => 6,
        "mse_grad" | "l1_loss_grad" => 2,
        "bce_grad" | "bce_with_logits_grad" | "kl_div_grad" | "huber_grad" | "smooth_l1_grad" => 3,
        "cumsum" | "cumprod" | "cummax" | "cummin" | "embedding_grad" | "gather_grad" => 1,
        "index_select_grad" | "index_add" | "scatter_add" => 1,
        "max_axis" | "min_axis" | "row_max" | "argmax" | "argmin" => 1,
        "logcumsumexp" => 3,
        "recurrence" => 2,
        _ => return None,
    })
}

/// The algebra of dense matrices.
fn dense(name: &str, a: &Shape, out: u64) -> Option<u64> {
    let n = a.last().map_or(1, |d| *d as u64);
    let pairs = a.numel() as u64 / (n * n).max(1);
    Some(match name {
        "cholesky" => pairs * n * n * n / 3,
        "det" | "slogdet" => pairs * 2 * n * n * n / 3,
        "inverse" | "det_grad" => pairs * 2 * n * n * n,
        "solve" => pairs * 2 * n * n * n / 3 + 2 * n * out,
        "qr" => 2 * n * a.numel() as u64,
        "sort" | "topk" | "median" => {
            let bits = u64::from(64 - (a.numel() as u64).leading_zeros());
            a.numel() as u64 * bits
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use crate::nn::{Layer, Linear, Module};
    use crate::optim::Sgd;
    use crate::program::{Cost, Phase, compile};
    use crate::{DType, Generator, Tensor};

    #[test]
    fn a_step_costs_what_one_counts_by_hand() {
        let g = &mut Generator::manual_seed(0);
        let layer = Linear::new(5, 3, true, g);
        let mut sgd = Sgd::new(layer.parameters(), 0.1);
        let (x, y) = (Tensor::randn([7, 5], DType::F32, g), Tensor::randint(0, 3, [7], g));
        let mut step = compile(&layer, &mut sgd, ["x", "y"], |b| {
            layer.compute(&b[0])?.try_cross_entropy(&b[1])
        });
        let program = step.trace(&[&x, &y]).unwrap();
        let phases = [Phase::Forward, Phase::Backward, Phase::Update];
        let [forward, backward, update] = phases.map(|p| program.phase_cost(p));
        assert_eq!(forward.flops, 2 * 7 * 5 * 3 + 7 * 3 + 5 * 7 * 3);
        // The gradient of the input is not asked for.
        assert_eq!(backward.flops, 2 * 7 * 3 + (2 * 7 * 5 * 3 + 7 * 3));
        assert_eq!(update.flops, 2 * (15 + 3));
        assert_eq!(program.cost(), forward + backward + update);
        assert_eq!(program.cost().instructions, program.len());
        assert_eq!(Cost::default() + forward, forward);
    }
}
