//! Random tensors. They are drawn at once; in a trace they are instructions, which draw from the
//! same generator in each run.

use crate::ops::prelude::*;
use crate::rng::Stream;
use crate::tensor::widen;

/// Distribution of a draw.
#[derive(Clone, Copy, Debug)]
pub(in crate::ops) enum Draw {
    /// From 0 to 1.
    Uniform,
    /// Normal, of mean 0 and variance 1.
    Normal,
    /// From `low` (included) to `high` (excluded).
    Integers { low: i64, high: i64 },
    /// True with this probability.
    Bernoulli { p: f64 },
    /// All numbers below the number of elements, in random order.
    Permutation,
    /// 64 random bits.
    Seed,
}

impl Draw {
    fn name(self) -> &'static str {
        match self {
            Draw::Uniform => "rand",
            Draw::Normal => "randn",
            Draw::Integers { .. } => "randint",
            Draw::Bernoulli { .. } => "bernoulli",
            Draw::Permutation => "randperm",
            Draw::Seed => "seed",
        }
    }

    /// A tensor of these numbers.
    #[track_caller]
    pub fn tensor(self, meta: Meta, generator: &mut Generator) -> Result<Tensor> {
        if log::is_on() {
            log::draws(generator);
            return apply(Random { what: self, meta, generator: generator.share() }, &[]);
        }
        self.value(meta, &mut generator.lock()).map(Tensor::constant)
    }

    fn value(self, meta: Meta, stream: &mut Stream) -> Result<Value> {
        if meta.dtype.is_half() {
            let wide = self.value(Meta::new(meta.shape, DType::F32), stream)?;
            return widen::cast(&wide, meta.dtype);
        }
        let floats = matches!(self, Draw::Uniform | Draw::Normal);
        if floats && !meta.dtype.is_float() {
            let why = "random floats are of a float dtype; for integers use randint";
            return Err(Error::dtype(self.name(), &[meta.dtype], why));
        }
        let mut out = Value::uninit(self.name(), meta)?;
        match (self, output(&mut out)) {
            (Draw::Uniform, Output::F32(out)) => stream.fill_uniform_f32(out),
            (Draw::Uniform, Output::F64(out)) => stream.fill_uniform_f64(out),
            (Draw::Normal, Output::F32(out)) => stream.fill_normal_f32(out),
            (Draw::Normal, Output::F64(out)) => stream.fill_normal_f64(out),
            (Draw::Integers { low, high }, Output::I64(out)) => {
                stream.fill_randint(low, high, out)?;
            }
            (Draw::Bernoulli { p }, Output::Bool(out)) => stream.fill_bernoulli(p, out),
            (Draw::Permutation, Output::I64(out)) => {
                out.copy_from_slice(&stream.randperm(out.len()));
            }
            (Draw::Seed, Output::I64(out)) => {
                out.iter_mut().for_each(|o| *o = stream.random_u64().cast_signed());
            }
            _ => unreachable!("the callers in this library ask for the one dtype that there is"),
        }
        Ok(out)
    }
}

/// A draw as an instruction.
struct Random {
    what: Draw,
    meta: Meta,
    generator: Generator,
}

impl std::fmt::Debug for Random {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Random");
        match self.what {
            Draw::Integers { low, high } => out.field("low", &low).field("high", &high),
            Draw::Bernoulli { p } => out.field("p", &p),
            _ => &mut out,
        };
        out.field("shape", &self.meta.shape).finish()
    }
}

impl Parameters for Random {
    /// The distribution and the count; each use draws anew, so that no two are one.
    fn parameters(&self) -> Param {
        let mut fields = match self.what {
            Draw::Integers { low, high } => {
                vec![("low", low.parameters()), ("high", high.parameters())]
            }
            Draw::Bernoulli { p } => vec![("p", p.parameters())],
            _ => Vec::new(),
        };
        fields.push(("shape", self.meta.shape.parameters()));
        Param::Struct("Random", fields)
    }
}

impl Op for Random {
    fn name(&self) -> &'static str {
        self.what.name()
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self.what {
            Draw::Uniform => "rng.random({shape}, dtype={dtype})",
            Draw::Normal => "rng.standard_normal({shape}, dtype={dtype})",
            Draw::Integers { .. } => "rng.integers({low}, {high}, {shape})",
            Draw::Bernoulli { .. } => "rng.random({shape}) < {p}",
            Draw::Permutation => "rng.permutation({length})",
            Draw::Seed => "np.asarray(rng.integers(-(2**63), 2**63 - 1))",
        }))
    }

    fn infer(&self, _: &[Meta]) -> Result<Meta> {
        Ok(self.meta)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn role(&self) -> Role {
        match self.what {
            Draw::Seed => Role::Seed,
            _ => Role::Plain,
        }
    }

    fn is_differentiable(&self) -> bool {
        false
    }

    fn generator(&self) -> Option<&Generator> {
        Some(&self.generator)
    }
}

impl WholeKernel for Random {
    fn run(&self, _: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        self.what.value(out, &mut self.generator.lock()).map(Outcome::from)
    }
}
