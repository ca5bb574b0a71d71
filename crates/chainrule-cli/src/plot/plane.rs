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

const TOP: f64 = 56.0;
const ROOM: f64 = 24.0;
const CELL: f64 = 6.0;

/// Draws it; writes the same picture as SVG and as PNG.
///
/// # Errors
/// Only if a file cannot be written.
pub fn plane(plane: &Plane<'_>, title: &str, out_svg: &Path, out_png: &Path) -> Result<()> {
    let rows = plane.chances.len() / plane.columns.max(1);
    let (wide, high) = (plane.columns as f64 * CELL, rows as f64 * CELL);
    let mut scene = Scene::new(wide + 2.0 * ROOM, high + TOP + ROOM);
    scene.add(text(wide / 2.0 + ROOM, 34.0, title, 18, TextAnchor::Middle));
    for (row, chances) in plane.chances.chunks(plane.columns).enumerate() {
        let y = TOP + high - (row + 1) as f64 * CELL;
        for (column, &chance) in chances.iter().enumerate() {
            let x = ROOM + column as f64 * CELL;
            // A little larger than the step, so that no white lines show.
            scene.add(cell(x, y, CELL + 0.3, CELL + 0.3, &shade(chance), None));
        }
    }
    for &(x, y, class) in plane.points {
        let share = |v: f64, low: f64, high: f64| (v - low) / (high - low);
        let left = ROOM + share(x, plane.low.0, plane.high.0) * wide - 2.5;
        let top = TOP + high - share(y, plane.low.1, plane.high.1) * high - 2.5;
        let fill = if class == 0 { "#0d3a66" } else { "#8c2d0a" };
        scene.add(cell(left, top, 5.0, 5.0, fill, Some("#ffffff")));
    }
    save(&scene, out_svg, out_png)
}

/// From blue by way of white to orange.
fn shade(chance: f64) -> String {
    let strength = (2.0 * chance - 1.0).clamp(-1.0, 1.0);
    let full = if strength < 0.0 { [120.0, 165.0, 210.0] } else { [235.0, 150.0, 110.0] };
    let [r, g, b] = full.map(|c: f64| (255.0 + (c - 255.0) * strength.abs()).round() as u8);
    format!("#{r:02x}{g:02x}{b:02x}")
}
