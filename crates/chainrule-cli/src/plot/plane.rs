//! The picture of a classifier of points: what it says in each place of the plane, and the points.

use std::path::Path;

use anyhow::Result;
use kuva::render::render::{Scene, TextAnchor};

use super::gradient::{cell, text};
use super::save;

/// A plane from `low` to `high`, with the probability of the second class on a grid, row after row
/// from the bottom.
pub struct Plane<'a> {
    pub low: (f64, f64),
    pub high: (f64, f64),
    pub columns: usize,
    pub chances: &'a [f64],
    /// Places and classes.
    pub points: &'a [(f64, f64, i64)],
}

const TOP: f64 = 88.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 24.0;
const BOTTOM: f64 = 52.0;
const CELL: f64 = 6.0;
/// Length of a tick beside an axis.
const TICK: f64 = 5.0;
/// Colours of the points of the two classes.
const POINTS: [&str; 2] = ["#0d3a66", "#8c2d0a"];

/// Draws it; writes the same picture as SVG and as PNG.
///
/// # Errors
/// Only if a file cannot be written.
pub fn plane(plane: &Plane<'_>, title: &str, out_svg: &Path, out_png: &Path) -> Result<()> {
    let rows = plane.chances.len() / plane.columns.max(1);
    let (wide, high) = (plane.columns as f64 * CELL, rows as f64 * CELL);
    let mut scene = Scene::new(LEFT + wide + RIGHT, TOP + high + BOTTOM);
    scene.add(text(LEFT + wide / 2.0, 34.0, title, 18, TextAnchor::Middle));
    for (row, chances) in plane.chances.chunks(plane.columns).enumerate() {
        let y = TOP + high - (row + 1) as f64 * CELL;
        for (column, &chance) in chances.iter().enumerate() {
            let x = LEFT + column as f64 * CELL;
            // A little larger than the step, so that no white lines show.
            scene.add(cell(x, y, CELL + 0.3, CELL + 0.3, &shade(chance), None));
        }
    }
    for &(x, y, class) in plane.points {
        let share = |v: f64, low: f64, high: f64| (v - low) / (high - low);
        let left = LEFT + share(x, plane.low.0, plane.high.0) * wide - 2.5;
        let top = TOP + high - share(y, plane.low.1, plane.high.1) * high - 2.5;
        let fill = POINTS[usize::from(class != 0)];
        scene.add(cell(left, top, 5.0, 5.0, fill, Some("#ffffff")));
    }
    axes(&mut scene, plane, wide, high);
    legend(&mut scene);
    save(&scene, out_svg, out_png)
}

/// Numbers below and on the left, at every half or whole of a unit that fits.
fn axes(scene: &mut Scene, plane: &Plane<'_>, wide: f64, high: f64) {
    let bottom = TOP + high;
    for x in ticks(plane.low.0, plane.high.0) {
        let at = LEFT + (x - plane.low.0) / (plane.high.0 - plane.low.0) * wide;
        scene.add(cell(at - 0.5, bottom, 1.0, TICK, "#444444", None));
        scene.add(text(at, bottom + 18.0, &format!("{x}"), 12, TextAnchor::Middle));
    }
    for y in ticks(plane.low.1, plane.high.1) {
        let at = bottom - (y - plane.low.1) / (plane.high.1 - plane.low.1) * high;
        scene.add(cell(LEFT - TICK, at - 0.5, TICK, 1.0, "#444444", None));
        scene.add(text(LEFT - 9.0, at + 4.0, &format!("{y}"), 12, TextAnchor::End));
    }
    scene.add(text(LEFT + wide / 2.0, bottom + 40.0, "first coordinate", 13, TextAnchor::Middle));
    scene.add(text(12.0, TOP - 12.0, "second coordinate", 13, TextAnchor::Start));
}

/// Multiples of a step of 1, 2 or 5 times a power of ten, of which at most ten fit.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    if !(low.is_finite() && high.is_finite()) || high <= low {
        return Vec::new();
    }
    let rough = (high - low) / 10.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|&s| s >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    // The division takes away the noise of the product: 0.3 and not 0.30000000000000004.
    let digits = (-step.log10().floor()).max(0.0) as i32;
    let scale = 10f64.powi(digits);
    (first..=last).map(|i| (i as f64 * step * scale).round() / scale).collect()
}

/// Classes of the points, and what the model makes of a place.
fn legend(scene: &mut Scene) {
    let entries = [
        (POINTS[0].to_owned(), "points of class 0"),
        (POINTS[1].to_owned(), "points of class 1"),
        (shade(0.0), "the model says 0"),
        (shade(0.5), "undecided"),
        (shade(1.0), "the model says 1"),
    ];
    for (i, (fill, words)) in entries.iter().enumerate() {
        let x = LEFT + i as f64 * 138.0;
        scene.add(cell(x, 50.0, 12.0, 12.0, fill, Some("#888888")));
        scene.add(text(x + 18.0, 61.0, words, 13, TextAnchor::Start));
    }
}

/// From blue by way of white to orange.
fn shade(chance: f64) -> String {
    let strength = (2.0 * chance - 1.0).clamp(-1.0, 1.0);
    let full = if strength < 0.0 { [120.0, 165.0, 210.0] } else { [235.0, 150.0, 110.0] };
    let [r, g, b] = full.map(|c: f64| (255.0 + (c - 255.0) * strength.abs()).round() as u8);
    format!("#{r:02x}{g:02x}{b:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_within_the_plane() {
        assert_eq!(ticks(-1.6, 2.6), [-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5]);
        assert_eq!(ticks(0.0, 1.0).len(), 11);
        assert_eq!(ticks(0.0, 1.0)[3], 0.3);
        assert!(ticks(1.0, 1.0).is_empty());
        assert!(ticks(f64::NAN, 1.0).is_empty());
        assert_eq!(ticks(-4e6, 5e6).first(), Some(&-4e6));
    }

    #[test]
    fn the_plane_has_axes_and_a_legend() {
        let dir = tempfile::tempdir().unwrap();
        let (svg, png) = (dir.path().join("a.svg"), dir.path().join("a.png"));
        let chances: Vec<f64> = (0..120 * 80).map(|i| f64::from(i % 120) / 119.0).collect();
        let (low, high, points) = ((-1.6, -1.2), (2.6, 1.7), [(0.0, 0.0, 0), (1.0, 1.0, 1)]);
        let all = Plane { low, high, columns: 120, chances: &chances, points: &points };
        plane(&all, "a title", &svg, &png).unwrap();
        let text = std::fs::read_to_string(&svg).unwrap();
        for words in [
            "a title",
            "first coordinate",
            "second coordinate",
            "points of class 0",
            "points of class 1",
            "the model says 0",
            "undecided",
            "the model says 1",
            "-1.5",
            "2.5",
        ] {
            assert!(text.contains(&format!(">{words}</text>")), "{words} is missing");
        }
    }
}
