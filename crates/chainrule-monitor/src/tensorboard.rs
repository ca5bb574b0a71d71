//! Event files of TensorBoard.
//!
//! A file is a row of records: length (u64), checksum of these eight bytes (u32), data, checksum of
//! the data (u32), all little-endian. The checksum is CRC-32C, turned by 15 bits and with a
//! constant added. The data are the messages of [`proto`].

mod proto;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use prost::Message;

use crate::monitor::Monitor;
use crate::node::EventNode;
use crate::stats::{LOWEST, Stats};
use proto::{
    DimProto, EventProto, GraphDefProto, HistogramProto, MetadataProto, NodeProto, PluginProto,
    ShapeProto, SummaryProto, TensorProto, ValueProto, VersionProto,
};

/// CRC-32C (Castagnoli) of all values of a byte.
const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut out = [0; 256];
    let mut i = 0;
    while i < 256 {
        let (mut crc, mut bit) = (i as u32, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        out[i] = crc;
        i += 1;
    }
    out
}

fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| TABLE[((crc ^ u32::from(*byte)) & 0xff) as usize] ^ (crc >> 8);
    !bytes.iter().fold(!0, step)
}

/// The checksum as records store it.
fn masked(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// A file that TensorBoard shows: scalars, histograms, texts and a graph, at steps.
///
/// ```
/// use chainrule::monitor::{EventFile, Stats};
/// let folder = std::env::temp_dir().join(format!("events-{}", std::process::id()));
/// let mut events = EventFile::create(&folder)?;
/// events.scalar(1, "loss", 0.5)?;
/// events.histogram(1, "gradients/0.weight", &Stats::of(&[0.1, -0.2]))?;
/// events.text(1, "findings", "nothing is wrong")?;
/// let path = events.finish()?;
/// assert!(path.file_name().unwrap().to_string_lossy().starts_with("events.out.tfevents."));
/// # std::fs::remove_dir_all(folder)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct EventFile {
    path: PathBuf,
    file: BufWriter<File>,
}

/// Files made by this process, whose names differ by it.
static MADE: AtomicU32 = AtomicU32::new(0);

impl EventFile {
    /// A new file in the folder, which is made if it is missing.
    ///
    /// Errors if the folder or the file cannot be written.
    pub fn create(folder: &Path) -> io::Result<EventFile> {
        fs::create_dir_all(folder)?;
        let (pid, made) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let seconds = now() as u64;
        let path = folder.join(format!("events.out.tfevents.{seconds:010}.chainrule.{pid}.{made}"));
        let file = BufWriter::new(File::create_new(&path)?);
        let mut events = EventFile { path, file };
        let version = Some("brain.Event:2".to_owned());
        events.write(&EventProto {
            wall_time: now(),
            file_version: version,
            ..Default::default()
        })?;
        Ok(events)
    }

    /// A number, which the file holds as 32 bits.
    pub fn scalar(&mut self, step: u64, tag: &str, value: f64) -> io::Result<()> {
        let value = ValueProto { simple_value: Some(value as f32), ..tagged(tag) };
        self.summary(step, value)
    }

    /// A histogram of the finite numbers; nothing where there are none.
    pub fn histogram(&mut self, step: u64, tag: &str, stats: &Stats) -> io::Result<()> {
        match buckets(stats) {
            Some(histo) => self.summary(step, ValueProto { histo: Some(histo), ..tagged(tag) }),
            None => Ok(()),
        }
    }

    /// A text, which TensorBoard reads as Markdown.
    pub fn text(&mut self, step: u64, tag: &str, text: &str) -> io::Result<()> {
        const STRING: i32 = 7;
        let tensor = TensorProto {
            dtype: STRING,
            tensor_shape: Some(ShapeProto { dim: vec![DimProto { size: 1 }] }),
            string_val: vec![text.as_bytes().to_vec()],
        };
        let plugin = PluginProto { plugin_name: "text".to_owned() };
        let metadata = Some(MetadataProto { plugin_data: Some(plugin) });
        self.summary(step, ValueProto { tensor: Some(tensor), metadata, ..tagged(tag) })
    }

    /// The graph of a computation.
    pub fn graph(&mut self, nodes: &[EventNode]) -> io::Result<()> {
        let node = |n: &EventNode| NodeProto {
            name: n.name.clone(),
            op: n.op.clone(),
            input: n.inputs.clone(),
        };
        let graph = GraphDefProto {
            node: nodes.iter().map(node).collect(),
            versions: Some(VersionProto { producer: 22 }),
        };
        let graph_def = Some(graph.encode_to_vec());
        self.write(&EventProto { wall_time: now(), graph_def, ..Default::default() })
    }

    /// Histograms of weights, gradients, updates and outputs, and the norm of all gradients, as
    /// measured in the last finished step.
    pub fn looked(&mut self, monitor: &Monitor) -> io::Result<()> {
        let Some(last) = monitor.steps().checked_sub(1) else { return Ok(()) };
        let step = monitor.steps();
        for track in monitor.parameters() {
            let Some((_, p)) = track.latest.as_ref().filter(|latest| latest.0 == last) else {
                continue;
            };
            let of = [("weights", Some(&p.value)), ("gradients", p.gradient.as_ref())];
            for (group, stats) in of.into_iter().chain([("updates", p.update.as_ref())]) {
                if let Some(stats) = stats {
                    self.histogram(step, &format!("{group}/{}", track.name()), stats)?;
                }
            }
        }
        for track in monitor.outputs() {
            if let Some((_, o)) = track.latest.as_ref().filter(|latest| latest.0 == last) {
                self.histogram(step, &format!("outputs/{}", track.name()), &o.value)?;
            }
        }
        if let Some((_, before, after)) = monitor.last_norm.filter(|norm| norm.0 == last) {
            self.scalar(step, "gradients/norm", before)?;
            self.scalar(step, "gradients/norm after clipping", after)?;
        }
        Ok(())
    }

    /// Everything that a monitor kept, with its findings as texts.
    pub fn all(&mut self, monitor: &Monitor) -> io::Result<()> {
        for span in monitor.losses.spans() {
            self.scalar(span.step + 1, "loss/training", span.mean)?;
        }
        for (step, (held_out, _)) in monitor.validations.points() {
            self.scalar(*step, "loss/validation", *held_out)?;
        }
        for (step, rate) in monitor.rates.points() {
            self.scalar(step + 1, "lr", *rate)?;
        }
        for (step, (before, after)) in monitor.norms.points() {
            self.scalar(step + 1, "gradients/norm", *before)?;
            self.scalar(step + 1, "gradients/norm after clipping", *after)?;
        }
        for track in monitor.parameters() {
            for (step, p) in track.points() {
                let of = [("weights", Some(&p.value)), ("gradients", p.gradient.as_ref())];
                for (group, stats) in of.into_iter().chain([("updates", p.update.as_ref())]) {
                    if let Some(stats) = stats {
                        self.histogram(step + 1, &format!("{group}/{}", track.name()), stats)?;
                    }
                }
            }
        }
        for track in monitor.outputs() {
            for (step, o) in track.points() {
                self.histogram(step + 1, &format!("outputs/{}", track.name()), &o.value)?;
            }
        }
        for symptom in monitor.findings() {
            let step = symptom.since + 1;
            self.text(step, &format!("findings/{}", symptom.kind.name()), &symptom.to_string())?;
        }
        self.computation(monitor)
    }

    /// The graph of the loss, if the monitor was given its computation.
    pub fn computation(&mut self, monitor: &Monitor) -> io::Result<()> {
        if monitor.graph.is_empty() { Ok(()) } else { self.graph(&monitor.graph) }
    }

    /// Flushes the file, so that an open TensorBoard shows the newest records.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    /// Closes the file and returns its path.
    pub fn finish(mut self) -> io::Result<PathBuf> {
        self.file.flush()?;
        Ok(self.path)
    }

    fn summary(&mut self, step: u64, value: ValueProto) -> io::Result<()> {
        let summary = Some(SummaryProto { value: vec![value] });
        let step = i64::try_from(step).unwrap_or(i64::MAX);
        self.write(&EventProto { wall_time: now(), step, summary, ..Default::default() })
    }

    fn write(&mut self, event: &EventProto) -> io::Result<()> {
        let data = event.encode_to_vec();
        let length = (data.len() as u64).to_le_bytes();
        self.file.write_all(&length)?;
        self.file.write_all(&masked(&length).to_le_bytes())?;
        self.file.write_all(&data)?;
        self.file.write_all(&masked(&data).to_le_bytes())
    }
}

impl Monitor {
    /// Writes everything kept as an event file of TensorBoard into the folder: losses, rates,
    /// norms, histograms and findings, and the graph if there is one. Returns the path of the file.
    ///
    /// Errors if the file cannot be written.
    pub fn tensorboard(&self, folder: &Path) -> io::Result<PathBuf> {
        let mut events = EventFile::create(folder)?;
        events.all(self)?;
        events.finish()
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |past| past.as_secs_f64())
}

fn tagged(tag: &str) -> ValueProto {
    ValueProto { tag: tag.to_owned(), ..ValueProto::default() }
}

/// The bins as TensorBoard's buckets, each of which begins where the one before ends.
fn buckets(stats: &Stats) -> Option<HistogramProto> {
    let tiny = 2f64.powi(LOWEST);
    let (mut bucket_limit, mut bucket) = (Vec::new(), Vec::new());
    let mut end = f64::NEG_INFINITY;
    for (low, high, n) in stats.histogram() {
        // Exact zeros lie between the smallest bins of both signs.
        let (low, high) = if low == high { (-tiny, tiny) } else { (low, high) };
        if low > end {
            bucket_limit.push(low);
            bucket.push(0.0);
        }
        if high <= end {
            *bucket.last_mut()? += n as f64;
            continue;
        }
        bucket_limit.push(high);
        bucket.push(n as f64);
        end = high;
    }
    let (min, max) = (*bucket_limit.first()?, *bucket_limit.last()?);
    let count = stats.count() as f64;
    Some(HistogramProto {
        min: min.max(-stats.largest()),
        max: max.min(stats.largest()),
        num: count,
        sum: stats.mean() * count,
        sum_squares: stats.norm().powi(2),
        bucket_limit,
        bucket,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        // The check value of CRC-32C, and the tests of RFC 3720, B.4.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn records_follow_each_other_to_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut events = EventFile::create(folder.path()).unwrap();
        events.scalar(3, "loss", 0.25).unwrap();
        events.histogram(3, "w", &Stats::of(&[1.0, -2.5, 0.0])).unwrap();
        events.histogram(3, "nothing", &Stats::of(&[f64::NAN])).unwrap();
        events.text(3, "note", "all is well").unwrap();
        let bytes = fs::read(events.finish().unwrap()).unwrap();
        let (mut rest, mut found) = (&bytes[..], Vec::new());
        while let Some((length, tail)) = rest.split_first_chunk::<8>() {
            let n = u64::from_le_bytes(*length) as usize;
            assert_eq!(tail[..4], masked(length).to_le_bytes());
            let (data, tail) = tail[4..].split_at(n);
            assert_eq!(tail[..4], masked(data).to_le_bytes());
            found.push(EventProto::decode(data).unwrap());
            rest = &tail[4..];
        }
        assert_eq!(found.len(), 4);
        assert_eq!(found[0].file_version.as_deref(), Some("brain.Event:2"));
        let value = |i: usize| &found[i].summary.as_ref().unwrap().value[0];
        assert_eq!((value(1).simple_value, found[1].step), (Some(0.25), 3));
        let histo = value(2).histo.as_ref().unwrap();
        assert_eq!((histo.num, histo.sum, histo.min, histo.max), (3.0, -1.5, -2.5, 2.0));
        assert_eq!(histo.bucket.iter().sum::<f64>(), 3.0);
        assert!(histo.bucket_limit.windows(2).all(|w| w[0] < w[1]));
    }

    #[test]
    fn a_folder_that_is_a_file_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(EventFile::create(file.path()).is_err());
    }
}
