//! ARP for IPv4 over Ethernet (RFC 826).

use std::net::Ipv4Addr;

use dcp_wire::MacAddr;

/// An ARP packet that asks or answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Arp {
    pub(super) is_request: bool,
    pub(super) sender_mac: MacAddr,
    pub(super) sender_ip: Ipv4Addr,
    pub(super) target_mac: MacAddr,
    pub(super) target_ip: Ipv4Addr,
}

/// With the Ethernet header; padding follows on a wire.
pub(super) const ARP_LEN: usize = 42;
pub(super) const ETHERTYPE_ARP: [u8; 2] = [0x08, 0x06];
/// Ethernet, IPv4, lengths of their addresses.
const KINDS: [u8; 6] = [0, 1, 8, 0, 6, 4];
pub(super) const BROADCAST: MacAddr = MacAddr([0xff; 6]);
const NOBODY: MacAddr = MacAddr([0; 6]);

impl Arp {
    /// Who has `target_ip`? With the own address as the target: an announcement.
    pub(super) fn request(sender_mac: MacAddr, sender_ip: Ipv4Addr, target_ip: Ipv4Addr) -> Self {
        Self { is_request: true, sender_mac, sender_ip, target_mac: NOBODY, target_ip }
    }

    /// `None` for anything else, and for senders that cannot be.
    pub(super) fn parse(frame: &[u8]) -> Option<Self> {
        let bytes: &[u8; ARP_LEN] = frame.first_chunk()?;
        if bytes[12..14] != ETHERTYPE_ARP || bytes[14..20] != KINDS {
            return None;
        }
        let is_request = match bytes[20..22] {
            [0, 1] => true,
            [0, 2] => false,
            _ => return None,
        };
        let mac = |at: usize| bytes[at..].first_chunk().map(|bytes| MacAddr(*bytes));
        let ip = |at: usize| bytes[at..].first_chunk::<4>().map(|bytes| Ipv4Addr::from(*bytes));
        let arp = Self {
            is_request,
            sender_mac: mac(22)?,
            sender_ip: ip(28)?,
            target_mac: mac(32)?,
            target_ip: ip(38)?,
        };
        // A group cannot have sent it.
        let is_host = arp.sender_mac.0[0] & 1 == 0 && arp.sender_mac != NOBODY;
        is_host.then_some(arp)
    }

    /// The frame that says it.
    pub(super) fn frame(&self, destination: MacAddr) -> [u8; ARP_LEN] {
        let mut bytes = [0; ARP_LEN];
        let mut at = 0;
        let mut put = |part: &[u8]| {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        };
        put(&destination.0);
        put(&self.sender_mac.0);
        put(&ETHERTYPE_ARP);
        put(&KINDS);
        put(&[0, if self.is_request { 1 } else { 2 }]);
        put(&self.sender_mac.0);
        put(&self.sender_ip.octets());
        put(&self.target_mac.0);
        put(&self.target_ip.octets());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

    fn request() -> [u8; ARP_LEN] {
        Arp::request(MAC, Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)).frame(BROADCAST)
    }

    #[test]
    fn request_is_the_bytes_of_rfc_826() {
        let expected: [u8; ARP_LEN] = [
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0,
            0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2,
        ];
        assert_eq!(request(), expected);
    }

    #[test]
    fn frame_parses_to_what_it_was_made_of() {
        let answer = Arp {
            is_request: false,
            sender_mac: MAC,
            sender_ip: Ipv4Addr::new(10, 0, 0, 2),
            target_mac: MacAddr([2, 0, 0, 0, 0, 9]),
            target_ip: Ipv4Addr::new(10, 0, 0, 1),
        };
        let mut padded = [0; 60];
        padded[..ARP_LEN].copy_from_slice(&answer.frame(answer.target_mac));
        assert_eq!(Arp::parse(&padded), Some(answer));
    }

    #[test]
    fn anything_else_is_not_arp() {
        for len in 0..ARP_LEN {
            assert_eq!(Arp::parse(&request()[..len]), None);
        }
        // EtherType, hardware, protocol, lengths, operation; a sender that is a group.
        for (at, value) in [(13, 0), (15, 6), (16, 0x86), (18, 8), (19, 16), (21, 3), (20, 1), (22, 3)] {
            let mut frame = request();
            frame[at] = value;
            assert_eq!(Arp::parse(&frame), None, "byte {at}");
        }
        let mut frame = request();
        frame[22..28].fill(0);
        assert_eq!(Arp::parse(&frame), None);
    }
}
