//! A server's packets: which queue pair and message, where it goes, what is complete.

use super::endpoints::{BURST, Endpoints};
use super::{Case, Entry};

pub(super) fn entries() -> Vec<Entry> {
    let entry = |name, make| Entry { name, elements: BURST as u64, make };
    vec![
        entry("responder/packet/1M", || Box::new(Packets(Endpoints::full(1, 1 << 20)))),
        entry("responder/packet/64", || Box::new(Packets(Endpoints::full(1, 64)))),
        entry("responder/packet/64x64", || Box::new(Packets(Endpoints::full(64, 64)))),
    ]
}

/// One burst; acknowledgements are made between two of them.
struct Packets(Endpoints);

impl Case for Packets {
    fn prepare(&mut self) {
        self.0.server_sends();
        self.0.client_receives();
        self.0.repost();
        self.0.pass_time();
        assert_eq!(self.0.client_sends(), BURST, "there is always something to send");
    }

    fn run(&mut self) {
        self.0.server_receives();
    }
}
