//! The elementwise operators: one line for each, in both dialects.
//!
//! `{0}`, `{1}`, `{2}` are operands, `{f}` the ending of C's functions of f32.

use chainrule_core::dtype::DType;

/// The text of an operator.
pub(crate) struct Form {
    /// The operator of the plain nodes.
    pub op: &'static str,
    pub cuda: &'static str,
    pub wgsl: &'static str,
    /// CUDA on integers, where it is another.
    pub whole: &'static str,
}

const fn form(op: &'static str, cuda: &'static str, wgsl: &'static str) -> Form {
    Form { op, cuda, wgsl, whole: "" }
}

const fn both(op: &'static str, text: &'static str) -> Form {
    form(op, text, text)
}

const fn whole(op: &'static str, cuda: &'static str, wgsl: &'static str, w: &'static str) -> Form {
    Form { op, cuda, wgsl, whole: w }
}

/// All of them.
pub(crate) const FORMS: [Form; 51] = [
    both("Identity", "{0}"),
    both("Neg", "-{0}"),
    whole("Abs", "fabs{f}({0})", "abs({0})", "absolute({0})"),
    form("Exp", "exp{f}({0})", "exp({0})"),
    form("Log", "log{f}({0})", "log({0})"),
    form("Sqrt", "sqrt{f}({0})", "sqrt({0})"),
    form("Tanh", "tanh{f}({0})", "tanh_safe({0})"),
    form("Sin", "sin{f}({0})", "sin({0})"),
    form("Cos", "cos{f}({0})", "cos({0})"),
    form("Tan", "tan{f}({0})", "tan({0})"),
    form("Asin", "asin{f}({0})", "atan2({0}, sqrt((1.0 - {0}) * (1.0 + {0})))"),
    form("Acos", "acos{f}({0})", "atan2(sqrt((1.0 - {0}) * (1.0 + {0})), {0})"),
    form("Atan", "atan{f}({0})", "atan_safe({0})"),
    form("Sinh", "sinh{f}({0})", "sinh({0})"),
    form("Cosh", "cosh{f}({0})", "cosh({0})"),
    form("Asinh", "asinh{f}({0})", "asinh({0})"),
    form("Acosh", "acosh{f}({0})", "acosh({0})"),
    form("Atanh", "atanh{f}({0})", "atanh({0})"),
    form("Floor", "floor{f}({0})", "floor({0})"),
    form("Ceil", "ceil{f}({0})", "ceil({0})"),
    form("Round", "rint{f}({0})", "round({0})"),
    form("Erf", "erf{f}({0})", "erf({0})"),
    form("Sign", "sign_of({0})", "sign({0})"),
    form("IsNaN", "is_nan({0})", "is_nan({0})"),
    form("IsInf", "is_inf({0})", "is_inf({0})"),
    both("Not", "!{0}"),
    both("BitwiseNot", "~{0}"),
    both("Add", "{0} + {1}"),
    both("Sub", "{0} - {1}"),
    both("Mul", "{0} * {1}"),
    whole("Div", "{0} / {1}", "{0} / {1}", "quotient({0}, {1})"),
    whole("Pow", "pow{f}({0}, {1})", "power({0}, {1})", "power({0}, {1})"),
    whole("Mod", "fmod{f}({0}, {1})", "modulo({0}, {1})", "modulo({0}, {1})"),
    whole("Fmod", "fmod{f}({0}, {1})", "remainder({0}, {1})", "remainder({0}, {1})"),
    both("And", "{0} && {1}"),
    both("Or", "{0} || {1}"),
    both("Xor", "{0} != {1}"),
    both("BitwiseAnd", "{0} & {1}"),
    both("BitwiseOr", "{0} | {1}"),
    both("BitwiseXor", "{0} ^ {1}"),
    both("Equal", "{0} == {1}"),
    both("Less", "{0} < {1}"),
    both("LessOrEqual", "{0} <= {1}"),
    both("Greater", "{0} > {1}"),
    both("GreaterOrEqual", "{0} >= {1}"),
    form("Max", "larger({0}, {1})", "larger({0}, {1})"),
    form("Min", "smaller({0}, {1})", "smaller({0}, {1})"),
    form("Where", "{0} ? {1} : {2}", "select({2}, {1}, {0})"),
    both("Sum", "{0} + {1}"),
    both("Prod", "{0} * {1}"),
    both("Cast", "{0}"),
];

/// The line of an operator.
pub(crate) fn find(op: &str) -> Option<&'static Form> {
    FORMS.iter().find(|f| f.op == op)
}

/// Whether it takes many steps, and is thus not computed twice without need.
pub(crate) fn is_slow(op: &str) -> bool {
    let quick =
        ["Identity", "Neg", "Abs", "Not", "Add", "Sub", "Mul", "Where", "Cast", "Max", "Min"];
    !quick.contains(&op)
}

impl Form {
    /// The expression in CUDA C.
    pub fn in_cuda(&self, operands: &[String], dtype: DType) -> String {
        let text = if dtype.is_float() || self.whole.is_empty() { self.cuda } else { self.whole };
        let ending = if dtype == DType::F64 { "" } else { "f" };
        filled(&text.replace("{f}", ending), operands)
    }

    /// The expression in WGSL.
    pub fn in_wgsl(&self, operands: &[String], dtype: DType) -> String {
        let text = match (dtype.is_float(), self.op) {
            (false, "Pow") => "power_whole({0}, {1})",
            (false, "Mod") => "modulo_whole({0}, {1})",
            (false, "Div") => "quotient({0}, {1})",
            (false, "Fmod") => "{0} % {1}",
            (false, "Max") => "max({0}, {1})",
            (false, "Min") => "min({0}, {1})",
            _ => self.wgsl,
        };
        filled(text, operands)
    }
}

fn filled(text: &str, operands: &[String]) -> String {
    let mut out = text.to_string();
    for (i, x) in operands.iter().enumerate() {
        out = out.replace(&format!("{{{i}}}"), x);
    }
    out
}
