//! Configuration in JSON, with errors that name the file and the key.

use std::fs;
use std::path::{Path, PathBuf};

use chainrule_core::error::{Error, Result};
use serde_json::{Map, Value};

/// Longest JSON file that is read: a tokenizer with a million tokens has about 50 MB.
const MOST_BYTES: u64 = 256 << 20;

/// The text of a file of at most [`MOST_BYTES`].
pub fn read_text(path: &Path) -> Result<String> {
    let error = |why: String| Error::File { path: path.to_owned(), why };
    let about = fs::metadata(path).map_err(|e| error(e.to_string()))?;
    if !about.is_file() || about.len() > MOST_BYTES {
        return Err(error("no text file of at most 256 MiB; check the path".into()));
    }
    fs::read_to_string(path).map_err(|e| error(e.to_string()))
}

/// A JSON object of a file.
#[derive(Debug, Clone)]
pub struct Json {
    path: PathBuf,
    map: Map<String, Value>,
}

impl Json {
    pub fn read(path: &Path) -> Result<Json> {
        Json::parse(path, &read_text(path)?)
    }

    /// As [`Json::read`], from the text of the file.
    pub fn parse(path: &Path, text: &str) -> Result<Json> {
        match serde_json::from_str(text) {
            Ok(Value::Object(map)) => Ok(Json { path: path.to_owned(), map }),
            Ok(_) => {
                Err(Error::File { path: path.to_owned(), why: "is no JSON object, {...}".into() })
            }
            Err(e) => Err(Error::File { path: path.to_owned(), why: format!("not JSON: {e}") }),
        }
    }

    pub fn of(path: &Path, map: Map<String, Value>) -> Json {
        Json { path: path.to_owned(), map }
    }

    pub fn map(&self) -> &Map<String, Value> {
        &self.map
    }

    pub fn error(&self, why: impl Into<String>) -> Error {
        // A string of the file may contain line breaks.
        let shown = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        Error::File { path: self.path.clone(), why: why.into().chars().map(shown).collect() }
    }

    /// The value, unless it is absent or null.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        kind: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        self.get(key)
            .map(|value| {
                read(value).ok_or_else(|| {
                    let short: String = value.to_string().chars().take(60).collect();
                    self.error(format!("`{key}` must be {kind}, and is {short}"))
                })
            })
            .transpose()
    }

    /// A size from 1 to 2^31.
    pub fn size(&self, key: &str) -> Result<Option<usize>> {
        let size = |v: &Value| v.as_u64().filter(|n| (1..=1 << 31).contains(n));
        Ok(self.typed(key, "a whole number from 1 up", size)?.map(|n| n as usize))
    }

    pub fn needed_size(&self, key: &str) -> Result<usize> {
        self.size(key)?.ok_or_else(|| self.error(format!("has no `{key}`, which the model needs")))
    }

    /// A positive number.
    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        self.typed(key, "a number above 0", |v| v.as_f64().filter(|x| *x > 0.0 && x.is_finite()))
    }

    pub fn flag(&self, key: &str, default: bool) -> Result<bool> {
        Ok(self.typed(key, "true or false", Value::as_bool)?.unwrap_or(default))
    }

    pub fn text(&self, key: &str) -> Result<Option<&str>> {
        self.typed(key, "a text", Value::as_str)
    }

    pub fn object(&self, key: &str) -> Result<Option<Json>> {
        let map = self.typed(key, "an object", Value::as_object)?;
        Ok(map.map(|map| Json::of(&self.path, map.clone())))
    }

    /// One token's number, or several.
    pub fn tokens(&self, key: &str) -> Result<Vec<i64>> {
        let read = |v: &Value| match v {
            Value::Array(all) => all.iter().map(Value::as_i64).collect(),
            one => Some(vec![one.as_i64()?]),
        };
        Ok(self.typed(key, "the number of a token, or a list of them", read)?.unwrap_or_default())
    }
}
