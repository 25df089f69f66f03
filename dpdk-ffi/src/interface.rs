//! Network interfaces of the kernel, and what this process may do with them: read before a device is opened on one.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::errno::Errno;

/// An interface as it is now, in the network namespace of the calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The largest IP packet that it carries.
    pub mtu: u32,
    /// Whether it is switched on.
    pub is_up: bool,
    /// Whether it is switched on and has a link.
    pub is_running: bool,
    /// Its Ethernet address; zero where it has none.
    pub mac: [u8; 6],
}

impl Interface {
    /// Reads an interface.
    ///
    /// # Errors
    /// [`InterfaceError`]: no such interface, or a name that none can have.
    pub fn read(name: &str) -> Result<Self, InterfaceError> {
        let mut request = Request::new(name)?;
        let flags = request.ask(libc::SIOCGIFFLAGS)?;
        // SAFETY: the kernel just filled this member in.
        let flags = i32::from(unsafe { flags.ifru_flags });
        let mtu = request.ask(libc::SIOCGIFMTU)?;
        // SAFETY: as above.
        let mtu = unsafe { mtu.ifru_mtu };
        let address = request.ask(libc::SIOCGIFHWADDR)?;
        // SAFETY: as above.
        let address = unsafe { address.ifru_hwaddr };
        let mut mac = [0; 6];
        for (to, from) in mac.iter_mut().zip(address.sa_data) {
            *to = from.to_ne_bytes()[0];
        }
        Ok(Self {
            mtu: u32::try_from(mtu).unwrap_or(0),
            is_up: flags & libc::IFF_UP != 0,
            is_running: flags & libc::IFF_UP != 0 && flags & libc::IFF_RUNNING != 0,
            mac,
        })
    }
}

/// A capability of Linux that some devices need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// To make interfaces: `CAP_NET_ADMIN`.
    NetAdmin,
    /// To send and receive raw frames: `CAP_NET_RAW`.
    NetRaw,
}

impl Capability {
    /// Whether the process has it. True where the system does not say, so that the attempt decides.
    pub fn is_held(self) -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let mask = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_none_or(|mask| mask >> self.bit() & 1 != 0)
    }

    /// Its number in `linux/capability.h`.
    const fn bit(self) -> u32 {
        match self {
            Self::NetAdmin => 12,
            Self::NetRaw => 13,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NetAdmin => "CAP_NET_ADMIN",
            Self::NetRaw => "CAP_NET_RAW",
        }
    }
}

/// Longest name of an interface, in bytes.
pub const NAME_LEN_MAX: usize = libc::IFNAMSIZ - 1;

/// Questions about one interface, asked through a socket.
struct Request {
    socket: OwnedFd,
    request: libc::ifreq,
    name: String,
}

impl Request {
    fn new(name: &str) -> Result<Self, InterfaceError> {
        let wrong = name.is_empty() || name.len() > NAME_LEN_MAX || name.contains(['\0', '/']);
        if wrong || name.contains(char::is_whitespace) {
            return Err(InterfaceError::BadName { name: name.to_owned() });
        }
        // SAFETY: makes a descriptor, or fails.
        let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(InterfaceError::Refused { name: name.to_owned(), errno: last_errno() });
        }
        // SAFETY: fresh, and nobody else's.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: integers and arrays of them: all zeroes is a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        Ok(Self { socket, request, name: name.to_owned() })
    }

    fn ask(&mut self, question: libc::c_ulong) -> Result<libc::__c_anonymous_ifr_ifru, InterfaceError> {
        // The C libraries disagree on the type of the number.
        #[allow(clippy::useless_conversion, reason = "only where they agree")]
        let number = question.try_into().unwrap_or_default();
        // SAFETY: all questions asked here read the name and write the union, of a request that is ours.
        let code = unsafe { libc::ioctl(self.socket.as_raw_fd(), number, &raw mut self.request) };
        if code == 0 {
            return Ok(self.request.ifr_ifru);
        }
        let name = self.name.clone();
        match last_errno() {
            Errno(libc::ENODEV) => Err(InterfaceError::NotFound { name }),
            errno => Err(InterfaceError::Refused { name, errno }),
        }
    }
}

fn last_errno() -> Errno {
    Errno(io::Error::last_os_error().raw_os_error().unwrap_or_default())
}

/// Why an interface could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceError {
    /// No interface can have this name.
    BadName {
        /// The name.
        name: String,
    },
    /// There is none of this name.
    NotFound {
        /// The name.
        name: String,
    },
    /// The kernel refused to tell.
    Refused {
        /// The name.
        name: String,
        /// The kernel's reason.
        errno: Errno,
    },
}

impl fmt::Display for InterfaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName { name } => write!(
                f,
                "{name:?} cannot be an interface: a name has 1 to {NAME_LEN_MAX} characters, no space and no slash"
            ),
            Self::NotFound { name } => {
                write!(f, "there is no interface {name} here: 'ip link' lists those that there are")
            }
            Self::Refused { name, errno } => {
                write!(
                    f,
                    "the kernel does not describe interface {name} ({errno}): check this process's rights"
                )
            }
        }
    }
}

impl std::error::Error for InterfaceError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_described() {
        let lo = Interface::read("lo").unwrap();
        assert!(lo.mtu >= 1500, "{lo:?}");
        assert_eq!(lo.mac, [0; 6]);
    }

    #[test]
    fn unknown_interface_is_named() {
        let error = Interface::read("nosuch0").unwrap_err();
        assert_eq!(error, InterfaceError::NotFound { name: "nosuch0".to_owned() });
        assert!(error.to_string().contains("nosuch0"));
    }

    #[test]
    fn names_that_none_can_have_are_refused() {
        for name in ["", "sixteen-letters!", "a b", "a/b", "a\0b"] {
            assert!(matches!(Interface::read(name), Err(InterfaceError::BadName { .. })), "{name:?}");
        }
    }
}
