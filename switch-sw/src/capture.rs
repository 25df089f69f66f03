//! Captures of ports of a running switch, before and after the pipeline.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dcp_pipeline::{PortId, Tap, TapPoint};

use crate::frame::MbufFrame;
use crate::pcap::{PcapWriter, SNAP_LEN};

/// Where a capture goes. Frames are written one by one: a file wants a `BufWriter` around it.
pub type CaptureFile = Box<dyn Write + Send>;

/// A port and a side of the pipeline.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CapturePoint {
    /// The port.
    pub port: PortId,
    /// As frames arrive there, or as they leave.
    pub point: TapPoint,
}

/// The captures of a switch. With none it costs a look at an empty list per frame.
#[derive(Default)]
pub struct Capture {
    /// Which file sees which port and side.
    watched: Vec<(CapturePoint, usize)>,
    files: Vec<File>,
    scratch: Vec<u8>,
}

struct File {
    shared: SharedCapture,
    /// From the switch's clock to nanoseconds since 1970.
    offset_ns: u64,
}

/// A file that several switches write their captures to.
#[derive(Clone)]
pub(crate) struct SharedCapture(Arc<Mutex<Writer>>);

struct Writer {
    pcap: PcapWriter<CaptureFile>,
    failed: Option<io::Error>,
}

impl SharedCapture {
    /// Begins the file.
    pub(crate) fn new(file: CaptureFile) -> io::Result<Self> {
        let writer = Writer { pcap: PcapWriter::new(file)?, failed: None };
        Ok(Self(Arc::new(Mutex::new(writer))))
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    fn finish(&mut self) -> io::Result<u64> {
        self.failed.take().map_or_else(|| self.pcap.flush(), Err)?;
        Ok(self.pcap.frames())
    }
}

impl Capture {
    /// Begins a capture of those points into one file. `offset_ns` is added to the switch's clock to get nanoseconds
    /// since 1970.
    pub(crate) fn start(&mut self, points: &[CapturePoint], shared: SharedCapture, offset_ns: u64) {
        self.scratch.resize(SNAP_LEN, 0);
        self.watched.extend(points.iter().map(|&point| (point, self.files.len())));
        self.files.push(File { shared, offset_ns });
    }

    /// Ends all captures; how many frames they hold.
    ///
    /// # Errors
    /// The first thing that went wrong; a file is whole up to there.
    pub(crate) fn finish(&mut self) -> io::Result<u64> {
        self.watched.clear();
        let mut frames = 0;
        for file in std::mem::take(&mut self.files) {
            frames += file.shared.lock().finish()?;
        }
        Ok(frames)
    }

    #[cold]
    fn write(&mut self, now_ns: u64, at: CapturePoint, frame: &MbufFrame) {
        for &(_, file) in self.watched.iter().filter(|(point, _)| *point == at) {
            let file = &self.files[file];
            let mut writer = file.shared.lock();
            let len = frame.0.frame_len();
            let bytes = &mut self.scratch[..len.min(SNAP_LEN)];
            // A disk that is full ends the capture, not the switch.
            if writer.failed.is_none() && frame.0.copy_to_slice(0, bytes).is_ok() {
                writer.failed = writer.pcap.write(now_ns.wrapping_add(file.offset_ns), len, bytes).err();
            }
        }
    }
}

impl Tap<MbufFrame> for Capture {
    #[inline]
    fn frame(&mut self, now_ns: u64, port: PortId, point: TapPoint, frame: &MbufFrame) {
        if !self.watched.is_empty() {
            self.write(now_ns, CapturePoint { port, point }, frame);
        }
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("watched", &self.watched).finish_non_exhaustive()
    }
}
