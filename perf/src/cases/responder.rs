//! A server's packets: which queue pair and message, where it goes, what is complete.

use super::endpoints::{BURST, Endpoints};
use super::{Case, Entry};

pub(super) fn entries() -> Vec<Entry> {
    let entry = |name, make| Entry { name, elements: BURST as u64, make };
    vec![
        entry("responder/packet/1M", || Box::new(Packets(Endpoints::full(1, 1 << 20)))),
        entry("responder/follow/1M", || Box::new(Followers(Endpoints::full(1, 1 << 20)))),
        entry("responder/packet/64", || Box::new(Packets(Endpoints::full(1, 64)))),
        entry("responder/packet/64x64", || Box::new(Packets(Endpoints::full(64, 64)))),
    ]
}

/// One burst; acknowledgements are made between two of them.
struct Packets(Endpoints);

impl Case for Packets {
    fn prepare(&mut self) {
        next_burst(&mut self.0);
    }

    fn run(&mut self) {
        self.0.server_receives();
    }
}

/// The same burst, where packets that follow each other are found to do so.
struct Followers(Endpoints);

impl Case for Followers {
    fn prepare(&mut self) {
        next_burst(&mut self.0);
    }

    fn run(&mut self) {
        self.0.server_follows();
    }
}

fn next_burst(endpoints: &mut Endpoints) {
    endpoints.server_sends();
    endpoints.client_receives();
    endpoints.repost();
    endpoints.pass_time();
    assert_eq!(endpoints.client_sends(), BURST, "there is always something to send");
}
