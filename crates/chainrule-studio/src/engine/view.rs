//! The page of a program without the page: all that it shows as one value.

use serde_json::{Value, json};

use super::{Engine, Given};

/// The content of the page for a program: its `graph`, the `steps` of its backward pass, its
/// `program`, and as `comparison` the pass by hand beside the right one, if there is one. A
/// computation of another program that cannot be run again has a `why_no_program` in its place.
/// Errors if it cannot be opened, with its file and the line.
pub fn view(given: Given) -> Result<Value, String> {
    let (hand, title) = (given.hand.clone(), given.title.clone());
    let is_captured = given.captured.is_some();
    let mut engine = Engine::with(vec![given]);
    let mut ask = |call: &str, args: Value| {
        let request = json!({"id": 1, "call": call, "args": args});
        let answer: Value = serde_json::from_str(&engine.request(&request.to_string()))
            .map_err(|e| e.to_string())?;
        match answer["error"].as_object() {
            None => Ok(answer["ok"].clone()),
            Some(error) => {
                let why = error["message"].as_str().unwrap_or("it failed");
                Err(match error["line"].as_u64() {
                    Some(line) => format!("{title}, line {line}: {why}"),
                    None => format!("{title}: {why}"),
                })
            }
        }
    };
    let graph = ask("open", json!({"given": 0}))?;
    let backward = ask("backward", json!({"session": graph["session"]}))?;
    let (program, why) = match ask("program", json!({"given": 0})) {
        Err(why) if is_captured => (Value::Null, json!(why)),
        program => (program?, Value::Null),
    };
    let comparison = match hand {
        Some(code) => ask("compare", json!({"given": 0, "backward": code}))?,
        None => Value::Null,
    };
    let mut all = json!({
        "graph": graph,
        "steps": backward["steps"],
        "program": program,
        "comparison": comparison,
    });
    if !why.is_null() {
        all["why_no_program"] = why;
    }
    Ok(all)
}
