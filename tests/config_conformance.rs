//! Every document of the configuration corpus is resolved as kube-scheduler 1.36.2 does.

mod conformance;

use std::path::Path;

#[test]
fn all_documents_agree() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/config.jsonl.gz");
    let (passed, total, differences) = conformance::config::run(&corpus);
    assert_eq!((passed, differences), (total, Vec::<String>::new()));
    assert_eq!(total, 196);
}
