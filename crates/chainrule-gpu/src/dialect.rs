//! The two languages that kernels are printed in.

use chainrule_core::dtype::DType;

use crate::forms::Form;

/// A language of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// CUDA C.
    Cuda,
    /// The shading language of WebGPU, in which i64 is i32 and f64 is f32.
    Wgsl,
}

/// Words that no value is named by: those of both languages, the functions that kernels call, and
/// the variables of kernels.
const RESERVED: &str = include_str!("reserved.txt");

/// Whether a text declares or calls a function of this name.
fn has_function(text: &str, name: &str) -> bool {
    let is_whole = |at: usize| {
        let before = text[..at].chars().next_back();
        !before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let mut found = text.match_indices(name);
    found.any(|(at, _)| is_whole(at) && text[at + name.len()..].starts_with('('))
}

/// Whether a name has a meaning in kernels: one of the words above, a function of a form, or a
/// function that WGSL's own helpers call, which a value of that name would hide.
pub(crate) fn is_taken(name: &str) -> bool {
    let calls = |text: &str| {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        words.into_iter().any(|w| w == name)
    };
    let of = |f: &Form| {
        let (short, long) = (f.cuda.replace("{f}", ""), f.cuda.replace("{f}", "f"));
        [short.as_str(), &long, f.wgsl, f.whole].into_iter().any(calls)
    };
    RESERVED.split_whitespace().any(|word| word == name)
        || crate::forms::FORMS.iter().any(of)
        || has_function(crate::WGSL_PRELUDE, name)
}

impl Dialect {
    /// The type of a value in a register.
    pub(crate) fn kind(self, dtype: DType) -> &'static str {
        match (self, dtype) {
            (Dialect::Cuda, DType::F64) => "double",
            (Dialect::Cuda, DType::I64) => "long long",
            (Dialect::Cuda, DType::I32) => "int",
            (Dialect::Cuda, DType::U8) => "unsigned char",
            (Dialect::Cuda, DType::Bool) => "bool",
            (Dialect::Cuda, _) => "float",
            (Dialect::Wgsl, DType::I64 | DType::I32 | DType::U8) => "i32",
            (Dialect::Wgsl, DType::Bool) => "bool",
            (Dialect::Wgsl, _) => "f32",
        }
    }

    /// The type of a value in a buffer.
    pub(crate) fn stored(self, dtype: DType) -> &'static str {
        match (self, dtype) {
            (Dialect::Wgsl, DType::Bool) => "u32",
            (Dialect::Cuda, DType::BF16) => "unsigned short",
            _ => self.kind(dtype),
        }
    }

    pub(crate) fn constant(self, kind: &str, name: &str, value: &str) -> String {
        match self {
            Dialect::Cuda => format!("const {kind} {name} = {value};"),
            Dialect::Wgsl => format!("let {name}: {} = {value};", whole(kind)),
        }
    }

    pub(crate) fn variable(self, kind: &str, name: &str, value: &str) -> String {
        match self {
            Dialect::Cuda => format!("{kind} {name} = {value};"),
            Dialect::Wgsl => format!("var {name}: {} = {value};", whole(kind)),
        }
    }

    /// The head of a loop over integers.
    pub(crate) fn each(self, var: &str, from: &str, below: &str, step: &str) -> String {
        let begin = self.variable("int", var, from);
        let next = if step == "1" { format!("{var}++") } else { format!("{var} += {step}") };
        format!("for ({begin} {var} < {below}; {next}) {{")
    }

    pub(crate) fn read(self, buffer: &str, at: &str, dtype: DType) -> String {
        match (self, dtype) {
            (Dialect::Wgsl, DType::Bool) => format!("{buffer}[{at}] != 0u"),
            (Dialect::Cuda, DType::BF16) => format!("of_bf16({buffer}[{at}])"),
            _ => format!("{buffer}[{at}]"),
        }
    }

    pub(crate) fn write(self, buffer: &str, at: &str, dtype: DType, value: &str) -> String {
        match (self, dtype) {
            (Dialect::Wgsl, DType::Bool) => format!("{buffer}[{at}] = select(0u, 1u, {value});"),
            (Dialect::Cuda, DType::BF16) => format!("{buffer}[{at}] = to_bf16({value});"),
            _ => format!("{buffer}[{at}] = {value};"),
        }
    }

    pub(crate) fn choose(self, test: &str, yes: &str, no: &str) -> String {
        match self {
            Dialect::Cuda => format!("{test} ? {yes} : {no}"),
            Dialect::Wgsl => format!("select({no}, {yes}, {test})"),
        }
    }

    pub(crate) fn cast(self, to: DType, from: DType, value: &str) -> String {
        if to == DType::BF16 && from != DType::BF16 {
            // A register holds it as f32, rounded.
            return format!("nearest_bf16({})", self.cast(DType::F32, from, value));
        }
        if self.kind(to) == self.kind(from) {
            return value.to_string();
        }
        match (self, to) {
            (_, DType::Bool) => format!("{value} != {}", self.number(0.0, from)),
            (Dialect::Cuda, _) => format!("({}){value}", self.kind(to)),
            (Dialect::Wgsl, _) => format!("{}({value})", self.kind(to)),
        }
    }

    /// A number of this dtype.
    pub(crate) fn number(self, x: f64, dtype: DType) -> String {
        match (self, dtype) {
            (_, DType::Bool) => (x != 0.0).to_string(),
            (Dialect::Cuda, DType::I64) if x <= i64::MIN as f64 => "LEAST".to_string(),
            (Dialect::Cuda, DType::I64) => format!("{}ll", x as i64),
            (Dialect::Wgsl, DType::I64) => {
                format!("{}", (x as i64).clamp(-0x7fff_ffff, 0x7fff_ffff))
            }
            (_, DType::I32 | DType::U8) => format!("{}", x as i64),
            _ if x.is_nan() => self.special("NAN_F", "nan_f()"),
            _ if x == f64::INFINITY => self.special("INF_F", "inf_f()"),
            _ if x == f64::NEG_INFINITY => self.special("-INF_F", "-inf_f()"),
            (Dialect::Cuda, DType::F64) => format!("{x:?}"),
            // A constant of f64 may be beyond what f32 has.
            (Dialect::Wgsl, _) if (x as f32).is_infinite() => {
                self.number(f64::INFINITY.copysign(x), dtype)
            }
            _ => format!("{:?}f", x as f32),
        }
    }

    fn special(self, cuda: &str, wgsl: &str) -> String {
        if self == Dialect::Cuda { cuda.to_string() } else { wgsl.to_string() }
    }

    pub(crate) fn form(self, form: &Form, operands: &[String], dtype: DType) -> String {
        match self {
            Dialect::Cuda => form.in_cuda(operands, dtype),
            Dialect::Wgsl => form.in_wgsl(operands, dtype),
        }
    }

    pub(crate) fn barrier(self) -> &'static str {
        if self == Dialect::Cuda { "__syncthreads();" } else { "workgroupBarrier();" }
    }

    /// The number of the thread in its block.
    pub(crate) fn thread(self) -> &'static str {
        if self == Dialect::Cuda { "(int)threadIdx.x" } else { "i32(lid.x)" }
    }

    /// The number of the block; WebGPU has at most 65,535 along an axis.
    pub(crate) fn block(self) -> &'static str {
        if self == Dialect::Cuda { "(int)blockIdx.x" } else { "i32(wid.x + wid.y * 65535u)" }
    }
}

/// The name of C's `int` in WGSL.
fn whole(kind: &str) -> &str {
    if kind == "int" { "i32" } else { kind }
}
