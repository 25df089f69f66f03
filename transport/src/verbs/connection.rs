//! Connecting a queue pair over TCP in one call.

use std::net::ToSocketAddrs;
use std::time::Duration;

use dcp_core::{QpState, Terms};
use dcp_wire::{Ipv4Addr, MacAddr, Msn, Qpn, RegionKey, Ssn};
use serde_json::Value;

use super::device::Device;
use super::error::ResourceError;
use super::mr::RemoteMr;
use super::qp::{Qp, QpAddress};
use crate::connect::{
    Agreement, ConnectError, Control, ControlEvent, Incoming, Listener, MrOffer, Offer, Patience, random_key,
};

/// What a connected queue pair has beside it: the other side as it described itself, and the control channel.
///
/// Look at [`Connection::poll`] now and then: it tells at once that the peer's process ended. Dropping it without
/// [`Connection::close`] looks like a death to the other side.
#[derive(Debug)]
pub struct Connection {
    control: Control,
    agreement: Agreement,
    device: Device,
    timeout: Duration,
}

/// How long a side that has ended a connection still answers for the other one. An acknowledgement that is lost with the
/// process that sent it leaves the other side resending until its retries are used up.
const LINGER: Duration = Duration::from_secs(10);

/// Acknowledgements are due after so many bytes, as the core's queue pairs have it.
const ACK_BYTES: u32 = 32 << 10;

impl Device {
    /// Waits for a connection on `listener`, driving the workers that have no thread; then [`Qp::accept`] it.
    ///
    /// # Errors
    /// [`ConnectError`]; after one the listener can be asked again.
    pub fn accept(&self, listener: &Listener, timeout: Duration) -> Result<Incoming, ConnectError> {
        self.patiently(timeout, |patience| listener.accept(patience))
    }

    fn patiently<T>(&self, timeout: Duration, act: impl FnOnce(&mut Patience<'_>) -> T) -> T {
        let mut idle = || {
            self.poll();
            true
        };
        act(&mut Patience { clock: &self.inner.clock, timeout, idle: &mut idle })
    }
}

impl Qp {
    /// What to offer another side: this queue pair, and memory that it may reach ([`Mr::remote`](super::Mr::remote)).
    pub fn offer(&self, mrs: &[RemoteMr]) -> Offer {
        let (address, options) = (self.address(), self.options());
        let offered = |&RemoteMr { va, len, rkey }: &RemoteMr| MrOffer { va, len, rkey: RegionKey(rkey) };
        Offer {
            qpn: Qpn::from_low_bits(address.qpn),
            mac: address.mac,
            ip: address.ip,
            service_port: address.service_port,
            mtu: self.mtu(),
            window: options.window,
            max_rd_atomic: options.max_rd_atomic.min(options.window / 2),
            start_msn: Msn::from_low_bits(address.start_msn),
            start_ssn: Ssn::from_low_bits(address.start_ssn),
            icrc: options.icrc,
            ack_bytes: ACK_BYTES,
            mrs: mrs.iter().map(offered).collect(),
            cc: options.congestion_control.name().to_owned(),
            app: Value::Null,
        }
    }

    /// Connects to a listening side over TCP: exchanges offers, takes what both agree on, resolves the peer's Ethernet
    /// address, and returns when both sides are ready. Post receives before, if the peer may send at once. Drives the
    /// workers that have no thread meanwhile.
    ///
    /// # Errors
    /// [`ConnectError`], one sentence. The queue pair is of no further use then.
    pub fn connect_to(
        &mut self,
        address: impl ToSocketAddrs + ToString,
        mrs: &[RemoteMr],
        timeout: Duration,
    ) -> Result<Connection, ConnectError> {
        self.check_fresh()?;
        let offer = self.offer(mrs);
        let key = random_key().map_err(|error| ConnectError::Local { sentence: error.to_string() })?;
        let device = Device { inner: self.device().clone() };
        let (control, agreement) =
            device.patiently(timeout, |patience| Control::connect(address, &offer, key, patience))?;
        self.finish(Connection { control, agreement, device, timeout })
    }

    /// Takes a connection that [`Device::accept`] returned; like [`Qp::connect_to`] from the other side.
    ///
    /// # Errors
    /// [`ConnectError`], one sentence. The queue pair is of no further use then.
    pub fn accept(
        &mut self,
        incoming: Incoming,
        mrs: &[RemoteMr],
        timeout: Duration,
    ) -> Result<Connection, ConnectError> {
        self.check_fresh()?;
        let offer = self.offer(mrs);
        let device = Device { inner: self.device().clone() };
        let (control, agreement) = device.patiently(timeout, |patience| incoming.accept(&offer, patience))?;
        self.finish(Connection { control, agreement, device, timeout })
    }

    fn check_fresh(&self) -> Result<(), ConnectError> {
        if self.state() == QpState::Init { Ok(()) } else { Err(local(&ResourceError::Connected)) }
    }

    fn finish(&mut self, mut connection: Connection) -> Result<Connection, ConnectError> {
        let Agreement { mtu, window, max_rd_atomic, icrc, pkey, .. } = connection.agreement;
        let peer = &connection.agreement.peer;
        let mac = self.next_hop(&connection.device, peer.ip, peer.mac).map_err(|error| local(&error))?;
        let address = QpAddress {
            qpn: peer.qpn.get(),
            mac,
            ip: peer.ip,
            service_port: peer.service_port,
            start_msn: peer.start_msn.get(),
            start_ssn: peer.start_ssn.get(),
        };
        let settled = self.settle(Terms { mtu, window, max_rd_atomic, icrc });
        settled.and_then(|()| self.connect(&address, pkey.0)).map_err(|error| local(&error))?;
        let Connection { control, device, timeout, .. } = &mut connection;
        device.patiently(*timeout, |patience| control.ready(patience))?;
        Ok(connection)
    }

    /// ARP's answer; without a network stack what the peer says of itself.
    fn next_hop(&self, device: &Device, ip: Ipv4Addr, own: MacAddr) -> Result<MacAddr, ResourceError> {
        loop {
            // The first worker has the network stack.
            match self.device().resolve(0, ip)? {
                None => return Ok(own),
                Some(Some(mac)) => return Ok(mac),
                Some(None) => drop(device.poll()),
            }
        }
    }
}

fn local(error: &ResourceError) -> ConnectError {
    ConnectError::Local { sentence: error.to_string() }
}

impl Connection {
    /// What both sides agreed on, and the other side's offer.
    pub fn agreement(&self) -> &Agreement {
        &self.agreement
    }

    /// Memory of the peer's that this side may reach, in the order that the peer offered it.
    pub fn remotes(&self) -> impl Iterator<Item = RemoteMr> {
        self.agreement.peer.mrs.iter().map(|mr| RemoteMr { va: mr.va, len: mr.len, rkey: mr.rkey.0 })
    }

    /// What the other application said, or that it ended; never waits.
    ///
    /// # Errors
    /// [`ConnectError::PeerLost`] when the peer's process is gone.
    pub fn poll(&mut self) -> Result<Option<ControlEvent>, ConnectError> {
        self.control.poll()
    }

    /// Sends a message to the other application.
    ///
    /// # Errors
    /// [`ConnectError`] when the channel has ended.
    pub fn send(&mut self, message: &Value) -> Result<(), ConnectError> {
        let Self { control, device, timeout, .. } = self;
        device.patiently(*timeout, |patience| control.send(message, patience))
    }

    /// Waits for a message of the other application, driving the workers that have no thread.
    ///
    /// # Errors
    /// [`ConnectError`]; an end in good order instead is [`ConnectError::PeerLost`].
    pub fn wait_message(&mut self) -> Result<Value, ConnectError> {
        let Self { control, device, timeout, .. } = self;
        device.patiently(*timeout, |patience| control.wait_message(patience))
    }

    /// Ends the connection in good order: the other side is told, and what it has under way is acknowledged until it ends
    /// the connection too, for up to ten seconds. Drives the workers that have no thread meanwhile.
    pub fn close(self) {
        let Self { control, device, timeout, .. } = self;
        device.patiently(timeout.min(LINGER), |patience| control.close(patience));
    }
}
