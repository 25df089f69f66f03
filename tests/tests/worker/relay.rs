//! What passes frames between two hosts, and does something to them: a cable, or one with a switch behind it.

use dcp::dpdk::{Mbuf, MbufBatch, QueuePair};
use dcp_switch::Switch;

/// Where a frame is going.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Toward {
    Server,
    Client,
}

/// What is done to each frame; `None` loses it.
pub(crate) type Edit = Box<dyn FnMut(Mbuf, Toward) -> Option<Mbuf>>;

/// Passes everything on as it is.
pub(crate) fn as_is() -> Edit {
    Box::new(|frame, _| Some(frame))
}

/// Two queue pairs and what passes between them.
pub(crate) struct Relay {
    client_port: QueuePair,
    server_port: QueuePair,
    edit: Edit,
    toward: [MbufBatch; 2],
    switch: Option<Switch>,
}

impl Relay {
    pub(crate) fn new(client_port: QueuePair, server_port: QueuePair, edit: Edit) -> Self {
        Self { client_port, server_port, edit, toward: Default::default(), switch: None }
    }

    /// With a switch behind its server port.
    pub(crate) fn with_switch(mut self, switch: Switch) -> Self {
        self.switch = Some(switch);
        self
    }

    pub(crate) fn switch(&self) -> &Switch {
        self.switch.as_ref().expect("this relay has a switch")
    }

    pub(crate) fn poll(&mut self) {
        let [to_server, to_client] = &mut self.toward;
        pass(&mut self.client_port, &mut self.server_port, to_server, &mut self.edit, Toward::Server);
        pass(&mut self.server_port, &mut self.client_port, to_client, &mut self.edit, Toward::Client);
        if let Some(switch) = &mut self.switch {
            switch.poll();
        }
    }
}

/// Takes new frames once the old ones are gone.
fn pass(from: &mut QueuePair, to: &mut QueuePair, waiting: &mut MbufBatch, edit: &mut Edit, toward: Toward) {
    if waiting.is_empty() {
        let mut batch = MbufBatch::new();
        from.rx.burst(&mut batch);
        for frame in batch.drain().filter_map(|frame| edit(frame, toward)) {
            waiting.push(frame).expect("no more than were received");
        }
    }
    to.tx.burst(waiting);
}
