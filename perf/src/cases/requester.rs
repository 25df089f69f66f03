//! A client's turn to send: which queue pair, which packet, its headers.

use super::endpoints::{BURST, Endpoints};
use super::{Case, Entry};

pub(super) fn entries() -> Vec<Entry> {
    let entry = |name, make| Entry { name, elements: BURST as u64, make };
    vec![
        entry("requester/turn/1M", || Box::new(Turn(Endpoints::full(1, 1 << 20)))),
        entry("requester/turn/64", || Box::new(Turn(Endpoints::full(1, 64)))),
        entry("requester/turn/64x64", || Box::new(Turn(Endpoints::full(64, 64)))),
    ]
}

/// One burst; everything else happens between two of them.
struct Turn(Endpoints);

impl Case for Turn {
    fn prepare(&mut self) {
        self.0.server_receives(false);
        self.0.server_sends();
        self.0.client_receives();
        self.0.repost();
        self.0.pass_time();
    }

    fn run(&mut self) {
        assert_eq!(self.0.client_sends(), BURST, "there is always something to send");
    }
}
