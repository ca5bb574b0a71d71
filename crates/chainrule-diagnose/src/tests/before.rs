//! Checks before the first step, each on a model that has the mistake and on one that has not.

use chainrule_core::dtype::DType;
use chainrule_core::rng::Generator;
use chainrule_core::tensor::Tensor;
use chainrule_nn::nn::{Field, Layer, Linear, Module, Sequential};

use crate::cause::Cause;
use crate::{before, mixes_examples, sees_the_future};

/// A linear map whose answers take the batch's mean in, or not.
struct Mixed {
    linear: Linear,
    share: f32,
}

impl Module for Mixed {
    fn fields(&self) -> Vec<(String, Field<'_>)> {
        vec![("linear".to_string(), Field::Module(&self.linear))]
    }
}

impl Layer for Mixed {
    fn compute(&self, x: &Tensor) -> chainrule_core::error::Result<Tensor> {
        let out = self.linear.try_forward(x)?;
        out.try_add(&out.try_mean(0, true)?.try_mul(self.share)?)
    }
}

fn mixed(share: f32) -> Mixed {
    Mixed { linear: Linear::try_new(3, 2, &mut Generator::manual_seed(1)).unwrap(), share }
}

fn normal(shape: &[usize]) -> Tensor {
    let mut numbers = vec![0.0f32; shape.iter().product()];
    Generator::manual_seed(9).fill_normal_f32(&mut numbers);
    Tensor::try_from_slice(&numbers, shape).unwrap()
}

#[test]
fn answers_that_depend_on_other_examples_are_found() {
    let x = normal(&[8, 3]);
    let sign = mixes_examples(&mixed(0.5), &x).unwrap().unwrap();
    assert_eq!((sign.cause, sign.strength), (Cause::Architecture, 1.0));
    assert!(sign.text.contains("depends on another example"), "{}", sign.text);
    assert!(mixes_examples(&mixed(0.0), &x).unwrap().is_none());
    assert!(mixes_examples(&mixed(0.5), &normal(&[2, 3])).unwrap().is_none(), "too few rows");
}

#[test]
fn a_loss_that_is_not_the_mean_of_its_rows_is_found() {
    let (x, y) = (normal(&[8, 3]), normal(&[8, 2]));
    let loss_of = |share: f32, times: f32| {
        let net = mixed(share);
        let signs = before(&net, &x, &y, &|x, y| {
            let rows = x.shape()[0] as f32;
            net.try_forward(x)?.try_mse(y)?.try_mul(rows.powf(times))
        });
        signs.unwrap()
    };
    assert!(loss_of(0.0, 0.0).is_empty(), "{:?}", loss_of(0.0, 0.0));
    for (share, times, cause, words) in [
        (0.0, 1.0, Cause::LossReduction, "is the sum of their losses"),
        (0.0, -1.0, Cause::LossReduction, "divided by 6 once more"),
        (0.7, 0.0, Cause::Architecture, "depends on the others"),
    ] {
        let signs = loss_of(share, times);
        assert_eq!(signs[0].cause, cause, "{signs:?}");
        assert!(signs[0].text.contains(words), "{signs:?}");
    }
}

/// An answer at each place: the sum of the tokens up to some places after it.
struct Sums(usize);

impl Module for Sums {
    fn fields(&self) -> Vec<(String, Field<'_>)> {
        Vec::new()
    }
}

impl Layer for Sums {
    fn compute(&self, x: &Tensor) -> chainrule_core::error::Result<Tensor> {
        let [rows, places] = x.shape()[..] else { unreachable!("tokens") };
        let numbers = x.to_f64_vec();
        let at = |r: usize, p: usize| {
            numbers[r * places..r * places + (p + 1 + self.0).min(places)].iter().sum::<f64>()
                as f32
        };
        let out: Vec<f32> = (0..rows * places).map(|i| at(i / places, i % places)).collect();
        Tensor::try_from_slice(&out, [rows, places, 1])
    }
}

#[test]
fn answers_that_see_the_token_to_predict_are_found() {
    let tokens: Vec<i64> = (0..24).map(|i| i * i % 7).collect();
    let tokens = Tensor::try_from_slice(&tokens, [4, 6]).unwrap();
    assert_eq!(tokens.dtype(), DType::I64);
    assert!(sees_the_future(&Sums(0), &tokens).unwrap().is_none());
    for ahead in [1, 3] {
        let sign = sees_the_future(&Sums(ahead), &tokens).unwrap().unwrap();
        assert!(sign.text.contains("causal mask"), "{}", sign.text);
        assert_eq!(sign.strength, 1.0);
    }
}

#[test]
fn weights_and_data_that_cannot_be_learned_from_are_found() {
    let net = mixed(0.0);
    let loss = |net: &Mixed, x: &Tensor, y: &Tensor| net.try_forward(x)?.try_mse(y);
    let look = |x: &Tensor, y: &Tensor| before(&net, x, y, &|x, y| loss(&net, x, y)).unwrap();
    let (x, y) = (normal(&[16, 3]), normal(&[16, 2]));
    assert!(look(&x, &y).is_empty());
    let equal = Tensor::try_from_slice(&[0.5f32; 32], [16, 2]).unwrap();
    assert_eq!(look(&x, &equal)[0].cause, Cause::Labels);
    let large = x.try_mul(5000.0f32).unwrap();
    assert!(look(&large, &y).iter().any(|s| s.cause == Cause::InputScale));
    let g = &mut Generator::manual_seed(2);
    let deep = Sequential::new().with(Linear::new(3, 4, g)).with(Linear::new(4, 2, g));
    let equal = |of: &str| {
        let mut state = deep.state_dict();
        let flat = vec![0.25f32; state[of].numel()];
        let same = Tensor::try_from_slice(&flat, state[of].shape()).unwrap();
        let before_it = state.insert(of.to_string(), same).unwrap();
        deep.load_state_dict(&state).unwrap();
        let signs = before(&deep, &x, &y, &|x, y| deep.try_forward(x)?.try_mse(y)).unwrap();
        state.insert(of.to_string(), before_it);
        deep.load_state_dict(&state).unwrap();
        signs
    };
    let signs = equal("0.weight");
    assert_eq!(signs[0].cause, Cause::InitConstant, "{signs:?}");
    assert!(equal("1.weight").is_empty(), "a last layer may begin equal");
    let classes = Tensor::try_from_slice(&[0i64, 1, 0, 1], [4]).unwrap();
    let far = normal(&[4, 3]).try_mul(900.0f32).unwrap();
    let wide = mixed(0.0);
    let signs = before(&wide, &far, &classes, &|x, y| wide.try_forward(x)?.try_cross_entropy(y));
    assert!(signs.unwrap().iter().any(|s| s.text.contains("that of a guess")));
}
