//! Cost of one hop of a frame whose bytes are at hand: `cargo run --release -p dcp-pipeline --example hop`.
//!
//! Prints the best of many rounds, which other load on the machine disturbs least. `hop FRAMES` does one round of so many
//! frames and prints nothing, for `valgrind --tool=callgrind`: instructions do not depend on the load.
#![expect(clippy::unwrap_used, reason = "a measurement stops at the first surprise")]

use std::hint::black_box;

use dcp_pipeline::{Classified, Classifier, EditRefused, Frame, Pipeline, PipelineConfig, PortId};
use dcp_wire::MacAddr;

/// A handle to bytes elsewhere, like an mbuf.
#[derive(Clone, Copy)]
struct Cheap {
    head: &'static [u8; 64],
}

impl Frame for Cheap {
    #[inline]
    fn classify<'a>(&self, classifier: &'a mut Classifier) -> Option<&'a Classified> {
        classifier.classify(self.head)
    }
    fn flow_hash(&self) -> u32 {
        dcp_wire::flow_hash(self.head)
    }
    #[inline]
    fn len(&self) -> u32 {
        1097
    }
    fn trim(&mut self) -> Result<(), EditRefused> {
        Ok(())
    }
    fn mark_ce(&mut self) -> Result<bool, EditRefused> {
        Ok(true)
    }
    fn try_clone(&self) -> Option<Self> {
        Some(*self)
    }
}

/// A data packet from host 0 to host 1, as far as a switch reads it.
static HEAD: [u8; 64] = {
    let mut head = [0; 64];
    (head[0], head[5], head[6]) = (2, 1, 2);
    (head[12], head[14], head[15], head[23]) = (8, 0x45, 0b1010, 17);
    [head[36], head[37]] = dcp_wire::SERVICE_PORT.to_be_bytes();
    head
};

const BURST: usize = 16;
const ROUNDS: u32 = 40;

fn mac(number: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, number])
}

fn hop(switch: &mut Pipeline<Cheap>, frame: Cheap, frames: usize) {
    let mut out = Vec::with_capacity(BURST);
    for burst in 0..frames / BURST {
        let frames = core::iter::repeat_with(|| black_box(frame)).take(BURST);
        switch.handle_frames(burst as u64, PortId(0), frames);
        switch.poll_transmit(burst as u64, PortId(1), &mut out);
        assert_eq!(black_box(&out).len(), BURST);
        out.clear();
    }
}

#[expect(clippy::disallowed_methods, reason = "a measurement outside the core")]
fn main() {
    let frames = std::env::args().nth(1).map(|count| count.parse().unwrap());
    let config = PipelineConfig {
        static_macs: vec![(mac(0), PortId(0)), (mac(1), PortId(1))],
        ..PipelineConfig::new(8)
    };
    let mut switch = Pipeline::new(config).unwrap();
    let frame = Cheap { head: black_box(&HEAD) };
    if let Some(frames) = frames {
        return hop(&mut switch, frame, frames);
    }
    let frames = 1 << 20;
    let best = (0..ROUNDS).map(|_| {
        let start = std::time::Instant::now();
        hop(&mut switch, frame, frames);
        start.elapsed().as_nanos() as f64 / frames as f64
    });
    println!("{:.2} ns per hop", best.fold(f64::MAX, f64::min));
}
