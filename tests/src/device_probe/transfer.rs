//! Two processes that move bytes through the library: WRITE, SEND and READ of the same size, compared.

use std::net::{Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use dcp::connect::{ControlEvent, Listener};
use dcp::device::NetDevice;
use dcp::dpdk::{Eal, register_thread};
use dcp::net::{InterfaceAddress, IpConfig};
use dcp::verbs::{
    Access, Connection, Cq, Device, DeviceConfig, Mr, Opcode, Pd, Qp, QpOptions, RecvWorkRequest, RemoteMr,
    SendWorkRequest, Status,
};
use serde_json::json;

use crate::Fault;

/// What is moved, and how patiently.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Bytes of one transfer, in whole pieces: WRITE, SEND and READ move as many each. Receives and READs land behind what
    /// a WRITE fills.
    pub(crate) size: u64,
    /// Of the queue pair: 4.096 µs × 2^N.
    pub(crate) timeout: u8,
}

impl Default for Load {
    /// 2 s of silence: many processes that poll share few cores here.
    fn default() -> Self {
        Self { size: 64 << 20, timeout: 16 }
    }
}

const PIECE: usize = 1 << 20;
/// Bytes of each WRITE of a client that is to be killed.
const HAMMER_SIZE: u64 = 4 << 20;
/// For each answer of the other side.
const PATIENCE: Duration = Duration::from_secs(30);

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
    load: Load,
    _registered: dcp::dpdk::LcoreGuard,
}

impl Side {
    pub(crate) fn new(
        eal: &Arc<Eal>,
        device: NetDevice,
        address: InterfaceAddress,
        load: Load,
    ) -> Result<Self, Fault> {
        let registered = register_thread(eal).map_err(environment)?;
        let ip = IpConfig::new(address, None).map_err(environment)?;
        let config = DeviceConfig { mbufs: 4095, ..DeviceConfig::new(address.address()) };
        let device = Device::open(eal, device, ip, &config).map_err(environment)?;
        let pd = device.allocate_pd().map_err(environment)?;
        let cq = device.create_cq(64).map_err(environment)?;
        let len = usize::try_from(2 * load.size.next_multiple_of(PIECE as u64)).map_err(environment)?;
        let mr = pd.allocate(len, Access::ALL).map_err(environment)?;
        Ok(Self { device, pd, cq, mr, load, _registered: registered })
    }

    fn make_qp(&self) -> Result<Qp, Fault> {
        let options = QpOptions { timeout: self.load.timeout, ..QpOptions::default() };
        self.pd.create_qp(&self.cq, options).map_err(environment)
    }

    /// Connects to a serving side; also says where its memory is.
    fn connect(&self, qp: &mut Qp, host: &str) -> Result<(Connection, RemoteMr), Fault> {
        let connection = qp.connect_to(host, &[self.mr.remote()], PATIENCE).map_err(failed)?;
        let remote = connection.remotes().next().ok_or((1, "the peer offers no memory".to_owned()))?;
        Ok((connection, remote))
    }

    /// Data packets put in memory so far.
    fn placed(&self) -> Result<u64, Fault> {
        let stats = self.device.stats().map_err(failed)?;
        Ok(stats.workers.iter().map(|worker| worker.endpoint.placed).sum())
    }

    fn post_receive(&self, qp: &mut Qp) -> Result<(), Fault> {
        let sges = [self.mr.slice(self.load.size..2 * self.load.size).map_err(failed)?];
        qp.post_recv(&RecvWorkRequest { wr_id: 0, sges: &sges }).map_err(failed)
    }

    /// Sends one request and waits until it is done.
    fn run(&self, qp: &mut Qp, opcode: Opcode, from: u64) -> Result<(), Fault> {
        self.post(qp, opcode, from..from + self.load.size)?;
        self.wait(opcode)
    }

    fn post(&self, qp: &mut Qp, opcode: Opcode, bytes: Range<u64>) -> Result<(), Fault> {
        let sges = [self.mr.slice(bytes).map_err(failed)?];
        qp.post_send(&SendWorkRequest::new(1, opcode, &sges)).map_err(failed)
    }

    fn wait(&self, opcode: Opcode) -> Result<(), Fault> {
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
        each_piece(self.load.size, |at, piece| {
            pattern(seed, at, piece);
            self.mr.write(at, piece).map_err(failed)
        })
    }

    fn check(&self, seed: u64, from: u64) -> Result<(), Fault> {
        let mut expected = vec![0; PIECE];
        each_piece(self.load.size, |at, piece| {
            pattern(seed, at, &mut expected);
            self.mr.read(from + at, piece).map_err(failed)?;
            if *piece == expected[..] { Ok(()) } else { Err((1, format!("bytes from {at} on are wrong"))) }
        })
    }
}

fn each_piece(size: u64, mut act: impl FnMut(u64, &mut [u8]) -> Result<(), Fault>) -> Result<(), Fault> {
    let mut piece = vec![0; PIECE];
    (0..size).step_by(PIECE).try_for_each(|at| act(at, &mut piece))
}

fn pattern(seed: u64, at: u64, piece: &mut [u8]) {
    for (index, word) in piece.chunks_exact_mut(8).enumerate() {
        let value = (at + 8 * index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ seed;
        word.copy_from_slice(&value.to_le_bytes());
    }
}

/// Takes the port; prints `listening PORT`.
pub(crate) fn listen(port: u16) -> Result<Listener, Fault> {
    let listener = Listener::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))).map_err(environment)?;
    println!("listening {}", listener.address().map_err(environment)?.port());
    Ok(listener)
}

/// Serves one client after another; prints `served MTU` after a good end, and after a bad one `lost PACKETS` with the
/// data packets that had been placed.
pub(crate) fn serve(side: &Side, listener: &Listener) -> Result<(), Fault> {
    loop {
        let Ok(incoming) = side.device.accept(listener, PATIENCE) else { continue };
        let before = side.placed()?;
        let mut qp = side.make_qp()?;
        side.post_receive(&mut qp)?;
        let connection = qp.accept(incoming, &[side.mr.remote()], PATIENCE).map_err(failed);
        match connection.and_then(|connection| serve_one(side, connection)) {
            Ok(()) => println!("served {}", qp.mtu()),
            Err((_, sentence)) => println!("lost {} {sentence}", side.placed()? - before),
        }
    }
}

fn serve_one(side: &Side, mut connection: Connection) -> Result<(), Fault> {
    loop {
        side.device.poll();
        match connection.poll().map_err(failed)? {
            None => {}
            Some(ControlEvent::Bye) => return Ok(()),
            Some(ControlEvent::Message(message)) => {
                let from = message["from"].as_u64().unwrap_or(0);
                side.check(7, from)?;
                connection.send(&json!({ "right": true })).map_err(failed)?;
            }
        }
    }
}

/// Moves bytes there and back; prints `moved` when all of them were right.
pub(crate) fn transfer(side: &Side, host: &str) -> Result<(), Fault> {
    let mut qp = side.make_qp()?;
    let (mut connection, remote) = side.connect(&mut qp, host)?;
    side.fill(7)?;
    println!("moving");
    let ask = |connection: &mut Connection, from: u64| -> Result<(), Fault> {
        connection.send(&json!({ "from": from })).map_err(failed)?;
        connection.wait_message().map_err(failed).map(drop)
    };
    side.run(&mut qp, Opcode::Write(remote.at(0)), 0)?;
    ask(&mut connection, 0)?;
    side.run(&mut qp, Opcode::Send, 0)?;
    ask(&mut connection, side.load.size)?;
    side.run(&mut qp, Opcode::Read(remote.at(0)), side.load.size)?;
    side.check(7, side.load.size)?;
    println!("moved");
    connection.close();
    Ok(())
}

/// Keeps two WRITEs under way for ever. Prints `moving` once the second is, and ends with the status of the first failure.
pub(crate) fn hammer(side: &Side, host: &str) -> Result<(), Fault> {
    let mut qp = side.make_qp()?;
    let (_connection, remote) = side.connect(&mut qp, host)?;
    let opcode = Opcode::Write(remote.at(0));
    side.post(&mut qp, opcode, 0..HAMMER_SIZE)?;
    let mut is_first = true;
    loop {
        side.post(&mut qp, opcode, 0..HAMMER_SIZE)?;
        side.wait(opcode)?;
        if std::mem::take(&mut is_first) {
            println!("moving");
        }
    }
}
