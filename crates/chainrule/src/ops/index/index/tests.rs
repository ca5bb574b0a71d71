//! Shapes and values of `index`, against PyTorch's.

use super::*;

fn x() -> Tensor {
    Tensor::arange(0, 24).reshape([2, 3, 4])
}

/// The shapes that PyTorch gives.
#[test]
fn where_the_common_axes_go() {
    let i = Tensor::from([0i64, 1]);
    let new = Slice::NewAxis;
    let cases: [(&[Index], &[usize]); 12] = [
        (ix![0, .., &i], &[3, 2]),
        (ix![&i, .., &i], &[2, 3]),
        (ix![.., &i, &i], &[2, 2]),
        (ix![&i, new, &i], &[2, 1, 4]),
        (ix![.., &i, new, &i], &[2, 2, 1]),
        (ix![&i.unsqueeze(1), 0, &i], &[2, 2]),
        (ix![&i, 0], &[2, 4]),
        (ix![.., 0, &i], &[2, 2]),
        (ix![&i, Slice::Ellipsis, 0], &[2, 3]),
        (ix![&Tensor::scalar(true)], &[1, 2, 3, 4]),
        (ix![&Tensor::scalar(false), 0], &[0, 3, 4]),
        (ix![&Tensor::scalar(1i64)], &[3, 4]),
    ];
    for (k, (index, shape)) in cases.into_iter().enumerate() {
        assert_eq!(x().index(index).shape().dims(), shape, "case {k}");
    }
    let mut mask = vec![false; 6];
    (mask[1], mask[5]) = (true, true);
    let mask = Tensor::from_slice(&mask, [2, 3]);
    assert_eq!(x().index(ix![&mask]).to_vec::<i64>(), [4, 5, 6, 7, 20, 21, 22, 23]);
    assert_eq!(x().index(ix![&mask, &i]).to_vec::<i64>(), [4, 21]);
    let row = Tensor::from([false, true, false]);
    assert_eq!(x().index(ix![.., &row]).shape(), [2, 1, 4]);
}

/// Every element against index arithmetic.
#[test]
fn values_of_arrays_apart() {
    let (i, j) = (Tensor::from([1i64, 0, -1]), Tensor::from([[3i64], [-4]]));
    let y = x().index(ix![&i, 1.., &j]);
    assert_eq!(y.shape(), [2, 3, 2]);
    for a in 0..2 {
        for b in 0..3 {
            for c in 0..2 {
                let (i, j) = ([1, 0, 1][b], [3, 0][a]);
                assert_eq!(y.at::<i64>(&[a, b, c]), (i * 3 + c as i64 + 1) * 4 + j);
            }
        }
    }
    let turned = x().permute(&[2, 0, 1]);
    assert_eq!(turned.index(ix![&j, &i, 1..]).to_vec::<i64>(), y.to_vec::<i64>());
}

#[test]
fn only_slices_are_a_slice() {
    let x = x();
    assert_eq!(
        x.index(ix![1, .., 0..2]).to_vec::<i64>(),
        x.slice(&[1.into(), (..).into(), (0..2).into()]).to_vec::<i64>()
    );
    assert_eq!(x.index(&[]).shape(), [2, 3, 4]);
    assert_eq!(x.index(&[Index::Full, Index::Full]).shape(), [2, 3, 4]);
}

#[test]
fn errors() {
    let x = x();
    let text = |index: &[Index]| x.try_index(index).unwrap_err().kind().to_string();
    assert_eq!(
        text(ix![.., &Tensor::from([0i64, 3])]),
        "index: index 3 at position 1 is outside axis 1 of size 3; indices run from -3 to 2"
    );
    let (two, three) = (Tensor::from([0i64, 1]), Tensor::from([0i64, 1, 0]));
    assert!(text(ix![&two, &three]).starts_with("index: shapes [2] and [3]: the shapes do not"));
    assert!(text(ix![&x.gt(0).t()]).contains("a mask at axis 0 must have the sizes"));
    assert!(text(ix![&two, &x.gt(0)]).contains("4 axes are indexed, the tensor has 3"));
    assert!(text(ix![&Tensor::from([0.0f32])]).contains("i64"));
    assert!(text(ix![2, &two]).contains("no position 2"));
    assert!(text(ix![Slice::Ellipsis, Slice::Ellipsis, &two]).contains("only one ellipsis"));
    assert!(text(ix![&Tensor::from_slice(&[0i64], [1; 8])]).contains("10 axes"));
    assert!(text(ix![&two, &Tensor::from([i64::MIN, i64::MAX])]).contains("is outside axis 1"));
    let none = Tensor::zeros([0, 2]);
    assert!(none.try_index(ix![&two]).is_err());
    assert_eq!(
        none.index(ix![&Tensor::from(Vec::<i64>::new()), &Tensor::from([1i64])]).shape(),
        [0]
    );
}
