//! Dropout of attention weights: the choice is a function of a seed and a weight's position, the
//! same one as on the processor, so that a gradient draws what the forward pass drew.

use chainrule_onnx::lower::Node;

use crate::dialect::Dialect;
use crate::graph::{Graph, Step, ValueId};

/// A seed of 64 bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Seed {
    /// The only element of a value that is drawn in each run.
    Drawn(ValueId),
    Fixed(u64),
}

/// Each weight is 0 with a probability, else divided by what is left.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Dropout {
    /// The bits of the probability, a number of f64.
    p: u64,
    seed: Seed,
}

impl Dropout {
    /// The dropout of a node, if it has one; a drawn seed is its last input.
    pub(crate) fn read(graph: &Graph, node: &Node, x: &[ValueId]) -> Option<Dropout> {
        let int = |name: &str| Some(node.ints.get(name)?.first()?.cast_unsigned());
        let p = int("dropout")?;
        let seed = match int("seed") {
            Some(seed) => Seed::Fixed(seed),
            None => {
                let drawn = *x.last()?;
                match &graph.values[drawn].step {
                    // As a number it would be one of f64.
                    Step::Constant(bytes) => {
                        Seed::Fixed(u64::from_le_bytes(bytes.first_chunk().copied()?))
                    }
                    _ => Seed::Drawn(drawn),
                }
            }
        };
        Some(Dropout { p, seed })
    }

    /// The value of a drawn seed, which may be replaced by another one.
    pub(crate) fn drawn(&mut self) -> Option<&mut ValueId> {
        match &mut self.seed {
            Seed::Drawn(v) => Some(v),
            Seed::Fixed(_) => None,
        }
    }

    pub(crate) fn operands(&self) -> impl Iterator<Item = ValueId> {
        match self.seed {
            Seed::Drawn(v) => Some(v),
            Seed::Fixed(_) => None,
        }
        .into_iter()
    }

    fn p(&self) -> f64 {
        f64::from_bits(self.p)
    }

    /// The threshold for words of 32 bits below which a word drops its weight; 2^32 drops all.
    fn threshold(&self) -> u64 {
        (self.p() * 4_294_967_296.0) as u64
    }

    /// The factor of weights that are kept.
    fn kept(&self) -> f64 {
        if self.p() < 1.0 { 1.0 / (1.0 - self.p()) } else { 0.0 }
    }

    /// The text of the seed; `read` reads a value.
    pub(crate) fn seed_of(&self, d: Dialect, read: impl FnOnce(ValueId) -> String) -> String {
        let both = |low: &str, high: &str| format!("{low}, {high}");
        match (&self.seed, d) {
            (Seed::Drawn(v), Dialect::Cuda) => format!("(unsigned long long){}", read(*v)),
            (Seed::Fixed(n), Dialect::Cuda) => format!("{n}ull"),
            (Seed::Fixed(n), Dialect::Wgsl) => {
                both(&format!("{}u", *n as u32), &format!("{}u", (n >> 32) as u32))
            }
            (Seed::Drawn(v), Dialect::Wgsl) => {
                let word = read(*v);
                both(&format!("bitcast<u32>({word})"), &format!("bitcast<u32>({word} >> 31u)"))
            }
        }
    }

    /// The factor of the weight at a matrix, row and column.
    pub(crate) fn factor(
        &self,
        d: Dialect,
        seed: &str,
        [matrix, row, column]: &[String; 3],
        number: impl Fn(f64) -> String,
    ) -> String {
        // No word reaches the largest threshold; with it nothing is kept, whatever is drawn.
        let threshold = self.threshold().min(u64::from(u32::MAX));
        let kind = if d == Dialect::Cuda { "(unsigned int)" } else { "u32" };
        let [matrix, row, column] = [matrix, row, column].map(|at| format!("{kind}({at})"));
        let test = format!("is_kept({seed}, {threshold}u, {matrix}, {row}, {column})");
        d.choose(&test, &number(self.kept()), &number(0.0))
    }

    /// The dropout as kernels of attention take it.
    pub(crate) fn argument(&self, name: impl FnOnce(ValueId) -> String) -> String {
        let seed = self.seed_of(Dialect::Cuda, |v| format!("{}[0]", name(v)));
        let threshold = self.threshold().min(u64::from(u32::MAX));
        format!("Dropped{{{seed}, {threshold}u, {:?}f}}", self.kept() as f32)
    }
}
