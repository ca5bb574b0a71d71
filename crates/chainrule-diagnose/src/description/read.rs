//! Fields of a JSON object, with errors that name their place.

use chainrule_nn::optim::keras::{KerasOptions, KerasRule};
use serde_json::{Map, Value};

use crate::error::{Result, wrong};

/// An object and its place in the description.
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    place: String,
}

/// A size from 1 on.
pub(super) fn size(value: &Value, place: &str, most: usize) -> Result<usize> {
    let whole = value.as_u64().or_else(|| {
        let x = value.as_f64()?;
        (x.fract() == 0.0 && (0.0..1e15).contains(&x)).then_some(x as u64)
    });
    match whole {
        Some(x) if x >= 1 && x <= most as u64 => Ok(x as usize),
        _ => {
            Err(wrong(format!("`{place}` is {value}; it must be a whole number from 1 to {most}")))
        }
    }
}

impl<'a> Fields<'a> {
    pub(super) fn of(value: &'a Value, place: &str) -> Result<Fields<'a>> {
        match value.as_object() {
            Some(map) => Ok(Fields { map, place: place.to_string() }),
            None if place.is_empty() => Err(wrong("the description must be a JSON object")),
            None => Err(wrong(format!("`{place}` is {value}; it must be an object"))),
        }
    }

    pub(super) fn place(&self, name: &str) -> String {
        if self.place.is_empty() { name.to_string() } else { format!("{}/{name}", self.place) }
    }

    /// The value of a field, unless it is missing or null.
    pub(super) fn some(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|v| !v.is_null())
    }

    pub(super) fn value(&self, name: &str) -> Result<&'a Value> {
        self.some(name).ok_or_else(|| wrong(format!("`{}` is missing", self.place(name))))
    }

    pub(super) fn object(&self, name: &str) -> Result<Fields<'a>> {
        Fields::of(self.value(name)?, &self.place(name))
    }

    pub(super) fn list(&self, name: &str) -> Result<&'a [Value]> {
        let value = self.value(name)?;
        let list = value.as_array().map(Vec::as_slice);
        list.ok_or_else(|| wrong(format!("`{}` is {value}; it must be a list", self.place(name))))
    }

    pub(super) fn list_or_empty(&self, name: &str) -> Result<&'a [Value]> {
        if self.some(name).is_some() { self.list(name) } else { Ok(&[]) }
    }

    pub(super) fn text(&self, name: &str) -> Result<&'a str> {
        let value = self.value(name)?;
        let text = value.as_str();
        text.ok_or_else(|| wrong(format!("`{}` is {value}; it must be a text", self.place(name))))
    }

    pub(super) fn text_or(&self, name: &str, default: &'a str) -> Result<&'a str> {
        if self.some(name).is_some() { self.text(name) } else { Ok(default) }
    }

    pub(super) fn some_text(&self, name: &str) -> Result<Option<String>> {
        self.some(name).map(|_| Ok(self.text(name)?.to_string())).transpose()
    }

    pub(super) fn number(&self, name: &str) -> Result<f64> {
        let value = self.value(name)?;
        match value.as_f64() {
            Some(x) if x.is_finite() => Ok(x),
            _ => Err(wrong(format!("`{}` is {value}; it must be a number", self.place(name)))),
        }
    }

    pub(super) fn number_or(&self, name: &str, default: f64) -> Result<f64> {
        if self.some(name).is_some() { self.number(name) } else { Ok(default) }
    }

    pub(super) fn size(&self, name: &str, most: usize) -> Result<usize> {
        size(self.value(name)?, &self.place(name), most)
    }

    pub(super) fn flag_or(&self, name: &str, default: bool) -> Result<bool> {
        let Some(value) = self.some(name) else { return Ok(default) };
        let place = || self.place(name);
        value.as_bool().ok_or_else(|| wrong(format!("`{}` is {value}; true or false", place())))
    }
}

/// The optimizer, with Keras' defaults for missing fields.
pub(super) fn optimizer(all: &Fields<'_>) -> Result<KerasOptions> {
    let share = |name: &str, default: f64| match all.number_or(name, default)? {
        x if (0.0..1.0).contains(&x) => Ok(x),
        x => Err(wrong(format!("`{}` is {x}; it must be 0 or more and below 1", all.place(name)))),
    };
    let (rule, lr) = match all.text("name")? {
        "sgd" => (KerasRule::Sgd, 0.01),
        "adam" => (KerasRule::Adam, 0.001),
        "nadam" => (KerasRule::Nadam, 0.001),
        "rmsprop" => (KerasRule::RmsProp, 0.001),
        other => {
            let why = format!(
                "`{}` is `{other}`; there are sgd, adam, nadam and rmsprop",
                all.place("name")
            );
            return Err(wrong(why));
        }
    };
    let is_rms = rule == KerasRule::RmsProp;
    Ok(KerasOptions {
        rule,
        lr: all.number_or("lr", lr)?,
        decay: all.number_or("decay", 0.0)?,
        momentum: all.number_or("momentum", 0.0)?,
        nesterov: all.flag_or("nesterov", false)?,
        beta1: share("beta1", 0.9)?,
        beta2: if is_rms { share("rho", 0.9)? } else { share("beta2", 0.999)? },
        eps: all.number_or("eps", 1e-7)?,
    })
}
