//! Memory for cards, on a device that maps it and does no DMA: what is mapped when, and what is refused.

use std::ptr::NonNull;

use dpdk_ffi::{DmaError, Eal, EalConfig, HugePreference, Pool, PoolConfig, Port, PortConfig, Region};

#[test]
fn memory_is_mapped_once_and_as_long_as_its_region() {
    let config = EalConfig { huge: HugePreference::Never, memory_mib: 64, ..EalConfig::default() };
    let eal = Eal::start(config).unwrap();
    let pool = Pool::new(&eal, PoolConfig::frames("frames", 511, 2048)).unwrap();
    let port = Port::create(&eal, "net_null0", "size=64").unwrap();
    let config = PortConfig { queues: 1, rx_ring_size: 64, tx_ring_size: 64, mtu: None, pool };
    let queues = port.start(&config).unwrap();
    // A virtual device is on a bus, and IO addresses are virtual ones here.
    let device = queues[0].dma_device().expect("a device on a bus");
    let memory = Region::alloc(1 << 20, HugePreference::Never).unwrap();
    let base = NonNull::new(memory.as_ptr()).unwrap();
    // SAFETY: `memory` outlives both, and no frame points into any.
    let [first, second] = [(), ()].map(|()| unsafe { Region::from_raw(base, 1 << 20) });
    first.map_for(&device).unwrap();
    first.map_for(&device).unwrap();
    let known = second.map_for(&device).unwrap_err();
    assert!(matches!(known, DmaError::Unknown(_)), "the same bytes twice: {known}");
    drop(first);
    second.map_for(&device).expect("given back with the region");
    drop(second);
    let inside = NonNull::new(memory.as_ptr().wrapping_add(64)).unwrap();
    // SAFETY: as above.
    let inside = unsafe { Region::from_raw(inside, 4096) };
    assert_eq!(inside.map_for(&device), Err(DmaError::Unaligned { page: 4096 }));
    drop(queues);
    assert!(memory.is_released());
}
