//! Slices, their gradients and their errors.

use super::*;

/// The positions that Python's rules give, by walking: bounds count from the end once if negative,
/// and the walk starts inside.
fn walked(n: usize, start: Option<i64>, end: Option<i64>, step: i64) -> Vec<usize> {
    let n = n as i128;
    let meant = |b: i64| if b < 0 { b as i128 + n } else { b as i128 };
    let mut at = match start.map(meant) {
        Some(s) if step > 0 => s.max(0),
        Some(s) => s.min(n - 1),
        None if step > 0 => 0,
        None => n - 1,
    };
    let within = |at: i128| match end.map(meant) {
        Some(e) if step > 0 => at < e,
        Some(e) => at > e,
        None => true,
    };
    let mut out = Vec::new();
    while (0..n).contains(&at) && within(at) {
        out.push(at as usize);
        at += step as i128;
    }
    out
}

#[test]
fn cuts_are_those_of_python_up_to_the_ends_of_i64() {
    let mut bounds: Vec<_> = (-6..=6).map(Some).collect();
    bounds.extend([None, Some(i64::MIN), Some(i64::MAX)]);
    let steps: Vec<i64> = (-5..=5).filter(|&s| s != 0).chain([i64::MIN, i64::MAX]).collect();
    for n in 0..5 {
        for &start in &bounds {
            for &end in &bounds {
                for &step in &steps {
                    let cut = cut(n, start, end, step);
                    let at = |i: usize| cut.start as i64 + i as i64 * cut.step as i64;
                    let got: Vec<usize> = (0..cut.count).map(|i| at(i) as usize).collect();
                    assert_eq!(got, walked(n, start, end, step), "{n} {start:?} {end:?} {step}");
                }
            }
        }
    }
}

/// Python's `list(range(5))[...]`.
#[test]
fn ranges_are_read_as_in_python() {
    let x = Tensor::arange(0, 5);
    let range = |start, end, step| Slice::Range { start: Some(start), end: Some(end), step };
    // To the very last: a range that Rust takes for an empty one.
    let last = Slice::from(RangeInclusive::new(1, -1));
    let cases: [(Slice, &[i64]); 10] = [
        ((-100..100).into(), &[0, 1, 2, 3, 4]),
        ((..-2).into(), &[0, 1, 2]),
        (last, &[1, 2, 3, 4]),
        ((..=2).into(), &[0, 1, 2]),
        ((0..usize::MAX).into(), &[0, 1, 2, 3, 4]),
        ((0..=usize::MAX).into(), &[0, 1, 2, 3, 4]),
        ((..=i64::MAX).into(), &[0, 1, 2, 3, 4]),
        (range(100, -100, -2), &[4, 2, 0]),
        (range(3, 0, -1), &[3, 2, 1]),
        (range(0, 3, -1), &[]),
    ];
    for (slice, want) in cases {
        assert_eq!(x.slice(&[slice]).to_vec::<i64>(), want, "{slice:?}");
    }
}

#[test]
fn parts_of_a_whole() {
    let shape = Shape::new(&[6, 4]);
    let cover = |slices: &[[Slice; 2]]| {
        let slices = slices.iter().map(|s| plan(&shape, s).unwrap()).collect();
        Unslice { slices, shape }.cover()
    };
    let back = |from, to| Slice::Range { start: Some(from), end: Some(to), step: -1 };
    let all = Slice::from(..);
    assert_eq!(cover(&[[all, all]]), Cover::Once);
    assert_eq!(cover(&[[all, (2..).into()], [all, (..2).into()]]), Cover::Once);
    assert_eq!(cover(&[[back(5, -7), all], [(0..0).into(), all]]), Cover::Once);
    assert_eq!(cover(&[[(0..2).into(), all], [3.into(), all]]), Cover::Apart);
    assert_eq!(cover(&[[(0..5).into(), all], [back(5, 3), all]]), Cover::Overlapping);
    assert_eq!(cover(&[[all, all], [1.into(), 1.into()]]), Cover::Overlapping);
    assert_eq!(cover(&[]), Cover::Apart);
}

/// Slices that meet, one taken twice, and a use of the whole: their gradients, and those of the
/// gradients.
#[test]
fn the_gradients_of_slices_add_up() {
    let x = (Tensor::arange(0, 12).to_dtype(DType::F64) * 0.25).reshape([3, 4]).parameter();
    let take = |x: &Tensor| {
        let rows = [x.narrow(0, 0, 2), x.narrow(0, 1, 2)];
        let column = x.slice(&[Slice::from(..).step(-1), Slice::At(-1)]);
        (&rows[0] * &rows[1]).sum_all() + (&column * &column * &column).sum_all()
    };
    let weight = x.detach() + 1.0;
    let first = |x: &Tensor| {
        crate::autograd::grad_with(
            &(take(x) + (x * &weight).sum_all()),
            &[x],
            &crate::autograd::GradOptions::create_graph(),
        )
        .unwrap()
    };
    let dx = first(&x).remove(0).unwrap();
    let (v, w) = (x.to_f64_vec(), weight.to_f64_vec());
    let want = |i: usize| {
        let above = if i >= 4 { v[i - 4] } else { 0.0 };
        let below = if i < 8 { v[i + 4] } else { 0.0 };
        let cube = if i % 4 == 3 { 3.0 * v[i] * v[i] } else { 0.0 };
        above + below + cube + w[i]
    };
    assert_eq!(dx.to_f64_vec(), (0..12).map(want).collect::<Vec<_>>());
    let again = crate::autograd::grad(&dx.sum_all(), &[&x]).unwrap().remove(0).unwrap();
    let want = |i: usize| {
        let rows = if i / 4 == 1 { 2.0 } else { 1.0 };
        rows + if i % 4 == 3 { 6.0 * v[i] } else { 0.0 }
    };
    assert_eq!(again.to_f64_vec(), (0..12).map(want).collect::<Vec<_>>());
}

/// Large parts are put in their places by several threads where they have all of the first axis:
/// among zeros, added where they overlap, and by one thread where they are part of it.
#[test]
fn large_parts_come_to_their_places() {
    let (a, b, c) = (30, 50, 60);
    let shape = Shape::new(&[a, b, c]);
    let all = Slice::from(..);
    let cases: [&[[Slice; 3]]; 5] = [
        &[[all, all, (0..20).into()], [all, all, (20..60).into()]],
        &[[all, (1..20).into(), all], [all, (20..50).into(), all]],
        &[[all, all, (0..30).into()], [all, all, (20..60).into()]],
        &[[(0..29).into(), all, all]],
        &[[Slice::from(..).step(-1), all, all], [all, all, (7..9).into()]],
    ];
    for slices in cases {
        let slices: SmallVec<[SliceOp; 3]> =
            slices.iter().map(|s| plan(&shape, s).unwrap()).collect();
        let mut want = vec![0.0; shape.numel()];
        let mut parts = Vec::new();
        for slice in &slices {
            // Turned, as the gradients of heads are.
            let [d, e, f] = [0, 1, 2].map(|axis| slice.out[axis]);
            let count = Tensor::arange(0, (d * e * f) as i64).to_dtype(DType::F64);
            let part = count.reshape([d, f, e]).permute(&[0, 2, 1]);
            let index = Tensor::arange(0, shape.numel() as i64).reshape([a, b, c]);
            let places = apply(slice.clone(), &[&index]).unwrap().to_vec::<i64>();
            for (place, x) in places.into_iter().zip(part.to_vec::<f64>()) {
                want[place as usize] += x;
            }
            parts.push(part);
        }
        let inputs: Vec<&Tensor> = parts.iter().collect();
        let whole = apply(Unslice { slices, shape }, &inputs).unwrap();
        assert_eq!(whole.to_vec::<f64>(), want);
    }
}

#[test]
fn errors_name_the_axis_and_the_way_out() {
    let text = |r: Result<Tensor>| r.unwrap_err().kind().to_string();
    let x = Tensor::zeros([2, 3]);
    for at in [-4, 3, i64::MIN, i64::MAX] {
        assert_eq!(
            text(x.try_slice(&[Slice::Ellipsis, at.into()])),
            format!("slice: shape [2, 3]: there is no position {at} on axis 1 of size 3")
        );
    }
    assert!(x.try_slice(&[usize::MAX.into()]).is_err());
    assert_eq!(
        text(x.try_slice(&[Slice::from(..).step(0)])),
        "slice: shape [2, 3]: a step of 0 goes nowhere; use 1 or -1"
    );
    assert_eq!(
        text(x.try_slice(&[0.into(), 0.into(), 0.into()])),
        "slice: shape [2, 3]: 3 slices for 2 axes"
    );
    assert!(x.try_slice(&[Slice::Ellipsis; 2]).is_err());
    assert!(x.try_slice(&[Slice::NewAxis; 7]).is_err());
    for (start, size) in [(2, 2), (4, 0), (usize::MAX, 2), (0, usize::MAX)] {
        assert_eq!(
            text(x.try_narrow(-1, start, size)),
            format!(
                "narrow: shape [2, 3]: {size} positions from {start} on do not lie within axis 1 of size 3"
            )
        );
    }
    assert_eq!(x.narrow(1, 3, 0).shape(), [2, 0]);
    assert!(x.try_narrow(2, 0, 1).is_err());
}
