//! Ping-pong between two processes.

use dcp_tests::namespace::Namespace;

use crate::pair::Pair;

#[test]
fn latency_of_every_operation_is_measured_at_the_client() {
    let pair = Pair::over_memif("pair-lat");
    for op in ["write", "write-imm", "send", "send-imm", "read", "cas", "faa"] {
        for options in ["--lat -n 200", "--lat -n 20 --verify --icrc"] {
            let (server, client) = pair.verified(op, options);
            assert_eq!(server.iterations(), client.iterations(), "{op} {options}");
            let lat = &client.row()["lat_us"];
            assert!(lat["min"].as_f64() > Some(0.0) && lat["min"].as_f64() <= lat["max"].as_f64(), "{lat}");
            // The one that answers measures nothing.
            assert!(server.row()["lat_us"].is_null());
            for results in [server, client] {
                assert!(results.row()["bw_average_gbps"].is_null());
                assert_eq!(results.0["mode"], "lat");
            }
        }
    }
}

#[test]
fn smaller_mtu_of_one_side_decides_how_a_write_is_answered() {
    let pair = Pair::over_memif("pair-lat-mtu");
    for (size, trigger) in [(1024, "last_byte"), (2000, "immediate")] {
        let options = format!("--lat -n 50 -s {size}");
        let (server, client) = pair.run("write", &format!("{options} -m 1024"), &options);
        for end in [server, client] {
            end.assert_code(0);
            assert_eq!(end.json().row()["lat_trigger"], trigger, "{size}");
        }
    }
}

#[test]
fn ping_pong_goes_over_veth() {
    let Some(namespace) = Namespace::new_or_skip("af_packet over veth") else { return };
    namespace.add_veth(1500);
    for op in ["write", "send", "read"] {
        let (_, client) = Pair::over_veth(&namespace).verified(op, "--lat -n 100 -s 5000");
        assert_eq!(client.iterations(), 100, "{op}");
    }
}

#[test]
fn latency_on_one_side_only_is_refused() {
    let (server, client) = Pair::over_memif("pair-lat-one").run("send", "-s 64 -n 5", "--lat -s 64 -n 5");
    for end in [server, client] {
        end.assert_code(2);
        let message = end.json().error()["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains("--lat is on at the client and off at the server"), "{message}");
    }
}
