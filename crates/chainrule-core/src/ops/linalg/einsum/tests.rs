//! `einsum` against sums that are written out, and its errors.

use super::*;

/// The sum over all positions of all labels, one after the other; no ellipsis, and an arrow.
fn written_out(equation: &str, operands: &[&Tensor]) -> Tensor {
    let (left, right) = equation.split_once("->").unwrap();
    let inputs: Vec<Vec<char>> = left.split(',').map(|s| s.chars().collect()).collect();
    let output: Vec<char> = right.chars().collect();
    let mut labels: Vec<(char, usize)> = Vec::new();
    for (t, own) in operands.iter().zip(&inputs) {
        for (&c, &n) in own.iter().zip(t.shape().iter()) {
            match labels.iter_mut().find(|(l, _)| *l == c) {
                Some((_, m)) => *m = if *m == 1 { n } else { *m },
                None => labels.push((c, n)),
            }
        }
    }
    let size = |c: char| labels.iter().find(|(l, _)| *l == c).unwrap().1;
    let shape: Vec<usize> = output.iter().map(|&c| size(c)).collect();
    let mut sums = vec![0.0; shape.iter().product()];
    let total: usize = labels.iter().map(|(_, n)| n).product();
    for mut code in 0..total {
        let mut at = Vec::new();
        for &(c, n) in &labels {
            at.push((c, code % n));
            code /= n;
        }
        let position = |c: char| at.iter().find(|(l, _)| *l == c).unwrap().1;
        let mut product = 1.0;
        for (t, own) in operands.iter().zip(&inputs) {
            let sizes = t.shape();
            let stretch = |(&c, &n): (&char, &usize)| if n == 1 { 0 } else { position(c) };
            let place: Vec<usize> = own.iter().zip(sizes.iter()).map(stretch).collect();
            product *= t.at::<f64>(&place);
        }
        let place = output.iter().zip(&shape).fold(0, |k, (&c, n)| k * n + position(c));
        sums[place] += product;
    }
    Tensor::from_slice(&sums, shape.as_slice())
}

fn close(a: &Tensor, b: &Tensor) -> bool {
    let near = |(a, b): (f64, f64)| (a - b).abs() < 1e-12;
    a.shape() == b.shape() && a.to_f64_vec().into_iter().zip(b.to_f64_vec()).all(near)
}

#[test]
fn equals_the_sums_written_out() {
    let g = &mut Generator::manual_seed(7);
    let cases: [(&str, &[&[usize]]); 14] = [
        ("ij,jk->ik", &[&[3, 4], &[4, 2]]),
        ("ij,jk->ki", &[&[3, 4], &[4, 2]]),
        ("ij,jk->", &[&[3, 4], &[4, 2]]),
        ("bhqd,bhkd->bhqk", &[&[2, 3, 4, 5], &[2, 3, 2, 5]]),
        ("abc,cbd->dab", &[&[2, 3, 4], &[4, 3, 2]]),
        ("iij,jkk->ik", &[&[3, 3, 2], &[2, 4, 4]]),
        ("iiij->ji", &[&[2, 2, 2, 3]]),
        ("i,i,i->", &[&[5], &[5], &[5]]),
        ("i,j,k->kij", &[&[2], &[3], &[4]]),
        ("ij,jk,kl,lm->im", &[&[2, 3], &[3, 4], &[4, 2], &[2, 3]]),
        ("ab,ac,ad,bcd->a", &[&[2, 3], &[2, 2], &[2, 4], &[3, 2, 4]]),
        ("ij,jk->ik", &[&[3, 1], &[4, 2]]),
        ("ij,ij->ij", &[&[3, 1], &[1, 4]]),
        ("ij,kj->i", &[&[2, 3], &[4, 3]]),
    ];
    for (equation, shapes) in cases {
        let x: Vec<Tensor> = shapes.iter().map(|s| normal(g, *s)).collect();
        let x: Vec<&Tensor> = x.iter().collect();
        let got = Tensor::einsum(equation, &x);
        assert!(close(&got, &written_out(equation, &x)), "{equation}: {got}");
    }
}

/// Equations of random labels, sizes and operands.
#[test]
fn random_equations() {
    let g = &mut Generator::manual_seed(11);
    for case in 0..150 {
        let mut below = |n: u64| (g.random_u64() % n) as usize;
        let names = ['a', 'b', 'C', 'd', 'e'];
        let sizes: Vec<usize> = names.iter().map(|_| 1 + below(3)).collect();
        let operands: Vec<Vec<usize>> =
            (0..1 + below(4)).map(|_| (0..below(4)).map(|_| below(5)).collect()).collect();
        let mut used: Vec<usize> = operands.concat();
        used.sort();
        used.dedup();
        used.retain(|_| below(2) == 0);
        let turn = below(1 + used.len() as u64);
        used.rotate_left(turn);
        let word = |labels: &[usize]| labels.iter().map(|&l| names[l]).collect::<String>();
        let left: Vec<String> = operands.iter().map(|o| word(o)).collect();
        let equation = format!("{}->{}", left.join(","), word(&used));
        let shape = |o: &Vec<usize>| o.iter().map(|&l| sizes[l]).collect::<Vec<_>>();
        let x: Vec<Tensor> = operands.iter().map(|o| normal(g, shape(o).as_slice())).collect();
        let x: Vec<&Tensor> = x.iter().collect();
        let got = Tensor::einsum(&equation, &x);
        assert!(close(&got, &written_out(&equation, &x)), "case {case}, {equation}: {got}");
    }
}

/// Shapes that PyTorch gives.
#[test]
fn implicit_outputs_and_ellipses() {
    let g = &mut Generator::manual_seed(3);
    let x = normal(g, [2, 3]);
    let shape = |equation: &str, x: &[&Tensor]| Tensor::einsum(equation, x).shape().to_vec();
    assert_eq!(shape("ba", &[&x]), [3, 2]);
    assert_eq!(shape("Ab", &[&x]), [2, 3]);
    assert_eq!(shape("bA", &[&x]), [3, 2]);
    assert_eq!(shape("...", &[&x]), [2, 3]);
    assert_eq!(shape("i...->...", &[&x]), [3]);
    assert!(shape("i...->", &[&x]).is_empty());
    assert_eq!(shape(" i j -> j i ", &[&x]), [3, 2]);
    assert_eq!(shape("...b,...", &[&x, &normal(g, [2])]), [2, 3]);
    let (a, b) = (normal(g, [4, 1, 2, 3]), normal(g, [5, 3, 2]));
    assert!(close(&Tensor::einsum("...ij,...jk->...ik", &[&a, &b]), &a.matmul(&b)));
    assert!(close(&Tensor::einsum("...ij,...jk", &[&a, &b]), &a.matmul(&b)));
    let wanted = a.matmul(&b).permute(&[2, 0, 1, 3]);
    assert!(close(&Tensor::einsum("...ij,...jk->i...k", &[&a, &b]), &wanted));
    let n = Tensor::from([[1i64, 2], [3, 4]]);
    assert_eq!(Tensor::einsum("ij,ij->i", &[&n, &n]).to_vec::<i64>(), [5, 25]);
    assert_eq!(Tensor::einsum("ij,jk->ik", &[&n, &x.t().t().narrow(0, 0, 2)]).dtype(), DType::F64);
}

#[test]
fn errors_name_the_label_and_both_sizes() {
    let (a, b) = (Tensor::ones([2, 3]), Tensor::ones([4, 5]));
    let text = |equation: &str, x: &[&Tensor]| {
        Tensor::try_einsum(equation, x).unwrap_err().kind().to_string()
    };
    assert_eq!(
        text("ij,jk->ik", &[&a, &b]),
        "einsum: label 'j' has size 3 in operand 0 and 4 in operand 1; they must be equal, or one of them 1"
    );
    assert_eq!(
        text("ii", &[&a]),
        "einsum: shape [2, 3]: label 'i' is repeated in operand 0 with sizes 2 and 3"
    );
    let cases: [(&str, &[&Tensor], &str); 13] = [
        ("ii", &[&Tensor::ones([2, 1])], "sizes 2 and 1"),
        ("...,...", &[&a, &b], "axis 0 of the ellipsis has size 2 in operand 0 and 4"),
        ("ij->ii", &[&a], "label 'i' occurs twice in the output"),
        ("ij->k", &[&a], "label 'k' of the output occurs in no operand"),
        ("ij,jk", &[&a], "subscripts for 2 operands, 1 are given"),
        ("ijk", &[&a], "operand 0 has 2 axes, its subscripts have 3 labels"),
        ("i", &[&a], "operand 0 has 2 axes"),
        ("i...jk", &[&a], "operand 0 has 2 axes"),
        ("i1", &[&a], "'1' is no label"),
        ("i..", &[&a], "an ellipsis is three dots"),
        ("...i...", &[&a], "an ellipsis is three dots"),
        ("ij->i->j", &[&a], "is no label"),
        ("ij", &[], "0 are given"),
    ];
    for (equation, x, want) in cases {
        let got = text(equation, x);
        assert!(got.contains(want), "{equation}: {got}");
    }
    let wide = Tensor::ones([1; 5]);
    assert!(text("abcde,fghij->abcdefghij", &[&wide, &wide]).contains("10 axes"));
    assert!(Tensor::try_einsum("abcde,fghij->a", &[&wide, &wide]).is_ok());
    let flag = Tensor::from([true]);
    assert!(Tensor::try_einsum("i,i->i", &[&flag, &flag]).is_err());
    assert!(Tensor::try_einsum("", &[]).is_err());
    assert_eq!(Tensor::einsum("", &[&Tensor::scalar(2.0f32)]).item(), 2.0);
}
