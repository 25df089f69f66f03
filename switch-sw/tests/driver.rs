//! The switch over real DPDK ports: net_ring pairs in this process.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use dcp_pipeline::{
    Every, FaultConfig, LinkConfig, LinkRate, PipelineConfig, PortId, TapPoint, TrimQueue, TrimTo,
    WeightConfig, wire_len,
};
use dcp_switch::{CapturePoint, Stopped, Switch};
use dcp_wire::*;
use dpdk_ffi::{
    Clock, Eal, EalConfig, FabricConfig, LcoreGuard, Mbuf, MbufBatch, Pool, PoolConfig, QueuePair,
    create_links, register_thread,
};

/// DPDK for one test at a time, a switch of two ports, and what is at their other ends.
struct Rig {
    switch: Switch,
    left: QueuePair,
    right: QueuePair,
    pool: Pool,
    clock: Clock,
    _registered: LcoreGuard,
    _only: MutexGuard<'static, ()>,
}

impl Rig {
    fn new(config: PipelineConfig) -> Self {
        static ONLY: Mutex<()> = Mutex::new(());
        static EAL: OnceLock<(Eal, Clock)> = OnceLock::new();
        let only = ONLY.lock().unwrap_or_else(PoisonError::into_inner);
        let (eal, clock) =
            EAL.get_or_init(|| (Eal::start(EalConfig::default()).unwrap(), Clock::calibrate()));
        let registered = register_thread(eal).unwrap();
        let mut links = create_links(eal, FabricConfig { links: 2, ring_size: 128 }).unwrap();
        let (right, second) = links.pop().unwrap();
        let (left, first) = links.pop().unwrap();
        Self {
            switch: Switch::new(config, vec![first, second], *clock).unwrap(),
            left,
            right,
            pool: Pool::new(eal, PoolConfig::frames("frames", 1023, 2048)).unwrap(),
            clock: *clock,
            _registered: registered,
            _only: only,
        }
    }

    fn send(&mut self, frames: usize, bytes: &[u8]) {
        for _ in 0..frames {
            let mut batch = MbufBatch::new();
            batch.push(Mbuf::from_bytes(&self.pool, bytes).unwrap()).unwrap();
            assert_eq!(self.left.tx.burst(&mut batch), 1);
        }
    }

    fn received(&mut self) -> Vec<Vec<u8>> {
        let (mut frames, mut batch) = (Vec::new(), MbufBatch::new());
        while self.right.rx.burst(&mut batch) > 0 {
            for mbuf in batch.drain() {
                let mut bytes = vec![0; mbuf.frame_len()];
                mbuf.copy_to_slice(0, &mut bytes).unwrap();
                frames.push(bytes);
            }
        }
        frames
    }

    /// Takes everything apart and looks for what was left behind.
    fn end(self) {
        let Self { switch, left, right, pool, .. } = self;
        drop((switch, left, right));
        assert_eq!(pool.in_use(), 0);
    }
}

fn mac(number: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, number])
}

/// A data packet from the left to the right.
fn data(payload: usize) -> Vec<u8> {
    let name = PacketName { msn: Msn::ZERO, psn: Psn::new(1).unwrap(), generation: Generation::ZERO };
    let reth = Reth { va: 0, rkey: RegionKey(1), dma_len: 1 << 20 };
    let op = DataOp::Write { reth, part: Part::Middle };
    let kind = Kind::Data(Data { name, ack_req: false, solicited: false, op });
    let path = Path {
        src_mac: mac(0),
        dst_mac: mac(1),
        vlan: None,
        src_ip: Ipv4Addr::new(10, 0, 0, 1),
        dst_ip: Ipv4Addr::new(10, 0, 0, 2),
        src_port: 0xC000,
        dst_port: SERVICE_PORT,
        class: 0,
        ecn: Ecn::Ect0,
        ttl: 64,
    };
    let headers = Headers { path, dest_qpn: Qpn::from_low_bits(7), pkey: PKey(1), kind };
    let mut bytes = vec![0xA5; headers.len() + payload];
    emit(&headers, payload, &mut bytes);
    bytes
}

fn config() -> PipelineConfig {
    PipelineConfig { static_macs: vec![(mac(0), PortId(0)), (mac(1), PortId(1))], ..PipelineConfig::new(2) }
}

fn faulty(every: Every) -> PipelineConfig {
    let faults = FaultConfig { every, delay_ns: 1000, ..FaultConfig::NONE };
    PipelineConfig { faults: vec![faults; 2], ..config() }
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Seconds and frame of each record, by libpcap's format.
fn records(file: &Shared) -> Vec<(u32, Vec<u8>)> {
    let bytes = file.0.lock().unwrap();
    assert_eq!(bytes[..4], 0xA1B2_3C4Du32.to_le_bytes());
    let (mut rest, mut records) = (&bytes[24..], Vec::new());
    while let [a, b, c, d, ..] = *rest {
        let len = u32::from_le_bytes(*rest[8..].first_chunk().unwrap()) as usize;
        records.push((u32::from_le_bytes([a, b, c, d]), rest[16..16 + len].to_vec()));
        rest = &rest[16 + len..];
    }
    records
}

#[test]
fn a_port_is_captured_before_and_after_the_pipeline() {
    let mut rig = Rig::new(faulty(Every { trim: 2, ..Every::NEVER }));
    let (before, after) = (Shared::default(), Shared::default());
    let point = |port, point| CapturePoint { port: PortId(port), point };
    let start = |rig: &mut Rig, at, file: &Shared| {
        rig.switch.capture(&[at], Box::new(file.clone()), 1_700_000_000_000_000_000).unwrap();
    };
    start(&mut rig, point(0, TapPoint::Arrival), &before);
    start(&mut rig, point(1, TapPoint::Departure), &after);
    rig.send(2, &data(1000));
    rig.switch.poll();
    assert_eq!(rig.switch.finish_captures().unwrap(), 4);
    rig.send(1, &data(1000));
    rig.switch.poll();
    let came = records(&before);
    assert_eq!(came.iter().map(|record| &record.1).collect::<Vec<_>>(), [&data(1000); 2]);
    assert!(came[0].0.abs_diff(1_700_000_000) < 3600);
    let frames: Vec<Vec<u8>> = records(&after).into_iter().map(|record| record.1).collect();
    assert_eq!(frames.iter().map(Vec::len).collect::<Vec<_>>(), [57, 1073]);
    assert_eq!(rig.received()[..2], frames);
    rig.end();
}

#[test]
fn a_file_that_fails_ends_the_capture_and_not_the_switch() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if bytes.len() > 100 { Err(std::io::Error::other("disk full")) } else { Ok(bytes.len()) }
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut rig = Rig::new(config());
    let at = CapturePoint { port: PortId(0), point: TapPoint::Arrival };
    rig.switch.capture(&[at], Box::new(Full), 0).unwrap();
    rig.send(3, &data(500));
    rig.switch.poll();
    assert_eq!(rig.received().len(), 3);
    assert_eq!(rig.switch.finish_captures().unwrap_err().to_string(), "disk full");
    rig.end();
}

// G5
#[test]
fn a_stopped_switch_sends_what_it_can_and_drops_the_rest() {
    // The other end's ring holds 127; the rest has no place.
    let mut rig = Rig::new(config());
    for _ in 0..4 {
        rig.send(60, &data(100));
        rig.switch.poll();
    }
    let stopped = rig.switch.stop(1_000_000);
    assert_eq!(
        (rig.received().len() as u64, stopped),
        (240 - stopped.dropped, Stopped { sent: 0, ..stopped })
    );
    assert!(stopped.dropped > 100);
    let totals = rig.switch.pipeline().totals().egress;
    let discarded = rig.switch.counters().discarded;
    assert_eq!(totals.offered, totals.forwarded + totals.drops.total());
    assert_eq!(stopped.dropped, discarded + totals.drops.total());
    assert_eq!(rig.switch.stop(0), Stopped::default());
    rig.end();
}

#[test]
fn a_stopped_switch_waits_for_links_and_delays() {
    let link = LinkConfig { delay_ns: 200_000, ..LinkConfig::of_rate(LinkRate::from_mbps(10_000)) };
    let mut rig =
        Rig::new(PipelineConfig { links: vec![link; 2], ..faulty(Every { delay: 3, ..Every::NEVER }) });
    rig.send(9, &data(100));
    let start = rig.clock.now_ns();
    rig.switch.poll();
    assert_eq!(rig.switch.stop(10_000_000_000), Stopped { sent: 9, dropped: 0 });
    assert!(rig.clock.now_ns() - start >= 200_000, "not before they have crossed the link");
    assert_eq!(rig.received().len(), 9);
    rig.end();
}

// S-7, D5
#[test]
fn an_mbuf_is_corrupted_in_one_byte() {
    let mut rig = Rig::new(faulty(Every { corrupt: 2, ..Every::NEVER }));
    let good = data(1000);
    rig.send(10, &good);
    rig.switch.poll();
    let changed = |bad: &Vec<u8>| good.iter().zip(bad).filter(|(good, bad)| good != bad).count();
    let frames = rig.received();
    assert!(frames.iter().all(|frame| frame.len() == good.len() && frame[..57] == good[..57]));
    assert_eq!(frames.iter().map(changed).collect::<Vec<_>>(), [0, 1].repeat(5));
    rig.end();
}

#[test]
fn an_mbuf_is_trimmed_like_by_other_switches() {
    let to = TrimTo { trim_bytes: 200, trim_dscp: 48, trim_queue: TrimQueue::Data };
    let mut rig = Rig::new(PipelineConfig { trim_to: Some(to), trim_threshold_bytes: 0, ..config() });
    rig.send(2, &data(1000));
    rig.switch.poll();
    let frames = rig.received();
    assert_eq!(frames.iter().map(Vec::len).collect::<Vec<_>>(), [1073, 200]);
    assert_eq!((frames[1][15] >> 2, &frames[1][16..18]), (48, &[0, 186][..]));
    assert_eq!(frames[1][34..], data(1000)[34..200]);
    rig.end();
}

#[test]
fn a_line_of_a_rate_holds_up_the_sender_and_loses_nothing() {
    let mut rig = Rig::new(PipelineConfig::new(2));
    // 1097 + 24 wire bytes at 10 Mb/s: 897 us each.
    let rate = LinkRate::from_mbps(10);
    rig.switch.set_arrival_rate(PortId(0), rate);
    rig.send(10, &data(1024));
    let start = rig.clock.now_ns();
    let mut arrived = Vec::new();
    while arrived.len() < 10 {
        rig.switch.poll();
        let now = rig.clock.now_ns();
        arrived.extend(rig.received().iter().map(|_| now));
    }
    for (number, at) in (1..).zip(&arrived) {
        assert!(at - start >= number * 896_800, "frame {number} came after {} ns", at - start);
    }
    assert_eq!(rig.switch.counters().received, 10);
    // Without a rate everything comes at once again; what was on the line when that changed is gone with it.
    rig.switch.set_arrival_rate(PortId(0), LinkRate::UNLIMITED);
    rig.send(10, &data(1024));
    rig.switch.poll();
    assert_eq!(rig.received().len(), 10);
    rig.end();
}

/// Wire bytes of headers and of data that leave a port while both wait there, of `frames` frames and more. It is the
/// receiver that is slow, so time plays no part.
fn shares(milli: u32, frames: usize) -> [u64; 2] {
    let weight = Some(WeightConfig::ExplicitMilli(milli));
    let mut rig = Rig::new(PipelineConfig { weight, ..config() });
    let data = data(1024);
    let mut header = data.clone();
    let len = dcp_wire::trim(&mut header).unwrap();
    header.truncate(len);
    let (mut bytes, mut counted) = ([0; 2], 0);
    while counted < frames {
        let queued = rig.switch.pipeline().queued(PortId(1));
        rig.send(200usize.saturating_sub(queued.control_frames).min(64), &header);
        rig.send(200usize.saturating_sub(queued.data_frames).min(64), &data);
        rig.switch.poll();
        rig.switch.poll();
        // A round takes no more frames than a batch holds, so that neither queue runs dry in it. At first nothing waits:
        // the receiver's ring has room.
        let waits = queued.control_frames.min(queued.data_frames) > MbufBatch::CAPACITY;
        if !waits && rig.switch.pipeline().queued_frames() == 0 {
            continue;
        }
        let mut batch = MbufBatch::new();
        rig.right.rx.burst(&mut batch);
        for frame in batch.drain().filter(|_| waits) {
            let is_data = frame.frame_len() > HO_LEN;
            bytes[usize::from(is_data)] += u64::from(wire_len(u32::try_from(frame.frame_len()).unwrap()));
            counted += 1;
        }
    }
    rig.end();
    bytes
}

// S-3
#[test]
fn backlogged_queues_of_a_port_share_its_link_by_weight_within_one_percent() {
    for milli in [100, 538, 1000, 4000] {
        let [control, data] = shares(milli, 20_000);
        let (got, exact) = (control as f64 / data as f64, f64::from(milli) / 1000.0);
        assert!((got / exact - 1.0).abs() < 0.01, "weight {exact}: {got}");
    }
}
