//! `ping`, by the kernel's own stack: machines for tests do not always have the program.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use dcp::wire::OnesSum;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, ipproto, recv, sendto, socket};

use crate::Fault;

const ATTEMPTS: usize = 20;
const IP_LEN: usize = 20;

/// Pings with payloads up to the largest that one packet takes; prints `answered N`.
pub(crate) fn run(to: Ipv4Addr) -> Result<(), Fault> {
    let failed = |error: rustix::io::Errno| (3, format!("no ping from here: {error}"));
    let socket = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP)).map_err(failed)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_millis(500))).map_err(failed)?;
    let payloads = [0, 1, 18, 56, 500, 1472];
    for payload in payloads {
        let mut request = vec![8, 0, 0, 0, 0xdc, 0xb0, 0, 1];
        request.extend((0..payload).map(|it: u32| it.to_le_bytes()[0]));
        let mut sum = OnesSum::default();
        sum.add(&request);
        request[2..4].copy_from_slice(&(!sum.fold()).to_be_bytes());
        let mut is_answered = false;
        for _ in 0..ATTEMPTS {
            // Refused while the neighbour is unknown: asked again.
            let _ = sendto(&socket, &request, SendFlags::empty(), &SocketAddrV4::new(to, 0));
            let mut answer = [0; 2048];
            let len = match recv(&socket, &mut answer[..], RecvFlags::empty()) {
                Ok((len, _)) => len,
                Err(_) => continue,
            };
            // Our own requests may come by too. From the identifier on, the answer repeats them.
            let is_from = answer[12..16] == to.octets() && answer[IP_LEN] == 0;
            is_answered = is_from && answer[IP_LEN + 4..len] == request[4..];
            if is_answered {
                break;
            }
        }
        if !is_answered {
            return Err((1, format!("a ping of {payload} bytes was not answered")));
        }
    }
    println!("answered {}", payloads.len());
    Ok(())
}
