//! How full the way from the network into memory is.

pub mod iio;
pub mod resctrl;
pub mod software;
pub mod telemetry;

use std::io;

use dcp_core::Occupancy;

/// Something that can tell the occupancy.
pub trait Signal: Send {
    /// What it is, in a few words.
    fn name(&self) -> String;

    /// What its numbers count, for reports.
    fn unit(&self) -> &'static str;

    /// The threshold that suits its scale.
    fn threshold(&self) -> Occupancy;

    /// The occupancy since the last call; `None` when nothing new is known. The first call begins.
    ///
    /// # Errors
    /// It cannot be read now; later it may be.
    fn occupancy(&mut self, now_ns: u64) -> io::Result<Option<Occupancy>>;
}

/// Any closure that knows the occupancy is a signal.
pub struct FromClosure<F> {
    /// What it is.
    pub name: &'static str,
    /// The threshold that suits it.
    pub threshold: Occupancy,
    /// Answers as [`Signal::occupancy`] does.
    pub read: F,
}

impl<F: FnMut(u64) -> io::Result<Option<Occupancy>> + Send> Signal for FromClosure<F> {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn unit(&self) -> &'static str {
        ""
    }

    fn threshold(&self) -> Occupancy {
        self.threshold
    }

    fn occupancy(&mut self, now_ns: u64) -> io::Result<Option<Occupancy>> {
        (self.read)(now_ns)
    }
}
