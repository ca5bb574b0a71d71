//! The text of a NumPy script in the spelling of another library.
//!
//! Functions that another library spells otherwise stand in a table; those that it lacks, or that
//! change an array in place, stand in the Python files of its folder.

use std::cell::Cell;

use super::library::Library;

/// Spells NumPy's text for a library. In JAX each random draw gets a key of its own, so one speller
/// writes a whole script.
pub(super) struct Speller {
    pub library: Library,
    keys: Cell<usize>,
}

/// PyTorch's names: a leading underscore is a function of the folder, a leading dot one of torch.
#[rustfmt::skip]
const TORCH: &[(&str, &str)] = &[
    ("abs", ".abs"), ("arccos", ".arccos"), ("arccosh", ".arccosh"), ("arcsin", ".arcsin"),
    ("arcsinh", ".arcsinh"), ("arctan", ".arctan"), ("arctanh", ".arctanh"),
    ("arctan2", ".arctan2"), ("cos", ".cos"), ("cosh", ".cosh"), ("sin", ".sin"),
    ("sinh", ".sinh"), ("tan", ".tan"), ("tanh", ".tanh"), ("exp", ".exp"), ("exp2", ".exp2"),
    ("expm1", ".expm1"), ("log", ".log"), ("log10", ".log10"), ("log1p", ".log1p"),
    ("log2", ".log2"), ("sqrt", ".sqrt"), ("floor", ".floor"), ("ceil", ".ceil"),
    ("round", ".round"), ("trunc", ".trunc"), ("isnan", ".isnan"), ("isinf", ".isinf"),
    ("isfinite", ".isfinite"), ("logical_not", ".logical_not"), ("logical_and", ".logical_and"),
    ("logical_or", ".logical_or"), ("logical_xor", ".logical_xor"), ("equal", ".eq"),
    ("not_equal", ".ne"), ("less", ".lt"), ("less_equal", ".le"), ("greater", ".gt"),
    ("greater_equal", ".ge"), ("copysign", ".copysign"), ("floor_divide", ".floor_divide"),
    ("hypot", ".hypot"), ("logaddexp", ".logaddexp"), ("remainder", ".remainder"),
    ("fmod", ".fmod"), ("where", ".where"), ("clip", ".clip"), ("sign", "_sign"),
    ("maximum", "_maximum"), ("minimum", "_minimum"), ("nan_to_num", ".nan_to_num"),
    ("sum", ".sum"), ("mean", ".mean"), ("max", ".amax"), ("min", ".amin"), ("all", ".all"),
    ("any", ".any"), ("prod", "_prod"), ("argmax", ".argmax"), ("argmin", ".argmin"),
    ("take", "_take"), ("take_along_axis", ".take_along_dim"), ("concatenate", ".cat"),
    ("broadcast_to", ".broadcast_to"), ("transpose", ".permute"), ("reshape", ".reshape"),
    ("roll", ".roll"), ("triu", ".triu"), ("tril", ".tril"), ("moveaxis", ".moveaxis"),
    ("swapaxes", ".swapaxes"), ("split", ".chunk"), ("stack", ".stack"), ("flip", ".flip"),
    ("einsum", ".einsum"), ("arange", ".arange"), ("zeros_like", ".zeros_like"),
    ("add.at", "_add_at"), ("add", ".add"), ("multiply", ".multiply"),
    ("logaddexp.accumulate", ".logcumsumexp"), ("linalg.cholesky", ".linalg.cholesky"),
    ("linalg.slogdet", ".linalg.slogdet"), ("linalg.inv", ".linalg.inv"),
    ("linalg.solve", ".linalg.solve"), ("linalg.det", ".linalg.det"), ("float32", ".float32"),
    ("float64", ".float64"), ("int64", ".int64"), ("bool_", ".bool"), ("zeros", ".zeros"),
    ("ones", ".ones"), ("full", ".full"), ("array", ".tensor"), ("asarray", ".as_tensor"),
    ("frombuffer", ".frombuffer"),
];

/// Functions of NumPy whose argument of this number is a dtype, which PyTorch wants by name.
const DTYPES: &[(&str, usize)] =
    &[("zeros", 1), ("ones", 1), ("full", 2), ("array", 1), ("asarray", 1), ("frombuffer", 1)];

/// Reductions, which PyTorch takes over all axes where none is named.
const REDUCTIONS: [&str; 6] = ["sum", "mean", "max", "min", "all", "any"];

/// JAX's names where they are not those of NumPy.
const JAX: &[(&str, &str)] = &[("take", "_take"), ("logaddexp.accumulate", "jax.lax.cumlogsumexp")];

/// The functions that draw, in PyTorch and in JAX.
const DRAWS: &[(&str, &str, &str)] = &[
    ("random", "torch.rand", "jax.random.uniform"),
    ("standard_normal", "torch.randn", "jax.random.normal"),
    ("integers", "torch.randint", "_integers"),
    ("permutation", "torch.randperm", "jax.random.permutation"),
];

fn found<'a>(table: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    table.iter().find(|(numpy, _)| *numpy == name).map(|(_, own)| *own)
}

impl Speller {
    pub fn new(library: Library) -> Speller {
        Speller { library, keys: Cell::new(0) }
    }

    /// The text in the library's spelling; the error is the name that the library lacks.
    pub fn spell(&self, text: &str) -> Result<String, String> {
        if self.library == Library::Numpy {
            return Ok(text.to_string());
        }
        let (mut out, mut rest) = (String::new(), text);
        while let Some((at, module)) = next_name(rest) {
            out.push_str(&self.methods(&rest[..at]));
            let tail = &rest[at + module.len() + 1..];
            let inner = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            let len = tail.find(|c| !inner(c)).unwrap_or(tail.len());
            let name = &tail[..len];
            rest = &tail[len..];
            match closing(rest) {
                Some(end) => {
                    let args = arguments(&rest[1..end]).into_iter().map(|a| self.spell(a));
                    let args = args.collect::<Result<Vec<String>, String>>()?;
                    rest = &rest[end + 1..];
                    out.push_str(&match module {
                        "rng" => self.draw(name, args)?,
                        _ => self.call(name, args)?,
                    });
                }
                None => out.push_str(&self.name(name)?),
            }
        }
        out.push_str(&self.methods(rest));
        Ok(out)
    }

    /// A function of the script; for JAX, without in-place changes of arrays.
    pub fn function(&self, text: &str) -> Result<String, String> {
        if self.library != Library::Jax {
            return self.spell(text);
        }
        let lines: Vec<String> =
            text.lines().map(|l| assigned(l).unwrap_or_else(|| l.to_string())).collect();
        self.spell(&lines.join("\n"))
    }

    /// The text without functions of NumPy.
    fn methods(&self, text: &str) -> String {
        match self.library {
            Library::Torch => text.replace(".astype(", ".to(").replace(".size", ".numel()"),
            _ => text.to_string(),
        }
    }

    fn name(&self, name: &str) -> Result<String, String> {
        Ok(match (self.library, name) {
            (Library::Torch, "inf" | "nan") => format!("math.{name}"),
            (Library::Torch, _) => match found(TORCH, name) {
                Some(own) if own.starts_with('.') => format!("torch{own}"),
                Some(own) => own.to_string(),
                None => return Err(format!("np.{name}")),
            },
            _ => found(JAX, name).map_or_else(|| format!("jnp.{name}"), str::to_string),
        })
    }

    fn call(&self, name: &str, mut args: Vec<String>) -> Result<String, String> {
        let own = self.name(name)?;
        if self.library == Library::Jax {
            return Ok(format!("{own}({})", args.join(", ")));
        }
        if matches!(name, "float32" | "float64" | "int64" | "bool_") {
            // A computed divisor is a number, which leaves the dtype to what it divides.
            return Ok(match args[0].contains('(') {
                true => format!("float({})", args[0]),
                false => format!("torch.tensor({}, dtype={own})", args[0]),
            });
        }
        if name == "max" && args.iter().any(|a| a.starts_with("initial=")) {
            return Ok(format!("_fmax({})", args[0]));
        }
        let dtype = DTYPES.iter().find(|(numpy, _)| *numpy == name);
        if let Some(arg) = dtype.and_then(|(_, at)| args.get_mut(*at)) {
            *arg = format!("dtype={arg}");
        }
        if name == "frombuffer" {
            args[0] = args[0].replace("bytes.", "bytearray.");
        }
        for arg in &mut args {
            for (numpy, torch) in [("axis=", "dim="), ("keepdims=", "keepdim=")] {
                if let Some(value) = arg.strip_prefix(numpy) {
                    *arg = format!("{torch}{value}");
                }
            }
        }
        let none = REDUCTIONS.contains(&name) && args.iter().any(|a| a == "dim=()");
        Ok(match none {
            true => format!("_over({own}, {})", args.join(", ")),
            false => format!("{own}({})", args.join(", ")),
        })
    }

    fn draw(&self, name: &str, mut args: Vec<String>) -> Result<String, String> {
        let row = DRAWS.iter().find(|(numpy, ..)| *numpy == name);
        let (_, torch, jax) = row.ok_or_else(|| format!("rng.{name}"))?;
        if self.library == Library::Jax {
            self.keys.set(self.keys.get() + 1);
            args.insert(0, format!("jax.random.fold_in(rng, {})", self.keys.get()));
            return Ok(format!("{jax}({})", args.join(", ")));
        }
        if name == "integers" && args.len() == 2 {
            args.push("()".to_string());
        }
        args.push("generator=rng".to_string());
        Ok(format!("{torch}({})", args.join(", ")))
    }
}

/// The next use of a module, and the module.
fn next_name(text: &str) -> Option<(usize, &'static str)> {
    let free = |at: usize| {
        let before = text[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.')
    };
    let named = |at: usize| text[at..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let of = |module: &'static str, dotted: &str| {
        let mut all = text.match_indices(dotted).map(|(at, _)| at);
        all.find(|&at| free(at) && named(at + dotted.len())).map(|at| (at, module))
    };
    [of("np", "np."), of("rng", "rng.")].into_iter().flatten().min()
}

/// Calls `f` with each place and character outside of strings, and the depth of brackets after it.
fn outside(text: &str, mut f: impl FnMut(usize, char, usize) -> bool) {
    let (mut depth, mut quote, mut skip) = (0usize, None, false);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if skip => skip = false,
            (Some(_), '\\') => skip = true,
            (Some(q), _) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if quote.is_none() && !f(at, c, depth) {
            return;
        }
    }
}

/// The bracket that closes the one that the text begins with.
fn closing(text: &str) -> Option<usize> {
    let mut end = None;
    if text.starts_with('(') {
        outside(text, |at, _, depth| {
            end = (depth == 0).then_some(at);
            end.is_none()
        });
    }
    end
}

fn arguments(text: &str) -> Vec<&str> {
    let (mut out, mut from) = (Vec::new(), 0);
    outside(text, |at, c, depth| {
        if c == ',' && depth == 0 {
            out.push(text[from..at].trim());
            from = at + 1;
        }
        true
    });
    out.push(text[from..].trim());
    out.retain(|a| !a.is_empty());
    out
}

/// A line that changes elements of an array, as one that makes a new array.
fn assigned(line: &str) -> Option<String> {
    let code = line.trim_start();
    let indent = &line[..line.len() - code.len()];
    if let Some(call) = code.strip_prefix("np.add.at(") {
        let args = arguments(call.strip_suffix(')')?);
        let [out, at, g] = args[..] else { return None };
        return Some(format!("{indent}{out} = {out}.at[{at}].add({g})"));
    }
    let open = code.find('[')?;
    let name = &code[..open];
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return None;
    }
    let mut end = None;
    outside(&code[open..], |at, _, depth| {
        end = (depth == 0).then_some(open + at);
        end.is_none()
    });
    let (at, tail) = (&code[open + 1..end?], &code[end? + 1..]);
    let (how, value) = match tail.strip_prefix(" = ") {
        Some(value) => ("set", value),
        None => ("add", tail.strip_prefix(" += ")?),
    };
    Some(format!("{indent}{name} = {name}.at[{at}].{how}({value})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_arguments_and_draws_are_respelled() {
        let torch = Speller::new(Library::Torch);
        for (numpy, own) in [
            ("np.sum(x, axis=(0,), keepdims=True)", "torch.sum(x, dim=(0,), keepdim=True)"),
            ("np.max(x, axis=(), keepdims=True)", "_over(torch.amax, x, dim=(), keepdim=True)"),
            (
                "np.full((2,), np.inf, np.float32)",
                "torch.full((2,), math.inf, dtype=torch.float32)",
            ),
            ("np.float64(0.5) * xnp.y", "torch.tensor(0.5, dtype=torch.float64) * xnp.y"),
            ("rng.random((2,)) < 0.5", "torch.rand((2,), generator=rng) < 0.5"),
            ("np.exp(f(\"np.)\", np.abs(x.size)))", "torch.exp(f(\"np.)\", torch.abs(x.numel())))"),
        ] {
            assert_eq!(torch.spell(numpy).unwrap(), own);
        }
        assert_eq!(torch.spell("np.nothing(x)"), Err("np.nothing".to_string()));
        let jax = Speller::new(Library::Jax);
        for (numpy, own) in [
            ("    out[..., i] += np.exp(a[0])", "    out = out.at[..., i].add(jnp.exp(a[0]))"),
            ("    np.add.at(out, (at, 1), g)", "    out = out.at[(at, 1)].add(g)"),
            ("    return x[1], y == 2", "    return x[1], y == 2"),
        ] {
            assert_eq!(jax.function(numpy).unwrap(), own);
        }
        assert_eq!(
            [jax.spell("rng.random(())").unwrap(), jax.spell("rng.random(())").unwrap()],
            [1, 2].map(|k| format!("jax.random.uniform(jax.random.fold_in(rng, {k}), ())"))
        );
    }
}
