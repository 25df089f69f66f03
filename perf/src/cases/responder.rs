//! A server's packets: which queue pair and message, where it goes, what is complete.

use super::endpoints::{BURST, Endpoints};
use super::{Case, Entry};

pub(super) fn entries() -> Vec<Entry> {
    let entry = |name, make| Entry { name, elements: BURST as u64, make };
    vec![
        entry("responder/packet/1M", || Packets::boxed(1, 1 << 20, false)),
        entry("responder/follow/1M", || Packets::boxed(1, 1 << 20, true)),
        entry("responder/packet/64", || Packets::boxed(1, 64, false)),
        entry("responder/packet/64x64", || Packets::boxed(64, 64, false)),
    ]
}

/// One burst; acknowledgements are made between two of them.
struct Packets {
    endpoints: Endpoints,
    /// Packets that follow each other are found to do so.
    follows: bool,
}

impl Packets {
    fn boxed(qps: u32, len: u32, follows: bool) -> Box<Self> {
        Box::new(Self { endpoints: Endpoints::full(qps, len), follows })
    }
}

impl Case for Packets {
    fn prepare(&mut self) {
        self.endpoints.server_sends();
        self.endpoints.client_receives();
        self.endpoints.repost();
        self.endpoints.pass_time();
        assert_eq!(self.endpoints.client_sends(), BURST, "there is always something to send");
    }

    fn run(&mut self) {
        self.endpoints.server_receives(self.follows);
    }
}
