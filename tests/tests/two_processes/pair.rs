//! A server and a client that belong together.

use std::net::TcpListener;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use dcp_tests::namespace::Namespace;
use dcp_tests::program::{Bench, End, Running};
use dcp_tests::results::Results;

/// The way between the two. What it made on disk is gone when it is dropped.
pub(crate) struct Pair<'a> {
    wrapper: Vec<&'a str>,
    server: String,
    client: String,
    socket: Option<PathBuf>,
    pub(crate) port: u16,
}

/// A TCP port that nobody has now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("[::]:0").expect("there are ports");
    listener.local_addr().expect("it has an address").port()
}

impl<'a> Pair<'a> {
    pub(crate) fn over_memif(name: &str) -> Self {
        let socket = std::env::temp_dir().join(format!("dcp-{name}-{}.sock", std::process::id()));
        let device = format!("memif:{}", socket.display());
        let (server, client) = (device.clone(), device);
        Self { wrapper: Vec::new(), server, client, socket: Some(socket), port: free_port() }
    }

    /// Between `v0` and `v1` of a namespace.
    pub(crate) fn over_veth(namespace: &'a Namespace) -> Self {
        let (server, client) = ("af_packet:v0".to_owned(), "af_packet:v1".to_owned());
        Self { wrapper: namespace.wrapper().to_vec(), server, client, socket: None, port: free_port() }
    }

    /// The client's device.
    pub(crate) fn device(&self) -> &str {
        &self.client
    }

    pub(crate) fn server(&self, op: &str, options: &str) -> Bench {
        let (device, port) = (&self.server, self.port);
        let options = format!("--server --device {device} --ip 10.9.0.1/24 -p {port} {options}");
        Bench::op(&self.wrapper, op, &options)
    }

    pub(crate) fn client(&self, op: &str, options: &str) -> Bench {
        let (device, port) = (&self.client, self.port);
        let options = format!("localhost --device {device} --ip 10.9.0.2/24 -p {port} {options}");
        Bench::op(&self.wrapper, op, &options)
    }

    /// Both to their ends, with `--json -`: the server's and the client's.
    pub(crate) fn run(&self, op: &str, for_server: &str, for_client: &str) -> (End, End) {
        let server = in_background(self.server(op, &format!("{for_server} --json -")), Bench::end);
        let client = self.client(op, &format!("{for_client} --json -")).end();
        (joined(server), client)
    }

    /// The results of two that must succeed, with the data verified on both sides and nothing left behind.
    #[track_caller]
    pub(crate) fn verified(&self, op: &str, options: &str) -> (Results, Results) {
        let (server, client) = self.run(op, options, options);
        let of = |end: &End| {
            end.assert_code(0);
            end.assert_clean();
            let results = end.json();
            assert_eq!(results.verified(), Some(true), "{}: {}", end.options, results.0);
            results
        };
        (of(&server), of(&client))
    }

    /// Both, in the middle of a run that does not end by itself: the client, which measures, has seen messages done.
    pub(crate) fn start(&self, op: &str, options: &str) -> (Running, Running) {
        let options = format!("-D 600 {options}");
        let server = in_background(self.server(op, &options), Bench::start);
        let mut client = self.client(op, &format!("{options} --interval 0.2")).start();
        client.wait_for_messages();
        (joined(server), client)
    }
}

impl Drop for Pair<'_> {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            let _ = std::fs::remove_file(socket);
        }
    }
}

pub(crate) fn in_background<T: Send + 'static>(
    bench: Bench,
    body: impl FnOnce(Bench) -> T + Send + 'static,
) -> JoinHandle<T> {
    thread::spawn(move || body(bench))
}

pub(crate) fn joined<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
