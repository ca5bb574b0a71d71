//! The list of rules.

/// A rule of the algebra stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Name of the rule, by which [`Simplify`](super::Simplify) switches it.
    pub name: &'static str,
    /// The rule in one line, with its condition.
    pub statement: &'static str,
    /// Why the form it makes is as accurate as the one before, or under which condition.
    pub accuracy: &'static str,
}

macro_rules! rules {
    ($($id:ident $name:literal: $statement:literal, $accuracy:literal;)*) => {
        /// The place of each rule in the list.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(super) enum RuleId { $($id,)* }

        /// All rules of the algebra stage, in the order of the book.
        pub fn rules() -> &'static [Rule] {
            &[$(Rule { name: $name, statement: $statement, accuracy: $accuracy },)*]
        }
    };
}

rules! {
    LikeTerms "like terms": "a x + b x = (a + b) x; what cancels is gone",
        "both terms have the error of x, and one product rounds instead of two and a sum; coefficients cancel only within the rounding that they have";
    MergePowers "merge powers": "x^a x^b = x^(a + b), where x is not zero or a and b have one sign; with a negative a, x + [x = 0] is x",
        "the relative error of x counts a + b times instead of a times and b times, and one power rounds instead of two and a product";
    PowerOfPower "power of a power": "(x^a)^b = x^(a b), where b is whole or x is not negative",
        "the relative error of x counts a b times in both, and the one of x^a is gone";
    PowerOfProduct "power of a product": "(x y)^b = x^b y^b, where b is whole or x is not negative",
        "factors have relative errors, which add up the same in any order; overflow and underflow of a factor are seen by the error analysis";
    ExpLog "exp and log": "log(exp(x)) = x, and exp(log(x)) = x, where x is positive",
        "x is exact where the two functions round, and exp makes a relative error of the absolute one of its operand";
    LogOfProduct "log of a product": "log(x^a y) = a log(x) + log(y), where x and y are positive",
        "the logarithms may cancel, near a product of 1: taken where the error analysis finds no larger error";
    ConstantFactor "constant factor": "sum(c x) = c sum(x), where c is constant along the axis, and so for other linear ops",
        "the bound of sum(c x) is that of sum(x), times c, and one product rounds instead of one an element";
    SumOfConstant "sum of a constant": "sum(c) = n c, where c is constant along an axis of n elements",
        "c is one number, whose error counts n times in both; n - 1 additions of one sign round where one product does";
    SumOfSum "sum of a sum": "sum(a + b) = sum(a) + sum(b), where that is shorter",
        "a and b may cancel element by element, and their sums later with less left: taken where the error analysis finds no larger error";
    OneHotSum "one-hot sum": "sum(onehot) = 1 along its axis",
        "both are exact";
    OneHotPower "one-hot power": "m^a = m, where m is a mask of zeros and ones and a is positive",
        "both are exact";
    OneHotPick "one-hot pick": "m x / pick(x) = m, where m is one-hot, pick(x) is the element that it picks, and x is not zero",
        "m is exact where a product and a quotient round";
    SoftmaxSum "softmax sum": "sum(softmax(x)) = 1 along its axis",
        "the sum is 1 but for its rounding error, which is gone; a form in which that is all there is is left as it is";
    Distribute "distribute": "a (b + c) = a b + a c, where that is shorter",
        "b and c may cancel, and the products later with less left: taken where the error analysis finds no larger error";
    PartialFractions "partial fractions": "x / (x + c) = 1 - c / (x + c), where that is shorter and x + c is not zero",
        "the difference cancels where x is small beside c: taken where the error analysis finds no larger error";
    CommonDenominator "common denominator": "1 - 1 / x = (x - 1) / x, where that is shorter and x is not zero",
        "one difference becomes another: taken where the error analysis finds no larger error";
    Zero "zero": "an op that is linear in an operand gives zero for zero",
        "zeros are exact, and must be so in all operands that the op is linear in together";
    Slope "slope": "g * tanh'(x) = g (1 - tanh(x)^2), and so for the other ops whose slope is one of the terms",
        "the kernel of the slope computes the same steps";
    CommonFactor "common factor": "a b + a c = a (b + c)",
        "a cancellation in b + c is one of a b + a c, too, and one product rounds instead of two; the error analysis sees where b + c overflows";
    Reuse "reuse": "what the program has computed already, or a part of it, is not computed again",
        "what is there was rounded in its own way: taken where the error analysis finds no larger error";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each rule says why it may be taken, and the book says it too.
    #[test]
    fn each_rule_tells_its_accuracy() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/algebra.md");
        let book = std::fs::read_to_string(page).unwrap();
        for rule in rules() {
            assert!(rule.accuracy.len() > 10, "{}", rule.name);
            let row = format!("| {} | {} |", rule.name, rule.accuracy);
            assert!(book.contains(&row), "docs/src/algebra.md lacks\n{row}");
        }
    }
}
