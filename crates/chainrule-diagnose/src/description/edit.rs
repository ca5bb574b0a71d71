//! Edits of a description: `set`, `insert` and `remove` at a path, and the macros `init_all`,
//! `hidden_all`, `l2_all` and `width_all`.

use serde_json::{Value, json};

use crate::error::{Result, wrong};

/// A `set` of the value at a path.
pub fn edit(path: impl Into<String>, value: impl Into<Value>) -> Value {
    json!({"op": "set", "path": path.into(), "value": value.into()})
}

/// A `remove` of the layer with this number.
pub fn remove(layer: usize) -> Value {
    json!({"op": "remove", "path": format!("layers/{layer}")})
}

/// A description with these edits applied in order.
pub fn apply(description: &Value, edits: &[Value]) -> Result<Value> {
    let mut out = description.clone();
    for one in edits {
        let field = |name: &str| {
            let text = one.get(name).and_then(Value::as_str);
            text.ok_or_else(|| wrong(format!("the edit {one} has no `{name}`")))
        };
        let (op, path) = (field("op")?, field("path")?);
        let value = one.get("value").cloned().unwrap_or(Value::Null);
        match (op, path) {
            (_, "init_all" | "hidden_all" | "l2_all" | "width_all") => {
                all_layers(path, &value, layers(&mut out)?)
            }
            ("set", _) => put(&mut out, path, value)?,
            ("insert", _) => {
                let layers = layers(&mut out)?;
                let at = number_of(path, layers.len() + 1)?;
                layers.insert(at, value);
            }
            ("remove", _) => {
                let layers = layers(&mut out)?;
                let at = number_of(path, layers.len())?;
                layers.remove(at);
            }
            _ => return Err(wrong(format!("the edit {one} is none of set, insert and remove"))),
        }
    }
    Ok(out)
}

fn layers(description: &mut Value) -> Result<&mut Vec<Value>> {
    let layers = description.get_mut("layers").and_then(Value::as_array_mut);
    layers.ok_or_else(|| wrong("`layers` is missing"))
}

/// The number of a layer in `layers/3`; a negative one counts from the end.
fn number_of(path: &str, len: usize) -> Result<usize> {
    let number = path.strip_prefix("layers/").and_then(|n| index(n, len));
    number.ok_or_else(|| wrong(format!("the path `{path}` names no layer of {len}")))
}

fn index(text: &str, len: usize) -> Option<usize> {
    let number: i64 = text.parse().ok()?;
    let at = if number < 0 { number + len as i64 } else { number };
    (0..len as i64).contains(&at).then_some(at as usize)
}

fn put(description: &mut Value, path: &str, value: Value) -> Result<()> {
    let nowhere = || wrong(format!("the path `{path}` leads nowhere"));
    let mut at = description;
    let mut keys = path.split('/').peekable();
    while let Some(key) = keys.next() {
        at = match at {
            Value::Array(list) => {
                let i = index(key, list.len()).ok_or_else(nowhere)?;
                &mut list[i]
            }
            // The last key may be new.
            Value::Object(map) if keys.peek().is_none() || map.contains_key(key) => {
                map.entry(key).or_insert(Value::Null)
            }
            _ => return Err(nowhere()),
        };
    }
    *at = value;
    Ok(())
}

fn kind(layer: &Value) -> &str {
    layer.get("type").and_then(Value::as_str).unwrap_or("")
}

fn all_layers(name: &str, value: &Value, layers: &mut [Value]) {
    let weighted = |l: &Value| matches!(kind(l), "dense" | "conv1d" | "conv2d");
    let kinds: Vec<String> = layers.iter().map(|l| kind(l).to_string()).collect();
    let last_dense = kinds.iter().rposition(|k| k == "dense");
    let last = layers.iter().rposition(weighted).unwrap_or(0);
    let end = layers.len().saturating_sub(1);
    for (i, layer) in layers.iter_mut().enumerate() {
        let Some(map) = layer.as_object_mut() else { continue };
        match name {
            "init_all" if map.contains_key("init") => {
                let new =
                    if Some(i) == last_dense { json!("glorot_uniform") } else { value.clone() };
                map.insert("init".into(), new);
                map.remove("bias_init");
            }
            "hidden_all" if i < last && kinds[i] != "activation" => {
                let follows =
                    kinds.get(i + 1).is_some_and(|k| k == "activation" || k == "batchnorm");
                let own = map.get("activation").filter(|a| !a.is_null());
                if own.is_some_and(|a| !(a == "linear" && follows)) {
                    map.insert("activation".into(), value.clone());
                }
            }
            "l2_all" if map.get("l2").and_then(Value::as_f64).unwrap_or(0.0) != 0.0 => {
                map.insert("l2".into(), value.clone());
            }
            "width_all" if i < end && map.contains_key("units") => {
                map.insert("units".into(), value.clone());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Value {
        json!({"batch": 1, "optimizer": {"name": "sgd", "lr": 1}, "layers": [
            {"type": "dense", "units": 3, "activation": "tanh", "init": "zeros", "bias_init": 1},
            {"type": "dropout", "rate": 0.5},
            {"type": "dense", "units": 1, "activation": "softmax", "init": "zeros"}]})
    }

    #[test]
    fn paths_count_from_both_ends() {
        let out = apply(
            &program(),
            &[edit("layers/-1/activation", "linear"), edit("optimizer/lr", 0.5), remove(1)],
        );
        let out = out.unwrap();
        assert_eq!(out["layers"][1]["activation"], "linear");
        assert_eq!(out["optimizer"]["lr"], 0.5);
        assert_eq!(out["layers"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn macros_leave_the_last_layer_its_own() {
        let out = apply(&program(), &[edit("init_all", "he_normal"), edit("hidden_all", "relu")]);
        let out = out.unwrap();
        assert_eq!(out["layers"][0]["init"], "he_normal");
        assert!(out["layers"][0].get("bias_init").is_none());
        assert_eq!(out["layers"][2]["init"], "glorot_uniform");
        assert_eq!(out["layers"][0]["activation"], "relu");
        assert_eq!(out["layers"][2]["activation"], "softmax");
    }

    #[test]
    fn paths_that_lead_nowhere_are_errors() {
        for path in ["layers/7/units", "layers/x", "nothing/here", "batch/x"] {
            assert!(apply(&program(), &[edit(path, 1)]).is_err(), "{path}");
        }
        assert!(apply(&program(), &[json!({"op": "grow", "path": "batch"})]).is_err());
        assert!(apply(&program(), &[json!(3)]).is_err());
    }
}
