//! Tells tests whether there is what they need: those in `tests/live` a real API server
//! (`KUBEBUILDER_ASSETS`), one in `tests/cli` a browser (`KUBESTEP_CHROMIUM`) and one upstream's
//! benchmark workloads (`SCHEDULER_PERF`). Without it they are reported as ignored, never as passed.

fn main() {
    for (variable, name) in [
        ("KUBEBUILDER_ASSETS", "with_api_server"),
        ("KUBESTEP_CHROMIUM", "with_browser"),
        ("SCHEDULER_PERF", "with_upstream_workloads"),
    ] {
        println!("cargo::rustc-check-cfg=cfg({name})");
        println!("cargo::rerun-if-env-changed={variable}");
        if std::env::var_os(variable).is_some() {
            println!("cargo::rustc-cfg={name}");
        }
    }
}
