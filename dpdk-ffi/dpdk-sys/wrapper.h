/* What bindgen reads: the few DPDK headers that dpdk-ffi needs, and our shim. */
#include <rte_version.h>
#include <rte_eal.h>
#include <rte_alarm.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_lcore.h>
#include <rte_memory.h>
#include <rte_dev.h>
#include <rte_ring.h>
#include <rte_mempool.h>
#include <rte_mbuf.h>
#include <rte_ethdev.h>
#include <rte_eth_ring.h>
#include <rte_bus_vdev.h>
#include <rte_telemetry.h>
#include "shim.h"
