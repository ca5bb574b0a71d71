//! Statistics of tensors as they lie in memory, beside those of their numbers one by one.

use chainrule::monitor::{Monitor, OutputKind, Stats};
use chainrule::{DType, Generator, Tensor};

#[test]
fn stats_of_f32_are_those_of_f64() {
    let g = &mut Generator::manual_seed(1);
    for shape in [vec![3usize, 5], vec![1000, 7], vec![1], vec![2049]] {
        let x = Tensor::randn(&shape[..], DType::F32, g) * 100.0;
        let dy = Tensor::randn(&shape[..], DType::F32, g);
        let mut m = Monitor::new().every(1);
        m.parameter("w", &x, Some(&dy));
        let after = &x - &(&dy * 0.1);
        m.updated("w", &after);
        m.step(Some(1.0), Some(0.1));
        let p = &m.parameters()[0].points()[0].1;
        let same = |a: &Stats, t: &Tensor| {
            let b = Stats::of(&t.to_f64_vec());
            assert!(
                (a.norm() - b.norm()).abs() <= 1e-9 * b.norm()
                    && (a.mean() - b.mean()).abs() <= 1e-9 * (1.0 + b.mean().abs()),
                "{a:?} {b:?}"
            );
            assert_eq!((a.count(), a.zeros(), a.largest()), (b.count(), b.zeros(), b.largest()));
            assert_eq!(a.histogram(), b.histogram());
            // By hand.
            let v = t.to_f64_vec();
            let n: f64 = v.iter().map(|x| x * x).sum::<f64>().sqrt();
            assert!((n - b.norm()).abs() <= 1e-12 * n);
            assert_eq!(b.histogram().iter().map(|h| h.2).sum::<u64>(), v.len() as u64);
        };
        same(&p.value, &x);
        same(p.gradient.as_ref().unwrap(), &dy);
        assert!(p.slope.unwrap() < -0.99, "{:?}", p.slope);
    }
    // Not finite, strided.
    let x = Tensor::from([[1.0f32, f32::NAN, 0.0], [f32::INFINITY, -2.0, 4.0]]).t();
    let mut m = Monitor::new().every(1);
    m.output("o", OutputKind::Any, &x);
    let s = &m.outputs()[0].points()[0].1.value;
    assert_eq!((s.count(), s.not_finite(), s.zeros()), (4, 2, 1));
    assert_eq!(s.norm(), 21f64.sqrt());
}
#[test]
fn sparse_histograms_and_ranks() {
    let g = &mut Generator::manual_seed(1);
    let mut m = Monitor::new().every(1).with_sparse_histograms();
    let x = Tensor::randn([64, 8], DType::F32, g);
    for _ in 0..300 {
        m.parameter("w", &x, Some(&x));
        m.updated("w", &x);
        m.output("o", OutputKind::Any, &x);
        m.output_gradient("o", &x);
        m.step(Some(1.0), Some(0.1));
    }
    for (_, p) in m.parameters()[0].points() {
        assert!(!p.value.histogram().is_empty() && p.agreement.unwrap_or(1.0) > 0.99);
    }
    let rank = m.outputs()[0].points()[0].1.rank.unwrap();
    assert!((6.0..8.0).contains(&rank), "{rank}");
    assert!(m.noise_scale().unwrap() < 1e-6);
}
