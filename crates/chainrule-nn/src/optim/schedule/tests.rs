//! Schedules against the rates that PyTorch 2.15 gives, and the drivers.

use super::*;
use crate::optim::{Group, Sgd, SgdOptions};

#[track_caller]
fn close(name: &str, got: f64, want: f64) {
    assert!((got - want).abs() <= 1e-14, "{name}: {got} for {want}");
}

#[test]
fn rates_are_those_of_pytorch() {
    let lr = 0.5;
    let cycle = OneCycleLr::new(2.0, 20);
    let lines = OneCycleLr {
        pct_start: 0.37,
        linear: true,
        div_factor: 10.0,
        final_div_factor: 50.0,
        ..cycle
    };
    let linear = LinearLr { lr, start_factor: 0.2, end_factor: 0.9, steps: 7 };
    let milestones = vec![4, 2, 2, 9];
    type Case<'a> = (Box<dyn Schedule>, &'a [(u64, f64)]);
    #[rustfmt::skip]
    let cases: [Case<'_>; 8] = [
        (Box::new(StepLr { lr, every: 3, gamma: 0.3 }),
            &[(0, 0.5), (2, 0.5), (3, 0.15), (5, 0.15), (6, 0.045), (11, 0.0135)]),
        (Box::new(MultiStepLr { lr, milestones, gamma: 0.3 }),
            &[(0, 0.5), (1, 0.5), (2, 0.045), (3, 0.045), (4, 0.0135), (8, 0.0135), (9, 0.00405), (11, 0.00405)]),
        (Box::new(ExponentialLr { lr, gamma: 0.9 }),
            &[(0, 0.5), (1, 0.45), (2, 0.405), (11, 0.15690529804500009)]),
        (Box::new(linear),
            &[(0, 0.1), (1, 0.15000000000000002), (3, 0.25), (6, 0.4), (7, 0.45), (11, 0.45)]),
        (Box::new(CosineAnnealingLr { lr, min_lr: 0.1, half_period: 5 }),
            &[(0, 0.5), (1, 0.46180339887498956), (2, 0.3618033988749896), (4, 0.13819660112501056), (5, 0.1),
              (6, 0.13819660112501053), (9, 0.4618033988749899), (10, 0.5000000000000004), (11, 0.46180339887499),
              (15, 0.1), (17, 0.23819660112501065)]),
        (Box::new(cycle),
            &[(0, 0.08000000000000007), (1, 0.2633436854000506), (4, 1.8166563145999495), (5, 2.0),
              (6, 1.9749280124701747), (12, 1.000004), (18, 0.02507998752982511), (19, 8e-06)]),
        (Box::new(lines),
            &[(0, 0.2), (1, 0.48125), (6, 1.8875), (7, 1.904952380952381), (12, 1.112888888888889),
              (19, 0.0040000000000000036)]),
        (Box::new(OneCycleLr { three_phase: true, ..cycle }),
            &[(0, 0.08000000000000007), (1, 0.2633436854000506), (5, 2.0), (6, 1.8166563145999495),
              (9, 0.26334368540005054), (10, 0.08), (11, 0.07758794606095319), (15, 0.03305876748603346), (19, 8e-06)]),
    ];
    for (i, (schedule, rates)) in cases.iter().enumerate() {
        schedule.check().unwrap();
        for &(step, want) in *rates {
            close(&format!("case {i}, step {step}"), schedule.lr(step), want);
        }
        assert!(schedule.lr(u64::MAX).is_finite() && schedule.lr(u64::MAX) >= 0.0, "case {i}");
    }
}

#[test]
fn plateaus_lower_the_rate_as_pytorch_does() {
    #[rustfmt::skip]
    let metrics = [1.0, 0.9, 0.95, 0.9, 0.89999, 0.9, 0.91, 0.5, 0.6, 0.6, 0.6, f64::NAN, 0.7, 0.7, 0.7, 0.7];
    let half = PlateauOptions { patience: 1, factor: 0.5, ..PlateauOptions::default() };
    let cooled =
        PlateauOptions { threshold: 0.2, absolute: true, cooldown: 2, min_lr: 0.1, ..half };
    let usual = PlateauOptions::default();
    let most = PlateauOptions { goal: Goal::Max, patience: 2, factor: 0.3, eps: 0.02, ..usual };
    #[rustfmt::skip]
    let cases = [
        (half, 1.0, [0.5, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125, 0.125, 0.125, 0.0625, 0.0625, 0.03125, 0.03125, 0.015625,
            0.015625, 0.0078125]),
        (cooled, 1.0, [0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.125, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]),
        (most, -1.0, [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.15, 0.15, 0.15, 0.045, 0.045, 0.045]),
    ];
    for (options, sign, rates) in cases {
        let (mut plateau, mut sgd) = (Plateau::new(options).unwrap(), sgd());
        for (metric, want) in metrics.into_iter().zip(rates) {
            // Each metric is taken by a plateau that was saved and loaded.
            let mut next = Plateau::new(options).unwrap();
            next.load_state_dict(&plateau.state_dict()).unwrap();
            next.step(sign * metric, &mut sgd).unwrap();
            close("plateau", sgd.lr(), want);
            plateau = next;
        }
    }
}

fn sgd() -> Sgd {
    let parameter = || vec![Tensor::from([1.0f32]).parameter()];
    let groups = [Group::new(parameter()), Group::new(parameter()).lr(0.05)];
    Sgd::try_with_groups(groups, 0.5, SgdOptions::default()).unwrap()
}

#[test]
fn groups_keep_their_proportion() {
    let mut sgd = sgd();
    let schedule = CosineLr { lr: 1.0, min_lr: 0.0, warm_up: 1, steps: 3 };
    let mut scheduler = Scheduler::new(schedule, &mut sgd).unwrap();
    let mut rates = vec![sgd.group_lrs()];
    for _ in 0..3 {
        scheduler.step(&mut sgd).unwrap();
        rates.push(sgd.group_lrs());
    }
    for (got, want) in rates.iter().zip([0.5, 1.0, 0.5, 0.0]) {
        close("first", got[0], want);
        close("second", got[1], want / 10.0);
    }
    let mut other = Scheduler::new(schedule, &mut sgd).unwrap();
    other.load_state_dict(&scheduler.state_dict(), &mut sgd).unwrap();
    assert_eq!((other.steps(), sgd.lr()), (3, 0.0));
    let bad = StateDict::from([("steps".to_string(), Tensor::scalar(-1i64))]);
    assert!(other.load_state_dict(&bad, &mut sgd).is_err());
}

#[test]
fn impossible_schedules_are_errors() {
    let lr = 0.1;
    let cycle = OneCycleLr::new(lr, 10);
    let cases: [Box<dyn Schedule>; 11] = [
        Box::new(ConstantLr { lr: 0.0 }),
        Box::new(StepLr { lr, every: 0, gamma: 0.1 }),
        Box::new(MultiStepLr { lr, milestones: vec![], gamma: -0.1 }),
        Box::new(ExponentialLr { lr: f64::NAN, gamma: 0.1 }),
        Box::new(LinearLr { lr, start_factor: 0.0, end_factor: 1.0, steps: 0 }),
        Box::new(LinearLr { lr, start_factor: 0.0, end_factor: 0.0, steps: 9 }),
        Box::new(CosineLr { lr, min_lr: 0.0, warm_up: 5, steps: 5 }),
        Box::new(CosineAnnealingLr { lr, min_lr: 0.0, half_period: 0 }),
        Box::new(OneCycleLr::new(lr, 0)),
        Box::new(OneCycleLr { pct_start: 1.5, ..cycle }),
        Box::new(OneCycleLr { div_factor: 0.0, ..cycle }),
    ];
    assert!(Plateau::new(PlateauOptions { factor: 1.0, ..PlateauOptions::default() }).is_err());
    for (i, schedule) in cases.into_iter().enumerate() {
        assert!(!schedule.lr(0).is_infinite() || i == 10, "no panic in case {i}");
        assert!(Scheduler::new(schedule, &mut sgd()).is_err(), "case {i}");
    }
}
