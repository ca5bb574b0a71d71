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

/// An index on random axes of a tensor of four, drawn from `draw`: what to index with, and for each
/// axis the positions that it takes, with the letter of the axis of the result that they belong to.
/// `x` is the common axis of all arrays, a vector of three.
fn random_index(
    sizes: &[usize],
    draw: &mut impl FnMut(usize) -> usize,
) -> (Vec<Index>, Vec<(char, Vec<usize>)>) {
    let (mut index, mut taken) = (Vec::new(), Vec::new());
    for (axis, &n) in sizes.iter().enumerate() {
        let letter = ['a', 'b', 'c', 'd'][axis];
        match draw(4) {
            0 => {
                let at = draw(n);
                index.push((at as i64 - if draw(2) == 0 { 0 } else { n as i64 }).into());
                taken.push(('-', vec![at]));
            }
            1 => {
                let start = draw(n);
                index.push((start..).into());
                taken.push((letter, (start..n).collect()));
            }
            2 => {
                index.push(Slice::from(..).step(-1).into());
                taken.push((letter, (0..n).rev().collect()));
            }
            _ => {
                let at: Vec<usize> = (0..3).map(|_| draw(n)).collect();
                let wrap = |&i: &usize| i as i64 - if i % 2 == 0 { 0 } else { n as i64 };
                index.push((&Tensor::from(at.iter().map(wrap).collect::<Vec<_>>())).into());
                taken.push(('x', at));
            }
        }
    }
    (index, taken)
}

#[test]
fn random_indices_against_loops() {
    let g = &mut Generator::manual_seed(23);
    let sizes = [2, 3, 4, 3];
    let x = Tensor::arange(0, 72).reshape(sizes);
    for case in 0..300 {
        let mut draw = |n: usize| (g.random_u64() % n as u64) as usize;
        let (index, taken) = random_index(&sizes, &mut draw);
        // Positions go first. The rest tells where the common axis goes.
        let letters: Vec<char> = taken.iter().map(|t| t.0).filter(|&c| c != '-').collect();
        let mut order: Vec<char> = letters.iter().copied().filter(|&c| c != 'x').collect();
        let arrays: Vec<usize> = (0..letters.len()).filter(|&k| letters[k] == 'x').collect();
        if let (Some(&first), Some(&last)) = (arrays.first(), arrays.last()) {
            let neighbours = last - first + 1 == arrays.len();
            order.insert(if neighbours { first } else { 0 }, 'x');
        }
        let count = |c: char| taken.iter().find(|t| t.0 == c).unwrap().1.len();
        let shape: Vec<usize> = order.iter().map(|&c| count(c)).collect();
        let mut want = Vec::new();
        for place in 0..shape.iter().product() {
            let mut rest = place;
            let mut at = vec![0; shape.len()];
            for k in (0..shape.len()).rev() {
                at[k] = rest % shape[k];
                rest /= shape[k];
            }
            let position = |(c, list): &(char, Vec<usize>)| {
                list[order.iter().position(|o| o == c).map_or(0, |k| at[k])]
            };
            let from: Vec<usize> = taken.iter().map(position).collect();
            want.push(x.at::<i64>(&from));
        }
        let y = x.index(&index);
        assert_eq!(y.shape().dims(), shape, "case {case}: {index:?}");
        assert_eq!(y.to_vec::<i64>(), want, "case {case}: {index:?}");
    }
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
