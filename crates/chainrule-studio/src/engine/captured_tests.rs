//! Computations of other programs: as programs, and beside a backward pass by hand.

use chainrule::autograd::{CustomContext, CustomOp, apply_custom};
use chainrule::{DType, Generator, Result, Tensor, record_all};
use serde_json::{Value, json};

use super::replay::Replay;
use super::session::Session;
use super::tests::{ask, fails};
use super::{Captured, Engine, Given};

/// A loss with the names of its tensors.
struct Computation {
    named: Vec<(Tensor, String, usize)>,
    loss: Tensor,
}

impl Computation {
    fn captured(&self) -> Captured {
        Captured { named: self.named.clone(), ..Captured::of(self.loss.clone()) }
    }

    fn engine(&self) -> Engine {
        let captured = self.captured();
        captured.walk().unwrap();
        let captured = Some(captured);
        Engine::closed(vec![Given { title: "model.py".into(), captured, ..Given::default() }])
    }
}

fn two_layers() -> Computation {
    let g = &mut Generator::manual_seed(3);
    let draw = |shape: [usize; 2], g: &mut Generator| Tensor::randn(shape, DType::F64, g);
    let (x, y) = (draw([5, 3], g), draw([5, 2], g));
    let (w1, w2) = (draw([3, 4], g).parameter(), draw([4, 2], g).parameter());
    let b1 = draw([1, 4], g).parameter();
    let h = (x.matmul(&w1) + &b1).tanh();
    let p = h.matmul(&w2);
    let apart = &p - &y;
    let loss = (&apart * &apart).mean_all();
    let all = [
        (&x, "x"),
        (&y, "y"),
        (&w1, "layers[0].weight"),
        (&b1, "b1"),
        (&w2, "w2"),
        (&h, "h"),
        (&p, "p"),
        (&apart, "apart"),
        (&loss, "loss"),
    ];
    let named = all.into_iter().enumerate();
    let named = named.map(|(i, (t, name))| (t.clone(), name.to_owned(), i + 1)).collect();
    Computation { named, loss }
}

#[test]
fn a_captured_computation_is_a_program() {
    let of = two_layers();
    let engine = &mut of.engine();
    let program = ask(engine, "program", json!({"given": 0, "timed": 0}));
    assert_eq!((&program["title"], &program["unknown"]), (&json!("model.py"), &json!([])));
    let lines = program["before"]["lines"].as_array().unwrap();
    let h = lines.iter().find(|line| line["name"] == "h").unwrap();
    assert_eq!((&h["op"], &h["place"]), (&json!("tanh"), &json!({"file": "model.py", "line": 6})));
    assert!(!program.to_string().contains("replay.rs"));
    assert!(lines.iter().any(|line| line["phase"] == "backward"));
    assert_eq!(program["fused"]["difference"]["parts"], false, "{program}");
    let film = ask(engine, "algebra", json!({"given": 0}));
    assert!(!film["frames"].as_array().unwrap().is_empty());
    assert_eq!(film["difference"]["parts"], false, "{film}");
}

/// The copy has the gradients of the moment of its capture, whatever becomes of the leaves.
#[test]
fn a_replay_has_the_gradients_of_its_capture() {
    let of = two_layers();
    let captured = of.captured();
    captured.walk().unwrap();
    of.loss.backward();
    let session = Session::captured(&captured).unwrap();
    let replay = Replay::of(&session, "model.py").unwrap();
    assert!(replay.unknown.is_empty(), "{:?}", replay.unknown);
    let root = replay.run(&[]).unwrap();
    assert!((root.item() - of.loss.item()).abs() <= 1e-15 * of.loss.item().abs());
    root.backward();
    assert_eq!(replay.leaves.len(), 3);
    for (place, leaf) in &replay.leaves {
        let own = of.named.iter().find(|(_, name, _)| *name == session.label(*place)).unwrap();
        let (found, due) = (leaf.grad().unwrap(), own.0.grad().unwrap());
        for (found, due) in found.to_f64_vec().iter().zip(due.to_f64_vec()) {
            assert!((found - due).abs() <= 1e-14 * due.abs().max(1e-3), "{found} {due}");
        }
    }
}

/// A film writes fused ops out in the small steps of their definitions, and simplifies those.
#[test]
fn the_film_of_a_fused_op_ends_at_its_formula() {
    let x = Tensor::randn([4, 3], DType::F64, &mut Generator::manual_seed(5)).parameter();
    let loss = x.cross_entropy(&Tensor::from([0i64, 2, 1, 1]));
    let named = vec![(x, "logits".to_owned(), 1), (loss.clone(), "loss".to_owned(), 2)];
    let engine = &mut Computation { named, loss }.engine();
    let film = ask(engine, "algebra", json!({"given": 0}));
    let count = |part: &str| film[part].as_array().unwrap().len();
    assert!(count("frames") > 0 && 2 * count("result") < count("traced"), "{film}");
    assert_eq!(film["difference"]["parts"], false, "{film}");
    let program = ask(engine, "program", json!({"given": 0, "timed": 0}));
    let lines = program["before"]["lines"].as_array().unwrap();
    assert!(lines.iter().any(|line| line["op"] == "cross_entropy"));
    // Parameters are those of the op, not of the structs that hold them.
    let code = lines.iter().map(|line| line["code"].as_str().unwrap()).collect::<String>();
    assert!(code.contains("label_smoothing=0") && !code.contains('{'), "{code}");
}

#[test]
fn code_typed_in_the_page_is_judged_by_the_tape() {
    let of = two_layers();
    let engine = &mut of.engine();
    // The page's engine runs the code, on copies.
    let page = &mut Engine::default();
    let values = ask(engine, "values", json!({"given": 0}));
    assert_eq!(values["values"]["y"]["shape"], json!([5, 2]));
    let held = ask(page, "hold", values)["held"].clone();
    let right = "dapart = 2 * apart / 10\ndp = dapart\ndh = dp @ w2.T\ndw2 = h.T @ dp\n\
                 da = dh * (1 - h * h)\ndb1 = da.sum(0, keepdims=True)\n\
                 dlayers_0_weight = x.T @ da\n";
    let mut judge = |code: &str| {
        let written = ask(page, "written", json!({"held": held, "backward": code}));
        let claims = json!({"given": 0, "claims": written["claims"]});
        (written.clone(), ask(engine, "claims", claims))
    };
    let (written, answer) = judge(right);
    assert_eq!((&written["error"], &answer["all"]), (&Value::Null, &json!(true)), "{answer}");
    assert_eq!(written["lines"]["layers_0_weight"], 7);
    assert_eq!(answer["rows"].as_array().unwrap().len(), 6);
    // The slope of tanh is wrong: the first wrong row is named, with its mistake.
    let (_, answer) = judge(&right.replace("1 - h * h", "1 - h"));
    let row = |name: &str| {
        let rows = answer["rows"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap()["verdict"].clone()
    };
    assert!(["exact", "approximate"].contains(&row("h").as_str().unwrap()));
    assert_eq!(row("b1"), "wrong");
    assert!(["b1", "layers_0_weight"].contains(&answer["finding"]["name"].as_str().unwrap()));
    assert!(!answer["finding"]["mistake"].as_str().unwrap().is_empty());
    // Code that fails keeps what it computed before.
    let (written, answer) = judge("dapart = 2 * apart / 10\ndp = nothing");
    assert_eq!(
        (written["error"]["line"].as_u64(), answer["all"].as_bool()),
        (Some(2), Some(false))
    );
}

#[test]
fn gradients_of_the_users_own_code_are_judged() {
    let of = two_layers();
    let captured = of.captured();
    captured.walk().unwrap();
    let by_hand = captured.by_hand.clone();
    let captured = Some(captured);
    let engine = &mut Engine::closed(vec![Given { captured, ..Given::default() }]);
    assert_eq!(ask(engine, "own", json!({"given": 0}))["rows"], json!([]));
    of.loss.backward();
    let find = |name: &str| of.named.iter().find(|(_, known, _)| known == name).unwrap().0.clone();
    let right = find("w2").grad().unwrap();
    by_hand
        .set(vec![("w2".into(), right.clone(), 11), ("b1".into(), find("b1").grad().unwrap(), 12)]);
    let answer = ask(engine, "own", json!({"given": 0}));
    let verdict = |answer: &Value, name: &str| {
        let rows = answer["rows"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap()["verdict"].clone()
    };
    assert_eq!((verdict(&answer, "w2"), verdict(&answer, "h")), (json!("exact"), json!("missing")));
    by_hand.set(vec![("w2".into(), &right * 2.0, 11)]);
    let answer = ask(engine, "own", json!({"given": 0}));
    assert_eq!((verdict(&answer, "w2"), &answer["finding"]["line"]), (json!("wrong"), &json!(11)));
}

#[test]
fn claims_are_numbers_and_nothing_else() {
    let engine = &mut two_layers().engine();
    for claims in [
        json!({"h": {"shape": [5, 4], "dtype": "f64", "data": ["1 + 1"]}}),
        json!({"h": {"shape": [5, 4], "dtype": "f64", "data": [1.0]}}),
        json!({"h": {"shape": [-5, 4], "dtype": "f64", "data": []}}),
        json!({"h": {"shape": [5, 4], "dtype": "object", "data": []}}),
        json!({"h": 3}),
        json!({"nothing": {"shape": [], "dtype": "f64", "data": [1.0]}}),
        json!("h = 1"),
    ] {
        fails(engine, "claims", json!({"given": 0, "claims": claims}));
    }
    let odd = json!({"h": {"shape": [2], "dtype": "f64", "data": ["nan", 1.0]}});
    let answer = ask(engine, "claims", json!({"given": 0, "claims": odd}));
    let rows = answer["rows"].as_array().unwrap();
    assert_eq!(rows.iter().find(|row| row["name"] == "h").unwrap()["verdict"], "shape");
    fails(engine, "written", json!({"held": 0, "backward": "dx = 1"}));
}

#[test]
fn constants_that_the_tape_does_not_keep_are_told() {
    // More numbers than those that the tape keeps to show them.
    let from: [f64; 9] = std::array::from_fn(|i| 0.25 * i as f64 - 1.0);
    let by: [f64; 9] = std::array::from_fn(|i| 1.0 - 0.125 * i as f64);
    let w = Tensor::from(from).parameter();
    let shifted = || (&w + Tensor::from(by)).tanh().sum_all();
    let of = |loss: Tensor| Computation { named: vec![(w.clone(), "w".into(), 1)], loss };
    let engine = &mut of(shifted()).engine();
    let program = ask(engine, "program", json!({"given": 0, "timed": 0}));
    assert_eq!(program["unknown"], json!(["a constant that `add` takes"]));
    let claims = json!({"w": {"shape": [9], "dtype": "f64", "data": vec![0.0; 9]}});
    let why = fails(engine, "claims", json!({"given": 0, "claims": claims}));
    assert!(why["message"].as_str().unwrap().contains("record_all"), "{why}");
    let engine = &mut of(record_all(shifted)).engine();
    assert_eq!(ask(engine, "program", json!({"given": 0, "timed": 0}))["unknown"], json!([]));
    let due: [f64; 9] = std::array::from_fn(|i| 1.0 - (from[i] + by[i]).tanh().powi(2));
    let claims = json!({"w": {"shape": [9], "dtype": "f64", "data": due}});
    let answer = ask(engine, "claims", json!({"given": 0, "claims": claims}));
    assert_eq!(answer["all"], true, "{answer}");
}

struct Doubled;

impl CustomOp for Doubled {
    fn name(&self) -> &str {
        "doubled"
    }

    fn forward(&self, inputs: &[Tensor]) -> Result<Tensor> {
        inputs[0].try_mul(2.0)
    }

    fn backward(&self, _: &CustomContext, g: &Tensor) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![Some(g.try_mul(2.0)?)])
    }
}

#[test]
fn what_cannot_be_run_again_is_told() {
    let w = Tensor::from([0.5, -1.5]).parameter();
    // A draw is an input of its op, so that it is no draw when it is run again.
    let dropped = w.dropout(0.5, true, &mut Generator::manual_seed(1)).sum_all();
    let of = Computation { named: Vec::new(), loss: dropped };
    ask(&mut of.engine(), "program", json!({"given": 0, "timed": 0}));
    let own = apply_custom(Doubled, &[&w]).unwrap().sum_all();
    let of = Computation { named: Vec::new(), loss: own };
    let why = fails(&mut of.engine(), "program", json!({"given": 0}));
    assert!(why["message"].as_str().unwrap().contains("your own code"), "{why}");
    let large = Tensor::zeros([700, 700]).parameter();
    let named = vec![(large.clone(), "large".to_owned(), 1)];
    let of = Computation { named, loss: large.sum_all() };
    let why = fails(&mut of.engine(), "values", json!({"given": 0}));
    assert!(why["message"].as_str().unwrap().contains("490000 elements"), "{why}");
}
