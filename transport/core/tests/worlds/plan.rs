//! What the application of a world does: its messages, where their bytes are and go.

use dcp_core::{Operation, Remote, SendOp};
use dcp_pair::{MR_VA, Pair, PairConfig, Side};
use dcp_wire::{ImmData, Msn};

use crate::checks::fresh_byte;

/// Payload of a full packet.
pub(crate) const MTU: u32 = 256;
/// Bytes of memory at each host.
pub(crate) const MEMORY: usize = 2048;
/// Room for one message.
const STRIDE: u64 = 1024;
/// Added by an atomic.
pub(crate) const ADD: u64 = 5;

/// A message of the client's, by the number of its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verb {
    Write(u32),
    WriteImm(u32),
    Send(u32),
    Read(u32),
    FetchAdd,
}

impl Verb {
    pub(crate) const fn is_two_sided(self) -> bool {
        matches!(self, Self::WriteImm(_) | Self::Send(_))
    }

    /// Bytes: the last packet is a short one.
    pub(crate) const fn len(self) -> usize {
        match self {
            Self::Write(packets) | Self::WriteImm(packets) | Self::Send(packets) | Self::Read(packets) => {
                (packets as usize - 1) * MTU as usize + 3
            }
            Self::FetchAdd => 8,
        }
    }

    /// The side whose memory it changes in `[at, at + len)`.
    pub(crate) const fn lands_at(self) -> Side {
        match self {
            Self::Write(_) | Self::WriteImm(_) | Self::Send(_) => Side::Server,
            Self::Read(_) | Self::FetchAdd => Side::Client,
        }
    }

    pub(crate) const fn operation(self) -> Operation {
        match self {
            Self::Write(_) | Self::WriteImm(_) => Operation::Write,
            Self::Send(_) => Operation::Send,
            Self::Read(_) => Operation::Read,
            Self::FetchAdd => Operation::FetchAdd,
        }
    }
}

/// When the server posts its receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Receives {
    /// Before anything is sent.
    Early,
    /// At any moment, at the latest after the second timeout.
    Late,
}

/// In which order frames arrive that no fault befell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// In any order, each at any time before the next timeout; a held one after it.
    Any,
    /// As sent, in each direction; data in one queue, headers and the ACK class in another, as in a switch (S-1). A
    /// held frame at any later time, before or after timeouts.
    AsSent,
}

/// A world before its first event.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Messages of the client, posted at once.
    pub(crate) verbs: Vec<Verb>,
    pub(crate) faults: u8,
    pub(crate) receives: Receives,
    /// Whether restarted messages are tracked by maps.
    pub(crate) maps: bool,
    pub(crate) order: Order,
}

impl Plan {
    pub(crate) fn new(verbs: &[Verb], faults: u8) -> Self {
        Self { verbs: verbs.to_vec(), faults, receives: Receives::Early, maps: true, order: Order::Any }
    }

    /// Offset of a message's bytes, at both hosts.
    pub(crate) const fn at(index: usize) -> usize {
        index * STRIDE as usize + 8
    }

    /// Messages that consume a receive, in order.
    pub(crate) fn two_sided(&self) -> impl Iterator<Item = usize> {
        (0..self.verbs.len()).filter(|&index| self.verbs[index].is_two_sided())
    }

    /// Two connected hosts with everything of the client's posted. MSNs and SSNs wrap on the way (C2).
    pub(crate) fn hosts(&self) -> [dcp_pair::Host; 2] {
        let endpoint: fn(&mut dcp_core::EndpointConfig) =
            if self.maps { |_| {} } else { |config| config.map_words_max = 0 };
        let mut pair = Pair::new(PairConfig {
            memory: MEMORY,
            endpoint,
            qp: |qp| {
                qp.mtu = MTU;
                qp.window = 4;
                qp.send_depth = 2;
                qp.recv_depth = 2;
            },
            start_msn: Msn::from_low_bits(0xFF_FFFF),
            ..PairConfig::default()
        });
        for side in [Side::Client, Side::Server] {
            for (at, byte) in pair.host_mut(side).memory.iter_mut().enumerate() {
                *byte = fresh_byte(side, at);
            }
        }
        for (index, &verb) in self.verbs.iter().enumerate() {
            let remote =
                Remote { va: MR_VA + Self::at(index) as u64, rkey: pair.host(Side::Server).keys.rkey };
            let op = match verb {
                Verb::Write(_) => SendOp::Write(remote),
                Verb::WriteImm(_) => SendOp::WriteImm(remote, ImmData(index as u32)),
                Verb::Send(_) => SendOp::Send,
                Verb::Read(_) => SendOp::Read(remote),
                Verb::FetchAdd => SendOp::FetchAdd { remote, add: ADD },
            };
            let from = (Self::at(index) as u64, verb.len() as u32);
            pair.post(Side::Client, 0, index as u64, op, from).expect("room in the queue");
        }
        pair.hosts
    }
}
