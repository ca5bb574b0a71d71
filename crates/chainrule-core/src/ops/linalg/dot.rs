//! `dot`, `mv` and `outer`: products with vectors. Made of `matmul` and `mul`, with the rules of
//! those ops.

use crate::ops::prelude::*;

methods! {
    /// The sum of the products of two vectors of one size: 0-d. Other ranks are an error, as in
    /// PyTorch; [`Tensor::matmul`] takes them. Gradient: `da = g * b`, `db = g * a`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (a, b) = (Tensor::from([1.0f32, 2.0]), Tensor::from([3.0f32, 4.0]));
    /// assert_eq!(a.dot(&b).item(), 11.0);
    /// ```
    pub fn dot / try_dot(&self, other: &Tensor) -> Tensor {
        let (a, b) = (self.shape(), other.shape());
        if a.rank() != 1 || a != b {
            return Err(Error::shape("dot", &[&a, &b], "takes two vectors of one size; see matmul for others"));
        }
        self.try_matmul(other)
    }

    /// The product of a matrix and a vector: `y[i] = sum over k of a[i, k] * x[k]`. Other ranks are
    /// an error; [`Tensor::matmul`] takes them. Gradient: `da = g x^T`, `dx = a^T g`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let a = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    /// assert_eq!(a.mv(&Tensor::from([1.0f32, 1.0])).to_vec::<f32>(), [3.0, 7.0]);
    /// ```
    pub fn mv / try_mv(&self, vector: &Tensor) -> Tensor {
        let (a, x) = (self.shape(), vector.shape());
        if a.rank() != 2 || x.rank() != 1 || a[1] != x[0] {
            let why = "takes a matrix and a vector with an element for each of its columns";
            return Err(Error::shape("mv", &[&a, &x], why));
        }
        self.try_matmul(vector)
    }

    /// The products of each element of one vector with each of another: `y[i, j] = a[i] * b[j]`.
    /// Other ranks are an error; einsum takes them. Gradient: `da = g b`, `db = g^T a`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (a, b) = (Tensor::from([1.0f32, 2.0]), Tensor::from([3.0f32, 4.0]));
    /// assert_eq!(a.outer(&b).to_vec::<f32>(), [3.0, 4.0, 6.0, 8.0]);
    /// ```
    pub fn outer / try_outer(&self, other: &Tensor) -> Tensor {
        let (a, b) = (self.shape(), other.shape());
        if a.rank() != 1 || b.rank() != 1 {
            return Err(Error::shape("outer", &[&a, &b], "takes two vectors; see einsum for others"));
        }
        self.try_reshape([a[0], 1])?.try_mul(other)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "dot",
    family: Family::Linalg,
    signature: "a.dot(&b), a.mv(&x), a.outer(&b)",
    python: &[
        Binding::with("dot", &[Parameter::tensor("tensor")], |x, a| x.try_dot(a.tensor(0)))
            .formula("sum over k of a[k] * b[k]"),
        Binding::with("mv", &[Parameter::tensor("vec")], |x, a| x.try_mv(a.tensor(0)))
            .formula("y[i] = sum over k of a[i, k] * x[k]"),
        Binding::with("outer", &[Parameter::tensor("vec2")], |x, a| x.try_outer(a.tensor(0)))
            .also(&["ger"])
            .formula("y[i, j] = a[i] * b[j]"),
    ],
    formula: "dot: sum over k of a[k] * b[k]; mv: y[i] = sum over k of a[i, k] * x[k]; outer: y[i, j] = a[i] * b[j]",
    gradient: "da = g * b and db = g * a, summed over what they lack",
    at_kinks: "",
    samples: |g| {
        type ProductCall = fn(&Tensor, &Tensor) -> Result<Tensor>;
        let cases: [(&str, &[usize], &[usize], ProductCall); 6] = [
            ("dot", &[5], &[5], |a, b| a.try_dot(b)),
            ("dot of nothing", &[0], &[0], |a, b| a.try_dot(b)),
            ("mv", &[3, 4], &[4], |a, b| a.try_mv(b)),
            ("outer", &[3], &[17], |a, b| a.try_outer(b)),
            ("outer with nothing", &[3], &[0], |a, b| a.try_outer(b)),
            ("an operand used twice", &[4], &[1], |a, _| a.try_outer(a)),
        ];
        cases
            .into_iter()
            .map(|(note, a, b, call)| {
                Sample::new(note, vec![normal(g, a), normal(g, b)], move |x| call(&x[0], &x[1]))
            })
            .collect()
    },
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    #[test]
    fn only_vectors() {
        let (m, v, w) = (Tensor::ones([2, 3]), Tensor::ones([3]), Tensor::ones([2]));
        assert!(v.try_dot(&w).is_err() && m.try_dot(&v).is_err());
        assert!(v.try_dot(&Tensor::ones([1])).is_err());
        assert!(m.try_mv(&w).is_err() && v.try_mv(&v).is_err() && m.try_mv(&m).is_err());
        assert!(m.try_outer(&v).is_err() && v.try_outer(&Tensor::ones(())).is_err());
        assert_eq!(Tensor::from([2i64]).outer(&Tensor::from([1i64, 3])).to_vec::<i64>(), [2, 6]);
    }
}
