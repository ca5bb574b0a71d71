//! Verdicts on wrong gradients, and readings of numbers alone.

use super::*;
use crate::autograd::{custom, grad};
use crate::rng::Generator;
use chainrule_core::DType;

fn matrix() -> Tensor {
    Tensor::from([[1.0, -2.0, 4.0], [0.5, 3.0, -1.0], [2.5, -0.75, 6.0], [-3.5, 7.0, 0.25]])
}

fn read(right: &Tensor, wrong: &Tensor) -> Vec<Reading> {
    read_numbers(right, wrong).unwrap()
}

/// The meaning of the factor that is read.
fn factor(right: &Tensor, wrong: &Tensor) -> (f64, String) {
    match &read(right, wrong)[..] {
        [Reading::Factor { factor, meaning, .. }] => (*factor, meaning.clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn equal_gradients_show_nothing() {
    assert_eq!(read(&matrix(), &(matrix() * (1.0 + 1e-12))), []);
    assert_eq!(read(&Tensor::from([f64::NAN, 1.0]), &Tensor::from([f64::NAN, 1.0])), []);
}

#[test]
fn a_constant_ratio_and_what_it_means() {
    let right = matrix();
    for (by, words) in [
        (4.0, "4 is the size of axis 0: a division by it is missing"),
        (0.25, "4 is the size of axis 0: it is divided by once too often"),
        (12.0, "12 is the number of elements"),
        (4.0 / 3.0, "n - 1 was taken where n is due"),
        (0.75, "n was taken where n - 1 is due"),
        (-1.0, "the sign is wrong"),
        (2.0, "a factor 2 too many"),
        (0.5, "a factor 2 is lost"),
        (0.0, "nothing is passed on"),
    ] {
        let (factor, meaning) = factor(&right, &(&right * by));
        assert!(factor == by && meaning.contains(words), "{by}: {factor}, {meaning}");
    }
    let (found, meaning) = factor(&right, &(&right * 1.7));
    assert!((found - 1.7).abs() < 1e-12 && meaning.is_empty());
    let text = read(&right, &(&right * 1.7))[0].to_string();
    assert!(
        text.contains("at [3, 1] 11.9 is 17/10 times the right 7, and so everywhere"),
        "{text}"
    );
}

#[test]
fn the_ratio_follows_the_batch_size_or_not() {
    let mean = |power: i32| {
        move |n: usize| {
            let x = Tensor::ones([n]);
            Ok((&x / 8.0, &x / 8.0 * (n as f64).powi(power)))
        }
    };
    for power in [-1, 0, 1, 2] {
        let found = ratio_by_batch(mean(power), 4, 12).unwrap().unwrap();
        assert_eq!(found.power, Some(power), "{found:?}");
    }
    // A ratio that is not constant is none.
    let crooked = |n: usize| {
        Ok((
            Tensor::arange(1, n as i64).to_dtype(chainrule_core::DType::F64),
            Tensor::ones([n - 1]),
        ))
    };
    assert_eq!(ratio_by_batch(crooked, 4, 8).unwrap(), None);
    assert!(ratio_by_batch(mean(0), 4, 4).is_err() && ratio_by_batch(mean(0), 0, 4).is_err());
}

#[test]
fn signs_and_orders() {
    let right = matrix();
    assert_eq!(read(&right, &right.abs()), [Reading::Signs]);
    assert_eq!(read(&right, &right.t()), [Reading::Transposed]);
    let viewed = right.t().reshape([4, 3]);
    assert!(read(&right, &viewed).contains(&Reading::ReadInWrongOrder));
    assert!(read(&right, &right.flip(0)).contains(&Reading::Permuted));
    let square = matrix().narrow(0, 0, 3);
    assert!(read(&square, &square.t()).contains(&Reading::Transposed));
}

#[test]
fn a_slice_or_a_mean_where_a_sum_is_due() {
    let parts = matrix();
    let right = parts.sum(0, false);
    let (by, meaning) = factor(&right, &(&right / 4.0));
    assert!(by == 0.25 && !meaning.contains("axis 0 of"), "{meaning}");
    // The first slice has no pattern of its own: with the op known, the verdict names it.
    let x = matrix().parameter();
    let b = Tensor::from([0.5, -1.0, 2.0]).parameter().named("b");
    let y = &x + &b;
    let g = matrix() * 0.5;
    let slice = g.narrow(0, 0, 1).reshape([3]);
    let verdict = verdict_with(&y, &g, &[(&b, &slice)]).unwrap();
    let [only] = verdict.diagnoses() else { panic!("{verdict}") };
    assert_eq!((only.op(), only.mistake()), ("add", "slice where a sum is due"));
    let mean = g.mean(0, false);
    let verdict = verdict_with(&y, &g, &[(&b, &mean)]).unwrap();
    let [only] = verdict.diagnoses() else { panic!("{verdict}") };
    assert_eq!((only.mistake(), only.input()), ("mean where a sum is due", Some(1)));
    assert!(only.evidence().contains("how often input 1 was copied"), "{}", only.evidence());
}

#[test]
fn masks_and_leaks() {
    let right = matrix();
    let positive = right.gt(0.0);
    let masked = positive.where_(&right, right.zeros_like());
    let found = read(&right, &masked);
    assert!(matches!(found[0], Reading::Masked(share) if (share - 4.0 / 12.0).abs() < 1e-12));
    assert_eq!(read(&masked, &right)[0], Reading::Leaking);
    assert!(found[0].to_string().starts_with("33% of the elements"), "{}", found[0]);
    let clipped = right.clamp(-2.0, 2.0);
    assert!(read(&right, &clipped).contains(&Reading::Clipped(2.0)));
    let broken =
        positive.where_(&right, Tensor::full([4, 3], f64::NAN, chainrule_core::DType::F64));
    assert_eq!(read(&right, &broken), [Reading::NotFinite]);
}

#[test]
fn rows_and_columns() {
    let right = matrix();
    let keep = Tensor::from([[1.0], [0.0], [1.0], [0.0]]);
    assert!(read(&right, &(&right * &keep)).contains(&Reading::ZeroRows(vec![1, 3])));
    let by_row = Tensor::from([[1.0], [2.0], [3.0], [1.0]]);
    assert!(
        read(&right, &(&right * &by_row)).contains(&Reading::RowFactors(vec![1.0, 2.0, 3.0, 1.0]))
    );
    let by_column = Tensor::from([1.0, 2.0, 3.0]);
    assert!(
        read(&right, &(&right * &by_column)).contains(&Reading::ColumnFactors(vec![1.0, 2.0, 3.0]))
    );
    assert!(read(&right, &(&right + &by_row)).contains(&Reading::RowOffset));
    assert!(read(&right, &(&right + &by_column)).contains(&Reading::ColumnOffset));
    let centred = &right - right.mean(1, true);
    let found = read(&centred, &(&centred + &by_row));
    assert!(found.contains(&Reading::RowOffset), "{found:?}");
    assert!(found.iter().any(|r| matches!(r, Reading::RowsNotZero(s) if (s - 9.0).abs() < 1e-9)));
    let centred = &right - right.mean(0, true);
    let found = read(&centred, &(&centred + &by_column));
    let wrong = |r: &Reading| matches!(r, Reading::ColumnsNotZero(s) if (s - 12.0).abs() < 1e-9);
    assert!(found.iter().any(wrong), "{found:?}");
}

#[test]
fn shapes_that_a_sum_or_a_transpose_explains() {
    let right = Tensor::from([3.0, 5.0]);
    let parts = Tensor::from([[1.0, 2.0], [2.0, 3.0]]);
    assert_eq!(read(&right, &parts), [Reading::NotSummed]);
    assert!(read_numbers(&right, &(parts * 2.0)).is_err());
    assert!(read_numbers(&right, &Tensor::from([1.0, 2.0, 3.0])).is_err());
}

fn right_ones(loss: &Tensor, of: &[Tensor]) -> Vec<Tensor> {
    let of: Vec<&Tensor> = of.iter().collect();
    grad(loss, &of).unwrap().into_iter().map(Option::unwrap).collect()
}

/// A two-layer network with names, and its gradients.
fn network() -> (Tensor, Vec<Tensor>, Vec<Tensor>) {
    let x = Tensor::from([[0.3, 0.7, -0.1], [-0.2, 0.1, 0.4], [0.9, -0.4, 0.2], [0.1, 0.2, 1.1]]);
    let w = Tensor::from([[1.0, -2.0], [0.5, 3.0], [-0.7, 0.2]]).parameter().named("w");
    let b = Tensor::from([0.1, -0.3]).parameter().named("b");
    let pre = (x.matmul(&w) + &b).named("pre");
    let h = pre.tanh().named("h");
    let loss = h.square().mean_all();
    let all = vec![w, b, pre, h];
    let right = right_ones(&loss, &all);
    (loss, all, right)
}

#[test]
fn a_report_has_all_that_one_needs() {
    let (loss, all, _) = network();
    let [w, b, pre, h] = &all[..] else { unreachable!() };
    // By hand: 1 - h was taken for 1 - h^2.
    let value = h.detach();
    let dh = &value * 2.0 / 8.0;
    let dpre = &dh * (1.0 - &value);
    let db = dpre.sum(0, false);
    let verdict = verdict(&loss, &[(h, &dh), (pre, &dpre), (b, &db)]).unwrap();
    let [only] = verdict.diagnoses() else { panic!("{verdict}") };
    assert_eq!((only.op(), only.tensor(), only.mistake()), ("tanh", "h", "square forgotten"));
    let at = only.location().expect("an op has a place");
    assert!(at.file().ends_with("verdict/tests.rs"));
    assert!(only.formula().contains("g * (1 - tanh(x)^2), with g [4, 2], input 0 [4, 2]"));
    assert!(only.fix().contains("compute dx = g * (1 - tanh(x)^2)"), "{}", only.fix());
    // The evidence can be computed again.
    let wrong = &verdict.wrong()[0];
    assert_eq!((wrong.tensor(), verdict.wrong().len()), ("pre", 2));
    assert_eq!(wrong.given(), dpre.at::<f64>(wrong.index()));
    let text = verdict.to_string();
    for part in
        ["2 of 3 gradients are wrong, first that of `pre`", "in `tanh`", &at.line().to_string()]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!verdict.is_right() && !verdict.is_harmless());
    assert!(verdict.cost().replays > 0, "{w:?}");
}

#[test]
fn right_gradients_need_no_explanation() {
    let (loss, all, right) = network();
    let given: Vec<_> = all.iter().zip(&right).collect();
    let found = verdict(&loss, &given).unwrap();
    assert!(found.is_right() && found.diagnoses().is_empty() && !found.is_harmless());
    assert_eq!(found.to_string(), "all 4 gradients are right");
}

#[test]
fn what_fits_nothing_is_unidentified_and_read() {
    let (loss, all, right) = network();
    let odd = Tensor::from([[0.1, -0.7], [0.9, 0.3], [0.01, 5.0]]);
    let found = verdict(&loss, &[(&all[0], &odd)]).unwrap();
    assert!(found.diagnoses().is_empty());
    assert!(found.to_string().contains("unidentified"), "{found}");
    let rows = &right[0] * Tensor::from([[1.0], [0.0], [1.0]]);
    let found = verdict(&loss, &[(&all[0], &rows)]).unwrap();
    assert!(found.diagnoses().is_empty(), "{found}");
    assert!(found.readings().contains(&Reading::ZeroRows(vec![1])));
}

#[test]
fn mistakes_that_coincide_are_listed_together() {
    // A batch of two: a missing 1/n and a factor 2 are the same.
    let x = Tensor::from([0.3, -0.7]).parameter();
    let loss = x.mean_all();
    let found = verdict(&loss, &[(&x, &Tensor::from([1.0, 1.0]))]).unwrap();
    let names: Vec<_> = found.diagnoses().iter().map(|e| e.mistake()).collect();
    assert_eq!(names, ["missing 1/n", "factor 2 added"]);
    assert!(found.to_string().contains("2 mistakes coincide here"), "{found}");
}

#[test]
fn a_bias_before_a_norm_is_harmless() {
    let x = matrix();
    let w = Tensor::from([[1.0, -2.0], [0.5, 3.0], [-0.7, 0.2]]).parameter().named("w");
    let pre = x.matmul(&w).named("pre");
    let max = pre.max_axis(1, true).0.named("max");
    let shifted = &pre - &max;
    let e = shifted.exp();
    let loss = (&e / e.sum(1, true)).square().sum_all();
    let right = right_ones(&loss, &[w.clone(), pre.clone()]);
    let given = [(&w, &right[0]), (&pre, &right[1]), (&max, &Tensor::ones([4, 1]))];
    let found = verdict(&loss, &given).unwrap();
    assert!(!found.is_right() && found.is_harmless(), "{found}");
    assert!(found.to_string().contains("harmless: the gradients of all 1 leaves are right"));
}

#[test]
fn an_opaque_function_is_read() {
    let swapped = custom(
        "swapped",
        |x| x[0].try_matmul(&x[1]),
        |ctx, g| {
            let x = ctx.inputs();
            let da = g.try_matmul(&x[1])?;
            Ok(vec![Some(da), Some(x[0].try_t()?.try_matmul(g)?)])
        },
    );
    let a = Tensor::from([[1.0, 2.0], [0.5, -1.0]]);
    let b = Tensor::from([[0.3, -2.0], [1.5, 4.0]]);
    let f = |x: &[Tensor]| swapped.apply(&[&x[0], &x[1]]).unwrap();
    let found = explain(f, |x| x[0].matmul(&x[1]), &[a.clone(), b.clone()]).unwrap();
    let [only] = found.diagnoses() else { panic!("{found}") };
    assert_eq!(only.mistake(), "second operand not transposed");
    let read = explain_opaque(f, &[a, b]).unwrap();
    assert_eq!(read[1], [], "the second gradient is right");
    let kink = Tensor::from([0.0, 1.0, -1.0]);
    assert_eq!(explain_opaque(|x| x[0].relu(), &[kink]).unwrap(), [vec![]]);
    let other = explain(|x| x[0].exp(), |x| x[0].sinh(), &[Tensor::from([1.0])]);
    assert!(other.unwrap_err().to_string().contains("different values"));
}

#[test]
fn arguments_that_make_no_sense_are_errors() {
    let (loss, all, right) = network();
    let constant = Tensor::from([1.0]);
    assert!(verdict(&loss, &[(&constant, &constant)]).is_err());
    assert!(verdict(&loss, &[(&all[1], &right[0])]).is_err());
    assert!(verdict(&all[3], &[(&all[1], &right[1])]).is_err(), "not a scalar");
    assert!(explain_opaque(|x| x[0].exp(), &[Tensor::zeros([2])]).is_err(), "f32");
}

/// Two layers with named stages, a square matrix between them.
fn layers() -> (Tensor, [Tensor; 4]) {
    let g = &mut Generator::manual_seed(11);
    let x = Tensor::randn([5, 3], DType::F64, g);
    let (a, b) = (Tensor::randn([3, 4], DType::F64, g), Tensor::randn([4, 4], DType::F64, g));
    let (a, b) = (a.parameter().named("a"), b.parameter().named("b"));
    let h = x.matmul(&a).named("z").tanh().named("h");
    let loss = h.matmul(&b).named("y").sigmoid().mean_all();
    (loss, [x, a, b, h])
}

#[test]
fn another_gradient_of_the_same_shape_is_seen() {
    let (loss, [x, a, b, h]) = layers();
    let y = h.matmul(&b).sigmoid().detach();
    let dy = (&y * (1.0 - &y)) / 20.0;
    let dh = dy.matmul(&b.t());
    // By hand: `da` is taken from the gradient of `h`, where that of `z` is due.
    let found =
        verdict(&loss, &[(&a, &x.t().matmul(&dh).detach()), (&b, &h.t().matmul(&dy).detach())])
            .unwrap();
    assert!(found.diagnoses().len() + found.deviations().len() > 0, "{found}");
    let text = found.to_string();
    assert!(text.contains("the gradient of `h`") && text.contains("that of `z`"), "{text}");
}

#[test]
fn another_value_of_the_same_shape_is_seen() {
    let (loss, [x, a, b, h]) = layers();
    let y = h.matmul(&b).sigmoid().detach();
    let dy = (&y * (1.0 - &y)) / 20.0;
    let dz = dy.matmul(&b.t()) * (1.0 - &h * &h);
    // By hand: the result of the sigmoid stands where `h` is due, which has its shape.
    let found =
        verdict(&loss, &[(&a, &x.t().matmul(&dz).detach()), (&b, &y.t().matmul(&dy).detach())])
            .unwrap();
    let text = found.to_string();
    assert!(text.contains("stands where `h` is due"), "{text}");
}

#[test]
fn two_factors_are_solved_for() {
    let g = &mut Generator::manual_seed(3);
    let x = Tensor::randn([4, 3], DType::F64, g).parameter().named("x");
    let w = Tensor::randn([4, 3], DType::F64, g).parameter().named("w");
    let loss = (x.tanh() * &w).sum_all() + (x.sin() * w.exp()).sum_all();
    let dx = (1.0 - x.tanh().square()) * &w * 2.0 + x.cos() * w.exp() * 0.75;
    let dw = x.tanh() + x.sin() * w.exp();
    let found = verdict(&loss, &[(&x, &dx.detach()), (&w, &dw.detach())]).unwrap();
    assert!(found.diagnoses().is_empty(), "{found}");
    let factors: Vec<&str> = found.deviations().iter().map(|d| d.text()).collect();
    assert_eq!(factors.len(), 2, "{found}");
    assert!(factors.iter().any(|t| t.contains("is 2 times")), "{found}");
    assert!(factors.iter().any(|t| t.contains("is 3/4 times")), "{found}");
}

#[test]
fn a_factor_is_told_with_its_origin() {
    let x = Tensor::randn([7, 3], DType::F64, &mut Generator::manual_seed(5)).parameter();
    let loss = x.mean_all();
    let found = verdict(&loss, &[(&x, &Tensor::full([7, 3], 1.0 / 24.5, DType::F64))]).unwrap();
    let text = found.to_string();
    assert!(text.contains("6/7 times the right one"), "{text}");
}
