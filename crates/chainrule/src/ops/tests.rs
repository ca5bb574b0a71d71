//! What every op goes through, generated from the table.

use super::table;
use crate::Tensor;

#[test]
fn first_light() {
    let x = Tensor::from([2.0f64]).parameter();
    let z = &x * &x * 3.0;
    z.sum_all().backward();
    assert_eq!(x.grad().unwrap().to_vec::<f64>(), [12.0]);
    let w = Tensor::from([[1.0f64, 2.0], [3.0, 4.0]]).parameter();
    let y = w.matmul(&w.t()).tanh().sum_all();
    y.backward();
    println!("{:?}", w.grad());
    assert!(table().count() > 5);
}
