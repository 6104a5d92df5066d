//! An HTTP extender for a test, which binds with kubectl.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::control_plane::ControlPlane;

/// Starts an extender. Calls for which `answer`, by path and body, returns `None` are bindings.
pub fn start(
    plane: &ControlPlane,
    answer: impl Fn(&str, &Value) -> Option<Value> + Send + 'static,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let lent = plane.kubectl_command();
    let args: Vec<_> = lent.get_args().map(ToOwned::to_owned).collect();
    let program = lent.get_program().to_owned();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let Some((path, body)) = read(&mut stream) else { continue };
            let answer = answer(&path, &body).unwrap_or_else(|| {
                let mut kubectl = Command::new(&program);
                kubectl.args(&args);
                bind(kubectl, &body);
                json!({})
            });
            let text = answer.to_string();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
            let _sent = write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{text}", text.len());
        }
    });
    port
}

fn read(stream: &mut TcpStream) -> Option<(String, Value)> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((first.split(' ').nth(1)?.to_owned(), serde_json::from_slice(&body).ok()?))
}

fn bind(mut kubectl: Command, args: &Value) {
    let (name, namespace) = (&args["PodName"], &args["PodNamespace"]);
    let path = format!(
        "/api/v1/namespaces/{}/pods/{}/binding",
        namespace.as_str().unwrap(),
        name.as_str().unwrap()
    );
    let body = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": namespace},
        "target": {"kind": "Node", "name": args["Node"]},
    });
    let mut child = kubectl
        .args(["create", "--raw", &path, "-f", "-"])
        .env("HOME", std::env::temp_dir())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(body.to_string().as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}
