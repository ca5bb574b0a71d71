//! The IDX format of the MNIST files: a magic number, sizes, bytes.

use std::path::Path;

use super::file;
use crate::error::{Error, Result};

/// Largest content of a file, 1 GiB: the largest known dataset in this format has 0.5.
const MOST_BYTES: u64 = 1 << 30;

/// An array of bytes from an IDX file.
///
/// ```
/// use chainrule::data::Idx;
/// let labels = Idx::parse(b"\x00\x00\x08\x01\x00\x00\x00\x03\x07\x02\x01".to_vec())?;
/// assert_eq!((labels.shape, labels.data), (vec![3], vec![7, 2, 1]));
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idx {
    /// The sizes of the axes.
    pub shape: Vec<usize>,
    /// The bytes in row-major order.
    pub data: Vec<u8>,
}

impl Idx {
    /// Reads a file, gzipped or not.
    pub fn read(path: impl AsRef<Path>) -> Result<Idx> {
        let path = path.as_ref();
        parse(file::bytes(path)?).map_err(|why| file::wrong(path, why))
    }

    /// Parses the bytes of a file, gzipped or not. Errors for another magic number, and for a
    /// length other than the sizes say.
    pub fn parse(bytes: Vec<u8>) -> Result<Idx> {
        parse(bytes).map_err(|why| Error::argument("idx", why))
    }
}

fn parse(bytes: Vec<u8>) -> Result<Idx, String> {
    let bytes = file::unpacked(bytes, MOST_BYTES)?;
    let Some((&[0, 0, kind, rank], _)) = bytes.split_first_chunk::<4>() else {
        let magic: Vec<String> = bytes.iter().take(4).map(|b| format!("{b:02x}")).collect();
        return Err(format!(
            "not an IDX file: it begins with [{}] and not with 00 00; check that it is the right file",
            magic.join(" ")
        ));
    };
    if kind != 8 || !(1..=4).contains(&rank) {
        return Err(format!(
            "an IDX file of kind {kind:#04x} with {rank} axes; bytes (0x08) with 1 to 4 axes can be read"
        ));
    }
    let head = 4 + 4 * usize::from(rank);
    let Some(sizes) = bytes.get(4..head) else {
        return Err(format!("cut short in its header: {} bytes", bytes.len()));
    };
    let (sizes, _) = sizes.as_chunks::<4>();
    let shape: Vec<usize> = sizes.iter().map(|&s| u32::from_be_bytes(s) as usize).collect();
    let want = shape.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
    let have = bytes.len() - head;
    if want != Some(have) {
        let say = if want.is_none_or(|want| want > have) { "cut short" } else { "too long" };
        return Err(format!(
            "{say}: the header says {shape:?} and {have} bytes follow; fetch it again"
        ));
    }
    let mut data = bytes;
    data.drain(..head);
    Ok(Idx { shape, data })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn bytes(shape: &[u32], data: usize) -> Vec<u8> {
        let mut out = vec![0, 0, 8, shape.len() as u8];
        out.extend(shape.iter().flat_map(|s| s.to_be_bytes()));
        out.extend((0..data).map(|i| i as u8));
        out
    }

    fn why(bytes: Vec<u8>) -> String {
        Idx::parse(bytes).unwrap_err().to_string()
    }

    #[test]
    fn plain_and_gzipped_files_are_read() {
        let plain = bytes(&[2, 3, 4], 24);
        let idx = Idx::parse(plain.clone()).unwrap();
        assert_eq!((&idx.shape[..], idx.data[23]), (&[2, 3, 4][..], 23));
        let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        zip.write_all(&plain).unwrap();
        let zipped = zip.finish().unwrap();
        assert_eq!(Idx::parse(zipped.clone()).unwrap(), idx);
        assert!(why(zipped[..zipped.len() - 3].to_vec()).contains("damaged or cut short"));
        assert!(Idx::parse(bytes(&[0], 0)).unwrap().data.is_empty());
    }

    #[test]
    fn what_is_wrong_is_told() {
        assert!(why(vec![]).contains("begins with []"));
        assert!(why(b"PNG file".to_vec()).contains("[50 4e 47 20]"));
        assert!(why(vec![0, 0, 13, 1, 0, 0, 0, 0]).contains("kind 0x0d"));
        assert!(why(vec![0, 0, 8, 3, 0, 0]).contains("cut short in its header"));
        assert!(why(bytes(&[5], 4)).contains("cut short: the header says [5] and 4 bytes"));
        assert!(why(bytes(&[5], 6)).contains("too long"));
        assert!(why(bytes(&[u32::MAX; 4], 6)).contains("cut short"));
    }
}
