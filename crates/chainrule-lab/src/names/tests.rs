//! The exercises on random parameters and batches, in both dtypes; and that they can fail.

use super::*;
use chainrule_check::compare::Standing;
use chainrule_core::{DType, Generator, Tensor};

fn case(seed: u64, n: usize, dtype: DType) -> (Parameters, Batch) {
    let g = &mut Generator::manual_seed(seed);
    let parameters = Parameters::new(dtype, g).unwrap();
    (parameters, draw(n, g).unwrap())
}

fn draw(n: usize, g: &mut Generator) -> Result<Batch> {
    Batch::new(Tensor::randint(0, 27, [n, 3], g), Tensor::randint(0, 27, [n], g))
}

#[test]
fn the_model_has_the_size_of_the_lecture() {
    let (parameters, _) = case(1, 32, DType::F32);
    assert_eq!(parameters.list().iter().map(|(_, t)| t.numel()).sum::<usize>(), 4137);
}

#[test]
fn every_exercise_passes_at_any_seed_and_batch() {
    for seed in 0..12 {
        let n = [32, 2, 3, 17][seed as usize % 4];
        for dtype in [DType::F32, DType::F64] {
            let (parameters, batch) = case(seed, n, dtype);
            let first = exercise_1(&parameters, &batch).unwrap();
            assert_eq!(first.rows.len(), 26);
            let mut reports = vec![&first];
            let (second, third) = (
                exercise_2(&parameters, &batch).unwrap(),
                exercise_3(&parameters, &batch).unwrap(),
            );
            reports.push(&second);
            // With two or three examples nearly all of the gradient cancels in batch norm, and f32
            // has little left of it.
            if n > 3 || dtype == DType::F64 {
                reports.push(&third);
            }
            for report in reports {
                assert!(report.passed(), "seed {seed}, {dtype}\n{report}");
                let worst = report.rows.iter().map(|r| r.outcome.as_ref().unwrap().largest);
                let bound = if dtype == DType::F64 { 1e-12 } else { 1e-4 };
                assert!(worst.fold(0.0, f64::max) < bound, "seed {seed}, {dtype}\n{report}");
            }
        }
    }
}

#[test]
fn a_mistake_in_any_step_is_found_there_and_nowhere_else() {
    let (parameters, batch) = case(3, 32, DType::F64);
    let pass = forward(&parameters, &batch).unwrap();
    let right = backward(&parameters, &pass, &batch);
    for i in 0..right.len() {
        let mut claims = right.clone();
        let name = claims[i].0;
        // An element of its own, since the gradients of logit_maxes and b1 are 0 but for rounding.
        claims[i].1 = &claims[i].1 * 1.5 + 1e-3;
        let report = compare(&pass.loss, &claims).unwrap();
        let mistakes: Vec<&str> = report.mistakes().map(|row| row.name.as_str()).collect();
        assert!(mistakes.contains(&name), "{name}: {report}");
        assert_eq!(report.first_wrong().unwrap().name, name);
        assert_eq!(report.rows.iter().filter(|row| row.is_wrong()).count(), 1);
    }
}

#[test]
fn what_follows_from_a_mistake_is_marked_so() {
    let (parameters, batch) = case(4, 32, DType::F32);
    let pass = forward(&parameters, &batch).unwrap();
    // The classic one: n for n - 1 in the gradient of the variance.
    let right = backward(&parameters, &pass, &batch);
    let at = |name: &str| right.iter().position(|(n, _)| *n == name).unwrap();
    let mut claims = right.clone();
    claims[at("bndiff2")].1 = &right[at("bndiff2")].1 * (31.0 / 32.0);
    let d = &right[at("bndiff")].1
        - 2.0 * pass.bndiff.detach() * (&right[at("bndiff2")].1 - &claims[at("bndiff2")].1);
    claims[at("bndiff")].1 = d.clone();
    claims[at("bnmeani")].1 = -d.sum(0, true);
    let dhprebn = &d - d.sum(0, true) / 32.0;
    let rest = backward::hidden_layer(&parameters, &pass, &batch, &dhprebn);
    claims.truncate(at("hprebn"));
    claims.push(("hprebn", dhprebn));
    claims.extend(no_grad(|| rest));
    let report = compare(&pass.loss, claims.iter().map(|(n, g)| (*n, g.detach()))).unwrap();
    let mistakes: Vec<&str> = report.mistakes().map(|row| row.name.as_str()).collect();
    assert_eq!(mistakes, ["bndiff2"], "{report}");
    let of = Standing::Consequence(vec!["bndiff2".into()]);
    for name in ["bndiff", "hprebn", "W1", "embcat", "emb", "C"] {
        assert_eq!(report.row(name).unwrap().standing, of, "{name}\n{report}");
    }
    assert!(!report.row("h").unwrap().is_wrong());
}

#[test]
fn training_by_hand_goes_as_with_autograd() {
    let g = &mut Generator::manual_seed(9);
    let parameters = Parameters::new(DType::F64, g).unwrap();
    let before = parameters.w1.to_f64_vec();
    let run = train(&parameters, 0.1, (0..40).map(|_| draw(32, g))).unwrap();
    assert_eq!((run.by_hand.len(), run.autograd.len()), (40, 40));
    assert!(run.losses_apart < 1e-12 && run.parameters_apart < 1e-12, "{run:?}");
    assert!(run.by_hand[0] != run.by_hand[1] && parameters.w1.to_f64_vec() == before);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let (parameters, batch) = case(5, 4, DType::F32);
    let zeros = |shape: &[usize]| Tensor::full(shape, 0.0, DType::I64);
    assert!(Batch::new(zeros(&[1, 3]), zeros(&[1])).is_err());
    assert!(Batch::new(zeros(&[4, 3]), zeros(&[3])).is_err());
    assert!(Batch::new(zeros(&[4]), zeros(&[4])).is_err());
    assert!(Batch::new(Tensor::zeros([4, 3]), zeros(&[4])).is_err());
    let narrow = Batch::new(zeros(&[4, 2]), zeros(&[4])).unwrap();
    assert!(forward(&parameters, &narrow).is_err());
    let beyond = Batch::new(zeros(&[4, 3]), Tensor::full([4], 27.0, DType::I64)).unwrap();
    assert!(forward(&parameters, &beyond).is_err());
    let other = Parameters { b2: Tensor::zeros([26]), ..parameters };
    assert!(forward(&other, &batch).is_err());
}
