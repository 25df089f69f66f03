//! Two processes that move bytes through the library: WRITE, SEND and READ of the same size, compared.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use dcp::connect::{Agreement, Control, ControlEvent, Listener, MrOffer, Offer, Patience, random_key};
use dcp::device::NetDevice;
use dcp::dpdk::{Clock, Eal, register_thread};
use dcp::net::{InterfaceAddress, IpConfig};
use dcp::verbs::{
    Access, Cq, Device, DeviceConfig, Mr, Opcode, Pd, Qp, QpAddress, QpOptions, RecvWorkRequest, RemoteMr,
    SendWorkRequest, Status,
};
use dcp::wire::{Msn, Qpn, RegionKey, Ssn};
use serde_json::json;

use crate::Fault;

/// Bytes of one transfer: WRITE, SEND and READ move as many each.
const SIZE: u64 = 64 << 20;
/// Receives and READs land behind what a WRITE fills.
const SECOND: u64 = SIZE;
const PIECE: usize = 1 << 20;

fn environment(error: impl std::fmt::Display) -> Fault {
    (3, error.to_string())
}

fn failed(error: impl std::fmt::Display) -> Fault {
    (1, error.to_string())
}

/// A side with everything it needs.
pub(crate) struct Side {
    device: Device,
    pd: Pd,
    cq: Cq,
    mr: Mr,
    clock: Clock,
    _registered: dcp::dpdk::LcoreGuard,
}

impl Side {
    pub(crate) fn new(eal: &Arc<Eal>, device: NetDevice, address: InterfaceAddress) -> Result<Self, Fault> {
        let registered = register_thread(eal).map_err(environment)?;
        let ip = IpConfig::new(address, None).map_err(environment)?;
        let config = DeviceConfig { mbufs: 4095, ..DeviceConfig::new(address.address()) };
        let device = Device::open(eal, device, ip, &config).map_err(environment)?;
        let pd = device.allocate_pd().map_err(environment)?;
        let cq = device.create_cq(64).map_err(environment)?;
        let len = usize::try_from(2 * SIZE).map_err(environment)?;
        let mr = pd.allocate(len, Access::ALL).map_err(environment)?;
        Ok(Self { device, pd, cq, mr, clock: Clock::calibrate(), _registered: registered })
    }

    fn patience<'a>(&'a self, idle: &'a mut dyn FnMut() -> bool) -> Patience<'a> {
        Patience { clock: &self.clock, timeout: Duration::from_secs(30), idle }
    }

    fn make_qp(&self) -> Result<Qp, Fault> {
        self.pd.create_qp(&self.cq, QpOptions { timeout: 12, ..QpOptions::default() }).map_err(environment)
    }

    fn offer(&self, qp: &Qp) -> Offer {
        let (address, mr) = (qp.address(), self.mr.remote());
        Offer {
            qpn: Qpn::from_low_bits(address.qpn),
            mac: address.mac,
            ip: address.ip,
            service_port: address.service_port,
            mtu: qp.mtu(),
            window: 128,
            max_rd_atomic: 16,
            start_msn: Msn::ZERO,
            start_ssn: Ssn::ZERO,
            icrc: false,
            ack_bytes: 32 << 10,
            mrs: vec![MrOffer { va: mr.va, len: mr.len, rkey: RegionKey(mr.rkey) }],
            cc: "window".to_owned(),
            app: json!({ "size": SIZE }),
        }
    }

    /// Neighbours on one network: the MAC comes with the offer, and ARP agrees or the link is not ready yet.
    fn connect_qp(&self, qp: &mut Qp, agreement: &Agreement) -> Result<RemoteMr, Fault> {
        let peer = &agreement.peer;
        let mac = loop {
            if let Some(mac) = self.device.resolve(peer.ip).map_err(failed)? {
                break mac;
            }
            self.device.poll();
        };
        let address = QpAddress {
            qpn: peer.qpn.get(),
            mac,
            ip: peer.ip,
            service_port: peer.service_port,
            start_msn: peer.start_msn.get(),
            start_ssn: peer.start_ssn.get(),
        };
        qp.limit_mtu(agreement.mtu).map_err(failed)?;
        qp.connect(&address, agreement.pkey.0).map_err(failed)?;
        let mr = peer.mrs.first().ok_or((1, "the peer offers no memory".to_owned()))?;
        Ok(RemoteMr { va: mr.va, len: mr.len, rkey: mr.rkey.0 })
    }

    fn post_receive(&self, qp: &mut Qp) -> Result<(), Fault> {
        let sges = [self.mr.slice(SECOND..SECOND + SIZE).map_err(failed)?];
        qp.post_recv(&RecvWorkRequest { wr_id: 0, sges: &sges }).map_err(failed)
    }

    /// Sends one request and waits until it is done.
    fn run(&self, qp: &mut Qp, opcode: Opcode, from: u64) -> Result<(), Fault> {
        let sges = [self.mr.slice(from..from + SIZE).map_err(failed)?];
        qp.post_send(&SendWorkRequest::new(1, opcode, &sges)).map_err(failed)?;
        loop {
            if let Some(completion) = self.cq.poll_one().map_err(failed)? {
                if completion.status == Status::Success {
                    return Ok(());
                }
                return Err((1, format!("{opcode:?} ended with {}", completion.status.name())));
            }
        }
    }

    fn fill(&self, seed: u64) -> Result<(), Fault> {
        each_piece(|at, piece| {
            pattern(seed, at, piece);
            self.mr.write(at, piece).map_err(failed)
        })
    }

    fn check(&self, seed: u64, from: u64) -> Result<(), Fault> {
        let mut expected = vec![0; PIECE];
        each_piece(|at, piece| {
            pattern(seed, at, &mut expected);
            self.mr.read(from + at, piece).map_err(failed)?;
            if *piece == expected[..] { Ok(()) } else { Err((1, format!("bytes from {at} on are wrong"))) }
        })
    }
}

fn each_piece(mut act: impl FnMut(u64, &mut [u8]) -> Result<(), Fault>) -> Result<(), Fault> {
    let mut piece = vec![0; PIECE];
    (0..SIZE).step_by(PIECE).try_for_each(|at| act(at, &mut piece))
}

fn pattern(seed: u64, at: u64, piece: &mut [u8]) {
    for (index, word) in piece.chunks_exact_mut(8).enumerate() {
        let value = (at + 8 * index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ seed;
        word.copy_from_slice(&value.to_le_bytes());
    }
}

/// Takes the port; prints `listening`.
pub(crate) fn listen(port: u16) -> Result<Listener, Fault> {
    let listener = Listener::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))).map_err(environment)?;
    println!("listening");
    Ok(listener)
}

/// Serves one client after another; prints `served` after a good end and `lost` after a bad one.
pub(crate) fn serve(side: &Side, listener: &Listener) -> Result<(), Fault> {
    loop {
        let mut idle = || {
            side.device.poll();
            true
        };
        let Ok(incoming) = listener.accept(&mut side.patience(&mut idle)) else { continue };
        let mut qp = side.make_qp()?;
        let offer = side.offer(&qp);
        let accepted = incoming.accept(&offer, &mut side.patience(&mut idle));
        let served = accepted.map_err(failed).and_then(|(control, agreement)| {
            side.connect_qp(&mut qp, &agreement)?;
            serve_one(side, &mut qp, control)
        });
        match served {
            Ok(()) => println!("served"),
            Err((_, sentence)) => println!("lost {sentence}"),
        }
    }
}

fn serve_one(side: &Side, qp: &mut Qp, mut control: Control) -> Result<(), Fault> {
    let mut idle = || {
        side.device.poll();
        true
    };
    side.post_receive(qp)?;
    control.ready(&mut side.patience(&mut idle)).map_err(failed)?;
    loop {
        side.device.poll();
        match control.poll().map_err(failed)? {
            None => {}
            Some(ControlEvent::Bye) => return Ok(()),
            Some(ControlEvent::Message(message)) => {
                let from = message["from"].as_u64().unwrap_or(0);
                side.check(7, from)?;
                control.send(&json!({ "right": true }), &mut side.patience(&mut idle)).map_err(failed)?;
            }
        }
    }
}

/// Moves bytes there and back; prints `moved` when all of them were right.
pub(crate) fn transfer(side: &Side, host: &str) -> Result<(), Fault> {
    let mut idle = || {
        side.device.poll();
        true
    };
    let mut qp = side.make_qp()?;
    let pkey = random_key().map_err(environment)?;
    let (mut control, agreement) =
        Control::connect(host, &side.offer(&qp), pkey, &mut side.patience(&mut idle)).map_err(failed)?;
    let remote = side.connect_qp(&mut qp, &agreement)?;
    control.ready(&mut side.patience(&mut idle)).map_err(failed)?;
    side.fill(7)?;
    println!("moving");
    let mut ask = |control: &mut Control, from: u64| -> Result<(), Fault> {
        control.send(&json!({ "from": from }), &mut side.patience(&mut idle)).map_err(failed)?;
        control.wait_message(&mut side.patience(&mut idle)).map_err(failed).map(drop)
    };
    side.run(&mut qp, Opcode::Write(remote.at(0)), 0)?;
    ask(&mut control, 0)?;
    side.run(&mut qp, Opcode::Send, 0)?;
    ask(&mut control, SECOND)?;
    side.run(&mut qp, Opcode::Read(remote.at(0)), SECOND)?;
    side.check(7, SECOND)?;
    println!("moved");
    let mut idle = || {
        side.device.poll();
        true
    };
    control.close(&mut side.patience(&mut idle));
    Ok(())
}

/// Writes for ever; prints `moving`, and ends with the status of the first failure.
pub(crate) fn hammer(side: &Side, host: &str) -> Result<(), Fault> {
    let mut idle = || {
        side.device.poll();
        true
    };
    let mut qp = side.make_qp()?;
    let pkey = random_key().map_err(environment)?;
    let (mut control, agreement) =
        Control::connect(host, &side.offer(&qp), pkey, &mut side.patience(&mut idle)).map_err(failed)?;
    let remote = side.connect_qp(&mut qp, &agreement)?;
    control.ready(&mut side.patience(&mut idle)).map_err(failed)?;
    println!("moving");
    loop {
        side.run(&mut qp, Opcode::Write(remote.at(0)), 0)?;
    }
}
