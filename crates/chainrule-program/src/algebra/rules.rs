//! The list of rules.

/// A rule of the algebra stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Name of the rule, by which [`Simplify`](super::Simplify) switches it.
    pub name: &'static str,
    /// The rule in one line, with its condition.
    pub statement: &'static str,
}

macro_rules! rules {
    ($($id:ident $name:literal: $statement:literal;)*) => {
        /// The place of each rule in the list.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(super) enum RuleId { $($id,)* }

        /// All rules of the algebra stage, in the order of the book.
        pub fn rules() -> &'static [Rule] {
            &[$(Rule { name: $name, statement: $statement },)*]
        }
    };
}

rules! {
    LikeTerms "like terms": "a x + b x = (a + b) x; what cancels is gone";
    MergePowers "merge powers": "x^a x^b = x^(a + b), where x is not zero or a and b have one sign; with a negative a, x + [x = 0] is x";
    PowerOfPower "power of a power": "(x^a)^b = x^(a b), where b is whole or x is not negative";
    PowerOfProduct "power of a product": "(x y)^b = x^b y^b, where b is whole or x is not negative";
    ExpLog "exp and log": "log(exp(x)) = x, and exp(log(x)) = x, where x is positive";
    LogOfProduct "log of a product": "log(x^a y) = a log(x) + log(y), where x and y are positive";
    ConstantFactor "constant factor": "sum(c x) = c sum(x), where c is constant along the axis, and so for other linear ops";
    SumOfConstant "sum of a constant": "sum(c) = n c, where c is constant along an axis of n elements";
    SumOfSum "sum of a sum": "sum(a + b) = sum(a) + sum(b), where that is shorter";
    OneHotSum "one-hot sum": "sum(onehot) = 1 along its axis";
    OneHotPower "one-hot power": "m^a = m, where m is a mask of zeros and ones and a is positive";
    OneHotPick "one-hot pick": "m x / pick(x) = m, where m is one-hot, pick(x) is the element that it picks, and x is not zero";
    SoftmaxSum "softmax sum": "sum(softmax(x)) = 1 along its axis";
    Distribute "distribute": "a (b + c) = a b + a c, where that is shorter";
    PartialFractions "partial fractions": "x / (x + c) = 1 - c / (x + c), where that is shorter and x + c is not zero";
    CommonDenominator "common denominator": "1 - 1 / x = (x - 1) / x, where that is shorter and x is not zero";
    Zero "zero": "an op that is linear in an operand gives zero for zero";
    Slope "slope": "g * tanh'(x) = g (1 - tanh(x)^2), and so for the other ops whose slope is one of the terms";
    CommonFactor "common factor": "a b + a c = a (b + c)";
    Reuse "reuse": "what the program has computed already, or a part of it, is not computed again";
}
