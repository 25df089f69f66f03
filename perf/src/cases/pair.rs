//! One WRITE after the other between two endpoints: both directions, from the posting to the completion.

use super::endpoints::Endpoints;
use super::{Case, Entry};

pub(super) fn entries() -> Vec<Entry> {
    vec![
        Entry { name: "pair/write/64", elements: 1, make: || Box::new(Write(Endpoints::new(1, 64))) },
        Entry { name: "pair/write/64K", elements: 16, make: || Box::new(Write(Endpoints::new(1, 64 << 10))) },
        Entry { name: "pair/write/1M", elements: 256, make: || Box::new(Write(Endpoints::new(1, 1 << 20))) },
    ]
}

struct Write(Endpoints);

impl Case for Write {
    fn prepare(&mut self) {}

    fn run(&mut self) {
        self.0.post_one();
        loop {
            self.0.pass_time();
            let sent = self.0.client_sends();
            self.0.server_receives(false);
            let answered = self.0.server_sends();
            self.0.client_receives();
            if sent + answered == 0 {
                break;
            }
        }
        assert_eq!(self.0.completions(), 1, "one WRITE, one completion");
    }
}
