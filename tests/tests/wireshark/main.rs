//! The Wireshark dissector against `dcp-wire`: every field of every kind of frame.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod expected;
mod frames;
mod tshark;

use expected::{FIELDS, expected};
use frames::{Sample, captures};

/// What tshark says and what `dcp-wire` parsed, for frames of one capture.
#[track_caller]
fn assert_dissected(name: &str, samples: &[Sample], options: &[&str]) {
    let Some(rows) = tshark::dissect(name, samples.iter().map(|sample| &sample.bytes[..]), FIELDS, options)
    else {
        return;
    };
    assert_eq!(rows.len(), samples.len());
    for (sample, row) in samples.iter().zip(rows) {
        let expected = expected(sample);
        for (field, said) in FIELDS.iter().zip(row) {
            let wanted = expected.get(field).cloned().unwrap_or_default();
            assert_eq!(said, wanted, "{field} of {}", sample.what);
        }
    }
}

#[test]
fn golden_frames_are_dissected_field_by_field() {
    let samples = frames::golden();
    assert!(samples.len() >= 28, "{} golden frames found", samples.len());
    assert_dissected("golden", &samples, &[]);
}

#[test]
fn frames_with_icrc_vlan_tag_and_any_class_are_dissected_field_by_field() {
    for (name, samples) in captures() {
        assert_dissected(name, &samples, &[]);
    }
}

#[test]
fn wrong_icrc_is_shown_as_bad() {
    let mut samples = frames::with_icrc();
    for sample in &mut samples {
        *sample.bytes.last_mut().unwrap() ^= 1;
        sample.icrc = Some(false);
    }
    assert_dissected("bad-icrc", &samples, &["-o", "dcp.icrc:on every frame but HO"]);
}

#[test]
fn header_only_packets_can_be_filtered() {
    let golden = frames::golden();
    let frames = || golden.iter().map(|sample| &sample.bytes[..]);
    let count = |filter: &str| {
        tshark::dissect(
            &filter.replace(|c: char| !c.is_alphanumeric(), "-"),
            frames(),
            &["dcp.tag"],
            &["-Y", filter],
        )
        .map(|rows| rows.len())
    };
    let headers = golden.iter().filter(|sample| sample.is_header_only()).count();
    let Some(found) = count("dcp.ho") else { return };
    assert!(headers > 0);
    assert_eq!(found, headers);
    assert_eq!(count("dcp.ho.returned"), count("dcp.tag == 3 && dcp.returned == 1"));
    assert_eq!(count("dcp.msn == 16777214 && dcp.psn == 2 && dcp.retry == 2748").map(|n| n > 0), Some(true));
    assert_eq!(count("dcp.nak"), count("dcp.syndrome != 0x1f"));
}

#[test]
fn what_is_no_frame_of_ours_says_so_and_breaks_nothing() {
    let mut samples = frames::golden();
    let whole = samples.len();
    for sample in samples.clone() {
        for cut in (42..sample.bytes.len()).step_by(3) {
            samples.push(Sample { bytes: sample.bytes[..cut].to_vec(), ..sample.clone() });
        }
        let mut noise = sample.bytes.clone();
        noise[42] ^= 0x35;
        samples.push(Sample { bytes: noise, ..sample });
    }
    let frames = samples.iter().map(|sample| &sample.bytes[..]);
    let Some(rows) = tshark::dissect("noise", frames, &["_ws.expert.message", "frame.number"], &[]) else {
        return;
    };
    assert_eq!(rows.len(), samples.len());
    assert!(rows.len() > 10 * whole);
    for row in rows {
        assert!(!row[0].contains("Lua"), "frame {}: {}", row[1], row[0]);
    }
}
