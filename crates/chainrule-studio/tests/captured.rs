//! Computations that another program made, by what a page is told of them.

use chainrule::{DType, Generator, Tensor};
use chainrule_core::tensor::node::coming_number;
use chainrule_studio::{Captured, Engine, Given};
use serde_json::{Value, json};

/// The answer of a page's engine.
fn ask(given: &Given, call: &str, args: &Value) -> Value {
    let mut engine = Engine::closed(vec![given.clone()]);
    let mut ask = |call: &str, args: &Value| {
        let request = json!({"id": 1, "call": call, "args": args}).to_string();
        let answer: Value = serde_json::from_str(&engine.request(&request)).unwrap();
        assert!(answer["error"].is_null(), "{answer}");
        answer["ok"].clone()
    };
    let opened = ask("open", &json!({"given": 0}));
    if call == "open" { opened } else { ask(call, args) }
}

/// Two blocks of one weight each, and a module that both of them call.
#[test]
fn operations_belong_to_the_calls_that_made_them() {
    let g = &mut Generator::manual_seed(3);
    let mut weight = || Tensor::randn([3, 3], DType::F32, g).parameter();
    let (first, shared, own) = (weight(), weight(), [weight(), weight()]);
    let mut modules = Vec::new();
    let mut x = &first * 2.0;
    let from = coming_number();
    for (i, own) in own.iter().enumerate() {
        let block = coming_number();
        x = x.matmul(own);
        for _ in 0..2 {
            let inner = coming_number();
            x = (&x * &shared).tanh();
            modules.push(("net.act".to_owned(), inner, coming_number()));
        }
        modules.push((format!("net.blocks.{i}"), block, coming_number()));
    }
    modules.push(("net".to_owned(), from, coming_number()));
    // A call of another graph.
    modules.push(("net.blocks.0".to_owned(), 0, 1));
    let named = [(&first, "first"), (&shared, "shared"), (&own[0], "own0"), (&own[1], "own1")];
    let named = named.map(|(t, name)| (t.clone(), name.to_owned(), 0)).to_vec();
    let captured = Captured { modules, named, ..Captured::of(x.sum_all()) };
    let given = Given { captured: Some(captured), ..Given::default() };
    let opened = ask(&given, "open", &Value::Null);
    let nodes = opened["nodes"].as_array().unwrap();
    let of = |name: &str| &nodes.iter().find(|n| n["name"] == name).unwrap()["module"];
    assert_eq!(of("own0"), &json!(["net", "blocks.0"]));
    assert_eq!(of("own1"), &json!(["net", "blocks.1"]));
    assert_eq!(of("shared"), &json!(["net"]));
    assert_eq!(of("first"), &json!([]));
    let mut inner = Vec::new();
    for node in nodes.iter().filter(|n| n["op"].is_string()) {
        let path = node["module"].as_array().unwrap();
        let path: Vec<&str> = path.iter().filter_map(Value::as_str).collect();
        inner.push(format!("{} {}", path.join("/"), node["op"].as_str().unwrap()));
    }
    let block = |i: usize| {
        let act = |call: usize, op: &str| format!("net/blocks.{i}/net.act {call} {op}");
        let ops = [act(1, "mul"), act(1, "tanh"), act(2, "mul"), act(2, "tanh")];
        [vec![format!("net/blocks.{i} matmul")], ops.to_vec()].concat()
    };
    let outer = |op: &str| vec![format!(" {op}")];
    let all = [outer(&inner[0][1..]), block(0), block(1), outer("sum")].concat();
    assert_eq!(inner, all);
}

/// A pass that was walked is that of all pages, whatever becomes of its tensors.
#[test]
fn a_page_shows_the_moment_of_its_walk() {
    let x = Tensor::from([2.0f32, -1.0]).parameter();
    let loss = (&x * &x).sum_all();
    let named = vec![(x.clone(), "x".to_owned(), 0)];
    let captured = Captured { named, ..Captured::of(loss.clone()) };
    captured.walk().unwrap();
    let given = Given { captured: Some(captured), ..Given::default() };
    let before = ask(&given, "backward", &json!({"session": 0}));
    let text = before.to_string();
    assert!(text.contains("[4.0,-2.0]"), "{text}");
    loss.backward();
    x.set(&Tensor::from([7.0f32, 7.0]));
    assert_eq!(ask(&given, "backward", &json!({"session": 0})), before);
    let opened = ask(&given, "open", &Value::Null);
    let leaf = opened["nodes"].as_array().unwrap().iter().find(|n| n["name"] == "x");
    assert_eq!(leaf.unwrap()["value"]["data"], json!([2.0, -1.0]));
}
