//! Renaming of a file's tensors to a module's names: rules, and a report of mismatches.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use chainrule_core::dtype::DType;
use chainrule_core::error::{Error, Result};
use chainrule_core::shape::Shape;
use chainrule_core::tensor::Tensor;
use chainrule_nn::io::{CheckpointEntry, save_pieces};
use chainrule_nn::nn::{Module, StateDict};

use crate::source::reason;
use crate::weights::{WeightEntry, Weights};

/// Longest table that is read.
const MOST_BYTES: u64 = 16 << 20;

/// Rules that map names of a file to those of a module, tried in order.
///
/// In text form each line is a rule; `#` begins a comment:
///
/// ```text
/// prefix transformer.                      # names that begin so lose it; the next rules follow
/// drop h.*.attn.bias                       # left out
/// h.*.attn.c_attn.weight -> blocks.$1.qkv.weight transposed
/// ln_** -> norm_$1
/// ```
///
/// In a pattern `*` matches one or more characters without a dot and `**` any characters; `$1` in
/// the new name is the first match. The first matching rule applies, and a name without one stays
/// as it is. `transposed` swaps the axes of a matrix.
///
/// ```
/// use chainrule::formats::NameMap;
/// let map = NameMap::parse("prefix model.\nlayer*.w -> layers.$1.weight transposed")?;
/// let new = map.rename("model.layer12.w")?.unwrap();
/// assert_eq!((new.name.as_str(), new.transposed), ("layers.12.weight", true));
/// assert_eq!(map.rename("model.head.bias")?.unwrap().name, "head.bias");
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NameMap {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq)]
enum Rule {
    Prefix(String),
    Drop(Pattern),
    Rename { from: Pattern, to: Vec<NamePart>, transposed: bool },
}

/// A name after all rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewName {
    /// The name in the module.
    pub name: String,
    /// Whether the matrix is transposed.
    pub transposed: bool,
}

/// A segment of a new name.
#[derive(Debug, Clone, PartialEq)]
enum NamePart {
    Text(String),
    Capture(usize),
}

/// A segment of a pattern.
#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Text(String),
    One,
    Any,
}

#[derive(Debug, Clone, PartialEq)]
struct Pattern(Vec<Piece>);

impl Pattern {
    fn parse(text: &str) -> Pattern {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('*') {
            if at > 0 {
                pieces.push(Piece::Text(rest[..at].to_owned()));
            }
            let any = rest[at..].starts_with("**");
            pieces.push(if any { Piece::Any } else { Piece::One });
            rest = &rest[at + if any { 2 } else { 1 }..];
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Pattern(pieces)
    }

    fn captures(&self) -> usize {
        self.0.iter().filter(|p| !matches!(p, Piece::Text(_))).count()
    }

    /// The shortest matches of the wildcards, from the left.
    fn fit<'a>(&self, name: &'a str) -> Option<Vec<&'a str>> {
        // By dynamic programming, since backtracking over many wildcards takes exponential time:
        // `ends[i]` holds where the segments from `i` on can start so that they match the rest of
        // the name.
        let marks: Vec<usize> = name.char_indices().map(|(i, _)| i).chain([name.len()]).collect();
        let mut fits: Vec<BTreeSet<usize>> = vec![BTreeSet::from([name.len()])];
        for piece in self.0.iter().rev() {
            let after = fits.last().expect("one was put there");
            let begins = |&at: &usize| self.next(piece, name, at, &marks, after).is_some();
            fits.push(marks.iter().copied().filter(begins).collect());
        }
        fits.reverse();
        if !fits[0].contains(&0) {
            return None;
        }
        let (mut at, mut found) = (0, Vec::new());
        for (piece, after) in self.0.iter().zip(&fits[1..]) {
            let end = self.next(piece, name, at, &marks, after)?;
            if !matches!(piece, Piece::Text(_)) {
                found.push(&name[at..end]);
            }
            at = end;
        }
        Some(found)
    }

    /// The nearest end of a segment that begins at `at` and after which the rest matches.
    fn next(
        &self,
        piece: &Piece,
        name: &str,
        at: usize,
        marks: &[usize],
        after: &BTreeSet<usize>,
    ) -> Option<usize> {
        match piece {
            Piece::Text(text) => {
                let end = at + text.len();
                (name[at..].starts_with(text.as_str()) && after.contains(&end)).then_some(end)
            }
            Piece::Any => after.range(at..).next().copied(),
            Piece::One => {
                let stop = name[at..].find('.').map_or(name.len(), |dot| at + dot);
                let least = marks[marks.partition_point(|&m| m <= at)..].first()?;
                after.range(*least..).next().copied().filter(|&end| end <= stop)
            }
        }
    }
}

impl NameMap {
    /// No rules: every name stays as it is.
    pub fn new() -> NameMap {
        NameMap::default()
    }

    /// Parses rules. Errors name the line.
    pub fn parse(text: &str) -> Result<NameMap> {
        let mut map = NameMap::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                map = map.with_line(line).map_err(|why| {
                    Error::argument("name map", format!("line {}: {why}", number + 1))
                })?;
            }
        }
        Ok(map)
    }

    /// Reads rules from a file, as [`NameMap::parse`] from a text.
    pub fn read(path: impl AsRef<Path>) -> Result<NameMap> {
        let path = path.as_ref();
        let file = |why: String| Error::File { path: path.to_owned(), why };
        let about = std::fs::metadata(path).map_err(|e| file(reason(&e)))?;
        if !about.is_file() || about.len() > MOST_BYTES {
            return Err(file("no text file of at most 16 MiB; give one with a rule a line".into()));
        }
        let text = std::fs::read_to_string(path).map_err(|e| file(reason(&e)))?;
        NameMap::parse(&text).map_err(|e| match e {
            Error::Argument { why, .. } => file(why),
            other => other,
        })
    }

    fn with_line(self, line: &str) -> Result<NameMap, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["prefix", text] => Ok(self.without_prefix(text)),
            ["drop", pattern] => Ok(self.dropping(pattern)),
            [from, "->", to] => self.with_rename(from, to, false),
            [from, "->", to, "transposed"] => self.with_rename(from, to, true),
            _ => Err(format!(
                "`{line}` is no rule; write `prefix TEXT`, `drop PATTERN`, or `PATTERN -> NAME`, \
                 with `transposed` behind it if the axes change places"
            )),
        }
    }

    fn with_rename(mut self, from: &str, to: &str, transposed: bool) -> Result<NameMap, String> {
        let from = Pattern::parse(from);
        let to = parts(to, from.captures())?;
        self.rules.push(Rule::Rename { from, to, transposed });
        Ok(self)
    }

    /// Adds a rule that strips `prefix`.
    pub fn without_prefix(mut self, prefix: &str) -> NameMap {
        self.rules.push(Rule::Prefix(prefix.to_owned()));
        self
    }

    /// Adds a rule that drops matching names.
    pub fn dropping(mut self, pattern: &str) -> NameMap {
        self.rules.push(Rule::Drop(Pattern::parse(pattern)));
        self
    }

    /// Adds a rule that renames matching names to `to`. An error for a `$n` without a wildcard.
    pub fn renaming(self, from: &str, to: &str) -> Result<NameMap> {
        self.with_rename(from, to, false).map_err(|why| Error::argument("name map", why))
    }

    /// As [`NameMap::renaming`], with the matrix transposed.
    pub fn transposing(self, from: &str, to: &str) -> Result<NameMap> {
        self.with_rename(from, to, true).map_err(|why| Error::argument("name map", why))
    }

    /// The new name; `None` if it is dropped. An error for a name that becomes empty.
    pub fn rename(&self, name: &str) -> Result<Option<NewName>> {
        let mut now = name;
        let mut new = None;
        for rule in &self.rules {
            match rule {
                Rule::Prefix(prefix) => now = now.strip_prefix(prefix.as_str()).unwrap_or(now),
                Rule::Drop(pattern) if pattern.fit(now).is_some() => return Ok(None),
                Rule::Drop(_) => {}
                Rule::Rename { from, to, transposed } => {
                    let Some(found) = from.fit(now) else { continue };
                    let part = |part: &NamePart| match part {
                        NamePart::Text(text) => text.clone(),
                        NamePart::Capture(i) => found[*i].to_owned(),
                    };
                    let name = to.iter().map(part).collect();
                    new = Some(NewName { name, transposed: *transposed });
                    break;
                }
            }
        }
        let new = new.unwrap_or_else(|| NewName { name: now.to_owned(), transposed: false });
        match new.name.is_empty() {
            true => {
                Err(Error::argument("name map", format!("nothing is left of the name `{name}`")))
            }
            false => Ok(Some(new)),
        }
    }

    /// The tensors under their new names. Errors for a name that occurs twice, and for transposing
    /// anything but a matrix.
    pub fn apply(&self, state: StateDict) -> Result<StateDict> {
        let mut out = Renamed::default();
        for (name, tensor) in state {
            if let Some(new) = self.rename(&name)? {
                out.add(&name, new, tensor)?;
            }
        }
        Ok(out.state)
    }

    /// Reads the tensors of a file under their new names, without those that are dropped.
    pub fn load(&self, weights: &Weights) -> Result<StateDict> {
        self.load_as(weights, |dtype| dtype)
    }

    /// As [`NameMap::load`], with dtypes converted by `change`: see [`Weights::tensor_as`].
    pub fn load_as(&self, weights: &Weights, change: impl Fn(DType) -> DType) -> Result<StateDict> {
        let mut out = Renamed::default();
        // Aliases of the same elements in the file share one tensor.
        let mut done: BTreeMap<String, Tensor> = BTreeMap::new();
        for entry in weights.entries() {
            let Some(mut new) = self.rename(entry.name())? else { continue };
            if new.transposed && entry.shape().len() == 2 {
                new.transposed = false;
                let tensor = weights.tensor_transposed(entry, change(entry.dtype()))?;
                out.add(entry.name(), new, tensor)?;
                continue;
            }
            let key = format!("{:?} {:?} {:?}", entry.place, entry.shape(), entry.dtype());
            let tensor = match done.get(&key) {
                Some(tensor) => tensor.clone(),
                None => weights.tensor_as(entry, change(entry.dtype()))?,
            };
            done.insert(key, tensor.clone());
            out.add(entry.name(), new, tensor)?;
        }
        Ok(out.state)
    }
}

impl NameMap {
    /// Writes the tensors of a file under their new names into a safetensors file
    /// ([`chainrule_nn::io::save`]), one at a time: memory holds at most one of them, and none
    /// whose bytes are unchanged.
    ///
    /// ```
    /// use chainrule::formats::{NameMap, Weights};
    /// use chainrule::{Tensor, io};
    /// let folder = std::env::temp_dir().join(format!("chainrule-map-{}", std::process::id()));
    /// std::fs::create_dir_all(&folder).unwrap();
    /// let [theirs, ours] = ["theirs", "ours"].map(|n| folder.join(format!("{n}.safetensors")));
    /// let state = [("dense.kernel".to_owned(), Tensor::from([[1.0f32, 2.0]]))];
    /// io::save(&theirs, &state.into(), &Default::default())?;
    /// let map = NameMap::parse("dense.kernel -> weight transposed")?;
    /// map.convert(&Weights::open(&theirs)?, &ours, &Default::default())?;
    /// assert_eq!(io::load(&ours)?["weight"].to_vec::<f32>(), [1.0, 2.0]);
    /// assert_eq!(io::load(&ours)?["weight"].shape(), [2, 1]);
    /// # std::fs::remove_dir_all(&folder).unwrap();
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn convert(
        &self,
        weights: &Weights,
        path: impl AsRef<Path>,
        metadata: &BTreeMap<String, String>,
    ) -> Result<()> {
        let mut origins: BTreeMap<String, (&WeightEntry, bool)> = BTreeMap::new();
        let mut entries = Vec::new();
        for entry in weights.entries() {
            let Some(new) = self.rename(entry.name())? else { continue };
            let mut shape = entry.shape().to_vec();
            if new.transposed {
                matrix(entry.name(), shape.len())?;
                shape.reverse();
            }
            if let Some((first, _)) = origins.insert(new.name.clone(), (entry, new.transposed)) {
                return Err(both(first.name(), entry.name(), &new.name));
            }
            entries.push(CheckpointEntry { name: new.name, dtype: entry.dtype(), shape });
        }
        save_pieces(path.as_ref(), entries, metadata, |new, out| {
            let (entry, transposed) = origins[&new.name];
            weights.write(entry, transposed, out)
        })
    }
}

/// An error for transposing anything but a matrix.
fn matrix(name: &str, rank: usize) -> Result<()> {
    let why = || format!("`{name}` is to be transposed, and has {rank} axes");
    if rank == 2 { Ok(()) } else { Err(Error::argument("name map", why())) }
}

/// The error for a name that occurs twice.
fn both(first: &str, second: &str, name: &str) -> Error {
    Error::argument("name map", format!("`{first}` and `{second}` would both become `{name}`"))
}

/// The segments of a new name; an error for a `$n` beyond the wildcards of the pattern.
fn parts(text: &str, captures: usize) -> Result<Vec<NamePart>, String> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let digits =
            rest[at + 1..].len() - rest[at + 1..].trim_start_matches(char::is_numeric).len();
        let number: Option<usize> = rest[at + 1..at + 1 + digits].parse().ok();
        let Some(number) = number.filter(|n| (1..=captures).contains(n)) else {
            return Err(format!(
                "`{text}` asks for ${}, and the pattern has {captures} stars; count from $1 on",
                &rest[at + 1..at + 1 + digits]
            ));
        };
        out.extend((at > 0).then(|| NamePart::Text(rest[..at].to_owned())));
        out.push(NamePart::Capture(number - 1));
        rest = &rest[at + 1 + digits..];
    }
    if rest.contains('*') {
        return Err(format!("`{text}` has a star; write $1 for what the first one stands for"));
    }
    out.extend((!rest.is_empty()).then(|| NamePart::Text(rest.to_owned())));
    Ok(out)
}

/// Tensors under their new names.
#[derive(Default)]
struct Renamed {
    state: StateDict,
    origins: BTreeMap<String, String>,
}

impl Renamed {
    fn add(&mut self, origin: &str, new: NewName, tensor: Tensor) -> Result<()> {
        let tensor = match new.transposed {
            false => tensor,
            true => {
                matrix(origin, tensor.rank())?;
                tensor.try_t()?.try_copied()?
            }
        };
        if let Some(first) = self.origins.insert(new.name.clone(), origin.to_owned()) {
            return Err(both(&first, origin, &new.name));
        }
        self.state.insert(new.name, tensor);
        Ok(())
    }
}

/// Comparison of a state with a module.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FitReport {
    /// Missing: names of the module that the state lacks.
    pub missing: Vec<String>,
    /// Unexpected: names of the state that the module lacks.
    pub left_over: Vec<String>,
    /// Mismatched: names whose shapes differ, with that in the module and that in the state.
    pub other_shape: Vec<(String, Shape, Shape)>,
    /// Number of tensors that were loaded.
    pub loaded: usize,
}

impl FitReport {
    /// Whether the state matches the module completely.
    pub fn is_exact(&self) -> bool {
        self.missing.is_empty() && self.left_over.is_empty() && self.other_shape.is_empty()
    }
}

impl fmt::Display for FitReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tensors loaded", self.loaded)?;
        for (what, names) in [("missing", &self.missing), ("left over", &self.left_over)] {
            if !names.is_empty() {
                write!(f, "; {what}: {}", few(names))?;
            }
        }
        if !self.other_shape.is_empty() {
            let shapes = self.other_shape.iter();
            let shapes: Vec<String> =
                shapes.map(|(name, own, new)| format!("{name} is {own}, not {new}")).collect();
            write!(f, "; of another shape: {}", few(&shapes))?;
        }
        Ok(())
    }
}

/// The first few, since the state of another model may have thousands.
fn few(names: &[String]) -> String {
    const SHOWN: usize = 5;
    match names.len().saturating_sub(SHOWN) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..SHOWN].join(", ")),
    }
}

/// Loads tensors into the parameters and buffers of a module by name, converted to the module's
/// dtypes. If strict, any mismatch is an error with the report, and nothing is changed; otherwise
/// whatever matches is loaded.
///
/// ```
/// use chainrule::formats::{NameMap, load_fitting};
/// use chainrule::nn::{Linear, Module};
/// use chainrule::{Generator, Tensor};
/// let layer = Linear::new(3, 2, &mut Generator::manual_seed(0));
/// let map = NameMap::parse("dense.kernel -> weight transposed\ndense.* -> $1")?;
/// let state = [
///     ("dense.kernel".to_owned(), Tensor::ones([3, 2])),
///     ("dense.steps".to_owned(), Tensor::ones([1])),
/// ];
/// let state = map.apply(state.into())?;
/// let report = load_fitting(&layer, &state, false)?;
/// assert_eq!(report.to_string(), "1 tensors loaded; missing: bias; left over: steps");
/// assert!(load_fitting(&layer, &state, true).is_err());
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn load_fitting(
    module: &(impl Module + ?Sized),
    state: &StateDict,
    strict: bool,
) -> Result<FitReport> {
    let mut own = module.named_parameters();
    own.extend(module.named_buffers());
    let names: BTreeSet<&str> = own.iter().map(|(name, _)| name.as_str()).collect();
    let mut report = FitReport::default();
    let unknown = state.keys().filter(|name| !names.contains(name.as_str()));
    report.left_over = unknown.cloned().collect();
    let mut fitting = Vec::new();
    for (name, tensor) in &own {
        match state.get(name) {
            None => report.missing.push(name.clone()),
            Some(new) if new.shape() != tensor.shape() => {
                report.other_shape.push((name.clone(), tensor.shape(), new.shape()));
            }
            Some(new) => fitting.push((tensor, new)),
        }
    }
    report.loaded = fitting.len();
    if strict && !report.is_exact() {
        report.loaded = 0;
        return Err(Error::argument("load_fitting", format!("the state does not fit: {report}")));
    }
    for (tensor, new) in fitting {
        tensor.try_set(&new.try_to_dtype(tensor.dtype())?)?;
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(pattern: &str, name: &str) -> Option<Vec<String>> {
        Pattern::parse(pattern).fit(name).map(|all| all.into_iter().map(str::to_owned).collect())
    }

    #[test]
    fn stars_stand_for_a_word_or_for_anything() {
        assert_eq!(fit("h.*.w", "h.12.w"), Some(vec!["12".into()]));
        assert_eq!(fit("h.*.w", "h.1.2.w"), None);
        assert_eq!(fit("h.*.w", "h..w"), None);
        assert_eq!(fit("**.w", "a.b.w"), Some(vec!["a.b".into()]));
        assert_eq!(fit("**w", "w"), Some(vec!["".into()]));
        assert_eq!(fit("**.*", "a.b.c"), Some(vec!["a.b".into(), "c".into()]));
        assert_eq!(fit("a*b*", "axbybz"), Some(vec!["x".into(), "ybz".into()]));
        assert_eq!(fit("é*", "éß"), Some(vec!["ß".into()]));
        assert_eq!(fit("", ""), Some(vec![]));
        // Many wildcards take no exponential time.
        assert_eq!(fit(&"a**".repeat(40), &"a".repeat(39)), None);
    }

    #[test]
    fn bad_rules_are_errors_with_their_line() {
        for (text, part) in [
            ("a -> b\nc > d", "line 2: `c > d` is no rule"),
            ("a.* -> b.$2", "asks for $2, and the pattern has 1 stars"),
            ("a.* -> b.$0", "asks for $0"),
            ("a.* -> b.*", "has a star"),
        ] {
            let error = NameMap::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn names_that_meet_and_vectors_to_transpose_are_errors() {
        let one = |name: &str| (name.to_owned(), Tensor::ones([2]));
        let state: StateDict = [one("a.x"), one("b.x")].into();
        let error = NameMap::parse("*.x -> x").unwrap().apply(state.clone()).unwrap_err();
        assert!(error.to_string().contains("`a.x` and `b.x` would both become `x`"), "{error}");
        let error = NameMap::parse("a.* -> $1 transposed").unwrap().apply(state).unwrap_err();
        assert!(error.to_string().contains("`a.x` is to be transposed, and has 1 axes"), "{error}");
    }
}
