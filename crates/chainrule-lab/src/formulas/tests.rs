//! Explanations of all formulas.

use chainrule::program::Library;

use super::*;

#[test]
fn every_formula_can_be_explained_and_fits_the_page() {
    for formula in formulas().iter().filter(|f| !["mnist", "gpt-small"].contains(&f.name)) {
        let program = formula.trace().unwrap();
        let explanation = program.explain(formula.what).unwrap();
        let text = explanation.to_string();
        for heading in ["The traced program", "The steps", "The result"] {
            assert!(text.contains(&format!("\n{heading}\n")), "{}", formula.name);
        }
        let long: Vec<&str> = text.lines().filter(|l| l.chars().count() > 100).collect();
        assert!(long.is_empty(), "{}: {long:#?}", formula.name);
        for (_, library) in Library::ALL {
            explanation.simplified.program.to_python_with(library).unwrap();
        }
    }
}

/// The textbooks' line costs less than the result of differentiation.
#[test]
fn the_textbook_formulas_come_out_cheaper() {
    for name in ["softmax-ce", "batch-norm"] {
        let explanation = formula(name).unwrap().trace().unwrap().explain(name).unwrap();
        let [before, after] =
            [&explanation.traced, &explanation.simplified.program].map(|p| p.cost());
        assert!(after.flops <= before.flops && after.bytes <= before.bytes, "{explanation}");
    }
}

#[test]
fn unknown_names_are_an_error_with_the_nearest() {
    let text = formula("softmx-ce").unwrap_err().to_string();
    assert!(text.contains("`softmx-ce`") && text.contains("softmax-ce"), "{text}");
    let text = formula("norm").unwrap_err().to_string();
    assert!(text.contains("batch-norm") && text.contains("layer-norm"), "{text}");
    formula("").unwrap_err();
}

/// The formulas have the names that one asks for their gradients by.
#[test]
fn gradients_have_their_names() {
    let program = formula("names").unwrap().trace().unwrap().optimized();
    for name in ["d_logits", "d_hprebn", "hpreact", "d_bngain", "W1_new"] {
        assert!(program.lines().any(|l| l.name() == name), "{name}\n{program}");
    }
}
