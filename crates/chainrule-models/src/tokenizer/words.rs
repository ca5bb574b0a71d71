//! Pre-tokenization: the split into words, across which nothing is merged.

use fancy_regex::Regex;
use serde_json::Value;

use super::bytes::to_alphabet;
use super::{kind, list, unknown};

/// GPT-2's words: endings after an apostrophe; letters, digits, or other signs, each with a space
/// before them; and spaces, of which the last goes with the next word.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// A text, or a regular expression.
pub enum Pattern {
    Text(String),
    Regex(Box<Regex>),
}

impl Pattern {
    pub fn read(value: &Value) -> Result<Pattern, String> {
        if let Some(text) = value["String"].as_str() {
            return Ok(Pattern::Text(text.to_owned()));
        }
        let text = value["Regex"].as_str().ok_or("`pattern` is neither String nor Regex")?;
        let regex = Regex::new(text).map_err(|e| {
            // The parser marks the position on separate lines.
            let why: Vec<String> = e.to_string().split_whitespace().map(str::to_owned).collect();
            format!("the pattern {text:?}: {}", why.join(" "))
        })?;
        Ok(Pattern::Regex(Box::new(regex)))
    }

    /// Ranges of all matches, in order.
    fn find(&self, text: &str) -> Result<Vec<(usize, usize)>, String> {
        match self {
            Pattern::Text(part) if part.is_empty() => Ok(Vec::new()),
            Pattern::Text(part) => {
                Ok(text.match_indices(part.as_str()).map(|(at, m)| (at, at + m.len())).collect())
            }
            Pattern::Regex(regex) => regex
                .find_iter(text)
                .map(|m| m.map(|m| (m.start(), m.end())).map_err(|e| format!("a pattern: {e}")))
                .collect(),
        }
    }

    pub fn replace(&self, text: &str, with: &str) -> String {
        let (mut out, mut from) = (String::new(), 0);
        for (begin, end) in self.find(text).unwrap_or_default() {
            out.push_str(&text[from..begin]);
            out.push_str(with);
            from = end;
        }
        out.push_str(&text[from..]);
        out
    }
}

/// Steps of the cut, in order.
#[derive(Default)]
pub struct Words(Vec<WordStep>);

/// Treatment of matches of a pattern.
#[derive(Clone, Copy, PartialEq)]
enum Fit {
    Isolated,
    Removed,
    WithPrevious,
    WithNext,
}

enum WordStep {
    Split { pattern: Pattern, fit: Fit, invert: bool },
    Bytes { space_first: bool },
    Metaspace { sign: String, prepend: Prepend, split: bool },
}

/// Pieces to be prefixed with a space.
#[derive(Clone, Copy, PartialEq)]
enum Prepend {
    Always,
    First,
    Never,
}

fn regex(text: &str) -> Pattern {
    Pattern::Regex(Box::new(Regex::new(text).expect("a pattern of this file")))
}

impl Words {
    /// GPT-2's byte-level split.
    pub fn bytes() -> Words {
        Words(vec![
            WordStep::Split { pattern: regex(GPT2), fit: Fit::Isolated, invert: false },
            WordStep::Bytes { space_first: false },
        ])
    }

    pub fn read(value: Option<&Value>) -> Result<Words, String> {
        let mut steps = Vec::new();
        if let Some(value) = value {
            add(value, &mut steps)?;
        }
        Ok(Words(steps))
    }

    /// The words of a piece of text, `is_first` if it begins the text.
    pub fn cut(&self, text: &str, is_first: bool) -> Result<Vec<String>, String> {
        let mut words = vec![text.to_owned()];
        for step in &self.0 {
            let mut next = Vec::with_capacity(words.len());
            for (i, word) in words.into_iter().enumerate() {
                step.cut(word, is_first && i == 0, &mut next)?;
            }
            words = next;
        }
        words.retain(|word| !word.is_empty());
        Ok(words)
    }
}

impl WordStep {
    fn cut(&self, word: String, is_first: bool, out: &mut Vec<String>) -> Result<(), String> {
        match self {
            WordStep::Bytes { space_first } => {
                let lacks = *space_first && !word.starts_with(char::is_whitespace);
                out.push(to_alphabet(&if lacks { format!(" {word}") } else { word }));
            }
            WordStep::Metaspace { sign, prepend, split } => {
                let mut word = word.replace(' ', sign);
                let wanted = *prepend == Prepend::Always || *prepend == Prepend::First && is_first;
                if wanted && !word.starts_with(sign.as_str()) {
                    word.insert_str(0, sign);
                }
                match split {
                    true => {
                        split_at(&Pattern::Text(sign.clone()), Fit::WithNext, false, &word, out)?
                    }
                    false => out.push(word),
                }
            }
            WordStep::Split { pattern, fit, invert } => {
                split_at(pattern, *fit, *invert, &word, out)?;
            }
        }
        Ok(())
    }
}

/// Splits at matches of a pattern, or if inverted at everything else.
fn split_at(
    pattern: &Pattern,
    fit: Fit,
    invert: bool,
    word: &str,
    out: &mut Vec<String>,
) -> Result<(), String> {
    // All pieces, with whether they match.
    let (mut pieces, mut from) = (Vec::new(), 0);
    for (begin, end) in pattern.find(word)? {
        if begin > from {
            pieces.push((from, begin, invert));
        }
        if end > begin {
            pieces.push((begin, end, !invert));
        }
        from = end;
    }
    if from < word.len() {
        pieces.push((from, word.len(), invert));
    }
    let mut cuts: Vec<(usize, usize)> = Vec::new();
    let mut was = false;
    for &(begin, end, fits) in &pieces {
        match (fit, fits) {
            (Fit::Removed, true) => {}
            (Fit::WithPrevious, true) if !was && !cuts.is_empty() => {
                cuts.last_mut().expect("it is not empty").1 = end;
            }
            (Fit::WithNext, false) if was => cuts.last_mut().expect("one fitted before").1 = end,
            _ => cuts.push((begin, end)),
        }
        was = fits;
    }
    out.extend(cuts.into_iter().map(|(begin, end)| word[begin..end].to_owned()));
    Ok(())
}

fn add(value: &Value, steps: &mut Vec<WordStep>) -> Result<(), String> {
    let flag = |key: &str, default: bool| value[key].as_bool().unwrap_or(default);
    let isolated =
        |text: &str| WordStep::Split { pattern: regex(text), fit: Fit::Isolated, invert: false };
    match kind(value)? {
        "Sequence" => return list(value, "pretokenizers")?.iter().try_for_each(|v| add(v, steps)),
        "ByteLevel" => {
            let space_first = flag("add_prefix_space", true);
            // The space is added before the split.
            if flag("use_regex", true) {
                if space_first {
                    steps.push(WordStep::Metaspace {
                        sign: " ".into(),
                        prepend: Prepend::Always,
                        split: false,
                    });
                }
                steps.push(isolated(GPT2));
            }
            steps.push(WordStep::Bytes { space_first: space_first && !flag("use_regex", true) });
        }
        "Split" => steps.push(WordStep::Split {
            pattern: Pattern::read(&value["pattern"])?,
            fit: match value["behavior"].as_str() {
                Some("Isolated") => Fit::Isolated,
                Some("Removed") => Fit::Removed,
                Some("MergedWithPrevious") => Fit::WithPrevious,
                Some("MergedWithNext") => Fit::WithNext,
                other => return Err(format!("the behavior {other:?} of a split is not known")),
            },
            invert: flag("invert", false),
        }),
        "Metaspace" => steps.push(metaspace(value)?),
        "Digits" if flag("individual_digits", false) => steps.push(isolated(r"\p{N}")),
        "Digits" => steps.push(isolated(r"\p{N}+")),
        "Whitespace" => steps.push(WordStep::Split {
            pattern: regex(r"\w+|[^\w\s]+"),
            fit: Fit::Removed,
            invert: true,
        }),
        "WhitespaceSplit" => {
            steps.push(WordStep::Split {
                pattern: regex(r"\s+"),
                fit: Fit::Removed,
                invert: false,
            });
        }
        other => {
            let known =
                "Sequence, ByteLevel, Split, Metaspace, Digits, Whitespace, WhitespaceSplit";
            return Err(unknown(other, known));
        }
    }
    Ok(())
}

fn metaspace(value: &Value) -> Result<WordStep, String> {
    let prepend = match (value["prepend_scheme"].as_str(), value["add_prefix_space"].as_bool()) {
        (Some("always"), _) | (None, None | Some(true)) => Prepend::Always,
        (Some("first"), _) => Prepend::First,
        (Some("never"), _) | (None, Some(false)) => Prepend::Never,
        (Some(other), _) => return Err(format!("the prepend_scheme `{other}` is not known")),
    };
    Ok(WordStep::Metaspace {
        sign: value["replacement"].as_str().unwrap_or("\u{2581}").to_owned(),
        prepend,
        split: value["split"].as_bool().unwrap_or(true),
    })
}
