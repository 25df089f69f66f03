//! Binds the libdpdk of the distribution: flags from pkg-config, `shim.c` through cc, types through bindgen.
//!
//! pkg-config is run as a command: the crate of that name drops `-include` and `-march`, and DPDK's headers need both.

use std::{env, path::PathBuf, process::Command};

const VERSION_MIN: (u32, u32) = (21, 11);
const VERSION_END: (u32, u32) = (26, 0);
/// Drivers are not in `pkg-config --libs`; these two have functions that we call.
const DRIVER_LIBS: [&str; 2] = ["rte_net_ring", "rte_bus_vdev"];

fn main() {
    for file in ["build.rs", "wrapper.h", "shim.h", "shim.c"] {
        println!("cargo::rerun-if-changed={file}");
    }
    for variable in ["PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    check_version(&pkg_config("--modversion"));
    let cflags = split(&pkg_config("--cflags"));
    compile_shim(&cflags);
    generate_bindings(&cflags);
    link(&split(&pkg_config("--libs")));
}

fn pkg_config(what: &str) -> String {
    let output = match Command::new("pkg-config").args([what, "libdpdk"]).output() {
        Ok(output) => output,
        Err(error) => {
            fail(&format!("pkg-config could not be run ({error}): run scripts/setup to install it"))
        }
    };
    if !output.status.success() {
        fail("libdpdk is not installed, or pkg-config does not see it: run scripts/setup");
    }
    String::from_utf8(output.stdout)
        .unwrap_or_else(|_| fail("pkg-config printed something that is not UTF-8"))
}

fn check_version(version: &str) {
    let mut numbers = version.trim().split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if !(VERSION_MIN..VERSION_END).contains(&found) {
        fail(&format!(
            "libdpdk {} is installed, but 21.11 to 25.x is needed: run scripts/setup, \
             or point PKG_CONFIG_PATH at a fitting one",
            version.trim()
        ));
    }
    println!("cargo::metadata=version={}", version.trim());
}

fn compile_shim(cflags: &[String]) {
    let mut build = cc::Build::new();
    build.file("shim.c").opt_level(3).warnings(true).define("ALLOW_EXPERIMENTAL_API", None);
    for flag in cflags {
        build.flag(flag);
    }
    if let Err(error) = build.try_compile("dpdk_shim") {
        fail(&format!(
            "shim.c did not compile ({error}): run scripts/setup to install a C compiler and libdpdk-dev"
        ));
    }
}

fn generate_bindings(cflags: &[String]) {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_else(|| fail("OUT_DIR is not set")))
        .join("bindings.rs");
    let bindings = bindgen::Builder::default()
        .header("wrapper.h")
        .clang_args(cflags)
        .clang_arg("-DALLOW_EXPERIMENTAL_API")
        .allowlist_item("dcpshim_.*|DCP_.*")
        .allowlist_function("rte_eal_(init|get_runtime_dir|alarm_set|iova_mode)")
        .allowlist_function("rte_extmem_(register|unregister)")
        .allowlist_function("rte_dev_dma_(map|unmap)")
        .allowlist_function(
            "rte_(openlog_stream|log_set_global_level|strerror|thread_register|thread_unregister)",
        )
        .allowlist_function("rte_pktmbuf_(pool_create|copy)")
        .allowlist_function("rte_mempool_(free|avail_count|in_use_count)")
        .allowlist_function("rte_ring_(create|free)")
        .allowlist_function("rte_eth_(from_rings|macaddr_get|promiscuous_enable)")
        .allowlist_function("rte_eth_dev_(configure|start|stop|close|info_get|get_port_by_name|count_avail)")
        .allowlist_function("rte_eth_dev_(adjust_nb_rx_tx_desc|set_mtu|is_valid_port|count_total)")
        .allowlist_function("rte_eth_(rx|tx)_queue_setup")
        .allowlist_function("rte_eth_stats_get")
        .allowlist_function("rte_vdev_(init|uninit)")
        .allowlist_function("rte_telemetry_register_cmd")
        .allowlist_function("rte_tel_data_(string|start_dict|add_array_string|add_dict_string)")
        .allowlist_var("RTE_TEL_MAX_(STRING_LEN|SINGLE_STRING_LEN|DICT_ENTRIES|ARRAY_ENTRIES)")
        .allowlist_var("RTE_MAX_LCORE|RTE_MAX_ETHPORTS|RTE_PKTMBUF_HEADROOM|RTE_MEMPOOL_CACHE_MAX_SIZE")
        .allowlist_var("RTE_PMD_RING_MAX_RX_RINGS|RTE_PMD_RING_MAX_TX_RINGS")
        .allowlist_type("rte_mbuf_ext_shared_info|rte_ether_addr")
        // Defined by hand in lib.rs: only pointers to them cross the border.
        .blocklist_type("rte_mbuf|rte_mbuf__.*|rte_mbuf_sched|rte_mempool|rte_(ring|ring_.*)|__rte_ring.*")
        .blocklist_type("FILE|_IO_.*|rte_tel_data")
        .prepend_enum_name(false)
        .generate_comments(false)
        .layout_tests(false)
        .derive_default(true)
        .rust_target(bindgen::RustTarget::stable(88, 0).unwrap_or_default())
        .rust_edition(bindgen::RustEdition::Edition2024)
        .wrap_unsafe_ops(true)
        .generate();
    match bindings {
        Ok(bindings) => bindings
            .write_to_file(out)
            .unwrap_or_else(|error| fail(&format!("the bindings could not be written: {error}"))),
        Err(error) => fail(&format!(
            "bindgen could not read DPDK's headers ({error}): run scripts/setup to install libclang-dev and clang"
        )),
    }
}

fn link(libs: &[String]) {
    for word in libs {
        if let Some(dir) = word.strip_prefix("-L") {
            println!("cargo::rustc-link-search=native={dir}");
        } else if let Some(lib) = word.strip_prefix("-l") {
            println!("cargo::rustc-link-lib=dylib={lib}");
        }
    }
    for lib in DRIVER_LIBS {
        println!("cargo::rustc-link-lib=dylib={lib}");
    }
}

/// Splits flags at white space: a path with a space in it is not supported.
fn split(flags: &str) -> Vec<String> {
    flags.split_whitespace().map(str::to_owned).collect()
}

fn fail(sentence: &str) -> ! {
    println!("cargo::error=dpdk-sys: {sentence}");
    std::process::exit(1)
}
