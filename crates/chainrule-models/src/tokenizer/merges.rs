//! Byte pair encoding of a word: merges pairs in the order in which they were learned, until none
//! is left.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use chainrule_core::error::Result;
use serde_json::Value;

use super::vocabulary_of;
use crate::config::Json;

/// Tokens and their merges.
pub struct Merges {
    tokens: HashMap<String, i64>,
    /// The rank of a pair, and the token that it becomes.
    pairs: HashMap<(i64, i64), (usize, i64)>,
    habits: Habits,
}

/// Handling of unknown characters.
#[derive(Debug, Clone, Default)]
pub struct Habits {
    /// The token of an unknown character.
    unknown: Option<i64>,
    /// Whether several unknown characters in a row become one token.
    fuses: bool,
    /// Byte fallback: unknown characters become tokens of their bytes, `<0xE2>`.
    bytes: bool,
    /// Whether a word that is a token is taken whole.
    whole_words: bool,
}

/// A candidate merge: its rank, the index of the first token, both tokens, the new one.
type Offer = (usize, usize, (i64, i64), i64);

/// A token of a word, and its neighbours.
#[derive(Clone, Copy)]
struct Symbol {
    id: i64,
    before: Option<usize>,
    after: Option<usize>,
    is_merged: bool,
}

impl Merges {
    pub fn new(
        tokens: HashMap<String, i64>,
        pairs: &[(String, String)],
        habits: Habits,
    ) -> Result<Merges, String> {
        let mut known = HashMap::with_capacity(pairs.len());
        for (rank, (a, b)) in pairs.iter().enumerate() {
            let id = |name: &str| {
                tokens.get(name).copied().ok_or_else(|| {
                    format!("merge {} joins {a:?} and {b:?}, and {name:?} is no token", rank + 1)
                })
            };
            let joined = id(&format!("{a}{b}"))?;
            known.entry((id(a)?, id(b)?)).or_insert((rank, joined));
        }
        Ok(Merges { tokens, pairs: known, habits })
    }

    /// From the `model` of a `tokenizer.json`.
    pub fn read(json: &Json) -> Result<Merges> {
        let kind = json.text("type")?.unwrap_or("BPE");
        if kind != "BPE" {
            return Err(
                json.error(format!("a tokenizer of type `{kind}` is not known, but BPE is"))
            );
        }
        for key in ["continuing_subword_prefix", "end_of_word_suffix"] {
            if json.text(key)?.is_some_and(|text| !text.is_empty()) {
                return Err(json.error(format!("a tokenizer with a `{key}` is not known")));
            }
        }
        let vocabulary = json.object("vocab")?.ok_or_else(|| json.error("has no `vocab`"))?;
        let tokens = vocabulary_of(vocabulary.map()).map_err(|why| json.error(why))?;
        let none = Vec::new();
        let merges = json.get("merges").map_or(Some(&none), Value::as_array);
        let merges = merges.ok_or_else(|| json.error("`merges` is no list"))?;
        // Pairs, or in older files strings with a space.
        let pair = |value: &Value| match value {
            Value::String(text) => text.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned())),
            value => match value.as_array().map(Vec::as_slice) {
                Some([Value::String(a), Value::String(b)]) => Some((a.clone(), b.clone())),
                _ => None,
            },
        };
        let pairs: Option<Vec<_>> = merges.iter().map(pair).collect();
        let pairs = pairs.ok_or_else(|| json.error("a merge is no pair of tokens"))?;
        let unknown =
            match json.text("unk_token")? {
                None => None,
                Some(name) => Some(*tokens.get(name).ok_or_else(|| {
                    json.error(format!("the unknown token {name:?} has no number"))
                })?),
            };
        let habits = Habits {
            unknown,
            fuses: json.flag("fuse_unk", false)?,
            bytes: json.flag("byte_fallback", false)?,
            whole_words: json.flag("ignore_merges", false)?,
        };
        Merges::new(tokens, &pairs, habits).map_err(|why| json.error(why))
    }

    pub fn token(&self, name: &str) -> Option<i64> {
        self.tokens.get(name).copied()
    }

    /// The texts of all tokens.
    pub fn names(&self) -> HashMap<i64, String> {
        self.tokens.iter().map(|(name, id)| (*id, name.clone())).collect()
    }

    /// The tokens of a word.
    pub fn of(&self, word: &str) -> Result<Vec<i64>, String> {
        if self.habits.whole_words
            && let Some(id) = self.tokens.get(word)
        {
            return Ok(vec![*id]);
        }
        let mut symbols = self.characters(word)?;
        let mut heap = BinaryHeap::new();
        for at in 0..symbols.len() {
            self.offer(&symbols, at, &mut heap);
        }
        while let Some(Reverse((_, at, pair, joined))) = heap.pop() {
            // Either side may have been merged in the meantime.
            let Some(next) = symbols[at].after.filter(|_| !symbols[at].is_merged) else { continue };
            if (symbols[at].id, symbols[next].id) != pair {
                continue;
            }
            symbols[next].is_merged = true;
            symbols[at].id = joined;
            symbols[at].after = symbols[next].after;
            if let Some(after) = symbols[at].after {
                symbols[after].before = Some(at);
            }
            self.offer(&symbols, at, &mut heap);
            if let Some(before) = symbols[at].before {
                self.offer(&symbols, before, &mut heap);
            }
        }
        Ok(symbols.iter().filter(|s| !s.is_merged).map(|s| s.id).collect())
    }

    /// The pair that begins at a symbol, ordered by rank and then from the left.
    fn offer(&self, symbols: &[Symbol], at: usize, heap: &mut BinaryHeap<Reverse<Offer>>) {
        let Some(next) = symbols[at].after else { return };
        let pair = (symbols[at].id, symbols[next].id);
        if let Some(&(rank, joined)) = self.pairs.get(&pair) {
            heap.push(Reverse((rank, at, pair, joined)));
        }
    }

    /// The tokens of a word's characters.
    fn characters(&self, word: &str) -> Result<Vec<Symbol>, String> {
        let mut ids: Vec<i64> = Vec::with_capacity(word.len());
        let mut was_unknown = false;
        for c in word.chars() {
            let mut buffer = [0; 4];
            let text: &str = c.encode_utf8(&mut buffer);
            let is_known = self.tokens.get(text).map(|id| ids.push(*id)).is_some();
            if is_known || (self.habits.bytes && self.push_bytes(text, &mut ids)) {
                was_unknown = false;
                continue;
            }
            let Some(unknown) = self.habits.unknown else {
                return Err(format!("the tokenizer has no token for {c:?}"));
            };
            if !(was_unknown && self.habits.fuses) {
                ids.push(unknown);
            }
            was_unknown = true;
        }
        let last = ids.len().wrapping_sub(1);
        let symbol = |(at, id): (usize, i64)| Symbol {
            id,
            before: at.checked_sub(1),
            after: (at != last).then_some(at + 1),
            is_merged: false,
        };
        Ok(ids.into_iter().enumerate().map(symbol).collect())
    }

    /// The tokens of a character's bytes, if there is one for each.
    fn push_bytes(&self, text: &str, ids: &mut Vec<i64>) -> bool {
        let token = |b: u8| self.tokens.get(&format!("<0x{b:02X}>")).copied();
        let bytes: Option<Vec<i64>> = text.bytes().map(token).collect();
        bytes.map(|all| ids.extend(all)).is_some()
    }
}
