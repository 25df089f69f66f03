//! Cost of one hop of a frame that costs nothing itself: `cargo run --release -p dcp-pipeline --example hop`.
//!
//! Prints the best of many rounds, which other load on the machine disturbs least. `hop FRAMES` does one round of so many
//! frames and prints nothing, for `valgrind --tool=callgrind`: instructions do not depend on the load.
#![expect(clippy::unwrap_used, reason = "a measurement stops at the first surprise")]

use std::hint::black_box;

use dcp_pipeline::{Classified, EditRefused, Frame, Pipeline, PipelineConfig, PortId};
use dcp_wire::{Ecn, MacAddr, Tag};

/// What the pipeline may ask of a frame, ready.
#[derive(Clone, Copy)]
struct Cheap {
    seen: Classified,
    len: u32,
}

impl Frame for Cheap {
    #[inline]
    fn classify(&self, _: &[u16]) -> Option<Classified> {
        Some(self.seen)
    }
    #[inline]
    fn len(&self) -> u32 {
        self.len
    }
    fn trim(&mut self) -> Result<(), EditRefused> {
        self.len = 57;
        Ok(())
    }
    fn mark_ce(&mut self) -> Result<bool, EditRefused> {
        Ok(true)
    }
    fn try_clone(&self) -> Option<Self> {
        Some(*self)
    }
}

const BURST: usize = 16;
const ROUNDS: u32 = 40;

fn mac(number: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, number])
}

fn hop(switch: &mut Pipeline<Cheap>, frame: Cheap, frames: usize) {
    let mut out = Vec::with_capacity(BURST);
    for burst in 0..frames / BURST {
        for _ in 0..BURST {
            switch.handle_frame(burst as u64, PortId(0), black_box(frame));
        }
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
    let seen =
        Classified { dst_mac: mac(1), src_mac: mac(0), tag: Tag::Data, ecn: Ecn::NotEct, flow_hash: 7 };
    let frame = Cheap { seen, len: 1097 };
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
