//! The JSON that other programs read: parsed from its text, and held against the numbers.

use chainrule::check::compare::compare;
use chainrule::program::Program;
use chainrule::{Tensor, check, json};
use serde_json::Value;

/// As another program gets it.
fn parsed(value: &Value) -> Value {
    serde_json::from_str(&value.to_string()).unwrap()
}

fn floats(of: &Value) -> Vec<f64> {
    of["data"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// `loss = sum(tanh(x @ w)²)`, and `x`, `w`, `h`.
fn computation() -> (Tensor, [Tensor; 3]) {
    let x = Tensor::from([[1.0f64, 2.0], [-0.7, 0.4]]).named("x");
    let w = Tensor::from([[0.5f64], [-1.0]]).parameter().named("w");
    let h = x.matmul(&w).tanh().named("h");
    let loss = (&h * &h).sum_all().named("loss");
    (loss, [x, w, h])
}

#[test]
fn a_trace_has_the_gradients_that_backward_gives() {
    let (loss, [_, w, h]) = computation();
    let trace = parsed(&json::trace(&loss.trace()));
    let steps = trace["steps"].as_array().unwrap();
    assert_eq!((&steps[0]["tensor"], &steps[0]["op"]), (&"loss".into(), &"sum".into()));
    assert_eq!(floats(&steps[0]["gradient"]), [1.0]);
    let of = |name: &str| steps.iter().find(|step| step["tensor"] == name).unwrap();
    let at_h = of("h");
    assert_eq!(at_h["op"], "tanh");
    assert!(at_h["rule"].as_str().unwrap().contains('g'), "{at_h}");
    assert!(at_h["location"]["file"].as_str().unwrap().ends_with("json.rs"));
    assert!(at_h["location"]["line"].as_u64().unwrap() > 0);
    // Both operands of the product send a part; their sum is the gradient 2 h.
    let received = at_h["received"].as_array().unwrap();
    assert_eq!(received.iter().map(|p| p["position"].as_u64().unwrap()).sum::<u64>(), 1);
    let sum: Vec<f64> = floats(&received[0]["gradient"])
        .iter()
        .zip(floats(&received[1]["gradient"]))
        .map(|(a, b)| a + b)
        .collect();
    let due: Vec<f64> = h.to_f64_vec().iter().map(|h| 2.0 * h).collect();
    for ((sum, found), due) in sum.iter().zip(floats(&at_h["gradient"])).zip(due) {
        let slack = 4.0 * f64::EPSILON * due.abs();
        assert!((sum - due).abs() <= slack && (found - due).abs() <= slack, "{sum} {found} {due}");
    }
    let at_w = of("w").clone();
    assert_eq!((&at_w["op"], &at_w["rule"]), (&Value::Null, &Value::Null));
    loss.backward();
    // Reading a number from text may change its last bit.
    for (found, due) in floats(&at_w["gradient"]).iter().zip(w.grad().unwrap().to_f64_vec()) {
        assert!((found - due).abs() <= 4.0 * f64::EPSILON * due.abs(), "{found} {due}");
    }
    assert_eq!(at_w["shape"], serde_json::json!([2, 1]));
}

#[test]
fn a_graph_names_its_inputs_by_their_places() {
    let (loss, _) = computation();
    let graph = parsed(&json::graph(&loss.graph()));
    let tensors = graph["tensors"].as_array().unwrap();
    assert_eq!((&tensors[0]["name"], &graph["left_out"]), (&"loss".into(), &0.into()));
    let named = |name: &str| tensors.iter().position(|t| t["name"] == name).unwrap();
    let product = &tensors[named("h")]["inputs"][0];
    let product = &tensors[product.as_u64().unwrap() as usize];
    assert_eq!(product["op"], "matmul");
    let [x, w] = [0, 1].map(|i| product["inputs"][i].as_u64().unwrap() as usize);
    assert_eq!(w, named("w"));
    assert_eq!(
        (&tensors[w]["requires_grad"], &tensors[x]["requires_grad"]),
        (&true.into(), &false.into())
    );
    // The tape has what the product saved of a constant.
    assert_eq!(floats(&tensors[x]["value"]), [1.0, 2.0, -0.7, 0.4]);
}

#[test]
fn contributions_sum_to_the_gradient() {
    let x = Tensor::scalar(3.0f64).parameter();
    let loss = &x * &x + &x;
    let parts = parsed(&json::contributions(&loss.contributions(&x).unwrap()));
    let parts = parts.as_array().unwrap();
    let ops: Vec<&str> = parts.iter().map(|part| part["op"].as_str().unwrap()).collect();
    assert_eq!(ops, ["add", "mul", "mul"]);
    assert_eq!(parts.iter().map(|part| floats(&part["gradient"])[0]).sum::<f64>(), 7.0);
}

#[test]
fn a_verdict_names_line_mistake_and_correction() {
    let (loss, [x, w, h]) = computation();
    // The slope of tanh is 1 - h², not 1 - h.
    let dh = 2.0 * &h.detach();
    let wrong = x.t().matmul(&(&dh * (1.0 - &h.detach())));
    let verdict = parsed(&json::verdict(&check::verdict(&loss, &[(&w, &wrong)]).unwrap()));
    assert_eq!((&verdict["right"], &verdict["harmless"]), (&false.into(), &false.into()));
    let row = &verdict["wrong"][0];
    let at = row["index"][0].as_u64().unwrap() as usize;
    let given = row["given"].as_f64().unwrap();
    assert!((given - wrong.to_f64_vec()[at]).abs() <= 4.0 * f64::EPSILON * given.abs());
    let found = &verdict["diagnoses"][0];
    assert_eq!((&found["op"], &found["tensor"]), (&"tanh".into(), &"h".into()));
    assert!(found["place"]["file"].as_str().unwrap().ends_with("json.rs"));
    assert!(!found["fix"].as_str().unwrap().is_empty());
    let comparison = compare(&loss, &[("h", dh.clone()), ("w", wrong)]).unwrap();
    let comparison = parsed(&json::comparison(&comparison));
    assert_eq!(comparison["passed"], false);
    let rows = comparison["rows"].as_array().unwrap();
    let standing = |name: &str| &rows.iter().find(|r| r["name"] == name).unwrap()["standing"];
    assert_eq!((standing("h"), standing("w")), (&"right".into(), &"first".into()));
    let right = parsed(&json::verdict(&check::verdict(&loss, &[(&h, &dh)]).unwrap()));
    assert_eq!((&right["right"], &right["wrong"]), (&true.into(), &serde_json::json!([])));
}

/// A product, element-wise ops that fuse, and another product that reads both.
fn traced() -> (Program, Tensor) {
    let x = Tensor::ones([48, 48]);
    let program = Program::trace([("x", &x)], |a| {
        let y = a[0].matmul(&a[0]).named("y");
        let z = (&y * 0.01).tanh().exp().named("z");
        Ok(vec![z.matmul(&y).named("out")])
    });
    (program.unwrap(), x)
}

#[test]
fn a_program_has_its_lines_and_their_costs() {
    let (program, _) = traced();
    let data = parsed(&json::program(&program));
    let lines = data["lines"].as_array().unwrap();
    assert_eq!(data["cost"]["instructions"].as_u64().unwrap() as usize, lines.len());
    assert_eq!(data["outputs"], serde_json::json!(["out"]));
    assert_eq!((&lines[0]["name"], &lines[0]["op"]), (&"y".into(), &"matmul".into()));
    assert_eq!(lines[0]["inputs"], serde_json::json!(["x", "x"]));
    assert_eq!(lines[0]["shape"], serde_json::json!([48, 48]));
    assert!(lines[0]["place"]["file"].as_str().unwrap().ends_with("json.rs"));
    // Two products of 48³ multiplications and additions.
    assert!(data["cost"]["flops"].as_u64().unwrap() >= 2 * 2 * 48 * 48 * 48);
}

/// Each block is kept as long as the listing reads it, apart from all that live at the same time.
#[test]
fn the_map_of_the_arena_keeps_what_is_read() {
    for name in ["names", "batch-norm", "softmax-ce", "layer-norm"] {
        let program = chainrule_lab::formulas::formula(name).unwrap().trace().unwrap();
        let fused = program.simplified().unwrap().program.fused();
        let map = parsed(&json::arena(&fused));
        let number = |block: &Value, of: &str| block[of].as_u64().unwrap() as usize;
        let blocks = map["blocks"].as_array().unwrap();
        let lines: Vec<_> = fused.lines().collect();
        let mut most = 0;
        for (i, block) in blocks.iter().enumerate() {
            let (from, to) = (number(block, "from"), number(block, "to"));
            let end = number(block, "offset") + number(block, "bytes");
            assert!(from <= to && to < lines.len(), "{name}: {block}");
            most = most.max(end);
            let made = lines.iter().position(|line| line.name() == block["name"]);
            if let Some(made) = made {
                let bytes = lines[made].shape().numel() * lines[made].dtype().size();
                assert!(number(block, "bytes") >= bytes, "{name}: {block}");
                let wanted = block["name"].as_str().unwrap().to_owned();
                let reads = |line: &chainrule::program::Line<'_>| line.inputs().contains(&wanted);
                let last = lines.iter().rposition(reads).unwrap_or(made);
                assert!(from <= made && last <= to, "{name}: {block} is read in line {last}");
            }
            for other in &blocks[i + 1..] {
                let together = from <= number(other, "to") && number(other, "from") <= to;
                let apart = end <= number(other, "offset")
                    || number(other, "offset") + number(other, "bytes") <= number(block, "offset");
                assert!(!together || apart, "{name}: {block} and {other}");
            }
        }
        assert_eq!(most, number(&map, "planned"), "{name}");
    }
}

#[test]
fn each_line_that_runs_is_timed_once() {
    let (program, x) = traced();
    // A clock that rises by 1 each time: a part takes 1.
    let mut now = 0.0;
    let mut clock = || {
        now += 1.0;
        now
    };
    let times = program.time_lines(&[&x], 4, &mut clock).unwrap();
    assert_eq!(times.len(), program.len());
    assert!(times.iter().enumerate().all(|(i, t)| t.lines == [i] && t.time == 1.0), "{times:?}");
    let fused = program.fused();
    let times = fused.time_lines(&[&x], 4, &mut clock).unwrap();
    let mut lines: Vec<usize> = times.iter().flat_map(|t| t.lines.clone()).collect();
    lines.sort_unstable();
    assert_eq!(lines, (0..fused.len()).collect::<Vec<_>>());
    assert!(times.len() < fused.len() && times.iter().all(|t| t.time == 1.0), "{fused}{times:?}");
    // Real time: the parts make up most of a run.
    let start = std::time::Instant::now();
    let mut clock = || start.elapsed().as_secs_f64();
    let whole = program.time_lines(&[&x], 20, &mut clock).unwrap();
    let parts: f64 = whole.iter().map(|t| t.time).sum();
    assert!(parts > 0.0 && parts <= start.elapsed().as_secs_f64() / 20.0);
}

#[test]
fn numbers_that_json_cannot_write_are_words() {
    let t = Tensor::from([1.5f64, f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
    let data = parsed(&json::tensor(&t));
    assert_eq!(data["data"], serde_json::json!([1.5, "nan", "inf", "-inf"]));
    let large = parsed(&json::tensor(&Tensor::zeros([json::INLINE + 1])));
    assert_eq!(
        large,
        serde_json::json!({"shape": [json::INLINE + 1], "dtype": "f32", "data": null})
    );
}
