//! D6: what cannot work is refused at start, with a sentence.

use crate::support::*;
use dcp_pipeline::*;

fn refusal(edit: impl FnOnce(&mut PipelineConfig)) -> String {
    let mut config = config(4);
    edit(&mut config);
    Switch::new(config).unwrap_err().to_string()
}

#[test]
fn the_defaults_are_accepted_and_are_what_they_are_said_to_be() {
    let config = PipelineConfig::new(16);
    assert_eq!((config.trim_threshold_bytes, config.control_bytes_max), (524_288, 65_536));
    let switch = switch(config);
    // N = 16, r = 1121/84, a = 0.05: x = 15/13.345 + 0.05 > 1.
    assert_eq!(switch.weight(), Weight::MAX);
    assert!(switch.notes()[0].to_string().contains("15-to-1"));
}

#[test]
fn a_weight_derived_within_its_range_needs_no_note() {
    // N = 4: x = 3·84/1121 + 0.05 = 0.27480, w = 0.378.
    let switch = switch(config(4));
    assert_eq!((switch.weight().milli(), switch.notes()), (378, &[][..]));
    assert_eq!(switch.weight().to_string(), "0.378");
}

// S-3: with the option off, a = 0.
#[test]
fn acks_in_the_data_queue_take_no_share_of_the_control_queue() {
    let switch = switch(PipelineConfig { acks_use_control_queue: false, ..config(4) });
    // x = 252/1121, w = 252/869.
    assert_eq!(switch.weight().milli(), 289);
}

#[test]
fn an_explicit_weight_out_of_range_is_refused_not_clamped() {
    for milli in [0, 15, 64_001, u32::MAX] {
        let sentence = refusal(|c| c.weight = Some(WeightConfig::ExplicitMilli(milli)));
        assert!(
            sentence.starts_with("the control queue's weight must be 0.016 to 64.000, not "),
            "{sentence}"
        );
    }
    assert!(
        Switch::new(PipelineConfig { weight: Some(WeightConfig::ExplicitMilli(16)), ..config(4) }).is_ok()
    );
}

#[test]
fn numbers_out_of_range_are_refused_with_the_range() {
    assert_eq!(refusal(|c| c.ports = 0), "the number of ports must be 1 to 1024, not 0");
    assert_eq!(refusal(|c| c.ports = 1025), "the number of ports must be 1 to 1024, not 1025");
    let over = QUEUE_BYTES_MAX + 1;
    assert!(refusal(|c| c.trim_threshold_bytes = over).contains("0 to 1073741824, not 1073741825"));
    assert!(refusal(|c| c.control_bytes_max = over).contains("control queue's size in bytes"));
    assert!(
        refusal(|c| c.control_frames_max = QUEUE_FRAMES_MAX + 1).contains("control queue's size in frames")
    );
    assert!(refusal(|c| c.data_frames_max = 0).contains("data queue's size in frames"));
    assert!(refusal(|c| c.data_frames_max = QUEUE_FRAMES_MAX + 1).contains("data queue's size in frames"));
    assert!(refusal(|c| c.mac_entries_max = 0).contains("MAC table"));
    assert!(refusal(|c| c.service_ports.clear()).contains("service ports"));
    assert!(refusal(|c| c.service_ports = vec![1; 17]).contains("1 to 16, not 17"));
}

#[test]
fn an_impossible_incast_is_refused() {
    let incast = Incast { ports: 4, trimmable_frame_len: 1097, ack_share_ppm: 0 };
    let sentence = |incast| refusal(|c| c.weight = Some(WeightConfig::Derived(incast)));
    assert!(sentence(Incast { ports: 0, ..incast }).contains("incast"));
    assert!(sentence(Incast { trimmable_frame_len: 57, ..incast }).contains("58 to 65536, not 57"));
    assert!(sentence(Incast { ack_share_ppm: 1_000_000, ..incast }).contains("ACK class"));
}

#[test]
fn static_addresses_that_cannot_be_are_refused() {
    assert!(refusal(|c| c.static_macs.push((host(50), PortId(4)))).contains("port 4, which does not exist"));
    assert!(refusal(|c| c.static_macs.push((BROADCAST, PortId(0)))).contains("group address"));
    assert!(refusal(|c| c.static_macs.push((host(1), PortId(2)))).contains("given twice"));
}

#[test]
fn faults_for_some_ports_only_are_refused() {
    assert_eq!(
        refusal(|c| c.faults = vec![FaultConfig::NONE; 3]),
        "faults are given for 3 ports; give them for all 4 or for none",
    );
}
