//! Why a device cannot be used.

use std::fmt;

use crate::errno::Errno;

/// Why a device cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortError {
    /// A name with a zero byte.
    BadName {
        /// The name.
        name: String,
    },
    /// The device did not come up.
    NotFound {
        /// Its name.
        name: String,
        /// What DPDK said.
        reason: String,
    },
    /// A step that needs the whole device, asked of one of its several queue pairs.
    Shared {
        /// Queue pairs that the device has.
        queues: u16,
    },
    /// More queues than the device has.
    Queues {
        /// Its driver.
        driver: String,
        /// Pairs asked for.
        count: u16,
        /// Pairs that it has.
        most: u16,
    },
    /// An MTU that the device does not take.
    Mtu {
        /// Its driver.
        driver: String,
        /// The MTU asked for.
        mtu: u16,
        /// The driver's reason.
        errno: Errno,
    },
    /// The device refused something else.
    Refused {
        /// Its driver.
        driver: String,
        /// What it refused.
        step: &'static str,
        /// The driver's reason.
        errno: Errno,
    },
}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName { name } => write!(f, "{name:?} is no device name: leave out the zero byte"),
            Self::NotFound { name, reason } => {
                write!(
                    f,
                    "device {name} did not come up ({reason}): check its name, arguments and privileges"
                )
            }
            Self::Shared { queues } => {
                write!(
                    f,
                    "a device with {queues} queue pairs cannot be stopped through one: start it with one"
                )
            }
            Self::Queues { driver, count, most } => {
                write!(f, "{count} queue pairs were asked of {driver}: use 1 to {most}")
            }
            Self::Mtu { driver, mtu, errno } => {
                write!(f, "{driver} does not take an MTU of {mtu} ({errno}): choose a smaller one")
            }
            Self::Refused { driver, step, errno } => {
                write!(
                    f,
                    "{driver} refused {step} ({errno}): check that the device is up and not used by another program"
                )
            }
        }
    }
}

impl std::error::Error for PortError {}
