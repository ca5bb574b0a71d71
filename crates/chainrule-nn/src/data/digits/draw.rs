//! Drawing a digit: one of its glyphs, distorted at random, as a stroke on 28 by 28 pixels.

use super::glyphs::{GLYPHS, Stroke};
use super::{Digits, PIXELS};
use crate::kernels::threads;
use crate::rng::CounterRng;

/// Images per task of a thread.
const PIECE: usize = 256;

/// Segments of the curve between two points.
const STEPS: usize = 5;

pub(super) fn draw(count: usize, seed: u64) -> Digits {
    let mut pixels = vec![0; count * PIXELS];
    let mut labels = vec![0; count];
    let pieces = pixels.chunks_mut(PIECE * PIXELS).zip(labels.chunks_mut(PIECE)).enumerate();
    threads::for_each(count > PIECE, pieces, |(piece, (pixels, labels))| {
        for (i, (picture, label)) in pixels.chunks_mut(PIXELS).zip(labels).enumerate() {
            let rng = &mut CounterRng::new(seed, (piece * PIECE + i) as u64);
            *label = below(rng, 10) as u8;
            one(usize::from(*label), rng, picture);
        }
    });
    Digits { pixels, labels }
}

fn below(rng: &mut CounterRng, n: usize) -> usize {
    (rng.uniform_f32() * n as f32) as usize
}

fn between(rng: &mut CounterRng, low: f32, high: f32) -> f32 {
    low + (high - low) * rng.uniform_f32()
}

type Point = (f32, f32);

fn one(digit: usize, rng: &mut CounterRng, picture: &mut [u8]) {
    let ways = GLYPHS[digit];
    let strokes = ways[below(rng, ways.len())];
    let hand = Hand::new(rng);
    let thickness = between(rng, 0.7, 1.9);
    let mut ink = [0.0f32; PIXELS];
    for stroke in strokes {
        // Jitter of the points.
        let points: Vec<Point> = stroke
            .points
            .iter()
            .map(|&(x, y)| (x + between(rng, -0.025, 0.025), y + between(rng, -0.025, 0.025)))
            .collect();
        let line: Vec<Point> = path(stroke, &points).into_iter().map(|p| hand.place(p)).collect();
        line.windows(2).for_each(|ends| segment(ends[0], ends[1], thickness, &mut ink));
    }
    let (strength, noise) = (between(rng, 0.8, 1.0), between(rng, 0.0, 0.06));
    for (to, &ink) in picture.iter_mut().zip(&ink) {
        let grain = noise * (rng.uniform_f32() - 0.5) * if ink > 0.0 { 2.0 } else { 1.0 };
        let grey = (ink * strength + grain).clamp(0.0, 1.0);
        // Most pixels are background.
        *to = if ink == 0.0 && grey < 0.02 { 0 } else { (grey * 255.0) as u8 };
    }
}

/// A polyline through the points, straight or as a Catmull-Rom spline.
fn path(stroke: &Stroke, points: &[Point]) -> Vec<Point> {
    let at = |i: isize| points[i.clamp(0, points.len() as isize - 1) as usize];
    let mut line = vec![points[0]];
    for i in 0..points.len() as isize - 1 {
        let ends = [at(i - 1), at(i), at(i + 1), at(i + 2)];
        // Straight strokes are subdivided too, so that they can be bent.
        line.extend((1..=STEPS).map(|step| {
            let t = step as f32 / STEPS as f32;
            let mix = |axis: fn(Point) -> f32| {
                let [a, b, c, d] = ends.map(axis);
                match stroke.smooth {
                    true => {
                        0.5 * (2.0 * b
                            + (c - a) * t
                            + (2.0 * a - 5.0 * b + 4.0 * c - d) * t * t
                            + (3.0 * b - a - 3.0 * c + d) * t * t * t)
                    }
                    false => b + (c - b) * t,
                }
            };
            (mix(|p| p.0), mix(|p| p.1))
        }));
    }
    line
}

/// A random distortion of a glyph: rotation, slant, scale, shift, and smooth waves.
struct Hand {
    turn: [f32; 4],
    shift: Point,
    waves: [[f32; 4]; 4],
}

impl Hand {
    fn new(rng: &mut CounterRng) -> Hand {
        let (angle, slant) = (between(rng, -0.26, 0.26), between(rng, -0.3, 0.3));
        let (wide, high) = (between(rng, 0.75, 1.15), between(rng, 0.8, 1.1));
        let (sin, cos) = (angle.sin(), angle.cos());
        // Scale, then slant, then rotation.
        let turn =
            [cos * wide, (cos * -slant - sin) * high, sin * wide, (sin * -slant + cos) * high];
        let shift = (between(rng, -0.08, 0.08), between(rng, -0.08, 0.08));
        let waves = std::array::from_fn(|_| {
            let most = 0.03;
            [
                between(rng, -most, most),
                between(rng, -7.0, 7.0),
                between(rng, -7.0, 7.0),
                between(rng, 0.0, 6.3),
            ]
        });
        Hand { turn, shift, waves }
    }

    /// In pixels.
    fn place(&self, (x, y): Point) -> Point {
        let wave = |[size, a, b, start]: [f32; 4]| size * (a * x + b * y + start).sin();
        let [a, b, c, d] = self.waves.map(wave);
        let (x, y) = (x + a + b - 0.5, y + c + d - 0.5);
        let [xx, xy, yx, yy] = self.turn;
        let (x, y) = (xx * x + xy * y + self.shift.0, yx * x + yy * y + self.shift.1);
        // The digit fills about 20 of the 28 pixels, as in MNIST.
        ((x + 0.5) * 24.0 + 1.5, (y + 0.5) * 24.0 + 1.5)
    }
}

/// Darkens the pixels within `radius` of a piece of line; the edge is smooth.
fn segment(a: Point, b: Point, radius: f32, ink: &mut [f32; PIXELS]) {
    const SIDE: usize = Digits::SIDE;
    let reach = radius + 1.0;
    let range = |a: f32, b: f32| {
        let low = (a.min(b) - reach).floor().max(0.0) as usize;
        let high = ((a.max(b) + reach).ceil().max(0.0) as usize).min(SIDE);
        low.min(high)..high
    };
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let length = (dx * dx + dy * dy).max(1e-9);
    for y in range(a.1, b.1) {
        for x in range(a.0, b.0) {
            let (px, py) = (x as f32 + 0.5 - a.0, y as f32 + 0.5 - a.1);
            let t = ((px * dx + py * dy) / length).clamp(0.0, 1.0);
            let (ex, ey) = (px - t * dx, py - t * dy);
            let distance = (ex * ex + ey * ey).sqrt();
            let dark = (radius + 0.5 - distance).clamp(0.0, 1.0);
            let pixel = &mut ink[y * SIDE + x];
            *pixel = pixel.max(dark);
        }
    }
}
