//! Hogs beside the server.

use crate::pair::Pair;

#[test]
fn server_has_hogs_and_holds_them_back_and_the_client_has_none() {
    let pair = Pair::over_memif("pair-hogs");
    let (server, client) = pair.run("write", "-n 2000 --antagonist 2 --rhcc-receiver", "-n 2000");
    for end in [&server, &client] {
        end.assert_code(0);
        assert_eq!(end.json().verified(), Some(true), "{}", end.json().0);
    }
    let (server, client) = (server.json(), client.json());
    let host = &server.row()["host"];
    assert_eq!((&host["hogs"], &host["rhcc_receiver"]), (&2.into(), &true.into()));
    assert!(host["hogs_gbs"].as_f64() > Some(0.0) && host["actuator"].is_string(), "{host}");
    assert!(client.row().get("host").is_none());
}

#[test]
fn hogs_are_refused_at_the_client_before_it_connects() {
    let pair = Pair::over_memif("pair-hogs-client");
    let end = pair.client("write", "--antagonist 1").end();
    end.assert_code(2);
}
