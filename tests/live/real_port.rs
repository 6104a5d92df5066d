//! The HTTPS port of a scheduler: its certificate and its authorization, which a real API server
//! decides.

use std::path::Path;
use std::process::{Command, Output};

use crate::control_plane::{ControlPlane, free_port};
use crate::objects::{FAST, create, node};
use crate::running::{Running, until};

/// A request with kubectl, which speaks HTTPS, anonymous or with a token.
fn ask(plane: &ControlPlane, port: u16, path: &str, options: &[&str]) -> Output {
    let mut kubectl = Command::new(plane.kubectl_command().get_program());
    kubectl.env("KUBECONFIG", "/dev/null").args(["get", "--raw", path]).args(options);
    kubectl.arg(format!("--server=https://127.0.0.1:{port}")).output().unwrap()
}

fn printed(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_https_shows_metrics_to_whom_the_cluster_allows_it() {
    let plane = ControlPlane::start();
    create(&plane, vec![node("node-0", "4")]);
    let (port, kubeconfig) = (free_port(), plane.kubeconfig("scheduler"));
    let path = kubeconfig.display();
    let reviews = format!("--authentication-kubeconfig {path} --authorization-kubeconfig {path}");
    let scheduler = Running::start(&plane, &format!("{FAST} --secure-port {port} {reviews}"));
    scheduler.wait_for_the_lease();
    let any = "--insecure-skip-tls-verify";
    let token = |name: &str| format!("--token={name}-token");
    let ready = || ask(&plane, port, "/readyz", &[any, &token("viewer")]).status.success();
    until("it is ready", ready);
    let metrics = |who: &str| ask(&plane, port, "/metrics", &[any, &token(who)]);
    assert!(printed(&metrics("admin")).contains("scheduler_pending_pods"), "a master may all");
    let forbidden = r#"User "viewer" cannot get path "/metrics""#;
    assert!(printed(&metrics("viewer")).contains(forbidden), "{}", printed(&metrics("viewer")));
    let wrong = ask(&plane, port, "/healthz", &[any, "--token=wrong"]);
    assert!(
        !wrong.status.success() && printed(&wrong).contains("nauthorized"),
        "{}",
        printed(&wrong)
    );
    plane.kubectl(
        "create clusterrole metrics --verb=get --non-resource-url=/metrics --non-resource-url=/configz",
        "",
    );
    plane.kubectl("create clusterrolebinding metrics --clusterrole=metrics --user=viewer", "");
    until("the viewer may", || metrics("viewer").status.success());
    let config = ask(&plane, port, "/configz", &[any, &token("admin")]);
    assert!(
        printed(&config).contains(r#""kind":"KubeSchedulerConfiguration""#),
        "{}",
        printed(&config)
    );
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_https_has_the_certificate_that_is_given() {
    let plane = ControlPlane::start();
    create(&plane, vec![node("node-0", "4")]);
    let folder = tempfile::tempdir().unwrap();
    let [certificate, key] =
        ["kube-scheduler.crt", "kube-scheduler.key"].map(|name| folder.path().join(name));
    make_certificate(&certificate, &key);
    let port = free_port();
    let line = format!("{FAST} --secure-port {port} --cert-dir {}", folder.path().display());
    let scheduler = Running::start(&plane, &line);
    scheduler.wait_for_the_lease();
    let trusted = format!("--certificate-authority={}", certificate.display());
    // With a token kubectl does not ask for a user name; the token is not checked here.
    let token = "--token=any";
    until("it is ready", || ask(&plane, port, "/readyz", &[&trusted, token]).status.success());
    let doubted = ask(&plane, port, "/readyz", &[token]);
    assert!(printed(&doubted).contains("x509"), "{}", printed(&doubted));
}

fn make_certificate(certificate: &Path, key: &Path) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1", "-keyout"])
        .arg(key)
        .arg("-out")
        .arg(certificate)
        .output();
    assert!(made.is_ok_and(|output| output.status.success()), "openssl makes the certificate");
}
