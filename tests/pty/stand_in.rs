//! An HTTP server with the same response to every request, as a malicious API server.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

/// Starts it on a loopback address. It runs until the test program ends.
fn serve(code: u16, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let body = body.clone();
            std::thread::spawn(move || answer(connection, code, &body));
        }
    });
    format!("http://{address}")
}

/// Responds to requests until the client closes. Watches stay open without an event.
fn answer(mut connection: TcpStream, code: u16, body: &str) -> Option<()> {
    let mut lines = BufReader::new(connection.try_clone().ok()?).lines();
    while let Some(Ok(request)) = lines.next() {
        while lines.next()?.ok().is_some_and(|header| !header.is_empty()) {}
        let length = match request.contains("watch=") {
            true => body.len() + 1,
            false => body.len(),
        };
        let head = format!("HTTP/1.1 {code} x\r\nContent-Length: {length}\r\n\r\n");
        connection.write_all(format!("{head}{body}").as_bytes()).ok()?;
    }
    Some(())
}

/// A kubeconfig for such a server.
pub fn kubeconfig(folder: &Path, code: u16, body: String) -> PathBuf {
    let path = folder.join(format!("{code}.kubeconfig"));
    let server = serve(code, body);
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: lab\n\
         clusters: [{{name: lab, cluster: {{server: \"{server}\", insecure-skip-tls-verify: true}}}}]\n\
         users: [{{name: u, user: {{token: t}}}}]\n\
         contexts: [{{name: lab, context: {{cluster: lab, user: u}}}}]\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}
