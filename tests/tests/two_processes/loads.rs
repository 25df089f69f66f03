//! Loads and drawn sizes between two processes.

use crate::pair::Pair;

#[test]
fn drawn_sizes_are_the_same_on_both_sides() {
    let pair = Pair::over_memif("pair-sizes-drawn");
    for op in ["write", "send", "read"] {
        let (server, client) = pair.verified(op, "--size-dist websearch -n 10 -q 2");
        for results in [&server, &client] {
            assert_eq!((results.iterations(), &results.0["size_dist"]), (20, &"websearch".into()), "{op}");
        }
    }
    let (server, client) = pair.run("write", "-n 5 -s 30000000", "-n 5 --size-dist websearch");
    for end in [server, client] {
        end.assert_code(2);
        let message = end.json().error()["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains("--size-dist is websearch at the client and not given"), "{message}");
    }
}

#[test]
fn client_alone_decides_when_it_sends_and_tells_how_evenly() {
    let pair = Pair::over_memif("pair-load");
    let (server, client) =
        pair.run("send", "-n 100 -q 4 -s 1000", "-n 100 -q 4 -s 1000 --rate 0.1 --arrivals poisson");
    for end in [&server, &client] {
        end.assert_code(0);
    }
    let (server, client) = (server.json(), client.json());
    assert_eq!((server.iterations(), client.iterations()), (400, 400));
    assert_eq!((&client.0["mode"], &server.0["mode"]), (&"load".into(), &"bw".into()));
    assert!(client.row()["lat_us"]["max"].as_f64() > Some(0.0));
    assert_eq!(client.row()["fairness"]["qps"], 4);
}

#[test]
fn intervals_add_up_at_both_sides() {
    let pair = Pair::over_memif("pair-interval");
    let (server, client) = pair.verified("send", "-D 0.5 --interval 0.1");
    for results in [server, client] {
        let intervals = results.row()["intervals"].as_array().expect("intervals");
        let sum: u64 = intervals.iter().filter_map(|it| it["messages"].as_u64()).sum();
        assert_eq!(sum, results.iterations());
    }
}
