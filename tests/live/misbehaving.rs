//! Watches with invalid responses: each kind is retried with increasing delays, and the outage is
//! shown and reported once, and ends when the server recovers.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use kubestep_api::Kind;
use kubestep_live::{Feed, NamespaceScope, Pace};
use serde_json::json;

use crate::mirror::Mirror;
use crate::standin::{StandIn, chunk};

/// The program's retry delays, divided by a hundred.
const PACE: Pace = Pace {
    watch_seconds: 300,
    idle: Duration::from_secs(7),
    lived: Duration::from_secs(1),
    pause: Duration::from_millis(8),
    longest_pause: Duration::from_millis(300),
    refused: Duration::from_millis(600),
    seed: 1,
};
/// A minute, divided by a hundred.
const MINUTE: Duration = Duration::from_millis(600);

const GONE: &str = r#"{"kind":"Status","message":"too old","reason":"Expired","code":410}"#;

/// A response to a watch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// A status code with `Retry-After`.
    Status(u16, &'static str),
    /// These bytes in one chunk, then the end.
    Whole(&'static [u8]),
    /// The connection is closed after the head.
    Dropped,
    /// An object of 5 MB, then the end.
    Big,
    /// A line without an end, at full speed.
    Endless,
    /// A line, byte by byte.
    Drip,
    /// A bookmark with a version far ahead, then events.
    LyingBookmark,
}

/// The responses, each with the text that is shown.
const MODES: &[(Mode, &str)] = &[
    (Mode::Whole(b""), "watch ends immediately"),
    (Mode::Whole(br#"{"type":"ADDED","object":{"kind":"Pod","metad"#), "no connection"),
    (Mode::Whole(b"\x00\xff{\"type\":\"ADDED\",,}\n"), "bad response"),
    (Mode::Whole(b"{\"type\":\"BOOKMARK\",\"object\":{}}\n"), "watch ends immediately"),
    (
        Mode::Whole(
            b"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"x\",\
              \"resourceVersion\":\"999999\"},\"spec\":5}}\n",
        ),
        "watch ends immediately",
    ),
    (
        Mode::Whole(
            b"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"message\":\"too old\",\
              \"reason\":\"Expired\",\"code\":410}}\n",
        ),
        "410",
    ),
    (Mode::Status(410, ""), "410"),
    (Mode::Status(429, ""), "429"),
    (Mode::Status(429, "0"), "429"),
    (Mode::Status(429, "99999999999"), "429"),
    (Mode::Status(500, ""), "500"),
    (Mode::Status(401, ""), "401"),
    (Mode::Status(403, ""), "403"),
    (Mode::Status(404, ""), "404"),
    (Mode::Status(302, ""), "302"),
    (Mode::Dropped, "no connection"),
    (Mode::Big, "watch ends immediately"),
    (Mode::Endless, "bad response"),
    (Mode::Drip, "slow response"),
];

impl Mode {
    /// Answers the watch of `path`.
    pub fn answer(self, path: &str, to: &mut TcpStream) -> io::Result<()> {
        if let Mode::Status(code, after) = self {
            let after = match after {
                "" => String::new(),
                after => format!("Retry-After: {after}\r\n"),
            };
            let body = if code == 410 { GONE.into() } else { format!(r#"{{"code":{code}}}"#) };
            let length = body.len();
            return write!(
                to,
                "HTTP/1.1 {code} X\r\n{after}Content-Length: {length}\r\n\r\n{body}"
            );
        }
        write!(to, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        let is_pods = path.ends_with("/pods");
        match self {
            Mode::Whole(bytes) => {
                chunk_unless_empty(to, bytes)?;
                return write!(to, "0\r\n\r\n");
            }
            Mode::Big if is_pods => {
                let fields = json!({"annotations": {"a": "x".repeat(5_000_000)}});
                chunk(to, event("ADDED", "big", 999_999, fields).as_bytes())?;
                return write!(to, "0\r\n\r\n");
            }
            Mode::Endless if is_pods => {
                let part = vec![b'x'; 1_000_000];
                while chunk(to, &part).is_ok() {}
            }
            Mode::Drip => {
                for byte in event("ADDED", "drip", 999_999, json!({})).bytes() {
                    chunk(to, &[byte])?;
                    sleep(Duration::from_millis(200));
                }
            }
            Mode::LyingBookmark if is_pods => {
                chunk(to, event("BOOKMARK", "", 999_999_999_999, json!({})).as_bytes())?;
                for at in 0..5 {
                    let event = event("ADDED", &format!("late-{at}"), 5_000 + at, json!({}));
                    chunk(to, event.as_bytes())?;
                }
            }
            _ => {}
        }
        if self != Mode::Dropped {
            // No more data.
            sleep(Duration::from_secs(60));
        }
        Ok(())
    }

    /// Requests per attempt: after 410 a list precedes the watch; after 401 another request is sent
    /// with credentials that were read again.
    fn requests(self, shown: &str) -> usize {
        if ["410", "401"].contains(&shown) { 2 } else { 1 }
    }
}

fn chunk_unless_empty(to: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() { Ok(()) } else { chunk(to, bytes) }
}

fn event(what: &str, name: &str, version: u64, fields: serde_json::Value) -> String {
    let mut metadata = fields;
    metadata["name"] = name.into();
    metadata["namespace"] = "default".into();
    metadata["resourceVersion"] = version.to_string().into();
    format!("{}\n", json!({"type": what, "object": {"metadata": metadata}}))
}

fn server(mode: Mode) -> Arc<StandIn> {
    let server = StandIn::start();
    server.put(Kind::Node, "a", json!({}));
    server.put(Kind::Pod, "web", json!({}));
    server.misbehave(|faults| faults.watches = Some(mode));
    server
}

/// The most attempts that client-go's backoff would make with these delays.
fn attempts(within: Duration) -> usize {
    let (mut pause, mut at, mut count) = (PACE.pause, Duration::ZERO, 0);
    while at <= within {
        count += 1;
        at += pause;
        pause = (pause * 2).min(PACE.longest_pause);
    }
    count
}

fn check(mode: Mode, shown: &str) {
    let server = server(mode);
    let begun = Instant::now();
    let (snapshot, mut feed) =
        Feed::open(server.target(), NamespaceScope::default(), PACE).unwrap();
    let mut mirror = Mirror::new(&snapshot);
    sleep(MINUTE);
    let requests = server.requests();
    // The initial list counts; and a new object resets the backoff once.
    let most = 1 + mode.requests(shown) * (attempts(begun.elapsed()) + 1);
    for plural in ["pods", "nodes", "services"] {
        let of_kind = requests.iter().filter(|request| request.ends_with(&format!("/{plural}")));
        let count = of_kind.count();
        assert!(count <= most, "{mode:?}: {count} requests for {plural}, {most} at most");
        assert!(count >= 2, "{mode:?}: {count} requests for {plural}");
    }
    until(&format!("{mode:?}: {shown} is shown"), || {
        feed.outage().is_some_and(|outage| outage.reason == shown)
    });
    let is_report = |text: &&String| text.contains("not followed");
    mirror.follow(&mut feed, |mirror| mirror.notices.iter().any(|text| is_report(&text)));
    if mode != Mode::Status(429, "99999999999") {
        server.misbehave(|faults| faults.watches = None);
        mirror.follow(&mut feed, |mirror| {
            mirror.notices.iter().any(|text| text == "all watches work again")
        });
        assert_eq!(feed.outage(), None);
        // A watch may be at its first retry, which is no outage yet.
        until(&format!("{mode:?}: every watch works"), || !feed.is_cut_off());
    }
    let reports = mirror.notices.iter().filter(is_report).count();
    assert_eq!(reports, 1, "{mode:?}: {:#?}", mirror.notices);
    let unreadable: Vec<_> =
        mirror.notices.iter().filter(|text| text.contains("Pod default/x")).collect();
    assert!(unreadable.len() <= 1, "{unreadable:#?}");
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !done() {
        assert!(Instant::now() < end, "it did not come: {what}");
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_server_that_misbehaves_is_spared_and_the_outage_is_shown() {
    thread::scope(|scope| {
        let checks: Vec<_> =
            MODES.iter().map(|(mode, shown)| scope.spawn(|| check(*mode, shown))).collect();
        checks.into_iter().for_each(|check| check.join().unwrap());
    });
}

#[test]
fn a_lying_bookmark_silences_nothing() {
    let server = server(Mode::LyingBookmark);
    let (snapshot, mut feed) =
        Feed::open(server.target(), NamespaceScope::default(), PACE).unwrap();
    let mut mirror = Mirror::new(&snapshot);
    mirror.follow(&mut feed, |mirror| {
        mirror.contents().contains(&("pods default/late-4".into(), "5004".into()))
    });
    assert_eq!(mirror.contents().len(), server.contents().len() + 5);
    assert_eq!(feed.outage(), None);
}
