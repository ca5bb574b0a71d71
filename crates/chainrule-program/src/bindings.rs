//! Statements that give a value a name, as they stand in source code: `let hidden = ...;` and
//! `hidden = ...`.

use std::path::Path;

/// A statement that binds a name, and its lines.
pub struct Binding {
    pub name: String,
    /// The first line, from 1.
    pub first: usize,
    pub last: usize,
}

/// The text of a file of Rust code.
pub fn read(file: &str) -> Option<String> {
    // The compiler names files from the root of the workspace; the program may run in a folder
    // below it.
    let here = std::env::current_dir().unwrap_or_default();
    let folders = std::iter::once(Path::new("")).chain(here.ancestors());
    folders.map(|folder| folder.join(file)).find_map(|path| std::fs::read_to_string(path).ok())
}

/// The statements `let name = ...;` of Rust code.
pub fn of_rust(text: &str) -> Vec<Binding> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let Some(rest) = line.trim_start().strip_prefix("let ") else { continue };
        let rest = rest.strip_prefix("mut ").unwrap_or(rest);
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let binds = after.starts_with(':') || after.trim_start().starts_with('=');
        if name.is_empty() || name.starts_with('_') || !binds {
            continue;
        }
        // It ends with the first `;` outside brackets.
        let mut depth = 0i32;
        let mut last = None;
        'lines: for (k, line) in lines[i..].iter().enumerate().take(40) {
            for c in line.chars() {
                match c {
                    '(' | '[' | '{' => depth += 1,
                    ')' | ']' | '}' => depth -= 1,
                    ';' if depth == 0 => {
                        last = Some(i + k + 1);
                        break 'lines;
                    }
                    _ => {}
                }
            }
        }
        // A block or a closure holds statements of its own; only what is one expression names its
        // result.
        if let Some(last) = last
            && !lines[i..last].iter().any(|l| l.trim_end().ends_with('{') || l.contains("|| "))
        {
            out.push(Binding { name: name.to_string(), first: i + 1, last });
        }
    }
    out
}

/// The statements `name = ...` of Python code, also with an annotation. The argument of a call is
/// told from them by the space before the sign.
pub(crate) fn of_python(text: &str) -> Vec<Binding> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out: Vec<Binding> = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let rest = line.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let value = match after.split_once(" =") {
            Some(("", value)) => value,
            Some((annotation, value)) if annotation.starts_with(':') => value,
            _ => continue,
        };
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic());
        if !is_name || value.starts_with('=') || value.contains("lambda ") {
            continue;
        }
        // It ends with the first line outside brackets that no backslash continues.
        let mut depth = 0;
        let ends = lines[i..].iter().take(40).position(|line| {
            let code = without_comment(line);
            depth += code.matches(['(', '[', '{']).count() as i32;
            depth -= code.matches([')', ']', '}']).count() as i32;
            depth <= 0 && !code.ends_with('\\')
        });
        if let Some(k) = ends {
            out.push(Binding { name: name.to_string(), first: i + 1, last: i + k + 1 });
        }
    }
    out
}

/// A line of Python without its comment. A `#` in a text between quotes is taken for one too, which
/// at worst leaves a name out.
fn without_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or(line).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(bindings: Vec<Binding>) -> Vec<(String, usize, usize)> {
        bindings.into_iter().map(|b| (b.name, b.first, b.last)).collect()
    }

    #[test]
    fn rust() {
        let text = "let a = f(x);\nlet mut b: Tensor = g(\n    a,\n);\nlet (c, d) = h();\nlet _e = a;\na == b;\n";
        assert_eq!(found(of_rust(text)), [("a".into(), 1, 1), ("b".into(), 2, 4)]);
    }

    #[test]
    fn python() {
        let text = "hidden = (x @ w).tanh()  # the first (layer\n\
                    def f(x, y=3):\n    out: Tensor = g(\n        x,\n        y=[1,\n           2],\n    )\n\
                    \x20   if out == x: pass\n    a, b = out\n    x += 1\n    x[0] = 2\n    act = lambda x: x\n\
                    \x20   total = a + \\\n        b\n    return total\nlast = (\n";
        let want = [("hidden".into(), 1, 1), ("out".into(), 3, 7), ("total".into(), 13, 14)];
        assert_eq!(found(of_python(text)), want);
    }
}
