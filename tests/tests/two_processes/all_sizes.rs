//! All sizes, one after the other, over one connection.

use dcp_tests::results::Results;

use crate::pair::Pair;

fn rows(results: &Results) -> Vec<(u64, u64, bool)> {
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    let row = |row: &serde_json::Value| {
        (number(&row["size_bytes"]), number(&row["iterations"]), row["verified"] == true)
    };
    results.0["results"].as_array().expect("rows").iter().map(row).collect()
}

#[test]
fn all_sizes_have_a_verified_row_on_both_sides() {
    let pair = Pair::over_memif("all-sizes");
    for (op, options, each) in [
        ("write", "-a -n 10", 10),
        ("send", "-a -n 3 -q 3", 9),
        ("read", "-a -n 3 -b", 6),
        ("send-imm", "-a -n 3 --verify", 3),
        ("write", "-a -n 3 --lat", 3),
    ] {
        let (server, client) = pair.verified(op, options);
        let expected: Vec<_> = (1..=23).map(|exponent| (1u64 << exponent, each, true)).collect();
        assert_eq!(rows(&server), expected, "{op} {options}: server");
        assert_eq!(rows(&client), expected, "{op} {options}: client");
    }
}

#[test]
fn each_row_counts_the_packets_of_its_own_run() {
    let (_, client) = Pair::over_memif("all-packets").verified("write", "-a -n 2");
    let first_sent = |row: &serde_json::Value| {
        let counter = |name: &str| row["net"][name].as_u64().expect("a number");
        counter("data_packets") - counter("retransmitted")
    };
    let packets: Vec<u64> = client.0["results"].as_array().expect("rows").iter().map(first_sent).collect();
    let expected: Vec<u64> = (1..=23u32).map(|exponent| 2 * (1u64 << exponent).div_ceil(4096)).collect();
    assert_eq!(packets, expected);
}

#[test]
fn table_of_all_sizes_has_one_head_and_one_footer() {
    let (server, client) = Pair::over_memif("all-table").run("write", "-a -n 2", "-a -n 2");
    for end in [&server, &client] {
        end.assert_code(0);
        // With --json - the table goes there.
        let table = end.stderr();
        assert_eq!(table.matches("#iterations").count(), 1, "{table}");
        assert_eq!(table.matches(" network: ").count(), 1, "{table}");
    }
}

#[test]
fn one_side_alone_that_wants_all_sizes_is_refused() {
    let pair = Pair::over_memif("all-differ");
    let (server, client) = pair.run("write", "", "-a");
    for end in [&server, &client] {
        end.assert_code(2);
        let sentence = end.json().error()["message"].as_str().unwrap_or_default().to_owned();
        assert!(sentence.contains("--all is on at the client and off at the server"), "{sentence}");
    }
}
