//! An offer as JSON.

use dcp_wire::{MacAddr, Msn, PKey, Qpn, RegionKey, Ssn};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::Refusal;
use super::offer::{MRS_MAX, MrOffer, Offer};

/// Version of the protocol, frames and set-up both.
pub const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Hello {
    /// Protocol version.
    dcp: u32,
    qpn: u32,
    /// Only from the connecting side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pkey: Option<u16>,
    mac: String,
    ipv4: std::net::Ipv4Addr,
    port: u16,
    mtu: u32,
    window: u32,
    max_rd_atomic: u32,
    start_msn: u32,
    start_ssn: u32,
    #[serde(default)]
    icrc: bool,
    ack_bytes: u32,
    #[serde(default)]
    mrs: Vec<Region>,
    #[serde(default)]
    cc: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    app: Value,
}

/// 64-bit numbers as hex strings: many JSON readers have only doubles.
#[derive(Serialize, Deserialize)]
struct Region {
    addr: String,
    len: String,
    rkey: u32,
}

/// The line that makes an offer.
pub(super) fn print(offer: &Offer, pkey: Option<PKey>) -> String {
    let hex = |value: u64| format!("{value:#x}");
    let mac = offer.mac.0.map(|byte| format!("{byte:02x}")).join(":");
    let mrs = offer.mrs.iter().map(|mr| Region { addr: hex(mr.va), len: hex(mr.len), rkey: mr.rkey.0 });
    let hello = Hello {
        dcp: VERSION,
        qpn: offer.qpn.get(),
        pkey: pkey.map(|key| key.0),
        mac,
        ipv4: offer.ip,
        port: offer.service_port,
        mtu: offer.mtu,
        window: offer.window,
        max_rd_atomic: offer.max_rd_atomic,
        start_msn: offer.start_msn.get(),
        start_ssn: offer.start_ssn.get(),
        icrc: offer.icrc,
        ack_bytes: offer.ack_bytes,
        mrs: mrs.collect(),
        cc: offer.cc.clone(),
        app: offer.app.clone(),
    };
    // Strings, numbers and JSON: nothing that could fail.
    serde_json::to_string(&hello).unwrap_or_default()
}

/// Reads a hello into values that are always legal.
pub(super) fn read(value: Value) -> Result<(Offer, Option<PKey>), Refusal> {
    // First, since another version may mean other fields.
    match value.get("dcp").and_then(Value::as_u64) {
        Some(version) if version == u64::from(VERSION) => {}
        Some(theirs) => return Err(Refusal::Version { ours: VERSION, theirs }),
        None => return Err(Refusal::Malformed { reason: "no protocol version".to_owned() }),
    }
    let hello: Hello =
        serde_json::from_value(value).map_err(|error| Refusal::Malformed { reason: error.to_string() })?;
    let unusable =
        |name: &'static str, value: String, legal: &'static str| Refusal::Unusable { name, value, legal };
    let in_range = |name, value: u32, least: u32, most: u32, legal| {
        if (least..=most).contains(&value) {
            Ok(value)
        } else {
            Err(unusable(name, value.to_string(), legal))
        }
    };
    in_range("mtu", hello.mtu, 256, 8192, "256 to 8192")?;
    in_range("window", hello.window, 1, 1 << 15, "a power of two from 1 to 32768")?;
    if !hello.window.is_power_of_two() {
        return Err(unusable("window", hello.window.to_string(), "a power of two from 1 to 32768"));
    }
    in_range("max_rd_atomic", hello.max_rd_atomic, 0, hello.window / 2, "at most half the window")?;
    in_range("qpn", hello.qpn, 1, LAST_24, "1 to 2^24 - 1")?;
    in_range("start_msn", hello.start_msn, 0, LAST_24, "below 2^24")?;
    in_range("start_ssn", hello.start_ssn, 0, LAST_24, "below 2^24")?;
    in_range("port", hello.port.into(), 1, 0xffff, "1 to 65535")?;
    let ip = hello.ipv4;
    if ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast() {
        return Err(unusable("ipv4", ip.to_string(), "a host's address"));
    }
    let mac =
        mac(&hello.mac).ok_or_else(|| unusable("mac", hello.mac.clone(), "a host's Ethernet address"))?;
    if hello.mrs.len() > MRS_MAX {
        return Err(unusable("mrs", format!("{} regions", hello.mrs.len()), "at most 64"));
    }
    let mrs = hello.mrs.iter().map(region).collect::<Result<_, _>>()?;
    let offer = Offer {
        qpn: Qpn::from_low_bits(hello.qpn),
        mac,
        ip,
        service_port: hello.port,
        mtu: hello.mtu,
        window: hello.window,
        max_rd_atomic: hello.max_rd_atomic,
        start_msn: Msn::from_low_bits(hello.start_msn),
        start_ssn: Ssn::from_low_bits(hello.start_ssn),
        icrc: hello.icrc,
        ack_bytes: hello.ack_bytes,
        mrs,
        cc: hello.cc,
        app: hello.app,
    };
    Ok((offer, hello.pkey.map(PKey)))
}

const LAST_24: u32 = (1 << 24) - 1;

/// A host's, so neither a group's nor nobody's.
fn mac(text: &str) -> Option<MacAddr> {
    let mut bytes = [0; 6];
    let mut words = text.split(':');
    for byte in &mut bytes {
        let word = words.next().filter(|word| word.len() == 2 && !word.starts_with('+'))?;
        *byte = u8::from_str_radix(word, 16).ok()?;
    }
    let is_host = words.next().is_none() && bytes[0] & 1 == 0 && bytes != [0; 6];
    is_host.then_some(MacAddr(bytes))
}

fn region(region: &Region) -> Result<MrOffer, Refusal> {
    let hex = |text: &str| {
        let digits = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'))?;
        u64::from_str_radix(digits, 16).ok()
    };
    // An inclusive end: the last byte of the address space is a byte like any other.
    let read = || {
        let (va, len) = (hex(&region.addr)?, hex(&region.len)?);
        va.checked_add(len.saturating_sub(1))?;
        Some(MrOffer { va, len, rkey: RegionKey(region.rkey) })
    };
    read().ok_or_else(|| Refusal::Unusable {
        name: "mrs",
        value: format!("{} + {}", region.addr, region.len),
        legal: "hex numbers whose sum fits 64 bits",
    })
}
