//! `kubestep explain` with an extender that answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use kubestep_source::fixtures;

use crate::harness::Call;

/// What the extender gives: 9 to one node, 1 to the one that would be chosen without it.
const SCORES: &str = r#"[{"Host": "c-0", "Score": 9}, {"Host": "b-0", "Score": 1}]"#;

/// Serves the scores on a free port, as long as the test runs. Gives the address.
fn extender() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.unwrap());
        }
    });
    address
}

fn answer(mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).unwrap() > 2 {
        let lower = line.to_ascii_lowercase();
        if let Some(text) = lower.strip_prefix("content-length:") {
            length = text.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
    write!(stream, "{head}Content-Length: {}\r\n\r\n{SCORES}", SCORES.len()).unwrap();
}

#[test]
fn the_points_that_make_the_difference_add_up() {
    let address = extender();
    let config = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nextenders:\n\
         - {{urlPrefix: \"http://{address}\", prioritizeVerb: score, weight: 5, \
         nodeCacheCapable: true}}\n"
    );
    let tour = fixtures::find("tour").unwrap();
    let call =
        Call::new().bytes("cluster.yaml", tour.cluster.as_bytes()).file("scheduler.yaml", &config);
    let line =
        "explain web-0 -f cluster.yaml --config scheduler.yaml --call-extenders --why-not b-0";
    let said = call.run(line);
    let text = format!("{}{}", said.stdout, said.stderr);
    let heading = text.lines().next().unwrap();
    assert_eq!(heading.matches("extender").count(), 1, "{heading}");
    let by = format!("by extender http://{address} (50 against 450)");
    assert!(text.contains(&format!("-400 {by}")), "{text}");
    let (before, _) = text.split_once(" fewer, ").unwrap();
    let fewer: i64 = before.rsplit_once(": ").unwrap().1.parse().unwrap();
    let points = |line: &str| line.split_once(" by ")?.0.trim().parse::<i64>().ok();
    let sum: i64 = text.lines().filter_map(points).sum();
    assert_eq!(sum, -fewer, "{text}");
}
