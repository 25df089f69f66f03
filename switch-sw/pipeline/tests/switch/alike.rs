//! What a switch remembers of the frame before changes nothing but the time it takes.

use crate::support::*;
use dcp_pipeline::*;
use proptest::prelude::*;

const PORTS: u16 = 4;
/// More than the table of a switch with one entry has places for.
const HOSTS: u16 = 24;

/// A frame before which the classifier sees one with other addresses, so that nothing is remembered.
struct Anew(ByteFrame);

impl Frame for Anew {
    fn classify<'a>(&self, classifier: &'a mut Classifier) -> Option<&'a Classified> {
        classifier.classify(&[0xEE; 14]);
        self.0.classify(classifier)
    }
    fn flow_hash(&self) -> u32 {
        self.0.flow_hash()
    }
    fn len(&self) -> u32 {
        self.0.len()
    }
    fn trim(&mut self) -> Result<(), EditRefused> {
        self.0.trim()
    }
    fn mark_ce(&mut self) -> Result<bool, EditRefused> {
        self.0.mark_ce()
    }
    fn corrupt(&mut self, seed: u64) -> Result<(), EditRefused> {
        self.0.corrupt(seed)
    }
    fn try_clone(&self) -> Option<Self> {
        Some(Self(self.0.clone()))
    }
}

/// A burst of equal frames, then frames leave a port.
#[derive(Clone, Debug)]
struct Step {
    now_ns: u64,
    ingress: PortId,
    frame: ByteFrame,
    frames: usize,
    egress: PortId,
    room: usize,
}

fn any_frame() -> impl Strategy<Value = ByteFrame> {
    let what =
        prop_oneof![Just(What::Data(90)), Just(What::Ack), Just(What::HeaderOnly), Just(What::Other(30))];
    // Few hosts mostly, so that a frame is often like the one before; all of them fill the table.
    let host =
        || prop_oneof![4 => (0..3u16).prop_map(host), 1 => (0..HOSTS).prop_map(host), 1 => Just(BROADCAST)];
    let cut = prop::option::weighted(0.1, 0..60usize);
    (host(), host(), what, cut).prop_map(|(to, from, what, cut)| {
        let frame = frame_to(to, from, what);
        cut.map_or(frame.clone(), |len| ByteFrame(frame.0.slice(..len.min(frame.0.len()))))
    })
}

prop_compose! {
    fn any_steps()(
        steps in prop::collection::vec((0..40u64, 0..PORTS, any_frame(), 1..6usize, 0..PORTS, 0..9usize), 1..120),
    ) -> Vec<Step> {
        let mut now_ns = 0;
        let step = |(pause, ingress, frame, frames, egress, room)| {
            now_ns += pause;
            Step { now_ns, ingress: PortId(ingress), frame, frames, egress: PortId(egress), room }
        };
        steps.into_iter().map(step).collect()
    }
}

fn learning(seed: u64, mac_entries_max: u32, faulty: bool) -> PipelineConfig {
    let every = Every { reorder: 5, duplicate: 7, drop: 11, trim: 3, ..Every::NEVER };
    let faults = FaultConfig { every, reorder_frames: 1, reorder_ns: 60, ..FaultConfig::NONE };
    let group = GroupConfig::equal([PortId(2), PortId(3)], LoadBalance::Ecmp);
    PipelineConfig {
        seed,
        mac_entries_max,
        mac_age_ns: 400,
        trim_threshold_bytes: 400,
        groups: vec![group],
        faults: if faulty { vec![faults; usize::from(PORTS)] } else { vec![] },
        egress_faults: if faulty { vec![faults; usize::from(PORTS)] } else { vec![] },
        ..PipelineConfig::new(PORTS)
    }
}

fn all_counters<F: Frame>(switch: &Pipeline<F>) -> Vec<(PortCounters, Queued)> {
    (0..PORTS).map(PortId).map(|port| (switch.counters(port), switch.queued(port))).collect()
}

proptest! {
    #[test]
    fn bursts_and_frames_that_are_alike_fare_like_any_other(
        steps in any_steps(), seed in any::<u64>(), entries in prop_oneof![Just(1u32), Just(64)], faulty in any::<bool>(),
    ) {
        let config = learning(seed, entries, faulty);
        let mut switch = Pipeline::new(config.clone()).unwrap();
        let mut twin = Pipeline::new(config).unwrap();
        for Step { now_ns, ingress, frame, frames, egress, room } in steps {
            switch.handle_timeout(now_ns);
            twin.handle_timeout(now_ns);
            switch.handle_frames(now_ns, ingress, vec![frame.clone(); frames]);
            for _ in 0..frames {
                twin.handle_frame(now_ns, ingress, Anew(frame.clone()));
            }
            let (mut sent, mut expected) = (Room::of(room), Room::of(room));
            switch.poll_transmit(now_ns, egress, &mut sent);
            twin.poll_transmit(now_ns, egress, &mut expected);
            let expected: Vec<_> = expected.frames.into_iter().map(|frame| frame.0).collect();
            prop_assert_eq!(sent.frames, expected);
            prop_assert_eq!(all_counters(&switch), all_counters(&twin));
        }
        assert_balanced(&switch);
    }
}
