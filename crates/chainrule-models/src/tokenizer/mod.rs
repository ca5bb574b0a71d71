//! Tokenizers: byte pair encoding (Sennrich et al. 2016), over bytes as in GPT-2 or over characters
//! as in Llama 2.
//!
//! Encoding: added tokens, normalization, pre-tokenization, merges of each word, post-processing.
//! Decoding: the decoders.

mod added;
mod bytes;
mod decode;
mod merges;
mod normal;
mod words;

use std::collections::HashMap;
use std::path::Path;

use chainrule_core::error::{Error, Result};
use serde_json::{Map, Value};

use self::added::{Added, AddedToken};
use self::decode::TokenDecoder;
use self::merges::Merges;
use self::normal::Normal;
use self::words::Words;
use crate::config::{Json, read_text};

/// GPT-2's token that is special although its files don't say so.
const END: &str = "<|endoftext|>";

/// Converts texts to token ids, and back.
///
/// Read from `tokenizer.json`, or from GPT-2's `vocab.json` and `merges.txt`.
pub struct Tokenizer {
    added: Added,
    normal: Normal,
    words: Words,
    merges: Merges,
    decoder: TokenDecoder,
    before: Vec<i64>,
    after: Vec<i64>,
    names: HashMap<i64, String>,
}

impl Tokenizer {
    /// The tokenizer of a model's folder.
    pub fn open(folder: impl AsRef<Path>) -> Result<Tokenizer> {
        let folder = folder.as_ref();
        let whole = folder.join("tokenizer.json");
        if whole.exists() {
            return Tokenizer::whole(&Json::read(&whole)?);
        }
        let (vocabulary, merges) = (folder.join("vocab.json"), folder.join("merges.txt"));
        if !vocabulary.exists() || !merges.exists() {
            let why = "has no tokenizer; there should be tokenizer.json, or vocab.json and \
                       merges.txt";
            return Err(Error::File { path: folder.to_owned(), why: why.into() });
        }
        Tokenizer::of_two(folder, &Json::read(&vocabulary)?, &merges)
    }

    /// GPT-2's: a vocabulary and a list of merges.
    fn of_two(folder: &Path, vocabulary: &Json, path: &Path) -> Result<Tokenizer> {
        Tokenizer::of_texts(vocabulary, (path, &read_text(path)?), more_tokens(folder)?)
    }

    /// As [`Tokenizer::of_two`], with the text of the merges and the added tokens of other files.
    fn of_texts(
        vocabulary: &Json,
        (path, text): (&Path, &str),
        more: Vec<AddedToken>,
    ) -> Result<Tokenizer> {
        let in_merges = |why: String| Error::File { path: path.to_owned(), why };
        let mut pairs = Vec::new();
        for (number, line) in text.lines().enumerate() {
            if (number == 0 && line.starts_with("#version")) || line.trim().is_empty() {
                continue;
            }
            let (a, b) = line.split_once(' ').ok_or_else(|| {
                in_merges(format!("line {} is no pair of tokens with a space between", number + 1))
            })?;
            pairs.push((a.to_owned(), b.to_owned()));
        }
        let tokens = vocabulary_of(vocabulary.map()).map_err(|why| vocabulary.error(why))?;
        let end = tokens.get(END).map(|id| AddedToken::special(*id, END));
        let mut added: Vec<AddedToken> = end.into_iter().collect();
        for token in more {
            added.retain(|one| one.text != token.text);
            added.push(token);
        }
        let merges = Merges::new(tokens, &pairs, Default::default()).map_err(in_merges)?;
        let parts = (Normal::default(), Words::bytes(), TokenDecoder::bytes());
        Ok(Tokenizer::assemble(added, merges, parts, (Vec::new(), Vec::new())))
    }

    /// From a `tokenizer.json`.
    fn whole(json: &Json) -> Result<Tokenizer> {
        let error = |part: &str| {
            let part = part.to_owned();
            move |why: String| json.error(format!("`{part}`: {why}"))
        };
        let model = json.object("model")?.ok_or_else(|| json.error("has no `model`"))?;
        let merges = Merges::read(&model)?;
        let part = |key: &str| json.get(key);
        let normal = Normal::read(part("normalizer")).map_err(error("normalizer"))?;
        let words = Words::read(part("pre_tokenizer")).map_err(error("pre_tokenizer"))?;
        let decoder = TokenDecoder::read(part("decoder")).map_err(error("decoder"))?;
        let added = AddedToken::read_all(part("added_tokens")).map_err(error("added_tokens"))?;
        let around = around(part("post_processor")).map_err(error("post_processor"))?;
        Ok(Tokenizer::assemble(added, merges, (normal, words, decoder), around))
    }

    fn assemble(
        added: Vec<AddedToken>,
        merges: Merges,
        (normal, words, decoder): (Normal, Words, TokenDecoder),
        (before, after): (Vec<i64>, Vec<i64>),
    ) -> Tokenizer {
        let mut names = merges.names();
        names.extend(added.iter().map(|token| (token.id, token.text.clone())));
        Tokenizer { added: Added::new(added), normal, words, merges, decoder, before, after, names }
    }

    /// Encodes a text; with `around` also the tokens that the tokenizer puts before and after a
    /// text. Errors for a character without a token.
    pub fn encode(&self, text: &str, around: bool) -> Result<Vec<i64>> {
        let error = |why: String| Error::argument("encode", why);
        let mut out = if around { self.before.clone() } else { Vec::new() };
        let mut known: HashMap<String, Vec<i64>> = HashMap::new();
        let mut is_first = true;
        for part in self.added.cut(text) {
            match part {
                Ok(id) => out.push(id),
                Err(plain) => {
                    let plain = self.normal.of(plain);
                    for word in self.words.cut(&plain, is_first).map_err(error)? {
                        if let Some(ids) = known.get(&word) {
                            out.extend_from_slice(ids);
                            continue;
                        }
                        let ids: Vec<i64> = self.merges.of(&word).map_err(error)?;
                        out.extend_from_slice(&ids);
                        // A cache, since words recur in a long text.
                        if word.len() < 32 && known.len() < 100_000 {
                            known.insert(word, ids);
                        }
                    }
                }
            }
            is_first = false;
        }
        if around {
            out.extend_from_slice(&self.after);
        }
        Ok(out)
    }

    /// Decodes tokens, without special ones; invalid UTF-8 becomes U+FFFD. Errors for an unknown
    /// id.
    pub fn decode(&self, tokens: &[i64]) -> Result<String> {
        let mut names = Vec::with_capacity(tokens.len());
        for id in tokens {
            if self.added.is_special(*id) {
                continue;
            }
            let name = self.names.get(id).ok_or_else(|| {
                Error::argument("decode", format!("{id} is the number of no token"))
            })?;
            names.push(name.clone());
        }
        Ok(self.decoder.of(names))
    }

    /// The id of a token such as `<|endoftext|>`.
    pub fn token(&self, name: &str) -> Option<i64> {
        self.added.token(name).or_else(|| self.merges.token(name))
    }

    /// Vocabulary size.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether the vocabulary is empty.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// Tokens by their texts.
fn vocabulary_of(map: &Map<String, Value>) -> Result<HashMap<String, i64>, String> {
    map.iter()
        .map(|(name, id)| match id.as_i64().filter(|id| (0..1 << 31).contains(id)) {
            Some(id) => Ok((name.clone(), id)),
            None => Err(format!("the token {name:?} has no number from 0 up")),
        })
        .collect()
}

/// Tokens that `added_tokens.json` and `tokenizer_config.json` add to the vocabulary.
fn more_tokens(folder: &Path) -> Result<Vec<AddedToken>> {
    let mut out = Vec::new();
    let path = folder.join("added_tokens.json");
    if path.exists() {
        let json = Json::read(&path)?;
        let all = vocabulary_of(json.map()).map_err(|why| json.error(why))?;
        out.extend(all.into_iter().map(|(text, id)| AddedToken::special(id, &text)));
    }
    let path = folder.join("tokenizer_config.json");
    if path.exists() {
        let json = Json::read(&path)?;
        for (id, about) in json.object("added_tokens_decoder")?.iter().flat_map(|j| j.map().iter())
        {
            let id: i64 = id.parse().map_err(|_| {
                json.error(format!("`added_tokens_decoder`: `{id}` is no number of a token"))
            })?;
            let token = AddedToken::read(Some(id), about).map_err(|why| json.error(why))?;
            out.retain(|one: &AddedToken| one.text != token.text);
            out.push(token);
        }
    }
    Ok(out)
}

/// Tokens before and after a text, from a post-processor.
fn around(value: Option<&Value>) -> Result<(Vec<i64>, Vec<i64>), String> {
    let mut out = (Vec::new(), Vec::new());
    let Some(value) = value else { return Ok(out) };
    match kind(value)? {
        "ByteLevel" => {}
        "Sequence" => {
            for part in list(value, "processors")? {
                let (before, after) = around(Some(part))?;
                out.0.splice(0..0, before);
                out.1.extend(after);
            }
        }
        "TemplateProcessing" => {
            let mut is_before = true;
            for part in list(value, "single")? {
                if part.get("Sequence").is_some() {
                    is_before = false;
                    continue;
                }
                let name = part["SpecialToken"]["id"].as_str().ok_or("a part is no token")?;
                let ids = list(&value["special_tokens"][name], "ids")?;
                let ids: Option<Vec<i64>> = ids.iter().map(Value::as_i64).collect();
                let ids = ids.ok_or_else(|| format!("`{name}` has no numbers"))?;
                if is_before { out.0.extend(ids) } else { out.1.extend(ids) }
            }
        }
        other => return Err(unknown(other, "ByteLevel, TemplateProcessing, Sequence")),
    }
    Ok(out)
}

/// The `type` of a part.
fn kind(value: &Value) -> Result<&str, String> {
    value["type"].as_str().ok_or_else(|| "it has no `type`".to_owned())
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>, String> {
    value[key].as_array().ok_or_else(|| format!("`{key}` is no list"))
}

fn unknown(kind: &str, known: &str) -> String {
    format!("the type `{kind}` is not known; there are {known}")
}

#[cfg(test)]
mod fuzz;
