//! Memory bandwidth as the processor's monitoring counts it, by resctrl. Untested on hardware.
//!
//! Scale: per cent of `peak`, the bandwidth that one domain's memory has at best, in the domain that uses most of its.
//! There is no way to ask a machine for it; a benchmark such as STREAM tells.

use std::fs;
use std::io;
use std::path::PathBuf;

use dcp_core::Occupancy;

use super::Signal;
use crate::root::{Root, about, names};

/// Where resctrl is mounted.
pub(crate) const MOUNT: &str = "sys/fs/resctrl";

/// Bandwidth of each domain.
#[derive(Debug)]
pub struct Bandwidth {
    files: Vec<PathBuf>,
    totals: Vec<u64>,
    /// Bytes per second of one domain at best.
    peak: u64,
    last_ns: Option<u64>,
}

impl Bandwidth {
    /// Finds the counters; `peak_gbs` is in GB/s.
    ///
    /// # Errors
    /// This machine has none, or the peak is not known; the reason.
    pub fn open(root: &Root, peak_gbs: Option<u32>) -> Result<Self, String> {
        let directory = root.path(MOUNT).join("mon_data");
        let of = |name: String| directory.join(name).join("mbm_total_bytes");
        let files: Vec<PathBuf> = names(&directory).into_iter().map(of).filter(|it| it.exists()).collect();
        if files.is_empty() {
            let mount = root.path(MOUNT);
            return Err(if mount.join("info").exists() {
                "the processor does not monitor memory bandwidth (no mbm_total_bytes)".into()
            } else {
                format!("{} is not mounted (mount -t resctrl resctrl /sys/fs/resctrl)", mount.display())
            });
        }
        let peak = peak_gbs.ok_or("needs --memory-gbs, the bandwidth of a domain's memory at best")?;
        let peak = u64::from(peak) * 1_000_000_000;
        Ok(Self { totals: vec![0; files.len()], files, peak, last_ns: None })
    }
}

impl Signal for Bandwidth {
    fn name(&self) -> String {
        format!("resctrl: memory bandwidth of {} domains", self.files.len())
    }

    fn unit(&self) -> &'static str {
        "%"
    }

    /// Ours: above four fifths of its bandwidth, memory answers late.
    fn threshold(&self) -> Occupancy {
        Occupancy::new(80)
    }

    fn occupancy(&mut self, now_ns: u64) -> io::Result<Option<Occupancy>> {
        let mut most = 0;
        for (file, total) in self.files.iter().zip(&mut self.totals) {
            let text = fs::read_to_string(file).map_err(|error| about(file, &error))?;
            // "Unavailable" and "Error" are answers of the kernel, too.
            let Ok(now) = text.trim().parse::<u64>() else { continue };
            most = most.max(now.saturating_sub(*total));
            *total = now;
        }
        let last = self.last_ns.replace(now_ns);
        let Some(past_ns) = last.map(|last| now_ns.saturating_sub(last)).filter(|&past| past > 0) else {
            return Ok(None);
        };
        let per_second = u128::from(most) * 1_000_000_000 / u128::from(past_ns);
        let per_second = u64::try_from(per_second).unwrap_or(u64::MAX);
        Ok(Some(Occupancy::quotient(per_second.saturating_mul(100), self.peak)))
    }
}
