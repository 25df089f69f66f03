//! ARP and ICMP echo of one device, as a state machine.

use std::net::Ipv4Addr;

use dcp_core::Instant;
use dcp_wire::MacAddr;

use super::address::{AddressError, IpConfig};
use super::arp::{ARP_LEN, Arp, BROADCAST, ETHERTYPE_ARP};
use super::icmp;
use super::neighbours::{Neighbours, Resolution};

/// What is to happen with a frame that was given to [`NetStack::handle_frame`].
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NetAnswer {
    /// It is now the answer, this many bytes long: send it.
    Send(usize),
    /// It told something; free it.
    Taken,
    /// It was none of ours; free it.
    Ignored,
}

/// What the stack has seen and done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct NetCounters {
    /// ARP requests answered.
    pub arp_answered: u64,
    /// ARP packets that told where a neighbour is.
    pub arp_learnt: u64,
    /// ARP requests sent.
    pub arp_requested: u64,
    /// ICMP echo requests answered.
    pub echo_answered: u64,
    /// Frames that are none of ours: IPv6, other hosts' ARP, broadcasts, noise.
    pub ignored: u64,
    /// Frames from somebody else who claims our address.
    pub address_conflicts: u64,
}

/// The stack of one device.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NetStack {
    mac: MacAddr,
    config: IpConfig,
    neighbours: Neighbours,
    /// Our address is to be told, so that switches learn where we are.
    announce: bool,
    counters: NetCounters,
}

impl NetStack {
    /// A stack that will announce itself at its first poll.
    pub fn new(mac: MacAddr, config: IpConfig) -> Self {
        let (neighbours, counters) = (Neighbours::default(), NetCounters::default());
        Self { mac, config, neighbours, announce: true, counters }
    }

    /// Asks for the Ethernet address that frames to `destination` go to: its own, or its gateway's. Ask again, after
    /// polls, while it is pending.
    ///
    /// # Errors
    /// The address is in another network, and there is no gateway.
    pub fn resolve(&mut self, now: Instant, destination: Ipv4Addr) -> Result<Resolution, AddressError> {
        let hop = self.config.next_hop(destination)?;
        // Frames to ourselves come back over the wire, if it is a loop.
        if hop == self.config.address() {
            return Ok(Resolution::Known(self.mac));
        }
        Ok(self.neighbours.resolve(now, hop))
    }

    /// Tells the address again: after the link came up.
    pub fn announce(&mut self) {
        self.announce = true;
    }

    /// Looks at a frame that is no DCP, in one piece, and turns it into its answer where there is one.
    pub fn handle_frame(&mut self, now: Instant, frame: &mut [u8]) -> NetAnswer {
        let answer = match frame.get(12..14) {
            Some(kind) if kind == ETHERTYPE_ARP => self.handle_arp(now, frame),
            _ => match icmp::answer_echo(frame, self.mac, self.config.address()) {
                Some(len) => {
                    self.counters.echo_answered += 1;
                    NetAnswer::Send(len)
                }
                None => NetAnswer::Ignored,
            },
        };
        self.counters.ignored += u64::from(answer == NetAnswer::Ignored);
        answer
    }

    fn handle_arp(&mut self, now: Instant, frame: &mut [u8]) -> NetAnswer {
        let Some(arp) = Arp::parse(frame) else { return NetAnswer::Ignored };
        // Our own frames, come back through a hub or a bridge.
        if arp.sender_mac == self.mac {
            return NetAnswer::Ignored;
        }
        let own = self.config.address();
        if arp.sender_ip == own {
            self.counters.address_conflicts += 1;
            return NetAnswer::Ignored;
        }
        let is_for_us = arp.target_ip == own;
        // A probe (RFC 5227) has no address to remember yet, and strangers cannot be neighbours.
        if self.config.next_hop(arp.sender_ip) == Ok(arp.sender_ip) {
            self.neighbours.learn(now, arp.sender_ip, arp.sender_mac, is_for_us);
        }
        if !is_for_us {
            return NetAnswer::Ignored;
        }
        self.counters.arp_learnt += 1;
        if !arp.is_request {
            return NetAnswer::Taken;
        }
        let answer = Arp {
            is_request: false,
            sender_mac: self.mac,
            sender_ip: own,
            target_mac: arp.sender_mac,
            target_ip: arp.sender_ip,
        };
        frame[..ARP_LEN].copy_from_slice(&answer.frame(arp.sender_mac));
        self.counters.arp_answered += 1;
        NetAnswer::Send(ARP_LEN)
    }

    /// The next frame that is due, if any.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<[u8; ARP_LEN]> {
        let own = self.config.address();
        let target = if std::mem::take(&mut self.announce) {
            own
        } else {
            let target = self.neighbours.poll_request(now)?;
            self.counters.arp_requested += 1;
            target
        };
        Some(Arp::request(self.mac, own, target).frame(BROADCAST))
    }

    /// When [`poll_transmit`](Self::poll_transmit) has something to send.
    pub fn next_timeout(&self) -> Option<Instant> {
        if self.announce { Some(Instant::ZERO) } else { self.neighbours.next_timeout() }
    }

    /// Own Ethernet address.
    pub fn mac(&self) -> MacAddr {
        self.mac
    }

    /// Own IPv4 address and the way to others.
    pub fn config(&self) -> &IpConfig {
        &self.config
    }

    /// What it has seen and done.
    pub fn counters(&self) -> &NetCounters {
        &self.counters
    }
}

#[cfg(test)]
mod tests;
