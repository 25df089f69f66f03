//! Runs tshark with the dissector.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use dcp_switch::PcapWriter;

/// Values of `fields` for each frame that `options` do not filter out; `None`, said aloud, where there is no tshark.
pub(crate) fn dissect<'a>(
    name: &str,
    frames: impl Iterator<Item = &'a [u8]>,
    fields: &[&str],
    options: &[&str],
) -> Option<Vec<Vec<String>>> {
    if Command::new("tshark").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        println!("skipped: tshark not installed");
        return None;
    }
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pcap"));
    let mut writer = PcapWriter::new(File::create(&path).unwrap()).unwrap();
    for (frame, number) in frames.zip(1..) {
        writer.write(number, frame.len(), frame).unwrap();
    }
    writer.flush().unwrap();
    let script = concat!("lua_script:", env!("CARGO_MANIFEST_DIR"), "/../docs/wireshark/dcp.lua");
    let mut tshark = Command::new("tshark");
    // A home of its own: no preferences of the user.
    tshark.env("HOME", env!("CARGO_TARGET_TMPDIR")).env_remove("XDG_CONFIG_HOME");
    tshark.args(["-X", script, "-T", "fields", "-E", "separator=|", "-E", "occurrence=a", "-r"]);
    tshark.arg(&path).args(options);
    fields.iter().for_each(|field| {
        tshark.args(["-e", field]);
    });
    let output = tshark.output().unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && !errors.contains("Lua"), "{errors}");
    Some(text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect())
}
