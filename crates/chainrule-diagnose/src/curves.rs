//! The curves of the experiments compared with the original: as text, and as a page.

use serde_json::{Value, json};

use crate::change::Change;
use crate::reason::short;
use crate::trial::Course;

/// Points of a curve in a report; a longer one is reduced to the means of this many parts.
const POINTS: usize = 120;
/// Blocks of a curve in a line of text.
const BLOCKS: usize = 24;

/// One run: its changes, and its course.
pub type Curve = (Vec<Change>, Course);

/// The changes in words.
pub(crate) fn words(changes: &[Change]) -> String {
    changes.iter().map(|c| c.text()).collect::<Vec<_>>().join(" and ")
}

fn title(changes: &[Change]) -> String {
    if changes.is_empty() { "as it is".to_string() } else { format!("with {}", words(changes)) }
}

/// The means of at most this many equal parts.
pub(crate) fn parts(losses: &[f32], most: usize) -> Vec<f32> {
    if losses.len() <= most {
        return losses.to_vec();
    }
    let part = |i: usize| &losses[i * losses.len() / most..(i + 1) * losses.len() / most];
    let mean = |p: &[f32]| p.iter().map(|&l| f64::from(l)).sum::<f64>() / p.len() as f64;
    (0..most).map(|i| mean(part(i)) as f32).collect()
}

/// A loss in a few digits.
fn few(x: f64) -> String {
    match x.abs() {
        _ if !x.is_finite() => format!("{x}"),
        a if a >= 1e4 || (a > 0.0 && a < 1e-3) => format!("{x:.2e}"),
        a if a >= 100.0 => format!("{x:.0}"),
        _ => format!("{x:.3}"),
    }
}

/// `▇▅▃▁`: the highest loss is full, the lowest empty; `!` stands for one that is not finite.
fn blocks(losses: &[f32]) -> String {
    let parts = parts(losses, BLOCKS);
    let finite = || parts.iter().filter(|l| l.is_finite());
    let high = finite().copied().fold(f32::NEG_INFINITY, f32::max);
    let low = finite().copied().fold(f32::INFINITY, f32::min);
    let block = |l: &f32| match l.is_finite() {
        false => '!',
        true if high <= low => '▄',
        true => {
            let share = f64::from(l - low) / f64::from(high - low);
            ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][(share * 7.99) as usize]
        }
    };
    parts.iter().map(block).collect()
}

/// The skill that counts, as reports show it.
fn skill(course: &Course) -> f64 {
    course.held.map_or(course.fit, |held| course.fit.min(held + crate::lab::MEMORY))
}

/// The curves as lines of text.
pub(crate) fn lines(curves: &[Curve]) -> Vec<String> {
    let wide = curves.iter().map(|(c, _)| title(c).chars().count()).max().unwrap_or(0).min(60);
    let line = |(changes, course): &Curve| {
        let ends = course.losses.first().zip(course.losses.last());
        let ends = ends.map_or(String::new(), |(a, b)| {
            format!(", loss {} to {}", few(f64::from(*a)), few(f64::from(*b)))
        });
        let (title, blocks) = (title(changes), blocks(&course.losses));
        format!("   {title:<wide$}  {blocks}{ends}, skill {:.2}", skill(course) + 0.0)
    };
    curves.iter().map(line).collect()
}

/// The curves as JSON.
pub(crate) fn json(curves: &[Curve]) -> Value {
    let one = |(changes, course): &Curve| {
        json!({
            "changes": changes.iter().map(|c| c.kind()).collect::<Vec<_>>(),
            "text": words(changes), "steps": course.losses.len(),
            "losses": parts(&course.losses, POINTS),
            "fit": short(course.fit), "held": course.held.map(short),
        })
    };
    curves.iter().map(one).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A self-contained page: the report as text, and a picture of each curve. Losses of different
/// kinds cannot share an axis, so each has its own.
pub(crate) fn html(title: &str, text: &str, curves: &[Curve]) -> String {
    let pictures: String = curves.iter().map(picture).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n<style>\
         body{{font:15px/1.45 system-ui,sans-serif;max-width:72em;margin:2em auto;padding:0 1em;color:#222}}\
         pre{{white-space:pre-wrap;background:#f6f6f4;padding:1em}}figure{{display:inline-block;margin:0 1em 1em 0}}\
         figcaption{{max-width:26em}}text{{font:11px system-ui,sans-serif;fill:#444}}</style></head>\n\
         <body><h1>{0}</h1>\n<pre>{1}</pre>\n<h2>Curves beside the original</h2>\n{pictures}</body></html>\n",
        escaped(title),
        escaped(text)
    )
}

/// One curve with its axes.
fn picture((changes, course): &Curve) -> String {
    const WIDE: f64 = 380.0;
    const HIGH: f64 = 200.0;
    const LEFT: f64 = 64.0;
    const BOTTOM: f64 = 34.0;
    let parts = parts(&course.losses, POINTS);
    let finite = || parts.iter().filter(|l| l.is_finite()).map(|&l| f64::from(l));
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::MIN, f64::max));
    let (low, high) = if low.is_finite() { (low, high.max(low + 1e-12)) } else { (0.0, 1.0) };
    let x = |i: usize| LEFT + i as f64 / (parts.len().max(2) - 1) as f64 * (WIDE - LEFT - 8.0);
    let y = |l: f64| 10.0 + (high - l) / (high - low) * (HIGH - BOTTOM - 10.0);
    // A loss that is not finite interrupts the line.
    let runs = parts.chunk_by(|a, b| a.is_finite() == b.is_finite());
    let (mut at, mut drawn) = (0, String::new());
    for run in runs {
        if run[0].is_finite() {
            let points: Vec<String> = run
                .iter()
                .enumerate()
                .map(|(i, &l)| format!("{:.1},{:.1}", x(at + i), y(f64::from(l))))
                .collect();
            drawn += &format!(
                "<polyline fill=\"none\" stroke=\"#174a7e\" stroke-width=\"2\" points=\"{}\"/>",
                points.join(" ")
            );
        }
        at += run.len();
    }
    let floor = HIGH - BOTTOM;
    let axes = format!(
        "<path d=\"M{LEFT} 10V{floor}H{WIDE}\" fill=\"none\" stroke=\"#888\"/>\
         <text x=\"4\" y=\"18\">{}</text><text x=\"4\" y=\"{floor}\">{}</text><text x=\"4\" y=\"{}\">loss</text>\
         <text x=\"{LEFT}\" y=\"{}\">step 1</text><text x=\"{WIDE}\" y=\"{}\" text-anchor=\"end\">{}</text>",
        few(high),
        few(low),
        f64::midpoint(10.0, floor),
        HIGH - 14.0,
        HIGH - 14.0,
        course.losses.len()
    );
    let held = course.held.map_or(String::new(), |h| format!(", {:.2} on rows kept back", h + 0.0));
    format!(
        "<figure><svg width=\"{WIDE}\" height=\"{HIGH}\" role=\"img\" aria-label=\"loss {0}\">{axes}{drawn}</svg>\
         <figcaption>{0}: skill {1:.2}{held}</figcaption></figure>\n",
        escaped(&title(changes)),
        course.fit + 0.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(losses: &[f32]) -> Course {
        Course { losses: losses.to_vec(), fit: 0.9, held: Some(0.7) }
    }

    #[test]
    fn a_curve_is_full_at_its_highest_and_empty_at_its_lowest() {
        assert_eq!(blocks(&[8.0, 4.0, 0.0]), "█▄▁");
        assert_eq!(blocks(&[1.0, 1.0]), "▄▄");
        assert_eq!(blocks(&[1.0, f32::NAN, 0.0]), "█!▁");
        assert_eq!(blocks(&[]), "");
        assert_eq!(blocks(&[1.0; 1000]).chars().count(), BLOCKS);
    }

    #[test]
    fn parts_are_means() {
        assert_eq!(parts(&[1.0, 3.0, 5.0, 7.0], 2), [2.0, 6.0]);
        assert_eq!(parts(&[1.0, 3.0], 2), [1.0, 3.0]);
    }

    #[test]
    fn lines_and_page_show_all_curves() {
        let curves =
            [(Vec::new(), course(&[2.0, 2.0])), (vec![Change::ScaleX], course(&[2.0, 0.5]))];
        let text = lines(&curves).join("\n");
        assert!(text.contains("as it is") && text.contains("with standardised inputs"), "{text}");
        // Skill that only the rows trained on have does not count: 0.7 + 0.1.
        assert!(text.contains("loss 2.000 to 0.500, skill 0.80"), "{text}");
        let page = html("a <b>", "1 < 2", &curves);
        assert!(page.contains("a &lt;b&gt;") && page.contains("1 &lt; 2"), "{page}");
        assert_eq!(page.matches("<svg").count(), 2);
        assert_eq!(page.matches("<polyline").count(), 2);
        assert!(!page.contains("NaN") && !page.contains("http"));
        let broken = html("x", "", &[(Vec::new(), course(&[f32::NAN, f32::INFINITY]))]);
        assert!(!broken.contains("NaN") && !broken.contains("inf,"), "{broken}");
    }
}
