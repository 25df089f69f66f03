//! Creating and connecting the two hosts of a pair.

use dcp_core::{CqId, EndpointConfig, PdId, Peer, QpConfig};
use dcp_wire::{Msn, PKey, Ssn};

use crate::Side;
use crate::host::Host;

/// How a [`crate::Pair`] is set up.
#[derive(Clone, Copy, Debug)]
pub struct PairConfig {
    /// Bytes of memory at each host.
    pub memory: usize,
    /// Connected queue pairs.
    pub qps: usize,
    /// What queue pairs are created from; its objects are replaced by those of each host.
    pub template: QpConfig,
    /// Changes to the template.
    pub qp: fn(&mut QpConfig),
    /// Changes to each endpoint's defaults.
    pub endpoint: fn(&mut EndpointConfig),
    /// First message number, both ways.
    pub start_msn: Msn,
    /// Rate of the link in bits per nanosecond.
    pub link_gbps: u64,
    /// Depth of each host's shared receive queue; 0: queue pairs have their own.
    pub srq_depth: usize,
}

impl Default for PairConfig {
    fn default() -> Self {
        Self {
            memory: 4 << 20,
            qps: 1,
            template: QpConfig::new(PdId(0), CqId(0)),
            qp: |_| {},
            endpoint: |_| {},
            start_msn: Msn::ZERO,
            link_gbps: 100,
            srq_depth: 0,
        }
    }
}

/// Connects all queue pairs, with keys of their own in each `epoch`.
pub(crate) fn connect_all(client: &mut Host, server: &mut Host, epoch: u16, config: &PairConfig) {
    for index in 0..config.qps {
        let pkey = PKey(0x4000 + (epoch << 8) + index as u16);
        connect(client, server, index, pkey, config);
        connect(server, client, index, pkey, config);
    }
}

fn start_ssn(config: &PairConfig) -> Ssn {
    Ssn::from_low_bits(config.start_msn.get())
}

pub(crate) fn new_host(side: Side, config: &PairConfig) -> Host {
    let mut host = Host::new(side as u8 + 1, config.memory, config.endpoint);
    if config.srq_depth > 0 {
        host.srq = Some(host.endpoint.create_srq(host.pd, config.srq_depth).expect("depth in range"));
    }
    let mut template =
        QpConfig { start_msn: config.start_msn, start_ssn: start_ssn(config), ..config.template };
    (config.qp)(&mut template);
    for _ in 0..config.qps {
        let id = host.create_qp(template);
        host.qps.push(id);
    }
    host
}

fn connect(host: &mut Host, peer: &Host, index: usize, pkey: PKey, config: &PairConfig) {
    let qpn = peer.endpoint.qpn(peer.qps[index]);
    let low = u8::try_from(qpn.get() >> 16).expect("host numbers are small");
    let id = host.qps[index];
    let peer = Peer {
        qpn,
        pkey,
        mac: dcp_wire::MacAddr([2, 0, 0, 0, 0, low]),
        ip: dcp_wire::Ipv4Addr::new(10, 0, 0, low),
        service_port: 17791,
        start_msn: config.start_msn,
        start_ssn: start_ssn(config),
    };
    host.endpoint.modify_to_init(id).expect("a fresh queue pair");
    host.endpoint.modify_to_rtr(id, peer).expect("a fresh queue pair");
    host.endpoint.modify_to_rts(id).expect("a connected queue pair");
}
