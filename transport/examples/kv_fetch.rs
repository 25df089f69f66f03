//! A key-value store that clients read by RDMA READ alone: the server's CPU has no part in a lookup.
//!
//! The server's region is a hash table of slots: key, length, value. The client reads the slot that the key hashes to,
//! and the next ones until it finds the key or an empty slot.

#![forbid(unsafe_code)]

mod pair;

use dcp::verbs::{Mr, Opcode, SendWorkRequest};
use pair::{Outcome, Pair, Side};

const SLOTS: u64 = 1024;
const VALUE_MAX: usize = 48;
const SLOT: u64 = 16 + VALUE_MAX as u64;

fn main() -> Outcome {
    let Pair { mut client, server, registered: _registered } = Pair::new(usize::try_from(SLOTS * SLOT)?)?;
    for key in 1..=700 {
        insert(&server.mr, key, format!("value of {key}").as_bytes())?;
    }
    for key in [1, 350, 700, 701] {
        match fetch(&mut client, &server, key)? {
            (Some(value), reads) => println!("{key}: {:?} in {reads} reads", String::from_utf8(value)?),
            (None, reads) => println!("{key}: not there, after {reads} reads"),
        }
    }
    Ok(())
}

/// The server's side, in its own memory.
fn insert(table: &Mr, key: u64, value: &[u8]) -> Outcome {
    assert!(key != 0 && value.len() <= VALUE_MAX, "0 marks empty slots");
    for slot in probes(key) {
        let found = u64_at(&table.to_vec(slot * SLOT..slot * SLOT + 8)?, 0);
        if found == 0 || found == key {
            let mut bytes = [key.to_le_bytes(), (value.len() as u64).to_le_bytes()].concat();
            bytes.extend_from_slice(value);
            return Ok(table.write(slot * SLOT, &bytes)?);
        }
    }
    Err("the table is full".into())
}

/// The client's side. Also returns how many READs it took.
fn fetch(client: &mut Side, server: &Side, key: u64) -> Outcome<(Option<Vec<u8>>, usize)> {
    let into = [client.mr.slice(0..SLOT)?];
    for (before, slot) in probes(key).enumerate() {
        let read = Opcode::Read(server.mr.remote().at(slot * SLOT));
        client.qp.post_send(&SendWorkRequest::new(slot, read, &into))?;
        client.wait(server)?;
        let bytes = client.mr.to_vec(0..SLOT)?;
        match u64_at(&bytes, 0) {
            0 => return Ok((None, before + 1)),
            found if found == key => {
                let len = usize::try_from(u64_at(&bytes, 8))?.min(VALUE_MAX);
                return Ok((Some(bytes[16..16 + len].to_vec()), before + 1));
            }
            _ => {}
        }
    }
    Ok((None, usize::try_from(SLOTS)?))
}

fn probes(key: u64) -> impl Iterator<Item = u64> {
    let first = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
    (0..SLOTS).map(move |step| (first + step) % SLOTS)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}
