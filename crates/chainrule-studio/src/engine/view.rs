//! The page of a program without the page: all that it shows as one value.

use serde_json::{Value, json};

use super::{Engine, Given};

/// Runs a program once. Errors if the page could not open it, with its file and the line.
pub fn check(given: Given) -> Result<(), String> {
    asked(given)("open", json!({"given": 0})).map(drop)
}

/// An engine that is asked about one program.
fn asked(given: Given) -> impl FnMut(&str, Value) -> Result<Value, String> {
    let title = given.title.clone();
    let mut engine = Engine::with(vec![given]);
    move |call, args| {
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
    }
}

/// The content of the page for a program: its `graph`, the `steps` of its backward pass, its
/// `program`, and as `comparison` the pass by hand beside the right one, if there is one. A
/// computation of another program that cannot be run again has a `why_no_program` in its place.
/// Errors if it cannot be opened, with its file and the line.
pub fn view(given: Given) -> Result<Value, String> {
    let hand = given.hand.clone();
    let is_captured = given.captured.is_some();
    let mut ask = asked(given);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &str) -> Given {
        Given { title: "my.py".into(), text: text.into(), seed: 1, ..Given::default() }
    }

    #[test]
    fn faults_name_the_users_line_alone() {
        for (text, why) in [
            ("x = leaf(randn(3))\nloss = sum(x *)\n", "my.py, line 2: a value is expected"),
            (
                "x = leaf(randn(3))\ny = leaf(randn(4))\nloss = sum(x * y)\n",
                "my.py, line 3: mul: shapes [3] and [4]",
            ),
            ("", "my.py: the program assigns nothing"),
        ] {
            let told = check(given(text)).unwrap_err();
            assert!(told.starts_with(why), "{told}");
            assert!(!told.contains(".rs") && !told.contains('\n'), "{told}");
        }
        assert_eq!(check(given("x = leaf(2.0)\nloss = x * x\n")), Ok(()));
    }

    #[test]
    fn instructions_are_of_the_users_lines() {
        let text =
            "x = leaf(randn(4, 3))\n\ndef f(a):\n    return tanh(a)\n\nloss = sum(f(x)[1:, 0])\n";
        let program = &view(given(text)).unwrap()["program"];
        let lines = program["before"]["lines"].as_array().unwrap();
        let line = |op: &str| {
            let found = lines.iter().find(|line| line["op"] == op).unwrap();
            (found["place"]["file"].clone(), found["place"]["line"].clone())
        };
        assert_eq!(line("tanh"), (json!("my.py"), json!(4)));
        assert_eq!(line("sum"), (json!("my.py"), json!(6)));
        let cut = lines.iter().find(|line| line["op"] == "slice").unwrap();
        assert!(cut["code"].as_str().unwrap().ends_with("[1:4, 0]"), "{cut}");
    }
}
