//! A worker's dealings with the network around its endpoint: neighbours, pings, links that come and go.

use std::net::Ipv4Addr;

use dcp_core::Instant;
use dcp_wire::ParseError;
use dpdk_ffi::{Mbuf, PortStats};

use super::{Lane, Others, Queues, Worker};
use crate::device::{LinkEvent, Transmit, Upkeep, limits};
use crate::net::{AddressError, NetAnswer, NetStack, Resolution};

impl Worker {
    /// Says how the device takes payload. With [`Transmit::Linear`] the worker's header pool must have room for whole
    /// frames: make it with [`NetDevice::header_pool`](crate::device::NetDevice::header_pool).
    ///
    /// # Panics
    /// When the header pool has no such room for frames of `mtu`.
    pub fn set_transmit(&mut self, transmit: Transmit, mtu: u32) {
        self.linear = transmit == Transmit::Linear;
        let room = u32::from(self.header_pool.config().data_room);
        let needed = if self.linear { limits::frame_bytes(mtu) } else { 0 };
        assert!(room >= needed, "the header pool has room for {room} bytes, but frames have up to {needed}");
    }

    /// Looks after the device's link from now on.
    pub fn set_upkeep(&mut self, upkeep: Upkeep) {
        self.upkeep = Some(upkeep);
    }

    /// Answers ARP and pings from now on, and can [resolve](Self::resolve).
    pub fn set_net_stack(&mut self, net: NetStack) {
        self.net_due = net.next_timeout();
        self.net = Some(net);
    }

    /// The network stack, if there is one.
    pub fn net_stack(&self) -> Option<&NetStack> {
        self.net.as_ref()
    }

    /// Asks for the Ethernet address that frames to `destination` go to. [Poll](Self::poll) and ask again while it is
    /// pending; `None` without a network stack.
    ///
    /// # Errors
    /// The address is in another network, and there is no gateway.
    pub fn resolve(&mut self, destination: Ipv4Addr) -> Option<Result<Resolution, AddressError>> {
        let now = self.now();
        let net = self.net.as_mut()?;
        let resolution = net.resolve(now, destination);
        self.net_due = net.next_timeout();
        Some(resolution)
    }

    /// Whether the device moves frames: false while a net_memif device has no peer.
    pub fn link_is_up(&self) -> bool {
        self.queues.is_running()
    }

    /// Lets workers on the UDP ports behind this one's take their frames from here, and send through here.
    pub(crate) fn share_queues(&mut self, lanes: Vec<Lane>) {
        self.others = Others::behind(self.options.service_port, &lanes);
        if let Queues::Own { lanes: own, .. } = &mut self.queues {
            *own = lanes;
        }
    }

    /// What the Ethernet device counted, all its queues together; `None` when its driver does not count.
    pub fn port_stats(&self) -> Option<PortStats> {
        self.queues.port_stats()
    }

    /// Driver of the Ethernet device.
    pub fn driver(&self) -> String {
        self.queues.driver()
    }

    #[inline]
    pub(super) fn keep_up(&mut self, now: Instant) {
        let Some(upkeep) = &mut self.upkeep else { return };
        let Some(pair) = self.queues.pair_mut() else { return };
        match upkeep.poll(now.ns(), pair) {
            LinkEvent::None => {}
            LinkEvent::Up => {
                if let Some(net) = &mut self.net {
                    net.announce();
                    self.net_due = net.next_timeout();
                }
            }
            LinkEvent::Down => self.drop_unsent(),
        }
    }

    /// Like a cable that is pulled: what has not left is lost, so that nothing waits for it and nobody else gets it.
    #[cold]
    pub(super) fn drop_unsent(&mut self) {
        self.counters.link_down_drops += (self.tx.len() + self.bounces.len()) as u64;
        self.tx.free_all();
        self.bounces.free_all();
    }

    /// A frame that is no DCP: perhaps ARP or a ping.
    #[cold]
    pub(super) fn handle_other(&mut self, now: Instant, error: ParseError, mut frame: Mbuf) {
        // A ping without payload is shorter than any frame of ours.
        let may_concern_us =
            matches!(error, ParseError::EtherType | ParseError::NotUdp | ParseError::TooShort);
        let Some(net) = self.net.as_mut().filter(|_| may_concern_us) else {
            self.done.discard(frame);
            return;
        };
        // In place, unless someone else holds the frame too, or it is in pieces.
        if frame.is_shared() || frame.head_len() != frame.frame_len() {
            match frame.copy(&self.header_pool).filter(|copy| copy.segments() == 1) {
                Some(copy) => self.done.discard(std::mem::replace(&mut frame, copy)),
                None => return self.done.discard(frame),
            }
        }
        let answer = frame.head_mut().map_or(NetAnswer::Ignored, |head| net.handle_frame(now, head));
        self.net_due = net.next_timeout();
        let NetAnswer::Send(len) = answer else { return self.done.discard(frame) };
        // Exclusive by now, so that it can be cut.
        let _ = frame.truncate(len);
        // Bounces go first, and have room for one frame for each that came in.
        if let Err(frame) = self.bounces.push(frame) {
            self.done.discard(frame);
        }
    }

    /// ARP requests and announcements that are due.
    #[cold]
    pub(super) fn send_net_frames(&mut self, now: Instant) {
        let Some(net) = &mut self.net else { return };
        while self.bounces.room() > 0 {
            let Some(bytes) = net.poll_transmit(now) else { break };
            if let Some(frame) = Mbuf::from_bytes(&self.header_pool, &bytes) {
                self.bounces.discard(frame);
            }
        }
        self.net_due = net.next_timeout();
    }
}
