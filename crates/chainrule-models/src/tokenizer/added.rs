//! Added tokens, which are matched before tokenization.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// A token that is matched before all else.
#[derive(Debug, Clone)]
pub struct AddedToken {
    pub id: i64,
    pub text: String,
    special: bool,
    /// Whether it absorbs spaces on its left and right.
    strips: [bool; 2],
    /// Whether it must be a whole word.
    whole_word: bool,
}

impl AddedToken {
    pub fn special(id: i64, text: &str) -> AddedToken {
        AddedToken {
            id,
            text: text.to_owned(),
            special: true,
            strips: [false; 2],
            whole_word: false,
        }
    }

    /// From an object, whose id may be elsewhere.
    pub fn read(id: Option<i64>, value: &Value) -> Result<AddedToken, String> {
        let id = id.or_else(|| value["id"].as_i64()).filter(|id| (0..1 << 31).contains(id));
        let text = value["content"].as_str().filter(|text| !text.is_empty());
        let (Some(id), Some(text)) = (id, text) else {
            return Err("a token has no `id` or no `content`".into());
        };
        let flag = |key: &str| value[key].as_bool().unwrap_or(false);
        Ok(AddedToken {
            id,
            text: text.to_owned(),
            special: flag("special"),
            strips: [flag("lstrip"), flag("rstrip")],
            whole_word: flag("single_word"),
        })
    }

    pub fn read_all(value: Option<&Value>) -> Result<Vec<AddedToken>, String> {
        let all = value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        all.iter().map(|one| AddedToken::read(None, one)).collect()
    }
}

/// All added tokens, by their first character.
pub struct Added {
    by_first: HashMap<char, Vec<AddedToken>>,
    special: HashSet<i64>,
}

impl Added {
    pub fn new(tokens: Vec<AddedToken>) -> Added {
        let special = tokens.iter().filter(|t| t.special).map(|t| t.id).collect();
        let mut by_first: HashMap<char, Vec<AddedToken>> = HashMap::new();
        for token in tokens {
            by_first.entry(token.text.chars().next().unwrap_or_default()).or_default().push(token);
        }
        // Longest first.
        for all in by_first.values_mut() {
            all.sort_by_key(|t| std::cmp::Reverse(t.text.len()));
        }
        Added { by_first, special }
    }

    pub fn is_special(&self, id: i64) -> bool {
        self.special.contains(&id)
    }

    pub fn token(&self, text: &str) -> Option<i64> {
        let all = self.by_first.get(&text.chars().next()?)?;
        all.iter().find(|t| t.text == text).map(|t| t.id)
    }

    /// Splits a text into added tokens and the non-empty pieces between them.
    pub fn cut<'a>(&self, text: &'a str) -> Vec<Result<i64, &'a str>> {
        let mut out = Vec::new();
        let (mut from, mut at) = (0, 0);
        while let Some(c) = text[at..].chars().next() {
            let Some(token) = self.token_at(text, at, c) else {
                at += c.len_utf8();
                continue;
            };
            let (mut begin, mut end) = (at, at + token.text.len());
            if token.strips[0] {
                begin = from + text[from..begin].trim_end().len();
            }
            if token.strips[1] {
                end = text.len() - text[end..].trim_start().len();
            }
            out.extend((begin > from).then(|| Err(&text[from..begin])));
            out.push(Ok(token.id));
            (from, at) = (end, end);
        }
        out.extend((from < text.len()).then(|| Err(&text[from..])));
        out
    }

    fn token_at(&self, text: &str, at: usize, first: char) -> Option<&AddedToken> {
        let is_letter = |c: char| c.is_alphanumeric() || c == '_';
        self.by_first.get(&first)?.iter().find(|token| {
            let rest = text[at..].strip_prefix(token.text.as_str());
            let beside = |rest: &str| {
                text[..at].chars().next_back().is_some_and(is_letter)
                    || rest.chars().next().is_some_and(is_letter)
            };
            rest.is_some_and(|rest| !token.whole_word || !beside(rest))
        })
    }
}
