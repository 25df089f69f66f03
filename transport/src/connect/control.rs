//! The control channel: a TCP connection that sets up a queue pair's, and then watches over it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

use dcp_wire::PKey;
use dpdk_ffi::{Clock, clock};
use rustix::net::sockopt;
use serde_json::Value;

use super::error::{ConnectError, Refusal};
use super::lines::{Line, LineBuffer};
use super::negotiate::{Agreement, negotiate};
use super::offer::Offer;

/// How long to wait for the other side, and what to do meanwhile.
pub struct Patience<'a> {
    /// Measures the wait.
    pub clock: &'a Clock,
    /// How long each single answer may take.
    pub timeout: Duration,
    /// Called over and over while waiting: drives a worker, and says whether to go on.
    pub idle: &'a mut dyn FnMut() -> bool,
}

/// A key for a new connection, from the kernel's random numbers: who cannot see the frames must guess it.
///
/// # Errors
/// The kernel has none.
pub fn random_key() -> io::Result<PKey> {
    let mut bytes = [0; 2];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(PKey(u16::from_ne_bytes(bytes)))
}

/// What came over an established channel.
#[derive(Clone, PartialEq, Debug)]
pub enum ControlEvent {
    /// The other application says something.
    Message(Value),
    /// The other side ends the connection in good order.
    Bye,
}

/// One side of a control channel.
#[derive(Debug)]
pub struct Control {
    stream: TcpStream,
    buffer: LineBuffer,
    /// The other side has said that it ends the connection.
    parted: bool,
}

impl Control {
    /// Connects, offers, and takes the answer. The queue pair can go to RTR with it; then call [`ready`](Self::ready).
    ///
    /// # Errors
    /// [`ConnectError`], one sentence.
    pub fn connect(
        address: impl ToSocketAddrs + ToString,
        ours: &Offer,
        pkey: PKey,
        patience: &mut Patience<'_>,
    ) -> Result<(Self, Agreement), ConnectError> {
        Self::over(reach(&address, patience.timeout)?, ours, pkey, patience)
    }

    /// The same over a stream that is connected already: for applications that wait for a server in their own way.
    ///
    /// # Errors
    /// [`ConnectError`], one sentence.
    pub fn over(
        stream: TcpStream,
        ours: &Offer,
        pkey: PKey,
        patience: &mut Patience<'_>,
    ) -> Result<(Self, Agreement), ConnectError> {
        let mut control = Self::new(stream)?;
        control.send_line(&Line::Hello(Box::new(ours.clone()), Some(pkey)), patience)?;
        let theirs = control.wait_hello(patience)?.0;
        let agreement = control.agree(ours, theirs, pkey)?;
        Ok((control, agreement))
    }

    fn new(stream: TcpStream) -> Result<Self, ConnectError> {
        let set = || -> io::Result<()> {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            sockopt::set_socket_keepalive(&stream, true)?;
            sockopt::set_tcp_keepidle(&stream, KEEPALIVE_IDLE)?;
            sockopt::set_tcp_keepintvl(&stream, KEEPALIVE_INTERVAL)?;
            sockopt::set_tcp_keepcnt(&stream, KEEPALIVE_PROBES)?;
            Ok(sockopt::set_tcp_user_timeout(&stream, UNACKNOWLEDGED_MS)?)
        };
        set().map_err(|error| lost(&error))?;
        Ok(Self { stream, buffer: LineBuffer::default(), parted: false })
    }

    /// Says that the queue pair takes packets and its receives are posted, and waits for the other side to say so.
    ///
    /// # Errors
    /// [`ConnectError`], one sentence.
    pub fn ready(&mut self, patience: &mut Patience<'_>) -> Result<(), ConnectError> {
        self.send_line(&Line::Ready, patience)?;
        match self.wait_line("word that it is ready", patience)? {
            Line::Ready => Ok(()),
            _ => Err(ConnectError::OutOfTurn { expected: "word that it is ready" }),
        }
    }

    /// What has come, if anything; never waits. Applications that run a connection call it now and then: a peer whose
    /// process died is noticed at once, one whose host died within ten seconds.
    ///
    /// # Errors
    /// [`ConnectError::PeerLost`] when the channel ended without a [`Bye`](ControlEvent::Bye).
    pub fn poll(&mut self) -> Result<Option<ControlEvent>, ConnectError> {
        match self.read_line()? {
            None => Ok(None),
            Some(Line::Message(message)) => Ok(Some(ControlEvent::Message(message))),
            Some(Line::Bye) => Ok(Some(ControlEvent::Bye)),
            Some(Line::Refused(sentence)) => Err(ConnectError::RefusedByPeer { sentence }),
            Some(Line::Hello(..) | Line::Ready) => Err(ConnectError::OutOfTurn { expected: "a message" }),
        }
    }

    /// Waits for a message of the other application.
    ///
    /// # Errors
    /// [`ConnectError`]; a [`Bye`](ControlEvent::Bye) instead is [`ConnectError::PeerLost`].
    pub fn wait_message(&mut self, patience: &mut Patience<'_>) -> Result<Value, ConnectError> {
        match self.wait_line("message", patience)? {
            Line::Message(message) => Ok(message),
            Line::Bye => Err(ConnectError::PeerLost { reason: "it ended the connection".to_owned() }),
            _ => Err(ConnectError::OutOfTurn { expected: "a message" }),
        }
    }

    /// Sends a message to the other application.
    ///
    /// # Errors
    /// [`ConnectError`] when the channel has ended, or the other side takes nothing.
    pub fn send(&mut self, message: &Value, patience: &mut Patience<'_>) -> Result<(), ConnectError> {
        self.send_line(&Line::Message(message.clone()), patience)
    }

    /// Ends the connection in good order, and stays until the other side has ended it too, or is gone, or `patience` is
    /// used up: what is still under way towards this side is acknowledged meanwhile, and what the other side has sent
    /// last does not reset the channel. Dropping the channel without looks like a death to the other side.
    pub fn close(self, patience: &mut Patience<'_>) {
        let mut this = self;
        let start = patience.clock.now_ns();
        // Who does not hear it sees the channel end.
        let mut stay = this.send_line(&Line::Bye, patience).is_ok();
        while stay && !this.parted {
            stay = this.read_line().is_ok() && patience.wait(start, "its end").is_ok();
        }
    }

    fn agree(&mut self, ours: &Offer, theirs: Offer, pkey: PKey) -> Result<Agreement, ConnectError> {
        negotiate(ours, theirs, pkey).map_err(|refusal| self.refuse(refusal))
    }

    /// Tells the other side why not.
    fn refuse(&mut self, refusal: Refusal) -> ConnectError {
        let line = Line::Refused(refusal.to_string()).print();
        // A short line fits an empty socket; if not, the end of the channel says enough.
        let _ = self.stream.write_all(line.as_bytes());
        ConnectError::Refused(refusal)
    }

    fn wait_hello(&mut self, patience: &mut Patience<'_>) -> Result<(Offer, Option<PKey>), ConnectError> {
        match self.wait_line("offer", patience)? {
            Line::Hello(offer, pkey) => Ok((*offer, pkey)),
            _ => Err(ConnectError::OutOfTurn { expected: "an offer" }),
        }
    }

    fn wait_line(
        &mut self,
        expected: &'static str,
        patience: &mut Patience<'_>,
    ) -> Result<Line, ConnectError> {
        let start = patience.clock.now_ns();
        loop {
            match self.read_line()? {
                Some(Line::Refused(sentence)) => return Err(ConnectError::RefusedByPeer { sentence }),
                Some(line) => return Ok(line),
                None => patience.wait(start, expected)?,
            }
        }
    }

    fn read_line(&mut self) -> Result<Option<Line>, ConnectError> {
        loop {
            if let Some(line) = self.buffer.poll_line()? {
                return match Line::parse(&line) {
                    Ok(line) => {
                        self.parted |= line == Line::Bye;
                        Ok(Some(line))
                    }
                    Err(refusal) => Err(self.refuse(refusal)),
                };
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(ConnectError::PeerLost { reason: "it closed the channel".to_owned() }),
                Ok(len) => self.buffer.handle_bytes(&bytes[..len]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(lost(&error)),
            }
        }
    }

    fn send_line(&mut self, line: &Line, patience: &mut Patience<'_>) -> Result<(), ConnectError> {
        let text = line.print();
        let mut rest = text.as_bytes();
        let start = patience.clock.now_ns();
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(len) => rest = &rest[len..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    patience.wait(start, "sign of life")?
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // What the other side said before it went explains more.
                Err(error) => return Err(self.last_words(&error)),
            }
        }
        Ok(())
    }

    fn last_words(&mut self, error: &io::Error) -> ConnectError {
        match self.read_line() {
            Ok(Some(Line::Refused(sentence))) => ConnectError::RefusedByPeer { sentence },
            _ => lost(error),
        }
    }
}

impl Patience<'_> {
    fn wait(&mut self, start_ns: u64, expected: &'static str) -> Result<(), ConnectError> {
        if !(self.idle)() {
            return Err(ConnectError::Stopped);
        }
        if u128::from(self.clock.now_ns().saturating_sub(start_ns)) > self.timeout.as_nanos() {
            return Err(ConnectError::Timeout { expected });
        }
        clock::pause(LOOK);
        Ok(())
    }
}

impl std::fmt::Debug for Patience<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Patience").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// Between looks at the socket while waiting.
const LOOK: Duration = Duration::from_micros(100);
/// A host that is silent for so long is asked whether it is there,
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
/// again after so long,
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(1);
/// and given up after so many questions.
const KEEPALIVE_PROBES: u32 = 5;
/// The same for a host that does not acknowledge what was sent.
const UNACKNOWLEDGED_MS: u32 = 10_000;

fn lost(error: &io::Error) -> ConnectError {
    ConnectError::PeerLost { reason: error.to_string() }
}

fn reach(address: &(impl ToSocketAddrs + ToString), timeout: Duration) -> Result<TcpStream, ConnectError> {
    let failed = |reason: String| ConnectError::Unreachable { address: address.to_string(), reason };
    let mut reason = "the name has no address".to_owned();
    for candidate in address.to_socket_addrs().map_err(|error| failed(error.to_string()))? {
        match TcpStream::connect_timeout(&candidate, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => reason = error.to_string(),
        }
    }
    Err(failed(reason))
}

/// Waits for connections.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
}

impl Listener {
    /// Listens, on `[::]:port` for IPv4 and IPv6 both.
    ///
    /// # Errors
    /// [`ConnectError::Listen`].
    pub fn bind(address: SocketAddr) -> Result<Self, ConnectError> {
        let failed = |error: io::Error| ConnectError::Listen {
            address: address.to_string(),
            reason: error.to_string(),
            kind: error.kind(),
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self { listener })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Waits for a connection and its offer. An error of one connection leaves the listener as it was.
    ///
    /// # Errors
    /// [`ConnectError`], one sentence.
    pub fn accept(&self, patience: &mut Patience<'_>) -> Result<Incoming, ConnectError> {
        let start = patience.clock.now_ns();
        let stream = loop {
            match self.listener.accept() {
                Ok((stream, _)) => break stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => patience.wait(start, "connection")?,
                // Gone before it was taken, or a signal.
                Err(error)
                    if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                Err(error) => return Err(lost(&error)),
            }
        };
        let mut control = Control::new(stream)?;
        let (offer, pkey) = control.wait_hello(patience)?;
        let Some(pkey) = pkey else { return Err(control.refuse(Refusal::NoKey)) };
        Ok(Incoming { control, offer, pkey })
    }
}

/// A connection that was offered and is neither taken nor refused.
#[derive(Debug)]
pub struct Incoming {
    control: Control,
    offer: Offer,
    pkey: PKey,
}

impl Incoming {
    /// What the other side offers.
    pub fn offer(&self) -> &Offer {
        &self.offer
    }

    /// Key of the connection, as the other side chose it.
    pub fn pkey(&self) -> PKey {
        self.pkey
    }

    /// Answers with an own offer. The queue pair can go to RTR; then call [`Control::ready`].
    ///
    /// # Errors
    /// [`ConnectError`], one sentence.
    pub fn accept(
        self,
        ours: &Offer,
        patience: &mut Patience<'_>,
    ) -> Result<(Control, Agreement), ConnectError> {
        let Self { mut control, offer, pkey } = self;
        let agreement = control.agree(ours, offer, pkey)?;
        control.send_line(&Line::Hello(Box::new(ours.clone()), None), patience)?;
        Ok((control, agreement))
    }

    /// Refuses with a sentence that says what to do, such as one that names options that differ.
    pub fn refuse(mut self, sentence: &str) {
        let line = Line::Refused(sentence.to_owned()).print();
        // Who does not hear it sees the channel end.
        let _ = self.control.stream.write_all(line.as_bytes());
    }
}
