//! Formulas as TeX: those of the table of ops, and those of the algebra.

use crate::language::parser;
use crate::language::syntax::{Expression, ExpressionKind as Kind, Position};

/// The form of a name: TeX, or `None` for the name itself.
pub type Names<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A rule of the table: parts such as `da = g * b`, with semicolons between them. Words that are no
/// formula stay words.
pub fn rule(text: &str, names: Names<'_>) -> String {
    let parts = text.split(';').map(|part| equation(part.trim(), names));
    let parts: Vec<String> = parts.collect();
    match &parts[..] {
        [one] => one.clone(),
        many => format!("\\begin{{gathered}}{}\\end{{gathered}}", many.join("\\\\")),
    }
}

/// `left = right`, or an expression.
pub fn equation(text: &str, names: Names<'_>) -> String {
    let sides = match text.split_once(" = ") {
        Some((left, right)) => vec![left, right],
        None => vec![text],
    };
    let read = |side: &str| parser::expression(&side.replace('^', "**")).ok();
    let sides: Option<Vec<Expression>> = sides.into_iter().map(read).collect();
    match sides {
        Some(sides) => {
            let sides: Vec<String> = sides.iter().map(|side| tex(side, 0, names)).collect();
            sides.join(" = ")
        }
        None => words(text),
    }
}

/// A text as it is.
pub fn words(text: &str) -> String {
    let mut out = String::from("\\text{");
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\textbackslash{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '{' | '}' | '$' | '%' | '&' | '#' | '_' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out.push('}');
    out
}

/// A name that the user gave: upright, and as text if it is more than letters and digits, so that
/// nothing in it is a command.
pub fn given(name: &str) -> String {
    match name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        true => format!("\\mathrm{{{}}}", name.replace('_', "\\_")),
        false => words(name),
    }
}

/// A number with up to five digits.
pub fn number(x: f64) -> String {
    let shown = match x {
        x if !x.is_finite() => return words(&x.to_string()),
        0.0 => "0".to_string(),
        x if x.abs() >= 1e5 || x.abs() < 1e-3 => format!("{x:.3e}"),
        x => {
            let digits = (4 - x.abs().log10().floor() as i32).clamp(0, 7) as usize;
            let text = format!("{x:.digits$}");
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
                false => text,
            }
        }
    };
    match shown.split_once('e') {
        Some((digits, power)) => format!("{digits} \\cdot 10^{{{power}}}"),
        None => shown,
    }
}

/// How strongly a sign binds.
fn strength(sign: &str) -> u8 {
    match sign {
        "+" | "-" => 2,
        "*" | "@" | "%" | "//" => 3,
        "/" | "**" => 6,
        _ => 1,
    }
}

fn tex(of: &Expression, outside: u8, names: Names<'_>) -> String {
    let (text, own) = match &of.kind {
        Kind::Int(n) => (n.to_string(), 9),
        Kind::Float(x) => (number(*x), if *x < 0.0 { 2 } else { 9 }),
        Kind::Bool(x) => (words(&x.to_string()), 9),
        Kind::None => (words("None"), 9),
        Kind::Text(text) => (words(text), 9),
        Kind::Name(known) => match names(known) {
            Some(text) => {
                let own = if text.starts_with('-') { 2 } else { 9 };
                (text, own)
            }
            None => (name(known), 9),
        },
        Kind::Negative(inner) => (format!("-{}", tex(inner, 4, names)), 2),
        Kind::Binary("/", a, b) => {
            (format!("\\frac{{{}}}{{{}}}", tex(a, 0, names), tex(b, 0, names)), 7)
        }
        Kind::Binary("**", a, b) => {
            (format!("{{{}}}^{{{}}}", tex(a, 8, names), tex(b, 0, names)), 6)
        }
        Kind::Binary(sign, a, b) => {
            let own = strength(sign);
            let shown = match *sign {
                "*" => " \\cdot ",
                "@" => "\\,",
                "<=" => " \\le ",
                ">=" => " \\ge ",
                "!=" => " \\ne ",
                "%" => " \\bmod ",
                "+" => " + ",
                "-" => " - ",
                other => other,
            };
            // A sum behind a minus needs its brackets.
            let right = own + u8::from(matches!(*sign, "-" | "*"));
            (format!("{}{shown}{}", tex(a, own, names), tex(b, right, names)), own)
        }
        Kind::Call { callee, arguments, named } => {
            let mut inside: Vec<String> = arguments.iter().map(|a| tex(a, 0, names)).collect();
            for (key, value) in named {
                inside.push(format!("{} = {}", name(key), tex(value, 0, names)));
            }
            let text = called(callee, &inside, names);
            let own = if text.starts_with("e^") { 6 } else { 9 };
            (text, own)
        }
        Kind::Attribute(inner, known) if known == "T" => {
            (format!("{{{}}}^{{\\top}}", tex(inner, 8, names)), 6)
        }
        Kind::Attribute(inner, known) => (format!("{}.{}", tex(inner, 8, names), name(known)), 8),
        Kind::Index(inner, positions) => {
            let parts: Vec<String> = positions.iter().map(|p| position(p, names)).collect();
            (format!("{{{}}}_{{{}}}", tex(inner, 8, names), parts.join(", ")), 8)
        }
        Kind::List(items) => {
            let items: Vec<String> = items.iter().map(|item| tex(item, 0, names)).collect();
            (format!("({})", items.join(", ")), 9)
        }
        _ => (words("…"), 9),
    };
    match own < outside {
        true => format!("\\left({text}\\right)"),
        false => text,
    }
}

fn position(of: &Position, names: Names<'_>) -> String {
    let part = |x: &Option<Expression>| x.as_ref().map_or(String::new(), |x| tex(x, 0, names));
    match of {
        Position::Ellipsis => "\\ldots".into(),
        Position::At(x) => tex(x, 0, names),
        Position::Range { start, end, .. } => format!("{}:{}", part(start), part(end)),
    }
}

fn called(callee: &Expression, inside: &[String], names: Names<'_>) -> String {
    // The algebra writes the number of the summed elements: `sum[32](x)`.
    if let (Kind::Index(sum, positions), [x]) = (&callee.kind, inside)
        && let (Kind::Name(known), [Position::At(n)]) = (&sum.kind, &positions[..])
        && known == "sum"
    {
        return format!("\\textstyle\\sum_{{{}}}\\left({x}\\right)", tex(n, 0, names));
    }
    let Kind::Name(function) = &callee.kind else {
        return format!("{}({})", tex(callee, 8, names), inside.join(", "));
    };
    let all = inside.join(", ");
    match (function.as_str(), inside) {
        ("sqrt", [x]) => format!("\\sqrt{{{x}}}"),
        ("exp", [x]) => format!("e^{{{x}}}"),
        ("abs", [x]) => format!("\\left|{x}\\right|"),
        ("sum", [x]) => format!("\\textstyle\\sum\\left({x}\\right)"),
        ("log" | "tanh" | "sin" | "cos" | "max" | "min", _) => {
            format!("\\{function}\\left({all}\\right)")
        }
        _ => format!("\\operatorname{{{}}}\\left({all}\\right)", function.replace('_', "\\_")),
    }
}

/// A name: one letter as a variable, more upright; `d` before a name of the rules is a
/// differential.
fn name(known: &str) -> String {
    let mut characters = known.chars();
    match (characters.next(), characters.as_str()) {
        (Some(c), "") => c.to_string(),
        (Some('d'), rest) if rest.len() == 1 => format!("\\mathrm{{d}}{rest}"),
        _ => format!("\\mathrm{{{}}}", known.replace('_', "\\_")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_of_the_table() {
        let none = |_: &str| None;
        assert_eq!(equation("da = g * b", &none), "\\mathrm{d}a = g \\cdot b");
        assert_eq!(
            equation("dx = g * (1 - tanh(x)^2)", &none),
            "\\mathrm{d}x = g \\cdot \\left(1 - {\\tanh\\left(x\\right)}^{2}\\right)"
        );
        assert_eq!(
            equation("sum[32](g * x)", &none),
            "\\textstyle\\sum_{32}\\left(g \\cdot x\\right)"
        );
        assert_eq!(equation("expanded over axes", &none), "\\text{expanded over axes}");
        let numbers = |name: &str| (name == "g").then(|| number(-2.5));
        assert_eq!(equation("da = b * g", &numbers), "\\mathrm{d}a = b \\cdot \\left(-2.5\\right)");
    }

    /// No name is a command, a group, a script or a comment.
    #[test]
    fn names_of_the_user_are_escaped() {
        for (name, tex) in [
            ("h_1", "\\mathrm{h\\_1}"),
            ("embcat", "\\mathrm{embcat}"),
            ("\\href{x}{y}", "\\text{\\textbackslash{}href\\{x\\}\\{y\\}}"),
            ("x^2", "\\text{x\\textasciicircum{}2}"),
            ("100%", "\\text{100\\%}"),
            ("$a$ & b", "\\text{\\$a\\$ \\& b}"),
            ("tanh#3", "\\text{tanh\\#3}"),
        ] {
            assert_eq!(given(name), tex);
        }
    }

    #[test]
    fn numbers_have_five_digits() {
        for (x, text) in [(0.0, "0"), (1.5, "1.5"), (-0.070_65, "-0.07065"), (1234.5678, "1234.6")]
        {
            assert_eq!(number(x), text);
        }
        assert_eq!(number(1e-9), "1.000 \\cdot 10^{-9}");
    }
}
