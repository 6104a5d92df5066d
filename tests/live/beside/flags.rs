//! Every flag of kube-scheduler is supported, or rejected with a reason.

use std::process::Command;

use crate::beside::upstream;

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_every_flag_of_kube_scheduler_has_an_answer() {
    let program = upstream();
    let help = |program: Command| {
        let mut program = program;
        String::from_utf8(program.arg("--help").output().unwrap().stdout).unwrap()
    };
    let mut ours = Command::new(env!("CARGO_BIN_EXE_kubestep"));
    ours.arg("schedule");
    let (theirs, ours) = (help(Command::new(program)), help(ours));
    let flags = theirs.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let first = words.next()?;
        let flag = if first.ends_with(',') { words.next()? } else { first };
        flag.strip_prefix("--").filter(|_| first.starts_with('-'))
    });
    let flags: Vec<&str> = flags.collect();
    assert!(flags.len() > 50, "{flags:?}");
    let is_known = |flag: &&str| {
        let mut words =
            ours.split(|letter: char| letter.is_whitespace() || ",:=[".contains(letter));
        words.any(|word| word.strip_prefix("--") == Some(flag))
    };
    let unknown: Vec<&str> = flags.into_iter().filter(|flag| !is_known(flag)).collect();
    assert_eq!(unknown, [] as [&str; 0]);
}
