//! Frames seen on their way in and out.

use crate::support::*;
use dcp_pipeline::*;
use dcp_wire::SERVICE_PORT;

#[derive(Default)]
struct Log(Vec<(u64, PortId, TapPoint, ByteFrame)>);

impl Tap<ByteFrame> for Log {
    fn frame(&mut self, now_ns: u64, port: PortId, point: TapPoint, frame: &ByteFrame) {
        self.0.push((now_ns, port, point, frame.clone()));
    }
}

#[test]
fn a_tap_sees_frames_as_they_arrive_and_as_they_leave() {
    let config = PipelineConfig { trim_threshold_bytes: 0, service_ports: vec![SERVICE_PORT], ..config(2) };
    let mut switch = Pipeline::with_tap(config, Log::default()).unwrap();
    let whole = frame(0, 1, What::Data(100));
    for now in [1, 2] {
        switch.handle_frame(now, PortId(0), whole.clone());
    }
    switch.set_faults(PortId(0), FaultConfig { drop: Probability::ALWAYS, ..FaultConfig::NONE });
    switch.handle_frame(3, PortId(0), whole.clone());
    let mut out = Vec::new();
    switch.poll_transmit(9, PortId(1), &mut out);
    assert_eq!((out[0].len(), out.len()), (57, 2));
    let (come, go) = (TapPoint::Arrival, TapPoint::Departure);
    let expected = [
        (1, PortId(0), come, whole.clone()),
        (2, PortId(0), come, whole.clone()),
        (3, PortId(0), come, whole),
        (9, PortId(1), go, out[0].clone()),
        (9, PortId(1), go, out[1].clone()),
    ];
    assert_eq!(switch.tap().0, expected);
    switch.tap_mut().0.clear();
    assert!(switch.tap().0.is_empty());
}
