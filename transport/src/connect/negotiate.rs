//! What two offers make.

use dcp_wire::PKey;

use super::error::Refusal;
use super::offer::Offer;

/// What both sides of a connection go by.
#[derive(Clone, PartialEq, Debug)]
pub struct Agreement {
    /// The other side, as it described itself.
    pub peer: Offer,
    /// Key of the connection.
    pub pkey: PKey,
    /// Payload of a full packet: the smaller one.
    pub mtu: u32,
    /// Messages under way at once: the smaller one.
    pub window: u32,
    /// READs and atomics unanswered at once: the smaller one, and at most half the window.
    pub max_rd_atomic: u32,
    /// Whether frames carry an ICRC: when either side wants it.
    pub icrc: bool,
}

/// Each side takes the smaller MTU, window and `max_rd_atomic`; both come to the same.
///
/// # Errors
/// The two cannot talk: two hosts claim one address.
pub fn negotiate(ours: &Offer, theirs: Offer, pkey: PKey) -> Result<Agreement, Refusal> {
    // One device may well talk to itself.
    if ours.ip == theirs.ip && ours.mac != theirs.mac {
        return Err(Refusal::SameAddress { ip: ours.ip });
    }
    let window = ours.window.min(theirs.window);
    Ok(Agreement {
        pkey,
        mtu: ours.mtu.min(theirs.mtu),
        window,
        max_rd_atomic: ours.max_rd_atomic.min(theirs.max_rd_atomic).min(window / 2),
        icrc: ours.icrc || theirs.icrc,
        peer: theirs,
    })
}
