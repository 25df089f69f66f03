//! The results as a table that other programs read.

use std::fmt::Write;

use crate::measure;
use crate::outcome::{Directions, Outcome};
use crate::plan::{Mode, Plan};

const HEAD: &str = "op,mode,device,size_bytes,iterations,seconds,bw_average_gbps,bw_peak_gbps,msg_rate_mpps,\
lat_min_us,lat_p50_us,lat_avg_us,lat_p90_us,lat_p99_us,lat_p999_us,lat_max_us,lat_stdev_us,verified,\
data_packets,retransmitted,trimmed,ho_returned,ho_lost,dropped,duplicates,timeouts,cnps,ecn_marked,rnr_naks,\
bidirectional";
/// Heads of the last columns, which tell the two directions of a run apart.
pub(crate) const DIRECTIONS: [&str; 4] =
    ["from_client_iterations", "from_client_bytes", "from_server_iterations", "from_server_bytes"];

/// A line of heads and a line for each run; what was not measured is empty.
pub fn results(rows: &[(Plan, Outcome)]) -> String {
    let mut text = format!("{HEAD},{}\n", DIRECTIONS.join(","));
    for (plan, outcome) in rows {
        line(&mut text, plan, outcome);
    }
    text
}

fn line(text: &mut String, plan: &Plan, outcome: &Outcome) {
    let throughput = outcome.throughput();
    let rated = plan.mode == Mode::Bandwidth;
    let rates = [
        rated.then(|| throughput.gbps()),
        outcome.peak_bytes_per_second.filter(|_| rated).map(measure::gbps),
        rated.then(|| throughput.mpps()),
    ];
    let lat = outcome.details.latency;
    let latencies = match lat {
        Some(it) => [it.min, it.p50, it.avg, it.p90, it.p99, it.p999, it.max, it.stdev].map(Some),
        None => [None; 8],
    };
    let (op, mode) = (plan.op.name(), plan.mode_name());
    // A device's name may have commas of its own.
    let device = plan.device.name().replace('"', "\"\"");
    write!(text, "{op},{mode},\"{device}\",{},{},{}", plan.size, outcome.iterations, throughput.seconds())
        .expect("a String takes any text");
    for value in rates.into_iter().chain(latencies) {
        let value = value.map_or_else(String::new, |value| value.to_string());
        write!(text, ",{value}").expect("a String takes any text");
    }
    let verified = outcome.verification.verified().map_or_else(String::new, |it| it.to_string());
    let net = &outcome.net;
    let counters = [
        net.data_packets,
        net.retransmitted,
        net.trimmed,
        net.ho_returned,
        net.ho_lost,
        net.dropped,
        net.duplicates,
        net.timeouts,
        net.cnps,
        net.ecn_marked,
        net.rnr_naks,
    ];
    write!(text, ",{verified}").expect("a String takes any text");
    for counter in counters {
        write!(text, ",{counter}").expect("a String takes any text");
    }
    write!(text, ",{}", plan.bidirectional).expect("a String takes any text");
    for count in directions(outcome.details.directions) {
        write!(text, ",{count}").expect("a String takes any text");
    }
    text.push('\n');
}

/// In the order of [`DIRECTIONS`]; empty where only one side sent.
pub(crate) fn directions(of: Option<Directions>) -> [String; DIRECTIONS.len()] {
    let Some(Directions { from_client, from_server }) = of else { return Default::default() };
    [from_client.iterations, from_client.bytes, from_server.iterations, from_server.bytes]
        .map(|count| count.to_string())
}
