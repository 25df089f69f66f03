//! Occupancy of the processor's I/O write buffer, counted by the uncore of Intel Xeons. Untested on hardware.
//!
//! Each I/O stack has a box of counters for its IRP, the unit through which devices write to memory. A counter that adds
//! up the buffer's entries in every cycle of the unit, divided by the cycles, is the mean number of entries: the
//! signal of RHCC and of hostCC. A host that takes in what the network delivers keeps it low.

use std::io;

use dcp_core::Occupancy;

use super::Signal;
use crate::machine::{Cpu, package_leaders};
use crate::msr::Msr;
use crate::root::Root;

/// Where a generation of processors has the second counter of each stack's IRP. Numbers as in Linux's uncore driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registers {
    /// Name of the generation.
    pub name: &'static str,
    /// What the counter counts.
    control: u64,
    /// The counter.
    counter: u64,
    /// Distance of each stack's registers from the first one's.
    stacks: [u64; 6],
}

/// Skylake-SP and Cascade Lake: a stack every 0x20.
pub const CASCADE_LAKE: Registers = Registers {
    name: "Cascade Lake",
    control: 0xa5c,
    counter: 0xa5a,
    stacks: [0x00, 0x20, 0x40, 0x60, 0x80, 0xa0],
};
/// Ice Lake-SP.
pub const ICE_LAKE: Registers = Registers {
    name: "Ice Lake",
    control: 0xa4e,
    counter: 0xa4c,
    stacks: [0x00, 0x20, 0x40, 0x90, 0xb0, 0xd0],
};

/// Event 0x0F, umask 0x04, enabled: entries of reads and writes from devices, added up every cycle (hostCC).
const COUNT_ENTRIES: u64 = 0x0040_040f;
/// Bits of the counter.
const COUNTER_BITS: u32 = 48;
/// The unit's clock: 500 MHz on Cascade Lake (hostCC); taken to be the same on Ice Lake.
const NS_PER_CYCLE: u64 = 2;

impl Registers {
    /// Those of a processor.
    ///
    /// # Errors
    /// It has none that are known here; the reason.
    pub fn of(cpu: &Cpu) -> Result<Self, String> {
        match (cpu.vendor.as_str(), cpu.family, cpu.model) {
            ("GenuineIntel", 6, 85) => Ok(CASCADE_LAKE),
            ("GenuineIntel", 6, 106 | 108) => Ok(ICE_LAKE),
            (vendor, family, model) => {
                let vendor = if vendor.is_empty() { "unknown" } else { vendor };
                Err(format!(
                    "its registers are known for Cascade Lake and Ice Lake, this processor is {vendor} family {family} \
                     model {model}"
                ))
            }
        }
    }
}

/// The fullest of all stacks of all packages.
#[derive(Debug)]
pub struct Iio {
    registers: Registers,
    packages: Vec<Package>,
    last_ns: Option<u64>,
}

#[derive(Debug)]
struct Package {
    msr: Msr,
    /// What the controls held before.
    before: [u64; 6],
    counters: [u64; 6],
}

impl Iio {
    /// Sets the counters up.
    ///
    /// # Errors
    /// This machine has none, they cannot be reached, or someone else uses them; the reason.
    pub fn open(root: &Root) -> Result<Self, String> {
        let registers = Registers::of(&Cpu::read(root))?;
        let mut this = Self { registers, packages: Vec::new(), last_ns: None };
        for cpu in package_leaders(root) {
            let msr = Msr::open(root, cpu).map_err(|error| format!("{error} (as root: modprobe msr)"))?;
            this.set_up(msr).map_err(|error| error.to_string())?;
        }
        if this.packages.is_empty() { Err("the kernel names no processor package".into()) } else { Ok(this) }
    }

    fn set_up(&mut self, msr: Msr) -> io::Result<()> {
        let mut before = [0; 6];
        for (stack, before) in self.registers.stacks.into_iter().zip(&mut before) {
            let control = self.registers.control + stack;
            *before = msr.read(control)?;
            if *before != 0 && *before != COUNT_ENTRIES {
                let holder = "counts something else already; is perf running?";
                return Err(io::Error::other(format!("register {control:#x} {holder}")));
            }
        }
        // From here on dropping puts everything back.
        self.packages.push(Package { msr, before, counters: [0; 6] });
        let msr = &self.packages[self.packages.len() - 1].msr;
        for stack in self.registers.stacks {
            msr.write(self.registers.control + stack, COUNT_ENTRIES)?;
        }
        Ok(())
    }
}

impl Signal for Iio {
    fn name(&self) -> String {
        format!("msr: I/O write buffer of {}", self.registers.name)
    }

    fn unit(&self) -> &'static str {
        "entries"
    }

    /// RHCC's.
    fn threshold(&self) -> Occupancy {
        Occupancy::new(45)
    }

    fn occupancy(&mut self, now_ns: u64) -> io::Result<Option<Occupancy>> {
        let cycles = self.last_ns.map(|last| now_ns.saturating_sub(last) / NS_PER_CYCLE);
        let mut entries = 0;
        for package in &mut self.packages {
            for (stack, counter) in self.registers.stacks.into_iter().zip(&mut package.counters) {
                let now = package.msr.read(self.registers.counter + stack)?;
                let added = now.wrapping_sub(*counter) & ((1 << COUNTER_BITS) - 1);
                entries = entries.max(added);
                *counter = now;
            }
        }
        self.last_ns = Some(now_ns);
        Ok(cycles.filter(|&cycles| cycles > 0).map(|cycles| Occupancy::quotient(entries, cycles)))
    }
}

impl Drop for Iio {
    fn drop(&mut self) {
        for package in &self.packages {
            for (stack, before) in self.registers.stacks.into_iter().zip(package.before) {
                // A counter that keeps counting does no harm.
                let _ = package.msr.write(self.registers.control + stack, before);
            }
        }
    }
}
