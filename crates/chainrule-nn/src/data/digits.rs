//! Handwritten digits: the MNIST files, or digits drawn here.

mod draw;
mod glyphs;

use std::path::{Path, PathBuf};

use super::dataset::{Dataset, RawBatch};
use super::{Idx, file};
use crate::error::{Error, Result};

/// Grey images of 28 by 28 pixels, 0 to 255, with their labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digits {
    /// The pixels, image by image and row by row.
    pub pixels: Vec<u8>,
    /// The labels, 0 to 9.
    pub labels: Vec<u8>,
}

/// Pixels of an image.
const PIXELS: usize = Digits::SIDE * Digits::SIDE;

impl Digits {
    /// Width and height of an image.
    pub const SIDE: usize = 28;

    /// Draws `count` digits: strokes with random jitter, slant and pressure.
    ///
    /// Image `i` depends on the seed and on `i` alone, so the result is the same for any number of
    /// threads. No two seeds share images.
    ///
    /// ```
    /// use chainrule::data::Digits;
    /// let digits = Digits::draw(100, 7);
    /// assert_eq!((digits.len(), digits.pixels.len()), (100, 100 * 784));
    /// assert_eq!(digits, Digits::draw(100, 7));
    /// ```
    pub fn draw(count: usize, seed: u64) -> Digits {
        draw::draw(count, seed)
    }

    /// The images of IDX files. Errors unless they are 28 by 28, as many as labels, and the labels
    /// are 0 to 9.
    pub fn read(images: impl AsRef<Path>, labels: impl AsRef<Path>) -> Result<Digits> {
        let (images, labels) = (images.as_ref(), labels.as_ref());
        let (pixels, digits) = (Idx::read(images)?, Idx::read(labels)?);
        if pixels.shape.len() != 3 || pixels.shape[1..] != [Self::SIDE; 2] {
            let why = format!("holds {:?}, not pictures of 28 by 28", pixels.shape);
            return Err(file::wrong(images, why));
        }
        if digits.shape.len() != 1 {
            let why = format!("holds {:?}, not a row of labels", digits.shape);
            return Err(file::wrong(labels, why));
        }
        if pixels.shape[0] != digits.shape[0] {
            let why = format!(
                "{} labels for {} pictures; take the two files of one set",
                digits.shape[0], pixels.shape[0]
            );
            return Err(file::wrong(labels, why));
        }
        if let Some(at) = digits.data.iter().position(|&digit| digit > 9) {
            let why = format!("label {at} is {}, but digits are 0 to 9", digits.data[at]);
            return Err(file::wrong(labels, why));
        }
        if digits.data.is_empty() {
            return Err(file::wrong(labels, "holds no labels"));
        }
        Ok(Digits { pixels: pixels.data, labels: digits.data })
    }

    /// Training set and test set from a folder with the four MNIST files, gzipped or not.
    pub fn read_folder(folder: impl AsRef<Path>) -> Result<(Digits, Digits)> {
        let folder = folder.as_ref();
        if !folder.is_dir() {
            let why = match folder.exists() {
                true => "this is a file; give the folder with the four files of the set",
                false => "there is no such folder; check the path",
            };
            return Err(file::wrong(folder, why));
        }
        let part = |part: &str| -> Result<Digits> {
            let images = find(folder, part, "images-idx3-ubyte")?;
            Digits::read(images, find(folder, part, "labels-idx1-ubyte")?)
        };
        Ok((part("train")?, part("t10k")?))
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Pixels of image `i`.
    pub fn picture(&self, i: usize) -> &[u8] {
        &self.pixels[i * PIXELS..(i + 1) * PIXELS]
    }
}

/// A file of the folder, gzipped or not, also with a dot for the second hyphen as some copies have
/// it.
fn find(folder: &Path, part: &str, name: &str) -> Result<PathBuf> {
    let plain = format!("{part}-{name}");
    let dotted = plain.replacen("-idx", ".idx", 1);
    let names = [&plain, &dotted].map(|name| [name.clone(), format!("{name}.gz")]).concat();
    let paths = names.into_iter().map(|name| folder.join(name));
    paths.into_iter().find(|path| path.exists()).ok_or_else(|| {
        file::wrong(&folder.join(plain), "there is no such file, gzipped or not; check the folder")
    })
}

/// Batches of images as rows of 784 standardised pixels, and their labels.
impl Dataset for Digits {
    fn len(&self) -> usize {
        self.labels.len()
    }

    fn fill(&self, rows: &[usize], out: &mut RawBatch) -> Result<()> {
        let pixels = out.x.f32(&[rows.len(), PIXELS]);
        for (to, &row) in pixels.chunks_exact_mut(PIXELS).zip(rows) {
            let from = self
                .pixels
                .get(row * PIXELS..(row + 1) * PIXELS)
                .ok_or_else(|| Error::argument("Digits", format!("there is no picture {row}")))?;
            to.iter_mut().zip(from).for_each(|(to, &p)| *to = NORMAL[usize::from(p)]);
        }
        let labels = out.y.i64(&[rows.len()]);
        labels.iter_mut().zip(rows).for_each(|(to, &row)| *to = i64::from(self.labels[row]));
        Ok(())
    }
}

/// A standardised pixel, by the mean and deviation of the MNIST training set.
static NORMAL: [f32; 256] = {
    let (mut table, mut i) = ([0.0; 256], 0);
    while i < 256 {
        table[i] = (i as f32 / 255.0 - 0.1307) / 0.3081;
        i += 1;
    }
    table
};

#[cfg(test)]
mod tests;
