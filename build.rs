//! Tells the tests in `tests/live` whether there is a real API server to test with: without
//! `KUBEBUILDER_ASSETS` they are reported as ignored, never as passed.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(with_api_server)");
    println!("cargo::rerun-if-env-changed=KUBEBUILDER_ASSETS");
    if std::env::var_os("KUBEBUILDER_ASSETS").is_some() {
        println!("cargo::rustc-cfg=with_api_server");
    }
}
