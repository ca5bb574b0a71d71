//! The picture of the pictures that a model got most wrong.

use std::path::Path;

use anyhow::Result;
use kuva::render::render::{Scene, TextAnchor};

use super::gradient::{cell, text};
use super::save;

/// One picture: its pixels, what it is, what it was taken for, and with what probability.
pub struct Mistake<'a> {
    pub pixels: &'a [u8],
    pub is: usize,
    pub taken_for: usize,
    pub sure: f64,
}

const SIDE: usize = 28;
const PIXEL: f64 = 3.0;
const STEP_X: f64 = SIDE as f64 * PIXEL + 22.0;
const STEP_Y: f64 = SIDE as f64 * PIXEL + 40.0;
const COLUMNS: usize = 6;
const TOP: f64 = 84.0;
const LEFT: f64 = 24.0;

/// Draws the pictures in rows of six; writes the same picture as SVG and as PNG.
///
/// # Errors
/// Only if a file cannot be written.
pub fn mistakes(all: &[Mistake<'_>], title: &str, out_svg: &Path, out_png: &Path) -> Result<()> {
    let rows = all.len().div_ceil(COLUMNS).max(1);
    let wide = 2.0 * LEFT + COLUMNS as f64 * STEP_X;
    let mut scene = Scene::new(wide, TOP + rows as f64 * STEP_Y + 10.0);
    scene.add(text(wide / 2.0, 34.0, title, 18, TextAnchor::Middle));
    let words =
        "over each: the digit it is, the digit it was taken for (the model's probability of that)";
    scene.add(text(wide / 2.0, 58.0, words, 12, TextAnchor::Middle));
    for (i, mistake) in all.iter().enumerate() {
        let x = LEFT + (i % COLUMNS) as f64 * STEP_X;
        let y = TOP + (i / COLUMNS) as f64 * STEP_Y;
        let words =
            format!("{} as {} ({:.0}%)", mistake.is, mistake.taken_for, mistake.sure * 100.0);
        scene.add(text(x + 42.0, y + 10.0, &words, 11, TextAnchor::Middle));
        picture(&mut scene, mistake.pixels, x, y + 18.0);
    }
    save(&scene, out_svg, out_png)
}

/// Runs of equal pixels as one rectangle each, on black.
fn picture(scene: &mut Scene, pixels: &[u8], x: f64, y: f64) {
    let side = SIDE as f64 * PIXEL;
    scene.add(cell(x, y, side, side, "#000000", None));
    for (row, pixels) in pixels.chunks(SIDE).enumerate() {
        // Sixteen greys are enough to see.
        let greys: Vec<u8> = pixels.iter().map(|p| p >> 4).collect();
        let mut start = 0;
        for run in greys.chunk_by(|a, b| a == b) {
            if run[0] > 0 {
                let grey = run[0] * 17;
                let fill = format!("#{grey:02x}{grey:02x}{grey:02x}");
                let (left, top) = (x + start as f64 * PIXEL, y + row as f64 * PIXEL);
                scene.add(cell(left, top, run.len() as f64 * PIXEL, PIXEL, &fill, None));
            }
            start += run.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_have_words_that_are_explained() {
        let dir = tempfile::tempdir().unwrap();
        let (svg, png) = (dir.path().join("a.svg"), dir.path().join("a.png"));
        let pixels: Vec<u8> = (0..784).map(|i| (i % 256) as u8).collect();
        let one = || Mistake { pixels: &pixels, is: 3, taken_for: 5, sure: 0.987 };
        mistakes(&[one(), one()], "wrong", &svg, &png).unwrap();
        let text = std::fs::read_to_string(&svg).unwrap();
        assert_eq!(text.matches(">3 as 5 (99%)</text>").count(), 2, "{text}");
        assert!(text.contains(">over each: the digit it is"), "{text}");
    }
}
