//! Edits and branches as a person uses them, key by key.

use std::time::Duration;

use crate::tui::testing::LiveInterface;

fn status(live: &mut LiveInterface) -> String {
    live.lines()[22].trim().to_owned()
}

#[test]
fn the_menu_offers_what_fits_and_does_it_in_a_branch() {
    // Every node is cordoned.
    let mut live = LiveInterface::demo("cordoned").keys("c5m");
    assert!(live.text().contains("What if: Node"), "{}", live.text());
    assert!(live.text().contains("uncordon node"), "{}", live.text());
    live = live.keys("<Enter>");
    assert!(status(&mut live).contains("in branch what-if-1"), "{}", live.text());
    assert!(live.lines()[1].contains("[what-if-1]"), "{}", live.lines()[1]);
    live = live.keys("c+cD");
    assert!(live.text().contains("What differs from original"), "{}", live.text());
    assert!(
        live.text().contains("gets a node") || live.text().contains("get a node"),
        "{}",
        live.text()
    );
    live = live.keys("<Esc>u");
    assert!(status(&mut live).contains("undone: uncordon node"), "{}", live.text());
    live = live.keys("D");
    assert!(live.text().contains("nothing differs"), "{}", live.text());
    live = live.keys("<Esc>U");
    assert!(status(&mut live).contains("redone: uncordon node"), "{}", live.text());
    live = live.keys(":branch original<Enter>");
    assert!(!live.lines()[1].contains("[what-if-1]"), "{}", live.lines()[1]);
    live = live.keys("D");
    assert!(status(&mut live).contains("you are on the original branch"), "{}", live.text());
    live = live.keys(":branch<Enter>");
    assert!(live.text().contains("* original"), "{}", live.text());
    assert!(live.text().contains("what-if-1, from original: uncordon node"), "{}", live.text());
    live = live.keys("j<Enter>");
    assert_eq!(status(&mut live), "on branch what-if-1");
    assert!(live.lines()[1].contains("[what-if-1]"), "{}", live.lines()[1]);
}

#[test]
fn commands_edits_and_objects_complete_while_one_types() {
    let mut live = LiveInterface::demo("cordoned").keys(":uncor");
    let text = live.text();
    assert!(text.contains("uncordon node NAME: make it schedulable again"), "{text}");
    assert_eq!(live.lines()[22], ":uncordon", "the rest in ghost text");
    let mut live = live.keys("<Tab><Tab>n");
    let text = live.text();
    assert!(text.contains("uncordon node node-0") && text.contains("node-1"), "{text}");
    let mut live = live.keys("<Tab><Enter>");
    assert!(status(&mut live).contains("uncordon node node-0"), "{}", status(&mut live));
    let mut live = live.keys("Ela");
    assert!(live.text().contains("label KIND NAME KEY=VALUE"), "{}", live.text());
    assert_eq!(live.lines()[22], "what-if edit: label");
    let mut live = live.keys("<Tab>n<Tab><Tab>");
    assert_eq!(live.lines()[22], "what-if edit: label node node-0");
    let mut live = live.keys("<Esc>:the<Right>hi<Right>");
    assert_eq!(live.lines()[22], ":theme high-contrast");
    let mut live = live.keys("<Esc>:branch w");
    assert!(live.text().contains("branch what-if-1"), "{}", live.text());
}

#[test]
fn edits_in_words_are_done_or_explained() {
    let mut live = LiveInterface::demo("cordoned").keys(":what-if cordn node a<Enter>");
    assert_eq!(status(&mut live), "error: \"cordn\" is not an edit, did you mean \"cordon\"?");
    assert!(!live.lines()[1].contains("[what-if"), "{}", live.lines()[1]);
    let mut live = live.keys("Eadd 2 nodes like nowhere<Enter>");
    assert!(status(&mut live).starts_with("error: there is no Node nowhere"), "{}", live.text());
    let mut live = live.keys(":undo<Enter>");
    assert_eq!(status(&mut live), "error: there is nothing to undo in this branch");
    let mut live = live.keys(":fork mine<Enter>");
    assert!(live.lines()[1].contains("[mine]"), "{}", live.lines()[1]);
    let mut live = live.keys(":fork mine<Enter>");
    assert_eq!(status(&mut live), "error: branch \"mine\" already exists");
    let mut live = live.keys(":branch theirs<Enter>");
    assert!(status(&mut live).starts_with("error: there is no branch \"theirs\""));
}

#[test]
fn an_offer_that_lacks_something_asks_for_it() {
    let mut live = LiveInterface::demo("cordoned").keys("5m/taint node<Enter>");
    assert!(status(&mut live).contains("what-if edit: taint node"), "{}", live.text());
    let mut live = live.keys("x=y:NoSchedule<Enter>");
    assert!(status(&mut live).contains("x=y:NoSchedule; in branch what-if-1"), "{}", live.text());
}

/// The scores of the first cycle in which several nodes were scored.
fn scored() -> LiveInterface {
    let mut live = LiveInterface::demo("tour").keys("c4");
    for number in 1..9 {
        live = live.keys(&format!(":cycle {number}<Enter>"));
        if !live.lines()[2].contains("0/0") {
            break;
        }
    }
    live
}

#[test]
fn another_weight_moves_the_ranking_at_once() {
    let mut live = scored().keys("llllll*****");
    assert!(status(&mut live).contains("the best is"), "{}", live.text());
    assert!(status(&mut live).contains("Enter keeps it"), "{}", live.text());
    assert!(live.text().contains('→'));
    let mut live = live.keys("%%%%%");
    assert!(status(&mut live).contains("as configured"), "{}", live.text());
}

#[test]
fn the_decisive_plugin_is_weighed_without_a_column_and_enter_keeps_the_weight() {
    let mut live = scored().keys("*");
    let first = status(&mut live);
    let (plugin, rest) = first.trim().split_once(" weight ").unwrap();
    let weight: i64 = rest.split(':').next().unwrap().parse().unwrap();
    let mut live = live.keys("*");
    let more = format!("{plugin} weight {}:", weight + 1);
    assert!(status(&mut live).contains(&more), "{more}: {}", live.text());
    let mut live = live.keys("<Enter>");
    assert!(live.text().contains("what-if-1"), "{}", live.text());
    let kept = format!("weight {plugin}={}", weight + 1);
    let text = live.keys("M").text();
    assert!(text.contains(&kept), "{kept}: {text}");
}

#[test]
fn the_menu_says_what_each_change_does() {
    let mut live = LiveInterface::wide("tour").keys("n1m");
    let text = live.text();
    assert!(text.contains("make a plugin return an error"), "{text}");
    assert!(text.contains("default/payment [always]"), "{text}");
    assert!(text.contains("take an extender down"), "{text}");
}

#[test]
fn decisions_about_the_cycles_pod_are_offered_on_its_nodes() {
    let mut live = LiveInterface::demo("tainted").keys("c3m");
    let text = live.text();
    assert!(text.contains("force node") && text.contains("veto node"), "{text}");
    let mut live = live.keys("/force<Enter>");
    assert!(status(&mut live).contains("in the next cycle of pod"), "{}", live.text());
}

#[test]
fn windows_look_as_they_should() {
    let mut live = LiveInterface::demo("cordoned").keys("c5m");
    crate::tui::testing::golden(&live.draw(), "what-if-menu");
    let mut live = live.keys("<Enter>cD");
    crate::tui::testing::golden(&live.draw(), "what-if-differences");
}

/// Every kind of change: what is typed behind `:what-if`, and what the status line says.
const CHANGES: &[(&str, &str)] = &[
    ("cordon node a-0", "cordon node a-0"),
    ("untaint node gpu-0 dedicated:NoSchedule", "untaint node gpu-0"),
    ("label node a-0 disktype=sdd", "label node a-0 disktype=sdd"),
    ("resize pod train cpu=100m", "resize pod default/train cpu=100m"),
    ("add 2 nodes like b-0", "add 2 nodes like b-0"),
    ("delete pod train", "delete pod default/train"),
    ("weight NodeResourcesFit=5", "weight NodeResourcesFit=5"),
    ("disable TaintToleration at Filter", "disable TaintToleration at Filter"),
    ("feature GenericWorkload=true", "feature GenericWorkload=true"),
    ("kube-version 1.33", "kube-version 1.33"),
    ("choose node a-0 for pod web-1", "choose node a-0 for pod default/web-1"),
    ("force node a-1 for pod web-1", "force node a-1 for pod default/web-1"),
    ("veto node a-0 for pod web-1", "veto node a-0 for pod default/web-1"),
    ("activate pod payment", "activate pod default/payment"),
    ("fail bind for pod web-1", "fail bind for pod default/web-1"),
    ("fail plugin NodeName at Filter", "fail plugin NodeName at Filter"),
    ("ungate pod gated example.com/quota", "gate"),
];

#[test]
fn every_kind_of_change_is_done_undone_and_compared_and_leaves_the_original() {
    let mut untouched = LiveInterface::wide("tour").keys("c1");
    for (typed, said) in CHANGES {
        let status = |live: &mut LiveInterface| live.lines()[28].trim().to_owned();
        // After two cycles there is something to change, and something left to come.
        let mut live = LiveInterface::wide("tour").keys(&format!("nn:what-if {typed}<Enter>"));
        assert!(status(&mut live).contains(said), "{typed}: {}", status(&mut live));
        assert!(live.lines()[1].contains("[what-if-1]"), "{typed}: {}", live.lines()[1]);
        let mut live = live.keys("cD");
        assert!(live.text().contains("What differs from original"), "{typed}: {}", live.text());
        let mut live = live.keys("<Esc>u");
        assert!(status(&mut live).starts_with("undone: "), "{typed}: {}", status(&mut live));
        let mut live = live.keys("U");
        assert!(status(&mut live).starts_with("redone: "), "{typed}: {}", status(&mut live));
        let mut live = live.keys(":branch original<Enter>c1");
        assert_eq!(live.lines()[3..14], untouched.lines()[3..14], "{typed}");
    }
}

#[test]
fn a_long_redo_goes_on_slice_by_slice_and_can_be_stopped() {
    let mut live = LiveInterface::demo("cordoned").keys("c5m<Enter>c+c");
    let all = live.interface.driver.steps_done();
    live.interface.driver.freshness.patience = Duration::ZERO;
    let live = live.keys("u").keys_in_a_hurry("U");
    let here = live.interface.driver.steps_done();
    assert!(live.interface.app.is_running() && here < all, "{here} of {all}");
    let mut live = live.keys_in_a_hurry("<Esc>");
    assert!(!live.interface.app.is_running() && live.interface.driver.steps_done() < all);
    live = live.keys("U");
    assert_eq!(live.interface.driver.steps_done(), all);
    let mut live = live.keys("uU");
    assert_eq!(live.interface.driver.steps_done(), all);
    assert!(status(&mut live).contains("redone: uncordon node"), "{}", live.text());
}

#[test]
fn another_configuration_is_loaded_from_its_file() {
    let path = std::env::temp_dir().join(format!("kubestep-{}-packed.yaml", std::process::id()));
    let text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                percentageOfNodesToScore: 37\n";
    std::fs::write(&path, text).unwrap();
    let name = path.display();
    let mut live = LiveInterface::wide("tour").keys(&format!(":what-if config @{name}<Enter>"));
    assert!(live.text().contains("config; in branch what-if-1"), "{}", live.text());
    let mut live = live.keys("gc/percentage<Enter>");
    assert!(live.text().contains("37"), "{}", live.text());
    let mut live = live.keys("u");
    assert!(!live.text().contains("37"), "{}", live.text());
    std::fs::remove_file(&path).unwrap();
    let mut live = LiveInterface::wide("tour").keys(&format!(":what-if config @{name}<Enter>"));
    assert!(live.text().contains("there is no such file"), "{}", live.text());
    let mut live = live.keys(":what-if config packed.yaml<Enter>");
    assert!(live.text().contains("to load a file write config @packed.yaml"), "{}", live.text());
}

/// The guest accepts no node, as no name begins with the letter in its configuration.
#[cfg(feature = "wasm")]
#[test]
fn the_guests_of_another_configuration_run_until_it_is_undone() {
    let folder = tempfile::tempdir().unwrap();
    let guest = include_str!("../../../../docs/src/examples/wasm/own-nodes.wat");
    let guest_path = folder.path().join("own-nodes.wasm");
    std::fs::write(&guest_path, wat::parse_str(guest).unwrap()).unwrap();
    let text = include_str!("../../../../docs/src/examples/wasm/scheduler.yaml");
    let text = text.replace("own-nodes.wasm", &guest_path.display().to_string());
    let path = folder.path().join("scheduler.yaml");
    std::fs::write(&path, text.replace("guestConfig: a", "guestConfig: '~'")).unwrap();
    let line = format!(":what-if config @{}<Enter>", path.display());
    let mut live = LiveInterface::wide("tour").keys(&line);
    assert!(live.text().contains("config; in branch what-if-1"), "{}", live.text());
    let message = |live: &LiveInterface| {
        live.interface.driver.session.latest_record().unwrap().message.clone()
    };
    let live = live.keys("c");
    assert!(message(&live).contains("node is another team's"), "{}", message(&live));
    let live = live.keys("uc");
    assert!(!message(&live).contains("another team's"), "{}", message(&live));
}

#[test]
fn the_menu_of_the_configuration_switches_what_is_selected() {
    let mut live = LiveInterface::wide("tour").keys("gc/TaintToleration<Enter>m");
    let offered = "disable TaintToleration at Filter in default-scheduler";
    assert!(live.text().contains(offered), "{}", live.text());
    assert!(!live.text().contains("pod default/"), "{}", live.text());
    let mut live = live.keys("<Enter>");
    assert!(live.text().contains(&format!("{offered}; in branch what-if-1")), "{}", live.text());
    let mut live = live.keys("<Esc>/SchedulerAsyncPreemption<Enter>m");
    assert!(live.text().contains("feature SchedulerAsyncPreemption=false"), "{}", live.text());
    let mut live = live.keys("<Enter>");
    assert!(live.text().contains("feature SchedulerAsyncPreemption=false"), "{}", live.text());
    assert!(live.keys("<Esc>m").text().contains("config @"), "another one is always on offer");
}
