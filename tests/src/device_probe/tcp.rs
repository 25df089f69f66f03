//! Bytes by the kernel's own TCP: machines for tests do not always have iperf3.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use crate::Fault;

const PIECE: usize = 1 << 16;

fn failed(error: impl std::fmt::Display) -> Fault {
    (1, error.to_string())
}

/// The byte at a place.
fn byte(at: usize) -> u8 {
    (at % 251).to_le_bytes()[0] ^ (at / 65_521).to_le_bytes()[0]
}

/// Takes one connection to its end; prints `listening` and `received N` when every byte was right.
pub(crate) fn receive(port: u16) -> Result<(), Fault> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).map_err(failed)?;
    println!("listening");
    let (mut stream, _) = listener.accept().map_err(failed)?;
    let (mut at, mut piece) = (0, vec![0; PIECE]);
    loop {
        let len = stream.read(&mut piece).map_err(failed)?;
        if len == 0 {
            println!("received {at}");
            return Ok(());
        }
        if let Some(wrong) = (0..len).find(|&offset| piece[offset] != byte(at + offset)) {
            return Err((1, format!("byte {} is wrong", at + wrong)));
        }
        at += len;
    }
}

/// Prints `sent` when the kernel has taken all.
pub(crate) fn send(to: &str, bytes: usize) -> Result<(), Fault> {
    let mut stream = TcpStream::connect(to).map_err(failed)?;
    for start in (0..bytes).step_by(PIECE) {
        let piece: Vec<u8> = (start..bytes.min(start + PIECE)).map(byte).collect();
        stream.write_all(&piece).map_err(failed)?;
    }
    println!("sent");
    Ok(())
}
