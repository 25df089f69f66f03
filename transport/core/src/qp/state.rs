//! States of a queue pair and the changes that verbs allow.

use super::{Qp, Shared};
use crate::{EndpointConfig, Peer, Status, Terms};

/// State of a queue pair, as in verbs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum QpState {
    /// Created, or reset: takes nothing.
    Reset,
    /// Takes receives, but no frames.
    Init,
    /// Ready to receive: also answers.
    Rtr,
    /// Ready to send.
    Rts,
    /// Failed: work requests are flushed, the peer is told.
    Error,
}

impl QpState {
    /// P-2: whether frames of the peer are looked at.
    #[inline]
    pub(super) const fn takes_frames(self) -> bool {
        matches!(self, Self::Rtr | Self::Rts | Self::Error)
    }

    /// Whether it still does its work.
    #[inline]
    pub(super) const fn is_live(self) -> bool {
        matches!(self, Self::Rtr | Self::Rts)
    }
}

/// A state change that verbs do not allow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModifyError {
    /// State the queue pair is in.
    pub from: QpState,
    /// State asked for.
    pub to: QpState,
}

impl core::fmt::Display for ModifyError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "a queue pair cannot go from {:?} to {:?}", self.from, self.to)
    }
}

impl core::error::Error for ModifyError {}

impl Qp {
    pub(crate) const fn state(&self) -> QpState {
        self.state
    }

    pub(crate) fn enter_init(&mut self) -> Result<(), ModifyError> {
        self.check_change(QpState::Reset, QpState::Init)?;
        self.state = QpState::Init;
        Ok(())
    }

    pub(crate) fn limit_mtu(&mut self, mtu: u32) -> Result<(), ModifyError> {
        if !matches!(self.state, QpState::Reset | QpState::Init) {
            return Err(ModifyError { from: self.state, to: QpState::Init });
        }
        let less = self.config.mtu.saturating_sub(mtu.max(256));
        self.config.mtu -= less;
        self.rare.config.mtu -= less;
        self.full_packet -= less;
        Ok(())
    }

    /// Nothing was sent or received yet, so that all but the receives posted can be made anew.
    pub(crate) fn settle(&mut self, terms: Terms, own: &EndpointConfig) -> Result<(), ModifyError> {
        self.limit_mtu(terms.mtu)?;
        let mut config = self.rare.config;
        config.window = config.window.min(terms.window);
        config.max_rd_atomic = config.max_rd_atomic.min(terms.max_rd_atomic);
        config.icrc |= terms.icrc;
        let fresh = Self::new(self.id, self.qpn, config, own);
        let old = std::mem::replace(self, fresh);
        (self.ready, self.control_listed, self.state) = (old.ready, old.control_listed, old.state);
        self.recv_queue = old.recv_queue;
        Ok(())
    }

    pub(crate) fn enter_rtr(&mut self, peer: Peer) -> Result<(), ModifyError> {
        self.check_change(QpState::Init, QpState::Rtr)?;
        self.rare.peer = Some(peer);
        (self.peer_ip, self.pkey) = (peer.ip, peer.pkey);
        self.connection.handle_peer(&peer);
        self.recv.start(peer.start_msn);
        self.rare.recv_answers.start(peer.start_msn);
        self.recv_queue.start(peer.start_ssn);
        self.state = QpState::Rtr;
        Ok(())
    }

    pub(crate) fn enter_rts(&mut self) -> Result<(), ModifyError> {
        self.check_change(QpState::Rtr, QpState::Rts)?;
        self.state = QpState::Rts;
        Ok(())
    }

    fn check_change(&self, from: QpState, to: QpState) -> Result<(), ModifyError> {
        if self.state == from { Ok(()) } else { Err(ModifyError { from: self.state, to }) }
    }

    /// The application ends the connection: everything outstanding is flushed (allowed in any state but Reset).
    pub(crate) fn enter_error_by_command(&mut self, shared: &mut Shared) -> Result<(), ModifyError> {
        match self.state {
            QpState::Reset => Err(ModifyError { from: self.state, to: QpState::Error }),
            QpState::Error => Ok(()),
            _ => {
                self.fail_oldest(Status::Flushed, shared);
                Ok(())
            }
        }
    }

    /// Back to the state after creation: queues empty, numbers at their start, nothing completed.
    pub(crate) fn reset(&mut self, shared: &mut Shared) {
        self.recv.clear(&mut shared.maps);
        self.rare.recv_answers.clear(&mut shared.maps);
        let lists = (self.ready, self.control_listed);
        *self = Self::new(self.id, self.qpn, self.rare.config, &shared.config);
        (self.ready, self.control_listed) = lists;
    }
}
