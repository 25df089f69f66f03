//! Two processes: the client WRITEs a text to the server, and says so; the server shows it. In two terminals:
//!
//! `two_processes memif:/tmp/dcp.sock,role=server 10.9.0.1`
//! `two_processes memif:/tmp/dcp.sock,role=client 10.9.0.2 localhost:PORT`, with the port that the server printed.

use std::{error::Error, net::Ipv4Addr, sync::Arc, time::Duration};

use dcp::connect::{ControlEvent, Listener};
use dcp::device::{self, DeviceUri, NetDevice, eal_config};
use dcp::dpdk::{Clock, Eal, EalConfig};
use dcp::net::{InterfaceAddress, IpConfig};
use dcp::verbs::{Access, Device, DeviceConfig, Opcode, QpOptions, SendWorkRequest};

const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (uri, ip, host) = match &arguments[..] {
        [uri, ip] => (uri, ip, None),
        [uri, ip, host] => (uri, ip, Some(host)),
        _ => return Err("usage: two_processes DEVICE IP [HOST:PORT]".into()),
    };
    let (uri, ip): (DeviceUri, Ipv4Addr) = (uri.parse()?, ip.parse()?);
    // Before the link is up, so that a client finds it.
    let listener = Listener::bind("[::]:0".parse()?)?;
    if host.is_none() {
        println!("listening {}", listener.address()?.port());
    }
    let eal = Arc::new(Eal::start(eal_config(EalConfig::default(), std::slice::from_ref(&uri)))?);
    let mut net = NetDevice::open(&eal, &uri, &device::DeviceConfig::default())?;
    net.wait_for_link(&Clock::calibrate(), PATIENCE)?;
    let network = IpConfig::new(InterfaceAddress::new(ip, 24)?, None)?;
    let device = Device::open(&eal, net, network, &DeviceConfig::new(ip))?;

    let (pd, cq) = (device.allocate_pd()?, device.create_cq(128)?);
    let mr = pd.allocate(4096, Access::ALL)?;
    let mut qp = pd.create_qp(&cq, QpOptions::default())?;
    let Some(host) = host else {
        let incoming = device.accept(&listener, PATIENCE)?;
        let mut connection = qp.accept(incoming, &[mr.remote()], PATIENCE)?;
        let len = connection.wait_message()?["written"].as_u64().ok_or("the client wrote nothing")?;
        println!("the server has {:?}", String::from_utf8(mr.to_vec(0..len)?)?);
        while connection.poll()? != Some(ControlEvent::Bye) {
            device.poll();
        }
        return Ok(());
    };
    let mut connection = qp.connect_to(host, &[], PATIENCE)?;
    let remote = connection.remotes().next().ok_or("the server offers no memory")?;
    mr.write(0, b"hello, other process")?;
    let bytes = [mr.slice(0..20)?];
    qp.post_send(&SendWorkRequest::new(1, Opcode::Write(remote.at(0)), &bytes))?;
    let done = loop {
        if let Some(completion) = cq.poll_one()? {
            break completion;
        }
    };
    println!("{}", done.status.name());
    connection.send(&serde_json::json!({ "written": done.byte_len }))?;
    connection.close();
    Ok(())
}
