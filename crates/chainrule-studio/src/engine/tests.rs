use chainrule::data::text::{NameDataset, NameList};
use chainrule::rng::PythonRandom;
use chainrule::{DType, Generator, Tensor};
use chainrule_lab::models::{NamesMlp, NamesMlpConfig};
use chainrule_lab::names::{Batch, Parameters, forward};
use serde_json::{Value, json};

use super::{Captured, Engine, Given, Reply, examples};

pub(super) fn ask(engine: &mut Engine, call: &str, args: Value) -> Value {
    let request = json!({"id": 5, "call": call, "args": args}).to_string();
    let answer: Value = serde_json::from_str(&engine.request(&request)).unwrap();
    assert_eq!(answer["id"], 5);
    assert!(answer.get("ok").is_some(), "{call}: {answer}");
    answer["ok"].clone()
}

pub(super) fn fails(engine: &mut Engine, call: &str, args: Value) -> Value {
    let request = json!({"id": 5, "call": call, "args": args}).to_string();
    let answer: Value = serde_json::from_str(&engine.request(&request)).unwrap();
    assert!(answer.get("error").is_some(), "{call}: {answer}");
    answer["error"].clone()
}

pub(super) fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

#[test]
fn every_example_opens_and_steps_back() {
    let engine = &mut Engine::default();
    for example in examples::all() {
        let opened = ask(engine, "open", json!({"example": example.name}));
        let nodes = opened["nodes"].as_array().unwrap();
        let steps = ask(engine, "backward", json!({"session": opened["session"]}));
        let steps = steps["steps"].as_array().unwrap();
        assert_eq!(steps[0]["node"], opened["root"], "{}", example.name);
        for step in steps {
            // The gradient that arrives is the sum of its parts.
            let total = &step["incoming"]["data"];
            let parts = step["received"].as_array().unwrap();
            if parts.is_empty() || total.is_null() {
                continue;
            }
            let mut sum = vec![0.0; total.as_array().unwrap().len()];
            for part in parts {
                let part = floats(&part["gradient"]["data"]);
                sum.iter_mut().zip(part).for_each(|(s, x)| *s += x);
            }
            for (a, b) in sum.iter().zip(floats(total)) {
                assert!((a - b).abs() <= 1e-12 * b.abs().max(1e-3), "{}: {a} {b}", example.name);
            }
        }
        let traced = nodes.iter().filter(|node| node["requires_grad"] == true).count();
        assert_eq!(traced, steps.len(), "{}", example.name);
        if example.backward.is_some() {
            let code = json!({"example": example.name, "backward": example.backward});
            let compared = ask(engine, "compare", code);
            assert_eq!(compared["all"], true, "{}: {compared}", example.name);
        }
    }
}

/// The same parameters and the same batch through the exercise of the lab, whose gradients are
/// those of the library.
#[test]
fn the_names_example_is_the_exercise() {
    let engine = &mut Engine::default();
    let generator = &mut Generator::manual_seed(7);
    let model = NamesMlp::new(NamesMlpConfig::default(), generator);
    let parameters = Parameters::of(&model, DType::F64).unwrap();
    let list = NameList::embedded();
    let split = list.split(|names| PythonRandom::seed(42).shuffle(names)).unwrap();
    let pairs = NameDataset::build(&split.train, 3).unwrap();
    let rows = Tensor::try_randint(0, pairs.count as i64, [32], generator).unwrap();
    let (mut contexts, mut targets) = (Vec::<i64>::new(), Vec::<i64>::new());
    for row in rows.to_vec::<i64>() {
        contexts.extend(&pairs.contexts[row as usize * 3..row as usize * 3 + 3]);
        targets.push(pairs.targets[row as usize]);
    }
    let contexts = Tensor::try_from_slice(&contexts, [32, 3]).unwrap();
    let targets = Tensor::try_from_slice(&targets, [32]).unwrap();
    let pass = forward(&parameters, &Batch::new(contexts, targets).unwrap()).unwrap();
    let named: Vec<(&str, &Tensor)> = pass.list().into_iter().chain(parameters.list()).collect();
    assert_eq!(named.len(), 26);
    named.iter().for_each(|(_, t)| {
        t.retain_grad();
    });
    pass.loss.backward();
    let want: Vec<String> =
        named.iter().flat_map(|(name, _)| [name.to_string(), format!("{name}.grad")]).collect();
    let got = ask(engine, "eval", json!({"example": "names", "seed": 7, "want": want}));
    for (name, t) in named {
        // The reader of JSON rounds a last bit.
        for (a, b) in floats(&got["values"][name]["data"]).iter().zip(t.to_f64_vec()) {
            assert!((a - b).abs() <= 3e-16 * b.abs(), "{name}: {a} {b}");
        }
        let gradient = t.grad().unwrap().to_f64_vec();
        let found = floats(&got["values"][format!("{name}.grad")]["data"]);
        let size = gradient.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        for (a, b) in found.iter().zip(&gradient) {
            assert!((a - b).abs() <= 1e-12 * size, "{name}: {a} {b}");
        }
    }
    let compared = ask(engine, "compare", json!({"example": "names", "backward": ""}));
    assert_eq!(compared["rows"].as_array().unwrap().len(), 26);
}

#[test]
fn a_neuron_step_by_step() {
    let engine = &mut Engine::default();
    let opened = ask(engine, "open", json!({"example": "neuron"}));
    let session = &opened["session"];
    let node = |name: &str| {
        let mut nodes = opened["nodes"].as_array().unwrap().iter();
        nodes.find(|n| n["name"] == name).unwrap_or_else(|| panic!("{name}")).clone()
    };
    assert_eq!(node("n")["source"]["line"], 10);
    assert_eq!(node("o")["kind"], "root");
    let steps = ask(engine, "backward", json!({"session": session}));
    let step =
        |name: &str| steps["steps"][node(name)["backward"].as_u64().unwrap() as usize].clone();
    // The tutorial's numbers: tanh(0.88137) = 0.70711, so the slope is 0.5.
    assert!((floats(&step("n")["incoming"]["data"])[0] - 0.5).abs() < 1e-9);
    assert!((floats(&step("w1")["incoming"]["data"])[0] - 1.0).abs() < 1e-9);
    assert!((floats(&step("x1")["incoming"]["data"])[0] + 1.5).abs() < 1e-9);
    assert_eq!(step("x1w1")["received"][0]["line"], 9);
    let tex = step("x1w1")["numbers_tex"].as_str().unwrap().to_string();
    assert_eq!(
        tex,
        "\\begin{gathered}\\mathrm{d}\\mathrm{x1} = 0.5 \\cdot \\left(-3\\right) = -1.5\\\\\
         \\mathrm{d}\\mathrm{w1} = 0.5 \\cdot 2 = 1\\end{gathered}"
    );
    let look = ask(engine, "tensor", json!({"session": session, "node": node("n")["id"]}));
    assert_eq!(look["uses"], json!([node("o")["id"]]));
    assert_eq!(look["stats"]["count"], 1);
}

/// Y = X W and dY = 2 Y, so that dX = dY W^T has the largest element 86 * 7 + 100 * 8, and
/// dW = X^T dY has 2 * 44 + 4 * 100.
#[test]
fn numbers_of_one_element_of_tensors() {
    let engine = &mut Engine::default();
    let source = "X = leaf([[1.0, 2.0], [3.0, 4.0]])\nW = leaf([[5.0, 6.0], [7.0, 8.0]])\n\
                  b = leaf([1.0, -2.0])\nY = X @ W\nZ = X * b\nloss = (Y * Y).sum() + Z.sum()";
    let opened = ask(engine, "open", json!({"source": source, "seed": 1}));
    let steps = ask(engine, "backward", json!({"session": opened["session"]}));
    let numbers = |name: &str| {
        let mut nodes = opened["nodes"].as_array().unwrap().iter();
        let node = nodes.find(|n| n["name"] == name).unwrap();
        let step = &steps["steps"][node["backward"].as_u64().unwrap() as usize];
        step["numbers_tex"].as_str().unwrap().to_string()
    };
    let part = |left: &str, right: &str, result: &str| {
        format!("\\begin{{aligned}}{left} &= {right}\\\\&= {result}\\end{{aligned}}")
    };
    let dx = "{\\mathrm{d}\\mathrm{X}}_{1,\\,1}";
    let dw = "{\\mathrm{d}\\mathrm{W}}_{1,\\,1}";
    let (of_x, of_w) = ("86 \\cdot 7 + 100 \\cdot 8", "2 \\cdot 44 + 4 \\cdot 100");
    let both = [part(dx, of_x, "1402"), part(dw, of_w, "488")].join("\\\\");
    assert_eq!(numbers("Y"), format!("\\begin{{gathered}}{both}\\end{{gathered}}"));
    // The gradient of b is a sum over rows, which its formula for one element is not.
    assert_eq!(numbers("Z"), part(dx, "1 \\cdot \\left(-2\\right)", "-2"));
}

#[test]
fn a_wrong_line_is_found() {
    let engine = &mut Engine::default();
    let right = examples::example("linear").unwrap().backward.unwrap();
    let wrong = right.replace("(1 - h**2)", "(1 - h)");
    let compared = ask(engine, "compare", json!({"example": "linear", "backward": wrong}));
    let row = |name: &str| {
        let mut rows = compared["rows"].as_array().unwrap().iter();
        rows.find(|row| row["name"] == name).unwrap().clone()
    };
    assert_eq!((&row("h")["verdict"], &row("y")["verdict"]), (&json!("exact"), &json!("wrong")));
    assert_eq!(row("W")["consequence_of"], json!(["y"]));
    assert_eq!((&compared["finding"]["line"], &compared["all"]), (&json!(2), &json!(false)));
    // Without the sum over the rows the bias has the wrong shape.
    let wrong = right.replace("dy.sum(0)", "dy");
    let compared = ask(engine, "compare", json!({"example": "linear", "backward": wrong}));
    let rows = compared["rows"].as_array().unwrap();
    assert_eq!(rows.iter().find(|row| row["name"] == "b").unwrap()["verdict"], "shape");
    // A line that cannot run is told with its place; what stands before it is judged.
    let compared = ask(
        engine,
        "compare",
        json!({"example": "linear", "backward": "dh = 2 * h / 8\ndy = oops"}),
    );
    assert_eq!(compared["error"]["line"], 2);
    assert_eq!(compared["rows"][0]["verdict"], "exact");
}

#[test]
fn values_gradients_and_shapes_on_demand() {
    let engine = &mut Engine::default();
    let source = "W = leaf(randn(3, 4))\nx = randn(5, 3)\nfor i in range(2):\n    x = tanh(x @ W) @ W.T\ny = x.sum()";
    let want = json!(["W.grad.shape", "x.shape", "sum(x)", "x.grad", "nothing", "y"]);
    let got = ask(engine, "eval", json!({"source": source, "want": want}));
    assert_eq!(got["values"]["W.grad.shape"]["data"], json!([3, 4]));
    assert_eq!(got["values"]["x.shape"]["data"], json!([5, 3]));
    assert_eq!(got["values"]["sum(x)"]["data"], got["values"]["y"]["data"]);
    assert_eq!(floats(&got["values"]["x.grad"]["data"]), [1.0; 15]);
    assert!(got["errors"]["nothing"].as_str().unwrap().contains("nothing"));
    // The same seed gives the same numbers, another one others.
    let again = ask(engine, "eval", json!({"source": source, "want": ["y"], "seed": 1}));
    let other = ask(engine, "eval", json!({"source": source, "want": ["y"], "seed": 2}));
    assert_eq!(again["values"]["y"], got["values"]["y"]);
    assert_ne!(other["values"]["y"], got["values"]["y"]);
}

#[test]
fn programs_that_are_wrong() {
    let engine = &mut Engine::default();
    let cases = [
        ("x = leaf(2.0)\ny = x +", 2, "value"),
        ("x = leaf(2.0)\n\ny = z * x", 3, "no `z`"),
        ("x = leaf(randn(2, 3))\ny = x @ x", 2, "matmul"),
        ("y = 2.0 * ones(2)", 0, "no leaf"),
        ("while True:\n    x = 1", 2, "too long"),
        ("def f(x):\n    return f(x)\ny = f(1)", 2, "deep"),
        ("x = randn(100000, 100000)", 1, "elements"),
        ("x = ((((1", 1, "never closed"),
        ("x = leaf(1.0)\n  y = x", 2, "indented"),
        ("x = [1, 2", 1, "never closed"),
        ("x = 'abc", 1, "quote"),
        ("x = open('/etc/passwd')", 1, "no `open`"),
        ("x = 1 / 0", 1, "zero"),
        ("x = full(3)", 1, "missing"),
    ];
    for (source, line, words) in cases {
        let error = fails(engine, "open", json!({"source": source}));
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(words), "{source:?}: {message}");
        let at = if line == 0 { Value::Null } else { json!(line) };
        assert_eq!(error["line"], at, "{source:?}: {message}");
    }
    let deep = format!("x = {}1{}", "(".repeat(5000), ")".repeat(5000));
    let error = fails(engine, "open", json!({"source": deep}));
    assert!(error["message"].as_str().unwrap().contains("deep"));
    assert!(engine.request("{").contains("no JSON"));
    fails(engine, "nonsense", json!({}));
    fails(engine, "backward", json!({"session": 99}));
}

#[test]
fn exercises_are_judged() {
    let engine = &mut Engine::default();
    let setup = "x = randn(3)";
    let reference = "def f(a):\n    return tanh(a)\nout = f(x)";
    let judge = |engine: &mut Engine, attempt: &str| {
        let args = json!({"setup": setup, "reference": reference, "attempt": attempt, "want": ["out", "f(2.0)"]});
        ask(engine, "judge", args)
    };
    let right = "def f(a):\n    return (exp(a) - exp(-a)) / (exp(a) + exp(-a))\nout = f(x)";
    assert_eq!(judge(engine, right)["all"], true);
    let wrong = judge(engine, "def f(a):\n    return a\nout = f(x)");
    assert_eq!((&wrong["all"], &wrong["rows"][0]["verdict"]), (&json!(false), &json!("wrong")));
    assert_eq!(judge(engine, "out = x")["rows"][1]["verdict"], "missing");
}

#[test]
fn the_error_of_differences_has_its_least_where_theory_says() {
    let engine = &mut Engine::default();
    let source = "x = leaf(randn(4))\nloss = exp(sin(x)).sum()";
    let curve = ask(engine, "gradcheck", json!({"source": source}));
    let best = |of: &str| curve["best"][of].as_f64().unwrap();
    // Truncation and rounding are equal near eps^(1/2) and eps^(1/3).
    assert!((1e-9..1e-6).contains(&best("one_sided")), "{curve}");
    assert!((1e-7..1e-3).contains(&best("central")), "{curve}");
    let first = &curve["points"][0];
    assert!(first["central"].as_f64() < first["one_sided"].as_f64());
}

#[test]
fn axes_to_sum_over() {
    let engine = &mut Engine::default();
    let args = json!({"a": [3, 1], "b": [5, 3, 4], "try_a": [0]});
    let found = ask(engine, "broadcast", args);
    assert_eq!(found["shape"], json!([5, 3, 4]));
    assert_eq!((&found["sum_a"], &found["sum_b"]), (&json!([0, 2]), &json!([])));
    assert_eq!(found["tried"]["shape"], json!([3, 4]));
    assert_eq!(found["tried"]["right"], false);
    let right = ask(engine, "broadcast", json!({"a": [3, 1], "b": [5, 3, 4], "try_a": [2, 0]}));
    assert_eq!(
        (&right["tried"]["right"], &right["tried"]["shape"]),
        (&json!(true), &json!([3, 1]))
    );
    let error = fails(engine, "broadcast", json!({"a": [3], "b": [4]}));
    assert!(error["message"].as_str().unwrap().contains("do not fit"));
}

#[test]
fn a_planted_mistake_is_where_it_says() {
    let engine = &mut Engine::default();
    for seed in 1..6 {
        let planted = ask(engine, "plant", json!({"example": "linear", "draw": seed}));
        let rows = planted["rows"].as_array().unwrap();
        assert!(rows.iter().any(|row| row["verdict"] == "wrong"), "{planted}");
        let told = ask(engine, "reveal", json!({"plant": planted["plant"]}));
        let guess = |engine: &mut Engine, node: u64| {
            ask(engine, "guess", json!({"plant": planted["plant"], "node": node}))["right"].clone()
        };
        let node = told["node"].as_u64().unwrap();
        assert_eq!(guess(engine, node), true);
        assert_eq!(guess(engine, node + 1), false);
        assert!(!told["words"].as_str().unwrap().is_empty());
    }
}

#[test]
fn cross_entropy_collapses_frame_by_frame() {
    let engine = &mut Engine::default();
    for args in [json!({"name": "softmax-ce"}), json!({"example": "cross_entropy"})] {
        let film = ask(engine, "algebra", args);
        assert!(film["frames"].as_array().unwrap().len() > 3, "{film}");
        assert_eq!(film["difference"]["parts"], false, "{}", film["difference"]);
        let (traced, result) = (&film["traced"], &film["result"]);
        assert!(result.as_array().unwrap().len() < traced.as_array().unwrap().len());
    }
    let program = ask(engine, "program", json!({"name": "batch-norm"}));
    assert!(program["after"]["lines"].as_array().unwrap().len() > 2);
    assert_eq!(program["fused"]["difference"]["parts"], false, "{}", program["fused"]);
    assert!(program["arena"]["bytes"].as_u64() >= program["arena"]["lower_bound"].as_u64());
}

/// The gradient of a bias before a batch norm is zero but for rounding: whatever the program makes
/// of that, its results are those of the traced one.
#[test]
fn a_result_of_rounding_alone_is_no_difference() {
    let engine = &mut Engine::default();
    let program = ask(engine, "program", json!({"example": "names"}));
    let difference = &program["fused"]["difference"];
    assert_eq!(difference["parts"], false, "{difference}");
    assert!(difference["by"].as_f64() <= difference["allowed"].as_f64(), "{difference}");
    let film = ask(engine, "algebra", json!({"example": "names"}));
    assert_eq!(film["difference"]["parts"], false, "{}", film["difference"]);
}

/// Statistics travel first, the elements as bytes when they are looked at: the means of blocks.
#[test]
fn elements_travel_as_bytes() {
    let engine = &mut Engine::default();
    let source = "x = leaf([[0.0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])\nloss = (x * x).sum()";
    let opened = ask(engine, "open", json!({"source": source, "most": 4}));
    let node = opened["nodes"].as_array().unwrap().iter().find(|n| n["name"] == "x").unwrap();
    assert_eq!(node["value"]["data"], Value::Null);
    let film = ask(engine, "backward", json!({"session": opened["session"], "most": 4}));
    let gradient = &film["steps"].as_array().unwrap().last().unwrap()["incoming"];
    assert_eq!((&gradient["data"], &gradient["largest"]), (&Value::Null, &json!(22.0)));
    assert!((gradient["rms"].as_f64().unwrap() - 2.0 * (506.0f64 / 12.0).sqrt()).abs() < 1e-12);
    let args =
        json!({"session": opened["session"], "node": node["id"], "of": "gradient", "max": 2});
    let looked = ask(engine, "tensor", args.clone());
    assert_eq!(looked["slice"], json!({"shape": [2, 2], "reduced": true}));
    assert_eq!(looked["stats"]["max"], 22.0);
    let bytes = |engine: &mut Engine, args: &Value| {
        let request = json!({"id": 70_000, "call": "slice", "args": args}).to_string();
        match engine.reply(&request) {
            Reply::Bytes(bytes) => bytes,
            Reply::Text(text) => panic!("{text}"),
        }
    };
    let got = bytes(engine, &args);
    let words: Vec<u32> =
        got[..16].chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(words, [70_000, 2, 2, 3]);
    let elements: Vec<f64> =
        got[16..].chunks(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect();
    // Twice the means of [[0, 1], [4, 5]], [[2, 3], [6, 7]], [8, 9] and [10, 11].
    assert_eq!(elements, [5.0, 9.0, 17.0, 21.0]);
    for args in [json!({"session": 77, "node": 0}), json!({"session": 0, "node": 99})] {
        let request = json!({"id": 1, "call": "slice", "args": args}).to_string();
        let Reply::Text(text) = engine.reply(&request) else { panic!("{args}") };
        assert!(text.contains("error"), "{text}");
    }
    // In a quarter of the bytes of JSON, or less.
    let source = "x = leaf(randn(1000, 1000))\nloss = x.sum()";
    let opened = ask(engine, "open", json!({"source": source, "most": 64}));
    assert!(opened.to_string().len() < 3000);
    let args = json!({"session": opened["session"], "node": 0, "max": 512});
    assert_eq!(bytes(engine, &args).len(), 16 + 8 * 500 * 500);
}

#[test]
fn training_goes_down_forks_and_repeats() {
    let engine = &mut Engine::default();
    let start = |engine: &mut Engine| {
        let args =
            json!({"example": "moons", "optimizer": "adam", "rate": 0.05, "batch_seed": false});
        ask(engine, "train.start", args)["run"].clone()
    };
    let run = start(engine);
    let steps = |engine: &mut Engine, run: &Value, count: u64| -> Vec<f64> {
        let args = json!({"run": run, "count": count, "histograms": true});
        let events = ask(engine, "train.step", args)["events"].clone();
        let events = events.as_array().unwrap();
        assert!(events.last().unwrap()["layers"][0]["grad_histogram"].is_object());
        events.iter().map(|event| event["loss"].as_f64().unwrap()).collect()
    };
    let first = steps(engine, &run, 30);
    let kept = ask(engine, "train.checkpoint", json!({"run": run}));
    let rest = steps(engine, &run, 30);
    assert!(rest[29] < 0.5 * first[0], "{first:?} {rest:?}");
    // The same again gives the same bits.
    let other = start(engine);
    assert_eq!(steps(engine, &other, 30), first);
    // A fork begins where the checkpoint is.
    let args = json!({"run": run, "checkpoint": kept["checkpoint"], "rate": 1e-9});
    let fork = ask(engine, "train.fork", args)["run"].clone();
    assert_eq!(steps(engine, &fork, 1)[0], rest[0]);
    let grid = json!({"x": [-1.5, 2.5, 9], "y": [-1.0, 1.5, 7]});
    let args = json!({"run": run, "want": "softmax(logits)[:, 1]", "grid": grid});
    let map = ask(engine, "train.predict", args);
    assert_eq!(map["shape"], json!([63]));
    assert!(floats(&map["data"]).iter().all(|p| (0.0..=1.0).contains(p)));
    ask(engine, "train.rate", json!({"run": run, "rate": 0.001}));
    assert!(fails(engine, "train.rate", json!({"run": run, "rate": -1.0}))["message"].is_string());
    ask(engine, "train.stop", json!({"run": run}));
    fails(engine, "train.step", json!({"run": run}));
}

/// Tensors of another program, with names and a line for what their user named.
#[test]
fn captured_tensors_are_walked_back() {
    let w = Tensor::from([2.0, -1.0]).parameter();
    let x = Tensor::from([3.0, 5.0]);
    let y = &w * &x;
    let loss = (y.tanh() * 2.0).sum_all();
    let named = vec![
        (w.clone(), "w".to_string(), 1),
        (y.clone(), "y".to_string(), 3),
        (loss.clone(), "loss".to_string(), 4),
    ];
    let lines = ["w = ...", "x = ...", "y = w * x", "loss = (y.tanh() * 2).sum()"];
    let lines = lines.map(str::to_string).to_vec();
    let captured = Some(Captured { named, lines, ..Captured::of(loss) });
    let given = Given { title: "model.py".into(), captured, ..Given::default() };
    let engine = &mut Engine::closed(vec![given]);
    let opened = ask(engine, "open", json!({"given": 0}));
    assert_eq!(opened["sources"][0]["lines"][2], "y = w * x");
    let nodes = opened["nodes"].as_array().unwrap();
    let node = |name: &str| nodes.iter().find(|n| n["name"] == name).unwrap();
    assert_eq!(node("y")["source"]["line"], 3);
    let tanh = nodes.iter().find(|n| n["op"] == "tanh").unwrap();
    assert_eq!(tanh["source"]["line"], 4, "what has no name belongs to the line that uses it");
    let steps = ask(engine, "backward", json!({"session": opened["session"]}));
    let step = &steps["steps"][node("w")["backward"].as_u64().unwrap() as usize];
    // d/dw 2 tanh(w x) = 2 x (1 - tanh(w x)^2).
    for (found, (w, x)) in
        floats(&step["incoming"]["data"]).iter().zip([(2.0f64, 3.0), (-1.0, 5.0)])
    {
        let right = 2.0 * x * (1.0 - (w * x).tanh().powi(2));
        assert!((found - right).abs() <= 1e-12, "{found} {right}");
    }
    // The gradients of the user's tensors stay as they were.
    ask(engine, "program", json!({"given": 0, "timed": 0}));
    assert!(w.grad().is_none());
}

#[test]
fn films_end_at_the_known_formulas() {
    let engine = &mut Engine::default();
    let mut formulas = Vec::new();
    let mut film = |name: &str| {
        let film = ask(engine, "algebra", json!({"name": name}));
        formulas.push(film["formulas_tex"].clone());
        let lines = |of: &str| -> Vec<String> {
            let lines = film[of].as_array().unwrap().iter();
            lines.map(|line| line.as_str().unwrap().to_string()).collect()
        };
        assert_eq!(film["difference"]["parts"], false, "{name}");
        (lines("traced"), lines("result"))
    };
    // (p - y) / n, where the traced one walks back through all eleven steps.
    let (traced, result) = film("softmax-ce");
    assert!(traced.len() > 10, "{traced:?}");
    assert_eq!(result.len(), 3, "{result:?}");
    assert_eq!(result[1], "sub = probs - gather_grad");
    assert_eq!(result[2], "d_logits = sub * 0.03125");
    // Batch norm: the two sums of its formula are left of the three paths.
    let (traced, result) = film("batch-norm");
    let sums = |of: &[String]| of.iter().filter(|line| line.contains("= sum(")).count();
    assert!(sums(&traced) > 3, "{traced:?}");
    assert_eq!(sums(&result), 2, "{result:?}");
    assert!(result.last().unwrap().starts_with("d_x = "), "{result:?}");
    let known = "\\mathrm{d\\_logits} = \\frac{1}{32} \\cdot \\left(\\mathrm{probs} - \\operatorname{onehot}\\left(\\mathrm{labels}\\right)\\right)";
    assert_eq!(formulas[0], json!([known]));
}

/// Names of the user are text in a formula: none of them is a command of TeX.
#[test]
fn names_are_escaped_in_formulas() {
    let w = Tensor::from([2.0]).parameter();
    let y = (&w * 3.0).named("\\href{javascript:x}{y}");
    let captured = Some(Captured::of((&y * &y).sum_all()));
    let engine = &mut Engine::closed(vec![Given { captured, ..Given::default() }]);
    let opened = ask(engine, "open", json!({"given": 0}));
    let steps = ask(engine, "backward", json!({"session": opened["session"]})).to_string();
    assert!(steps.contains("textbackslash{}href"), "{steps}");
    let value: Value = serde_json::from_str(&steps).unwrap();
    for step in value["steps"].as_array().unwrap() {
        for of in ["rule_tex", "named_tex", "numbers_tex"] {
            assert!(!step[of].as_str().unwrap_or_default().contains("\\href"), "{step}");
        }
    }
}

/// Each kind of mistake that the page offers can be planted, and is the one that was asked for.
#[test]
fn a_mistake_of_choice_is_planted() {
    let engine = &mut Engine::default();
    let kinds = ask(engine, "mistakes", json!({"example": "linear"}));
    let kinds = kinds["mistakes"].as_array().unwrap().iter();
    let kinds: Vec<String> = kinds.map(|m| m["id"].as_str().unwrap().to_string()).collect();
    assert!(kinds.len() > 5, "{kinds:?}");
    let mut shown = Vec::new();
    for kind in &kinds {
        let args = json!({"example": "linear", "mistake": kind, "draw": 3});
        let request = json!({"id": 5, "call": "plant", "args": args}).to_string();
        let answer: Value = serde_json::from_str(&engine.request(&request)).unwrap();
        // One that changes nothing in this program is refused by its name.
        let Some(planted) = answer.get("ok") else {
            let why = answer["error"]["message"].as_str().unwrap();
            assert!(why.contains(kind.as_str()), "{why}");
            continue;
        };
        let told = ask(engine, "reveal", json!({"plant": planted["plant"]}));
        assert_eq!(told["id"], kind.as_str());
        let rows = planted["rows"].as_array().unwrap();
        assert!(rows.iter().any(|row| row["verdict"] == "wrong"), "{kind}");
        shown.push(kind.as_str());
    }
    assert!(
        shown.contains(&"clipped") || shown.iter().any(|kind| kind.contains("clip")),
        "{shown:?}"
    );
    fails(engine, "plant", json!({"example": "linear", "mistake": "none such"}));
}

/// A fork goes on as the run itself did, with the optimizer's own state: momentum and Adam have
/// more than the leaves.
#[test]
fn a_fork_keeps_the_state_of_the_optimizer() {
    let engine = &mut Engine::default();
    for optimizer in ["momentum", "adam", "adamw"] {
        let args = json!({"example": "moons", "optimizer": optimizer, "rate": 0.05});
        let run = ask(engine, "train.start", args)["run"].clone();
        losses(engine, &run, 7);
        let kept = ask(engine, "train.checkpoint", json!({"run": run}))["checkpoint"].clone();
        let right = losses(engine, &run, 9);
        let fork = json!({"run": run, "checkpoint": kept});
        let fork = ask(engine, "train.fork", fork)["run"].clone();
        assert_eq!(losses(engine, &fork, 9), right, "{optimizer}");
    }
}

fn losses(engine: &mut Engine, run: &Value, count: u64) -> Vec<f64> {
    let answer = ask(engine, "train.step", json!({"run": run, "count": count}));
    let events = answer["events"].as_array().unwrap().iter();
    events.map(|event| event["loss"].as_f64().unwrap()).collect()
}

/// The findings of a run are those of the monitor: a rate that is far too high is told, a good one
/// is not.
#[test]
fn the_monitor_finds_a_rate_that_is_too_high() {
    let engine = &mut Engine::default();
    let text = "X, y = moons(100)\nW = leaf(randn(2, 8))\nV = leaf(randn(8, 2))\n\
                loss = cross_entropy(tanh(X @ W) @ V, y)\n";
    for (rate, is_wrong) in [(0.1, false), (300.0, true)] {
        let args = json!({"source": text, "optimizer": "sgd", "rate": rate});
        let run = ask(engine, "train.start", args)["run"].clone();
        let answer = ask(engine, "train.step", json!({"run": run, "count": 150}));
        let events = answer["events"].as_array().unwrap().iter();
        let found: Vec<String> = events
            .flat_map(|event| event["findings"].as_array().unwrap())
            .map(|finding| finding["kind"].as_str().unwrap().to_string())
            .collect();
        assert_eq!(!found.is_empty(), is_wrong, "rate {rate}: {found:?}");
    }
}

#[test]
fn names_are_made_up_letter_by_letter() {
    let engine = &mut Engine::default();
    let text = "X, Y = names_batch(32)\nC = leaf(randn(27, 4))\nW = leaf(randn(12, 27) * 0.1)\n\
                logits = C[X].reshape(32, 12) @ W\nloss = cross_entropy(logits, Y)\n";
    let run = ask(engine, "train.start", json!({"source": text, "rate": 0.5}))["run"].clone();
    ask(engine, "train.step", json!({"run": run, "count": 30}));
    let names = ask(engine, "train.sample", json!({"run": run, "want": "logits"}));
    let names = names["names"].as_array().unwrap();
    assert_eq!(names.len(), 32);
    let is_name = |name: &Value| name.as_str().unwrap().chars().all(|c| c.is_ascii_lowercase());
    assert!(names.iter().all(is_name) && names.iter().any(|name| name != ""), "{names:?}");
    fails(engine, "train.sample", json!({"run": run, "want": "C"}));
    let none = ask(engine, "train.start", json!({"example": "linear"}))["run"].clone();
    fails(engine, "train.sample", json!({"run": none, "want": "loss"}));
}
