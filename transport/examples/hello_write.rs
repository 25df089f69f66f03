//! One RDMA WRITE between two devices in this process.

use std::{error::Error, net::Ipv4Addr, sync::Arc};

use dcp::device::{self, NetDevice};
use dcp::dpdk::{Eal, EalConfig};
use dcp::verbs::{Access, Device, DeviceConfig, Opcode, QpOptions, SendWorkRequest};

fn main() -> Result<(), Box<dyn Error>> {
    let eal = Arc::new(Eal::start(EalConfig::default())?);
    let (mut here, mut there) = NetDevice::open_loop(&eal, &device::DeviceConfig::default())?;
    let open = |end: &mut NetDevice, ip| {
        let queues = end.take_queues().into_iter().map(|worker| worker.queues).collect();
        Device::new(&eal, queues, &DeviceConfig::new(ip))
    };
    let client = open(&mut here, Ipv4Addr::new(10, 0, 0, 1))?;
    let server = open(&mut there, Ipv4Addr::new(10, 0, 0, 2))?;

    let (client_pd, server_pd) = (client.allocate_pd()?, server.allocate_pd()?);
    let (client_cq, server_cq) = (client.create_cq(128)?, server.create_cq(128)?);
    let source = client_pd.allocate(4096, Access::default())?;
    let target = server_pd.allocate(4096, Access::ALL)?;
    let mut client_qp = client_pd.create_qp(&client_cq, QpOptions::default())?;
    let mut server_qp = server_pd.create_qp(&server_cq, QpOptions::default())?;
    client_qp.connect(&server_qp.address(), 0x1234)?;
    server_qp.connect(&client_qp.address(), 0x1234)?;

    source.write(0, b"hello, remote memory")?;
    let bytes = [source.slice(0..20)?];
    client_qp.post_send(&SendWorkRequest::new(1, Opcode::Write(target.remote().at(0)), &bytes))?;
    let done = loop {
        server.poll();
        if let Some(completion) = client_cq.poll_one()? {
            break completion;
        }
    };
    println!("{}: the server has {:?}", done.status.name(), String::from_utf8(target.to_vec(0..20)?)?);
    Ok(())
}
