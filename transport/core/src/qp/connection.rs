//! What all frames of a queue pair have in common.

use dcp_wire::{Headers, Kind, PKey, Path, Qpn, Template};

use crate::{EndpointConfig, Peer, QpConfig};

/// Addresses and key, also as the bytes of a header.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) path: Path,
    pub(super) dest_qpn: Qpn,
    pub(super) pkey: PKey,
    pub(super) template: Template,
}

impl Connection {
    /// Before the peer is known.
    pub(super) fn new(own: &EndpointConfig, config: &QpConfig) -> Self {
        let path = Path {
            src_mac: own.mac,
            dst_mac: dcp_wire::MacAddr::default(),
            vlan: None,
            src_ip: own.ip,
            dst_ip: dcp_wire::Ipv4Addr::UNSPECIFIED,
            src_port: 0,
            dst_port: 0,
            class: config.class,
            ecn: dcp_wire::Ecn::Ect0,
            ttl: dcp_wire::TTL,
        };
        let (dest_qpn, pkey) = (Qpn::default(), PKey::default());
        Self { path, dest_qpn, pkey, template: Template::new(&path, dest_qpn, pkey) }
    }

    pub(super) fn handle_peer(&mut self, peer: &Peer) {
        self.path.dst_mac = peer.mac;
        self.path.dst_ip = peer.ip;
        self.path.dst_port = peer.service_port;
        self.dest_qpn = peer.qpn;
        self.pkey = peer.pkey;
        self.template = Template::new(&self.path, self.dest_qpn, self.pkey);
    }

    #[inline]
    pub(super) fn set_src_port(&mut self, port: u16) {
        self.path.src_port = port;
        self.template.set_src_port(port);
    }

    /// Headers of a frame.
    #[inline]
    pub(super) const fn headers(&self, kind: Kind) -> Headers {
        Headers { path: self.path, dest_qpn: self.dest_qpn, pkey: self.pkey, kind }
    }
}
