//! net_memif's socket: who serves it, and what a killed server leaves behind.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::error::DeviceError;
use super::uri::MemifRole;

/// What a path holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Occupant {
    Nothing,
    Server,
    /// A socket whose process is gone.
    Dead,
}

/// Decides the role where the URI leaves it open, and clears the way for a server.
///
/// # Errors
/// The socket cannot be made or reached, or has a server already.
pub(super) fn prepare(socket: &str, role: Option<MemifRole>) -> Result<MemifRole, DeviceError> {
    let failed =
        |reason: io::Error| DeviceError::Socket { socket: socket.to_owned(), reason: reason.to_string() };
    let occupant = look(socket).map_err(failed)?;
    let role = role.unwrap_or(match occupant {
        Occupant::Server => MemifRole::Client,
        Occupant::Nothing | Occupant::Dead => MemifRole::Server,
    });
    if role == MemifRole::Server {
        match occupant {
            // Ours, when this process serves another link on the same socket; DPDK finds out.
            Occupant::Server if !is_own(socket) => {
                return Err(DeviceError::SocketTaken { socket: socket.to_owned() });
            }
            Occupant::Dead => fs::remove_file(socket).map_err(failed)?,
            Occupant::Server | Occupant::Nothing => {}
        }
        let directory = Path::new(socket).parent().filter(|path| !path.as_os_str().is_empty());
        fs::metadata(directory.unwrap_or(Path::new("."))).map_err(failed)?;
    }
    Ok(role)
}

fn look(socket: &str) -> io::Result<Occupant> {
    match fs::symlink_metadata(socket) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Occupant::Nothing),
        Err(error) => return Err(error),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "a file that is no socket is in its place"));
        }
        Ok(_) => {}
    }
    // memif's sockets are of another type than this one: a live server refuses it without noticing anything.
    match UnixStream::connect(socket) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(Occupant::Dead),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(error),
        _ => Ok(Occupant::Server),
    }
}

/// Whether this process listens there: its descriptor is among ours.
fn is_own(socket: &str) -> bool {
    let table = fs::read_to_string("/proc/self/net/unix").unwrap_or_default();
    let inodes: Vec<String> = table
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let inode = words.nth(6)?;
            (words.next() == Some(socket)).then(|| format!("socket:[{inode}]"))
        })
        .collect();
    let descriptors = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    descriptors
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|target| inodes.iter().any(|inode| Path::new(inode) == target))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// A directory of its own for each test.
    struct Scratch(std::path::PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("dcp-memif-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn socket(&self) -> String {
            self.0.join("s").to_str().unwrap().to_owned()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn first_comer_serves() {
        let scratch = Scratch::new("first");
        assert_eq!(prepare(&scratch.socket(), None), Ok(MemifRole::Server));
        assert_eq!(prepare(&scratch.socket(), Some(MemifRole::Client)), Ok(MemifRole::Client));
    }

    #[test]
    fn second_comer_connects_and_the_own_socket_serves_again() {
        let scratch = Scratch::new("second");
        let _listener = UnixListener::bind(scratch.socket()).unwrap();
        assert_eq!(prepare(&scratch.socket(), None), Ok(MemifRole::Client));
        assert_eq!(prepare(&scratch.socket(), Some(MemifRole::Server)), Ok(MemifRole::Server));
    }

    #[test]
    fn dead_socket_is_removed_by_a_server_only() {
        let scratch = Scratch::new("dead");
        drop(UnixListener::bind(scratch.socket()).unwrap());
        assert_eq!(prepare(&scratch.socket(), Some(MemifRole::Client)), Ok(MemifRole::Client));
        assert!(Path::new(&scratch.socket()).exists());
        assert_eq!(prepare(&scratch.socket(), None), Ok(MemifRole::Server));
        assert!(!Path::new(&scratch.socket()).exists());
    }

    #[test]
    fn ordinary_file_stays() {
        let scratch = Scratch::new("file");
        fs::write(scratch.socket(), "precious").unwrap();
        let error = prepare(&scratch.socket(), None).unwrap_err();
        assert!(error.to_string().contains("no socket"), "{error}");
        assert_eq!(fs::read_to_string(scratch.socket()).unwrap(), "precious");
    }

    #[test]
    fn missing_directory_is_said() {
        let error = prepare("/nosuch/directory/s", Some(MemifRole::Server)).unwrap_err();
        assert!(matches!(&error, DeviceError::Socket { .. }), "{error}");
    }
}
