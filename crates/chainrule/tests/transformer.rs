//! Promises of a transformer: it does not see the future, starts at chance, learns, and switches
//! dropout off for evaluation.

use chainrule::nn::{Layer, Module, summary};
use chainrule::optim::{AdamW, Optimizer};
use chainrule::{Generator, Tensor};
use chainrule_lab::models::{Gpt, GptConfig};

const CONFIG: GptConfig =
    GptConfig { symbols: 7, context: 12, layers: 2, heads: 2, width: 32, dropout: 0.0 };

fn gpt(dropout: f64) -> Gpt {
    Gpt::new(GptConfig { dropout, ..CONFIG }, &mut Generator::manual_seed(4))
}

#[test]
fn later_symbols_do_not_change_earlier_logits() {
    let model = gpt(0.0);
    let a = model.forward(&Tensor::from([[1i64, 2, 3, 4, 5]])).to_vec::<f32>();
    let b = model.forward(&Tensor::from([[1i64, 2, 3, 6, 0]])).to_vec::<f32>();
    assert_eq!(a[..21], b[..21]);
    assert_ne!(a[21..], b[21..]);
}

#[test]
fn it_starts_at_chance_and_learns_to_count() {
    let model = gpt(0.0);
    let mut adamw = AdamW::new(model.parameters(), 3e-3);
    let row = |start: i64| (0..13).map(move |i| (start + i) % 7).collect::<Vec<i64>>();
    let rows: Vec<i64> = (0..7).flat_map(row).collect();
    let all = Tensor::from_slice(&rows, [7, 13]);
    let (x, y) = (all.narrow(1, 0, 12), all.narrow(1, 1, 12));
    let loss = || model.forward(&x).reshape([-1, 7]).cross_entropy(&y.flatten(0, -1));
    // After the last norm a vector has length sqrt(32), so logits start with a spread of 0.02 *
    // sqrt(32) = 0.11: that adds half its square to the loss of chance, 0.006, and the mean over 7
    // symbols moves by about 0.11 / sqrt(7) = 0.04.
    let above_chance = loss().item() - 7f64.ln();
    assert!(above_chance.abs() < 0.05, "{above_chance}");
    for _ in 0..60 {
        adamw.zero_grad();
        loss().backward();
        adamw.step().unwrap();
    }
    assert!(loss().item() < 0.1, "{}", loss().item());
}

#[test]
fn dropout_acts_in_training_only() {
    let (model, x) = (gpt(0.5), Tensor::from([[1i64, 2, 3]]));
    let run = || model.forward(&x).to_vec::<f32>();
    assert_ne!(run(), run());
    model.eval();
    assert_eq!(run(), run());
    model.train();
    assert_ne!(run(), run());
}

#[test]
fn the_parts_have_names_and_shapes() {
    let model = gpt(0.0);
    let qkv = model.get("blocks.1.attention.qkv.weight").unwrap();
    assert_eq!(qkv.shape(), [96, 32]);
    let table = summary(&model, &Tensor::from([[1i64, 2, 3], [4, 5, 6]])).unwrap();
    let row = table.rows.iter().find(|r| r.name == "blocks.0.expand").unwrap();
    assert_eq!((row.kind, row.output.unwrap().to_vec()), ("Linear", vec![2, 3, 128]));
}

#[test]
fn what_does_not_fit_is_an_error() {
    let g = &mut Generator::manual_seed(0);
    let odd = GptConfig { heads: 3, ..CONFIG };
    assert!(Gpt::try_new(odd, g).unwrap_err().to_string().contains("3 heads"));
    assert!(Gpt::try_new(GptConfig { dropout: 1.5, ..CONFIG }, g).is_err());
    assert!(Gpt::try_new(GptConfig { layers: 0, ..CONFIG }, g).is_err());
    let long = Tensor::from_slice(&[0i64; 13], [1, 13]);
    assert!(gpt(0.0).try_forward(&long).unwrap_err().to_string().contains("at most 12"));
    assert!(gpt(0.0).try_forward(&Tensor::from([[9i64]])).is_err());
}
